# Activations of 16 bits: one digest whatever moves or computes them, half the memory, learning as with
# fp32, and what is refused.
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/common.sh"
finds_a_disk
model="--layers 5 --hidden 24 --heads 4 --seq 9 --data stories:16K --tokenizer byte --eval-every 2
    --eval-batches 1 --sample 4"

backends='naive cpu'
for type in bf16 fp16; do
    for backend in $backends; do
        half="--backend $backend --dtype $type --activations $type --dropout 0.1"
        run="$half --steps 3 --micro-batch 2 --global-batch 6"
        list=$backend-$type

        # Three ranks
        ends_with $list 3 --stage 0 --collectives p2p
        ends_with $list 3 --stage 1 --partition owner --collectives shm --threads 3
        ends_with $list 3 --stage 2 --recompute --overlap off
        ends_with $list 3 --stage 3 --recompute --collectives hier --fake-nodes 2 --threads 2
        ends_with $list 3 --stage 3 --persist 500 --prefetch 3 --node-parameters
        n=5
        if [ -n "$disk" ]; then
            ends_with $list 3 --stage 1 --recompute --offload "$disk" --offload-activations
            ends_with $list 3 --stage 3 --recompute --offload "$disk" --offload-activations \
                --offload-parameters --overlap off
            n=7
        fi
        one $list $n "$list, three ranks"

        # Sums in slices: T does not matter, nor where pieces of activations are kept.
        run="$half --steps 2 --micro-batch 1 --global-batch 4 --reproducible --tp-slices 4"
        pieces="--recompute --partition-activations"
        ends_with tp-$list 1
        ends_with tp-$list 4 --stage 3 --recompute
        ends_with tp-$list 4 --tp 2 --stage 1 --threads 2
        ends_with tp-$list 4 --tp 4 --collectives p2p $pieces
        ends_with tp-$list 4 --tp 2 --stage 3 --collectives hier --fake-nodes 2 $pieces
        n=5
        if [ -n "$disk" ]; then
            ends_with tp-$list 4 --tp 4 $pieces --offload "$disk" --offload-activations
            n=6
        fi
        one tp-$list $n "$list, four slices"
    done

    # Others than with fp32
    run="--dtype $type --dropout 0.1 --steps 3 --micro-batch 2 --global-batch 6"
    ends_with exact 3
    digest_of out >exact-$type
    tail -n 1 cpu-$type >half-$type
    differ exact-$type half-$type "$type, activations of fp32"
    backends=cpu # both types take one way in naive
done

# What a run had is planned; units leave nothing undefined (the first step looks); a resumed run ends
# like one that never stopped.
half="--dtype bf16 --activations bf16 --global-batch 6 --micro-batch 2"
runs 3 train $model $half --stage 2 --recompute --steps 4 --metrics m
digest_of out >undisturbed
says '"activations":"bf16"' m
says 'activations of 16 bits' out
runs 3 train $model $half --stage 2 --steps 4 --checkpoint other --save-every 2
rm -r other/step-00000004
runs 3 train $model $half --stage 3 --steps 4 --checkpoint other --resume
digest_of out >resumed
same undisturbed resumed "resumed"
runs 3 train $model --steps 5 --activations fp32 --checkpoint other --resume
says '--activations fp32 (saved: bf16)' out
says ', --dtype bf16' out
verifies other
for n in 0 2; do
    runs $n generate other --dtype bf16 --activations bf16 --tokens 5 --prompt Once --stage 3
    cp out text$n
done
same text0 text2 "text"

# memory TYPE words...: prints peaks of the plan's classes, by `class bytes`.
memory() {
    type=$1
    shift
    runs 0 plan "$@" --dtype bf16 --activations $type --json
    tr -d ' \n' <out | sed 's/"classes":{/\n/; s/}}.*//' | sed -n 2p | tr '{}' '\n\n' >classes
    awk '/own_peak/ { sub(/"own_peak":/, ""); sub(/,.*/, ""); print name, $0 }
        /":$/ { gsub(/[",:]/, ""); name = $0 }' classes
}

# Exactly half of GPT-2 XL's, but for what stays fp32: lse [B, H, T] and the moments [4, B*T] of each
# block, and those of the head [2, B*T].
rows=$((4 * 1024)) heads=25 layers=48
for stage in 0 1 2 3; do
    xl="--model gpt2-xl --micro-batch 4 --ranks 4 --stage $stage"
    memory fp32 $xl >full
    memory bf16 $xl >halved
    fp32=$((rows * 4 * (layers * (heads + 4) + 2)))
    awk -v fp32=$fp32 -v name=activations 'NR == FNR { full[$1] = $2; next }
        $1 == name { found = 2 * ($2 - fp32) == full[$1] - fp32 }
        END { exit !found }' full halved || complain "$words: $(cat full halved)"
    memory fp32 $xl --recompute >full
    memory bf16 $xl --recompute >halved
    kept="$(awk '/kept/ { print $NF }' full) $(awk '/kept/ { print $NF }' halved)"
    [ "${kept% *}" -eq $((2 * ${kept#* })) ] || complain "$words: kept $kept"
done

# Two hundred steps end where those with fp32 do, within half a percent.
loss() { sed -n 's/^  loss *\([0-9.]*\).*/\1/p' out; }
tale="--layers 2 --hidden 48 --heads 4 --seq 32 --global-batch 8 --data stories:64K --eval-every 0
    --sample 0 --steps 200 --lr 3e-3 --quiet --dtype bf16"
runs 2 train $tale
exact=$(loss)
runs 2 train $tale --activations bf16
half=$(loss)
awk -v a="$exact" -v b="$half" 'BEGIN { exit !(a > 0 && b / a < 1.005 && a / b < 1.005) }' ||
    complain "loss after 200 steps: $exact with fp32 activations, $half with bf16"

# Any other pair of types is refused.
refuses 2 'give --dtype bf16' 0 train $tiny --activations bf16
refuses 2 'give --activations fp16 or fp32' 0 train $tiny --dtype fp16 --activations bf16
refuses 2 'give --activations bf16 or fp32' 0 plan --dtype bf16 --activations fp16
finish

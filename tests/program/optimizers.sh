# Optimizers: each has one digest for every stage, partition, type of place, number of threads, and with
# --reproducible for 1, 2 and 4 ranks. For Muon these are, one by one, what DeepSpeed had wrong in 2026:
# matrices across partitions (issue 7807), a silent AdamW (8438), no orthogonalisation at stage 0 (8441),
# accumulation at stage 3 (8443), checkpoints for other ranks (8608), stages that are refused (8090).
. "$(dirname "$0")/common.sh"
run="--layers 2 --hidden 40 --heads 4 --seq 16 --data stories:16K --tokenizer byte --eval-every 0 --sample 0"

digest() { # digest RANKS OPTIONS...: of a run of 3 steps
    ranks=$1
    shift
    runs "$ranks" train $run --steps 3 "$@" >&2
    sed -n 's/^  digest *//p' out
}

# agrees WANT RANKS OPTIONS...
agrees() {
    want=$1
    shift
    found=$(digest "$@")
    [ "$found" = "$want" ] || complain "$*: digest $found, expected $want"
}

others= # digests so far
for optimizer in muon lion sgd; do
    for type in fp32 bf16 fp16; do
        how="--optimizer $optimizer --dtype $type"
        one=$(digest 3 $how --global-batch 3)
        [ ${#one} -eq 32 ] || complain "$how: no digest: $one"
        case $others in *$one*) complain "$how: the digest of another optimizer or type" ;; esac
        others="$others $one"
        [ "$(digest 3 --dtype $type --global-batch 3)" != "$one" ] || complain "$how: that of AdamW"
        for stage in 1 2 3; do
            agrees "$one" 3 $how --global-batch 3 --stage $stage --partition owner
        done
        agrees "$one" 3 $how --global-batch 3 --stage 0 --partition owner --threads 2
        agrees "$one" 3 $how --global-batch 3 --stage 3 --partition owner --check-memory --check-replicas 1
    done
    # Accumulation: the same bits on 1, 2 and 4 ranks, at every stage.
    how="--optimizer $optimizer --dtype bf16 --reproducible --global-batch 8 --micro-batch 1"
    one=$(digest 1 $how)
    for stage in 0 1 2 3; do
        agrees "$one" 2 $how --stage $stage --partition owner --threads $((1 + stage % 2))
    done
    agrees "$one" 4 $how --stage 3 --partition owner --collectives p2p
    agrees "$one" 4 $how --stage 2 --partition owner --recompute
done

# Slices, files and shared models: of elements any cut will do.
for optimizer in lion sgd; do
    how="--optimizer $optimizer --dtype bf16 --global-batch 4"
    one=$(digest 2 $how)
    agrees "$one" 2 $how --stage 3
    agrees "$one" 2 $how --stage 2 --offload .
    agrees "$one" 2 $how --stage 3 --offload . --offload-parameters
    agrees "$one" 2 $how --stage 1 --offload . --offload-when end
    one=$(digest 1 $how --tp-slices 2)
    agrees "$one" 2 $how --tp 2 --tp-slices 2
done

# Iterations in bf16: other bits, one digest, too.
how="--optimizer muon --dtype bf16 --muon-type bf16 --global-batch 3 --hidden 64"
one=$(digest 3 $how)
agrees "$one" 3 $how --stage 2 --partition owner --threads 2
refuses 2 'only a run in bf16' 0 train $run --optimizer muon --muon-type bf16

# Beside a device the host's CPU updates: the fake one has the CPU's bits.
if "$zero" info --json | grep -q '"fake"'; then
    how="--dtype bf16 --activations fp32 --global-batch 3"
    for optimizer in muon lion; do
        one=$(digest 3 $how --optimizer $optimizer)
        for when in lazy end; do
            agrees "$one" 3 $how --optimizer $optimizer --device fake --offload host --offload-when $when \
                --stage 2 --partition owner --threads 2
        done
        refuses 2 'a device has a kernel of adamw alone' 0 train $run --optimizer $optimizer --device fake
    done
fi

# What Muon needs is told, with its price.
muon="train $run --optimizer muon --steps 1"
refuses 2 'slices cut each of them among 2 ranks' 2 $muon --stage 1 --global-batch 2
refuses 2 'would move' 2 $muon --stage 3 --global-batch 2
refuses 2 'of which each rank has a part' 2 $muon --tp 2 --global-batch 2
refuses 2 'in blocks of 262144' 0 $muon --offload .
refuses 2 'a device has a kernel of adamw alone' 0 plan $run --optimizer lion --device cuda --ranks 1
refuses 2 'expected one of adamw|muon|lion|sgd' 0 train $run --optimizer lamb
refuses 2 'zero verify knows the equations of adamw alone' 0 train $run --optimizer lion --record r

# A checkpoint: from 4 ranks at stage 3 to 2 at stage 1, to one, and as if it had never stopped.
for optimizer in muon lion; do
    how="--optimizer $optimizer --reproducible --global-batch 8 --micro-batch 1 --lr-decay none --warmup 1"
    whole=$(digest 1 $how --steps 6)
    runs 4 train $run $how --steps 3 --stage 3 --partition owner --checkpoint ck_$optimizer
    cp -r ck_$optimizer again
    runs 0 checkpoint verify ck_$optimizer
    runs 0 checkpoint show ck_$optimizer
    grep -q 'each as master' out || complain "show: no parts"
    runs 2 train --resume --checkpoint ck_$optimizer --steps 6 --stage 1 --partition owner
    [ "$(sed -n 's/^  digest *//p' out)" = "$whole" ] || complain "$how: resumed on 2 ranks, other bits"
    runs 0 train --resume --checkpoint again --steps 6
    [ "$(sed -n 's/^  digest *//p' out)" = "$whole" ] || complain "$how: resumed on one rank, other bits"
    refuses 2 "has the states of $optimizer" 0 train --resume --checkpoint again --steps 7 --optimizer sgd
    rm -r again
done

# Bytes: the plan's, the run's, and the formula's. Lion and SGD: 12 of bf16 instead of 16.
states() { # states OPTIONS...
    runs 0 plan --model gpt2 --ranks 1 --dtype bf16 --global-batch 1 --json "$@"
    tr -d ' \n' <out | sed 's/.*"formula":\([0-9]*\).*/\1/'
}
adamw=$(states)
psi=$((adamw / 16))
[ "$(states --optimizer lion)" -eq $((12 * psi)) ] || complain "lion: $(states --optimizer lion) bytes"
[ "$(states --optimizer muon)" -lt $((14 * psi)) ] || complain "muon: $(states --optimizer muon) bytes"
for optimizer in muon lion; do
    runs 3 train $run --optimizer $optimizer --dtype bf16 --global-batch 3 --steps 2 --stage 2 \
        --partition owner --metrics m
    check 3 2 m bits
done
finish

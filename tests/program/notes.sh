# Options without effect: each option of zero train alone, on one rank, either changes what the run is,
# does or shows, or is refused, or a note says that it has no effect there.
. "$(dirname "$0")/common.sh"

# seen: prints what a run is, does and shows, without times: its program with bytes, the arithmetic, each
# step's numbers, the digest and the planned ledgers from its metrics; and its output without numbers,
# without the head, which repeats options, and without the profile, whose rows are sorted by time.
seen() {
    sed -n -e 's/.*"schedule":/schedule /p' -e 's/^{"step":\(.*\)"step_seconds.*val/\1 val/p' \
        -e 's/^{"step":\(.*\)"step_seconds.*/\1/p' run.jsonl
    grep -o -e '"arithmetic":"[^"]*"' -e '"digest":"[^"]*"' -e '"planned[a-z_]*":[^,]*' run.jsonl
    awk 'body || !/^(zero| )/ { body = 1; print }' out |
        sed -e '/in a step of rank/,/^  memory/d' -e 's/[0-9. ]*//g'
}

# trains WORDS...: the run that the options are added to, with them.
shape="--layers 2 --hidden 24 --heads 2 --seq 16 --data stories:64K --tokenizer byte --global-batch 4"
trains() {
    rm -f run.jsonl
    # shellcheck disable=SC2086 # words
    run 0 train $shape $base --metrics run.jsonl "$@"
    seen >seen_now 2>/dev/null
}
base='--steps 4 --eval-every 2 --eval-batches 2 --sample 4'
seq 2000 >data
trains
exits 0
cp seen_now seen_first
trains
same seen_first seen_now 'the same run twice'
[ "$(grep -c '"loss"' seen_now)" -eq 4 ] && grep -q '"op":"UPDATE"' seen_now && grep -q '^step' seen_now ||
    complain "what is seen of a run lacks steps, the program or the output: $(head -c 300 seen_now)"

# A value for each option. "limit": it ends a run that goes beyond it, and this one does not.
cat >values <<'END'
model gpt2
layers 1
hidden 16
heads 1
architecture llama
kv-heads 1
head-size 8
inner 10
theta 9
norm-eps 0.01
rope-factor 8
rope-low 1
rope-high 4
rope-seq 16
rotary 0.5
tied off
seq 8
vocab 300
dropout 0.1
init-from nowhere
backend naive
bits portable
device nowhere
data self
val-data data
tokenizer bpe:300
shuffle on
seed 5
steps 2
global-batch 2
micro-batch 2
lr 0.01
lr-min 0.0001
lr-decay linear
warmup 2
optimizer lion
muon-scale original
muon-type bf16
beta1 0.8
beta2 0.9
eps 1e-6
weight-decay 0.2
clip 0.01
eval-every 3
eval-batches 3
eval-random on
stage 1
bucket 64
message 4096
dtype bf16
activations bf16
partition owner
prefetch 2
persist 1000000
overlap off
reproducible on
recompute on
memory-limit 1G limit
device-memory 1G
collectives p2p
device-exchange staged
fake-nodes 1
tp 2
tp-slices 2
partition-activations on
tp-across-nodes on
pp 2
pp-schedule gpipe
shard-ranks 1
node-parameters on
threads 2
offload nowhere
offload-when end
offload-parameters on
offload-activations on
offload-depth 2
delayed-update 2
checkpoint saved
save-every 2
save-minutes 1
save sync
keep 1
resume on
resume-older on
new-data on
token-bytes 4
save-required on
metrics nowhere/m
metrics-every 2
trace t.json
trace-steps 1-2
trace-ranks 0
record nowhere/r
narrate on
narrate-steps 2
log-every 2
sample 8
progress none
quiet on
expect-digest 00000000000000000000000000000000
watchdog 60 limit
check collectives
check-replicas 1
check-memory on
check-compute 1
progress-thread 1
config nowhere
END
cut -d ' ' -f 1 values | sort >listed
"$zero" info --defaults tiny | sed 's/^--\([^ ]*\).*/\1/' | sort >options
same options listed 'the options of zero train and the values in this test'
while read -r name value kind; do
    trains "--$name=$value"
    notes=$(grep -c "^zero: note: --$name .*\(has no effect\|shards nothing\)" err)
    if cmp -s seen_first seen_now; then changes=nothing; else changes=something; fi
    [ "$code" -eq 0 ] || changes=refused
    case "$changes, $notes notes$kind" in
        'something, 0 notes' | 'refused, 0 notes' | 'nothing, 1 notes' | 'nothing, 0 noteslimit') ;;
        *) complain "--$name $value: it changes $changes, $notes notes $kind" ;;
    esac
done <values

# Runs and plans in which options have no effect for other reasons: exactly these notes, a line each.
notes() {
    sort >expected
    runs "$@" </dev/null
    grep '^zero: note: ' err | sed 's/^zero: note: //' | sort >noted
    cmp -s noted expected || complain "$words: expected these notes: $(cat expected)"
}
three="--ranks 3 --global-batch 6"
notes 0 plan $three --fake-nodes 1 --bucket 64 --message 4K --stage 3 <<'END'
--bucket 64 has no effect with collectives shm, which add in place
--message 4000 has no effect with collectives shm, which send no messages
END
notes 0 plan $three --fake-nodes 1 --bucket 64 --stage 3 --device cuda </dev/null
notes 0 plan $three --bucket 4K --message 4K --stage 3 --prefetch 2 --persist 5 --tp 1 </dev/null
notes 0 plan $three --shard-ranks 3 --prefetch 2 --persist 5 --partition slice --stage 2 <<'END'
--persist 5 has no effect below stage 3: parameters are not sharded
--prefetch 2 has no effect below stage 3: parameters are not sharded
--shard-ranks 3 has no effect: that is all ranks
END
notes 0 plan $three --shard-ranks 1 --stage 2 <<'END'
--shard-ranks 1 shards nothing: each rank has a whole replica
END
notes 0 plan $three --partition owner <<'END'
--partition owner shards nothing at stage 0: it only changes which rank sums which gradients
END
notes 0 plan $three --partition owner --stage 1 </dev/null
notes 0 plan $three --shard-ranks 1 <<'END'
--shard-ranks 1 shards nothing at stage 0: it only changes which rank sums which gradients
END
notes 0 plan $three --prefetch 2 --stage all --json </dev/null
is_json out
notes 0 plan --ranks 2 --tp 2 --tp-across-nodes </dev/null
notes 0 plan --backend naive --threads 2 --offload . --offload-depth 2 --delayed-update 4 --steps 4 <<'END'
--delayed-update 4 has no effect: no step comes after that one
--threads 2 has no effect: one thread computes with this backend or device
END
notes 0 plan --offload . --delayed-update 3 --steps 4 --threads 2 </dev/null
notes 0 plan --device cuda --offload host --offload-depth 2 --threads 2 --offload-when end <<'END'
--offload-depth 2 has no effect with --offload host
END
notes 0 plan --device cuda --threads 2 <<'END'
--threads 2 has no effect: one thread computes with this backend or device
END
notes 0 simulate $three --network 1us,1G --flops 1G --stage 1 --prefetch 2 <<'END'
--prefetch 2 has no effect below stage 3: parameters are not sharded
END
notes 0 train $shape --steps 1 --eval-every 0 --eval-random --eval-batches 3 --val-data data --sample 0 \
    --lr-decay none --lr-min 1e-5 --progress none --log-every 1 <<'END'
--eval-batches 3 has no effect with --eval-every 0
--eval-random has no effect with --eval-every 0
--log-every 1 has no effect with --progress none
--lr-min 1e-05 has no effect with --lr-decay none
--val-data data has no effect with --eval-every 0
END
notes 0 train $shape --steps 1 --eval-every 0 --quiet --sample 4 --log-every 1 --progress lines <<'END'
--log-every 1 has no effect with --quiet
--progress lines has no effect with --quiet
--sample 4 has no effect with --quiet
END
notes 0 train $shape --steps 1 --eval-every 0 --quiet --sample 0 --progress none --prefetch 1 </dev/null
echo '{"narrate-steps": 2}' >two.json
notes 3 train --model lesson --data lesson --fake-nodes 1 --steps 1 --config two.json <<'END'
--fake-nodes 1 has no effect: there is one node
--narrate-steps 2 has no effect without --narrate
END
notes 3 train --model lesson --data lesson --steps 2 --config two.json --narrate --fake-nodes 3 </dev/null
finish

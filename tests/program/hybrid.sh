# Hybrid sharding through the program: whatever ranks shard together, and whatever nodes keep, a run ends
# in one digest, moves the bytes that were planned, and resumes in any other layout.
. "$(dirname "$0")/common.sh"
model="--layers 2 --hidden 32 --heads 8 --seq 8 --data stories:16K --tokenizer byte --eval-every 0
    --sample 0 --global-batch 8 --micro-batch 1"

# trains STEPS words...: on eight ranks; STEPS.jsonl gets the metrics.
trains() {
    steps=$1
    shift
    # shellcheck disable=SC2086 # words
    runs 8 train $model --steps "$steps" --metrics "$steps.jsonl" "$@"
}

# ends_alike words...: three steps end with the digest in the file `wanted`.
ends_alike() {
    trains 3 "$@"
    digest_of out >found
    same wanted found "$words"
}

# as_planned words...: the same, and the third step moves what `zero plan` says. The file `moved` gets a
# line for each collective: its name, the bytes sent in a step, and those of them to other nodes.
as_planned() {
    trains 2 "$@"
    ends_alike "$@"
    mv out run.out
    # shellcheck disable=SC2086 # words
    runs 0 plan $model --ranks 8 --peers --json "$@"
    "$checker" step out 2.jsonl 3.jsonl >moved 2>checked ||
        complain "$words: $(cat checked)"
}

# across OP: bytes of the last step to other nodes.
across() {
    sed -n "s/^$1 [0-9]* //p" moved
}

# ---- one digest, and bytes as planned ----

trains 3
digest_of out >wanted
ends_alike --stage 0 --shard-ranks 2 --fake-nodes 2
says '4 replicas of 2 ranks' out
says 'N = 8 is K = 4 replicas of R = 2 neighbours' out
as_planned --stage 1 --shard-ranks 4 --fake-nodes 2
ends_alike --stage 2 --shard-ranks 2 --fake-nodes 4 --check collectives
says 'all-reduced' out
as_planned --stage 3 --shard-ranks 4 --fake-nodes 4
as_planned --stage 3 --fake-nodes 2
gathered=$(across gather)
as_planned --stage 3 --fake-nodes 2 --node-parameters
[ "$(across gather)" -lt "$gathered" ] || complain "$words: as many bytes gathered between nodes"
as_planned --stage 3 --fake-nodes 2 --shard-ranks 4
for op in reduce gather; do
    [ "$(across $op)" -eq 0 ] || complain "$words: $op leaves the node of its shard group"
done
[ "$(across all_reduce)" -gt 0 ] || complain "$words: replicas exchange nothing"
says '"shards":{"ranks":4,"replicas":2}' 3.jsonl

trains 3 --dtype bf16
digest_of out >wanted
as_planned --dtype bf16 --stage 3 --shard-ranks 2 --fake-nodes 2
ends_alike --dtype bf16 --stage 3 --shard-ranks 1 --collectives p2p --overlap off
ends_alike --dtype bf16 --stage 3 --shard-ranks 4 --fake-nodes 4 --node-parameters

# ---- a checkpoint resumes in any other layout ----

batch="$model --reproducible --tp-slices 4 --steps 4"
# shellcheck disable=SC2086 # words
runs 8 train $batch
digest_of out >wanted
goes_on_to 1 8 --stage 3 --shard-ranks 2 --fake-nodes 2
goes_on_to 2 4 --stage 2 --tp 2 --shard-ranks 1 --resume
says '--shard-ranks 1 (saved: 2)' out
goes_on_to 3 8 --stage 3 --tp 2 --shard-ranks 2 --fake-nodes 4 --resume
says '2 replicas of 2 x 2 ranks' out
goes_on_to 4 8 --stage 3 --fake-nodes 2 --node-parameters --resume
says '--node-parameters on (saved: off)' out
digest_of out >found
same wanted found "a chain of layouts"
verifies run

# ---- plans ----

gpt2="--model gpt2 --tokenizer byte --ranks 16 --fake-nodes 2"
# shellcheck disable=SC2086 # words
runs 0 plan $gpt2 --stage 3 --network 1e-5,0.125G --node-network 1e-6,5G --flops 10T
for word in 'to spare the network' '--node-parameters' '--shard-ranks 8'; do says "$word" out; done
grep -q 'in a node' out && complain "$words: no group lies on one node"
# shellcheck disable=SC2086 # words
for stage in 3 all; do
    runs 0 plan $gpt2 --stage $stage --shard-ranks 8 --network 1e-5,0.125G --flops 10T
    says '(in a node the same; --node-network gives its own rate)' out
    runs 0 plan $gpt2 --stage $stage --shard-ranks 8 --network 1e-5,0.125G \
        --node-network 1e-6,5G --flops 10T
    says '(in a node: 1e-06 s per message, 5e+09 bytes/s)' out
done
runs 0 plan $gpt2 --stage 3 --network 1e-5,0.125G --node-network 1e-6,5G --flops 1G
grep -q 'to spare the network' out && complain "$words: advice where nothing waits"
runs 0 plan $gpt2 --stage 3 --shard-ranks 4 --memory-limit 1G
for word in 'K = 4 replicas of R = 4' 'for N_d = R = 4' ' ALL_REDUCE ' 'all three' \
    'without --shard-ranks'; do
    says "$word" out
done
runs 0 plan $gpt2 --stage all --shard-ranks 4
grep -q 'partition owner' out && complain "$words: replicas with --partition owner"
narrow 110 out
runs 0 plan $gpt2 --stage 2 --shard-ranks 4 --show-schedule
says 'ALL_REDUCE, REDUCE and GATHER send' out
tr -s ' ' <out | grep -q ' ALL_REDUCE_WAIT block 3 0 ' || complain "$words: no sum over replicas"
runs 0 plan $gpt2 --stage 3 --node-parameters
says ', node parameters' out

# ---- refused, with the numbers ----

refuses 2 'give --fake-nodes K' 0 plan --ranks 4 --stage 3 --node-parameters

refuses 2 '--shard-ranks 3 of 4 ranks: it does not divide them (3 x 1 + 1); give 2, or 4 (all)' \
    4 train $tiny --shard-ranks 3
refuses 2 'no two ranks that shard together share' 2 train $tiny --stage 3 --node-parameters \
    --fake-nodes 2
finish

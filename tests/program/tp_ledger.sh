# Tensor parallelism and pipelines: the plan gives the traffic and the peak of memory that a run then measures.
. "$(dirname "$0")/common.sh"
shape="--layers 2 --hidden 48 --seq 16 --data stories:16K --tokenizer byte --global-batch 4
    --eval-every 0 --sample 0"

# of OPERATION KEY FILE: a number of the ledger of this operation.
of() {
    tr -d '\n' <"$3" | sed -n "s/.*\"$1\": *{\([^}]*\)}.*/\1/p" |
        sed -n "s/.*\"$2\": *\([0-9]*\).*/\1/p"
}

# agrees RANKS NODES words...
agrees() {
    ranks=$1
    nodes=$2
    shift 2
    for steps in 2 3; do
        # shellcheck disable=SC2086 # words
        runs "$ranks" train $shape --steps $steps --fake-nodes "$nodes" --metrics m.jsonl "$@"
        cp out run.out
        cp m.jsonl "steps$steps.jsonl"
        tail -n 1 m.jsonl | sed 's/"inside_nodes":{[^}]*},"across_nodes":{[^}]*},//g' >run$steps.json
    done
    # shellcheck disable=SC2086 # words
    runs 0 plan $shape --ranks "$ranks" --fake-nodes "$nodes" --peers --json "$@"
    mv out plan.json
    : >out
    "$checker" step plan.json steps2.jsonl steps3.jsonl >moved 2>checked ||
        complain "$words: $(cat checked)"
    for op in reduce gather join collect send receive control; do
        # One rank per TP group joins nothing, and wholes are not collected.
        grep -q "\"$op\"" plan.json run3.json || continue
        for key in bytes_sent bytes_received messages_sent; do
            last=$(of $op $key run3.json)
            [ "$(of $op planned_$key run3.json)" = "$last" ] || [ $op = control ] ||
                complain "$words: $op, $key: not as the run planned"
            [ $op = control ] && key=programs_$key
            step=$(($(of $op $key run3.json) - $(of $op $key run2.json)))
            [ "$(of $op "${key#programs_}" plan.json)" = $step ] ||
                complain "$words: $op, $key: $step, and the plan says $(of $op "${key#programs_}" plan.json)"
        done
    done
    planned=$(tr -d '\n' <plan.json | sed -n 's/.*"peak": *{ *"bytes": *\([0-9]*\).*/\1/p')
    measured=$(sed -n 's/.*"measured_peak_bytes": *\([0-9]*\).*/\1/p' run3.json)
    [ "$planned" = "$measured" ] || complain "$words: peak $measured measured, $planned planned"
}

agrees 2 1 --heads 4 --tp 2 --collectives p2p --recompute --partition-activations
kept=$(sed -n 's/.*"measured_bytes":{[^}]*"activations kept":\([0-9]*\).*/\1/p' run3.json)
[ "$kept" = $((2 * 4 * 16 * 48 * 4 / 2)) ] || complain "$words: keeps $kept bytes"
[ "$(of collect bytes_sent run3.json)" = $((3 * 2 * 4 * 16 * 48 * 4 / 2)) ] ||
    complain "$words: collects $(of collect bytes_sent run3.json) bytes"
sed 's/.*"COLLECT":{//; s/"COLLECT_WAIT".*//' run3.json | grep -q '"bytes_sent":[1-9]' ||
    complain "$words: the profile has no bytes of COLLECT"
agrees 3 1 --heads 3 --tp 3 --tp-slices 3 --stage 3
agrees 4 2 --heads 4 --tp 2 --tp-slices 4 --stage 2 --dtype bf16
agrees 4 2 --heads 4 --tp 4 --tp-across-nodes --stage 1 --micro-batch 1 --recompute \
    --partition-activations
agrees 4 1 --heads 4 --tp 2 --recompute --partition-activations
[ "$(of collect bytes_sent run3.json)" = 0 ] || complain "$words: COLLECT moves bytes"
says 'once in the node' run.out
agrees 2 1 --heads 4 --tp-slices 4 --stage 3
agrees 4 2 --heads 4 --pp 2 --stage 1
agrees 4 1 --heads 4 --pp 2 --tp 2 --recompute --partition-activations
agrees 2 1 --heads 4 --pp 2 --pp-schedule gpipe --micro-batch 1 --recompute --dtype bf16

# The head of the run and its end say what is shared.
# shellcheck disable=SC2086 # words
runs 4 train $shape --heads 4 --steps 1 --tp 2 --metrics m.jsonl
for word in '2 x 2 ranks' 'T = 2 neighbours' 'in S = 2 slices' 'joined in the TP group' '  joined ' \
    'ranks / --tp x microbatches'; do
    says "$word" out
done
says '"tp":{"ranks":2,"slices":2}' m.jsonl
says '"JOIN_WAIT"' m.jsonl
finish

# Pipelines through the program: every --pp ends in one digest, in all that it can be combined with,
# and sends what was planned; what it cannot be combined with is refused.
. "$(dirname "$0")/common.sh"
small="--hidden 32 --heads 4 --seq 16 --data stories:16K --tokenizer byte --eval-every 0"
model="--layers 4 $small"

# Initial weights do not know P.
run="--steps 0 --global-batch 8"
for pp in 1 2 4; do ends_with initial 4 --pp $pp; done
one initial 3 "initial weights"

# Eight microbatches of a step, on 1 to 4 ranks: one tree, whatever the stages.
run="--steps 4 --global-batch 8 --micro-batch 1 --reproducible --dropout 0.1"
for type in fp32 bf16; do
    ends_with $type 1 --dtype $type
    ends_with $type 2 --dtype $type --stage 1
    ends_with $type 2 --dtype $type --pp 2
    ends_with $type 2 --dtype $type --pp 2 --pp-schedule gpipe --recompute
    ends_with $type 4 --dtype $type --pp 2 --stage 1
    ends_with $type 4 --dtype $type --pp 2 --fake-nodes 2 --collectives hier --message 4K
    ends_with $type 4 --dtype $type --pp 4 --recompute --check collectives
    ends_with $type 4 --dtype $type --pp 4 --pp-schedule gpipe --stage 1 --overlap off
    one $type 8 "$type, reproducible"
done

# Words that are tied and words that are not, on an odd number of stages and beside three ranks.
# Without --reproducible the sums are those of the same ranks without pipelines.
model="--model tiny-llama --layers 3 $small"
run="--steps 4 --global-batch 12 --micro-batch 1"
for tied in on off; do
    ends_with llama$tied 1 --tied $tied
    ends_with llama$tied 3 --tied $tied --pp 3
    ends_with llama$tied 3 --tied $tied --pp 3 --pp-schedule gpipe
    one llama$tied 3 "llama, tied $tied"
done
differ llamaon llamaoff 'tied words'
model="--layers 4 $small"
for replicas in 1 2; do
    ends_with of$replicas $replicas
    ends_with of$replicas $((2 * replicas)) --pp 2
    ends_with of$replicas $((2 * replicas)) --pp 2 --stage 1 --progress-thread 1
    one of$replicas 3 "$replicas ranks in each stage"
done

# All that is not time is that of one rank, evaluations too. What is sent is what was planned.
of() { # of OPERATION KEY FILE: a number of the ledger of this operation.
    tail -n 1 "$3" | sed 's/"inside_nodes":{[^}]*},"across_nodes":{[^}]*},//g' |
        sed -n "s/.*\"$1\": *{\([^}]*\)}.*/\1/p" | sed -n "s/.*\"$2\": *\([0-9]*\).*/\1/p"
}
run="--global-batch 8 --micro-batch 1 --steps 4 --eval-every 2 --eval-batches 1 --reproducible"
for pp in 1 2 4; do
    # shellcheck disable=SC2086 # words
    runs $pp train $model $run --pp $pp --metrics m$pp
    grep -o '"\(loss\|grad_norm\|eval_loss\|val_loss\)": *[-0-9.e]*' m$pp >numbers$pp
done
same numbers1 numbers2 'losses and norms of two stages'
same numbers1 numbers4 'losses and norms of four stages'
[ "$(grep -c loss numbers1)" -ge 5 ] || complain "no evaluations in $(cat numbers1)"
for key in bytes_sent messages_sent bytes_received messages_received; do
    for op in send receive; do
        [ "$(of $op planned_$key m4)" = "$(of $op $key m4)" ] || complain "$op, $key: not as planned"
    done
done
# A trace has the spans of all stages, each by its own program.
# shellcheck disable=SC2086 # words
runs 4 train $model $run --pp 4 --trace t.json
is_trace t.json
runs 0 report --trace t.json
says 'began last' out
grep -q '"RECEIVE_WAIT' t.json || complain 'no span of RECEIVE_WAIT'
# Stage 0 sends an output, and the gradient of the embedding's, for each microbatch; two evaluations
# of one batch send outputs alone. It gets parameters at the start and after each step.
message=$((16 * 32 * 4))
[ "$(of send bytes_sent m4)" = $((message * (4 * 8 * 2 + 2 * 8))) ] ||
    complain "stage 0 sends $(of send bytes_sent m4)"

# A checkpoint resumes with any other P, N and stage, and its digest is that of a run that never
# stopped.
saves() { # saves N words...: six steps; `resumed` gets the digest
    n=$1
    shift
    # shellcheck disable=SC2086 # words
    runs "$n" train $model $batch --steps 6 --checkpoint saved --save-every 3 --keep 9 "$@"
    digest_of out >resumed
}
batch="--global-batch 8 --micro-batch 1 --reproducible --dropout 0.1 --dtype bf16"
saves 4 --pp 4
mv resumed undisturbed
verifies saved
runs 0 generate saved --prompt Once --tokens 12
mv out text
for layout in "4 4 1" "4 2 1" "2 2 0" "4 1 3" "1 1 0"; do
    set -- $layout
    rm -rf first && cp -r saved first && rm -r first/step-00000006
    mv saved kept && mv first saved
    saves "$1" --pp "$2" --stage "$3" --resume
    same undisturbed resumed "resumed on $1 ranks with --pp $2, stage $3"
    verifies saved
    runs 0 generate saved --prompt Once --tokens 12
    same text out "text of $1 ranks with --pp $2"
    rm -r kept
done

# A rank that is killed ends the job, and a stopped one is named.
for signal in KILL STOP; do
    rm -f pid.*
    # shellcheck disable=SC2016,SC2086 # expanded by the ranks; words
    on 4 sh -c 'echo $$ >"pid.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"; exec "$0" "$@"' "$zero" train \
        $model --global-batch 8 --micro-batch 1 --pp 4 --steps 1000000 --watchdog 10 --metrics m \
        >out 2>err &
    job=$!
    words="four stages, SIG$signal"
    await 60 grep -qs '"step": *3,' m || complain "$words: no steps"
    kill -$signal "$(cat pid.2)"
    wait $job
    code=$?
    legible err
    [ $code -ne 0 ] || complain "$words: ended with 0"
    [ $signal = KILL ] || { exits 86 && says 'rank 2 does not answer' err; }
    rm m
done

refuses 2 '--pp 3 does not divide 4 ranks: start 3 ranks' 4 train $model --pp 3
refuses 2 '--pp 5: each stage has a block of the model or more, and there are 4' 5 train $model --pp 5
refuses 2 '--stage 2 with --pp 2: a rank would send about' 4 train $model --pp 2 --stage 2
refuses 2 'of gradients and parameters for each of its 4 microbatches' 4 train $model --pp 2 \
    --stage 3 --global-batch 8 --micro-batch 1
refuses 2 '--global-batch 5 is not a multiple of --micro-batch 2 x 2 (4 ranks / --pp 2)' 4 train \
    $model --pp 2 --global-batch 5 --micro-batch 2
refuses 2 '--pp 2 with --tp' 4 train $model --pp 2 --tp 2
refuses 2 '--pp 2 with --shard-ranks' 4 train $model --pp 2 --shard-ranks 1
refuses 2 '--pp 2 with --partition owner' 2 train $model --pp 2 --partition owner
refuses 2 '--pp 2 with --offload' 2 train $model --pp 2 --offload .
refuses 2 '--pp 2 with --record: pipelines do not have it yet' 0 train $model --pp 2 --record file
refuses 2 '--pp 2 with --sample' 0 train $model --pp 2 --sample 5
finish

# Pipelines through the program: every --pp ends in one digest, in all that it can be combined with,
# and sends what was planned; what it cannot be combined with is refused.
. "$(dirname "$0")/common.sh"
small="--hidden 32 --heads 4 --seq 16 --data stories:16K --tokenizer byte --eval-every 0 --sample 0"
model="--layers 4 $small"

# Initial weights do not know P.
run="--steps 0 --global-batch 8"
for pp in 1 2 4; do ends_with initial 4 --pp $pp; done
one initial 3 "initial weights"

# Eight microbatches of a step, on 1 to 4 ranks: one tree, whatever the stages, and where states are.
# Which products of bf16 a run takes is tried out, and a busy machine may disturb that: bits are portable.
finds_a_disk
run="--steps 4 --global-batch 8 --micro-batch 1 --reproducible --dropout 0.1 --bits portable"
for type in fp32 bf16; do
    ends_with $type 1 --dtype $type
    ends_with $type 2 --dtype $type --stage 1
    ends_with $type 2 --dtype $type --pp 2
    ends_with $type 2 --dtype $type --pp 2 --pp-schedule gpipe --recompute ${disk:+--offload "$disk"}
    ends_with $type 4 --dtype $type --pp 2 --stage 1 --shard-ranks 1 --check-memory --check-replicas 1
    ends_with $type 4 --dtype $type --pp 2 --fake-nodes 2 --collectives hier --message 4K
    ends_with $type 4 --dtype $type --pp 4 --recompute --check collectives
    ends_with $type 4 --dtype $type --pp 4 --pp-schedule gpipe --stage 1 --overlap off \
        ${disk:+--offload "$disk" --offload-when end}
    one $type 8 "$type, reproducible"
done

# Beside tensor parallelism, whose slices define the sums.
for type in fp32 bf16; do
    of="--dtype $type --tp-slices 4"
    # shellcheck disable=SC2086 # words
    {
        ends_with sliced$type 1 $of
        ends_with sliced$type 2 $of --pp 2
        ends_with sliced$type 4 $of --pp 2 --tp 2 --recompute --partition-activations
        ends_with sliced$type 8 $of --pp 2 --tp 2 --stage 1 --fake-nodes 2 --collectives p2p
        ends_with sliced$type 8 $of --pp 4 --tp 2 --pp-schedule gpipe --overlap off
    }
    one sliced$type 5 "$type, four slices"
done

# A device, the fake one.
if "$zero" info | grep -q '^devices .*fake'; then
    run="--steps 4 --global-batch 8 --micro-batch 1 --reproducible --dropout 0.1 --dtype bf16"
    ends_with fake 1 --device fake
    ends_with fake 2 --device fake --pp 2
    ends_with fake 4 --device fake --pp 2 --stage 1 --offload host
    one fake 3 'on the fake device'
fi

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
ends_with cut 1 --tp-slices 2
ends_with cut 6 --tp-slices 2 --tp 2 --pp 3 --recompute
one cut 2 'llama in two parts'
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
# Texts and the last step's file are those of one rank, and a trace has the spans of all stages, each by
# its own program.
for pp in 1 4; do
    # shellcheck disable=SC2086 # words
    runs $pp train $model $run --pp $pp --trace t.json --sample 12 --record step$pp
    sed -n '/^---- /,/^----$/p' out >text$pp
    is_trace t.json
done
same text1 text4 'texts of four stages'
[ "$(wc -l <text4)" -ge 3 ] || complain "no texts in $(cat text4)"
same step1 step4 'the step file of four stages'
runs 0 verify step4
runs 0 report --trace t.json
says 'began last' out
grep -q '"RECEIVE_WAIT' t.json || complain 'no span of RECEIVE_WAIT'
# Stage 0 sends an output, and the gradient of the embedding's, for each microbatch; two evaluations
# of one batch send outputs alone. It gets parameters at the start and after each step.
message=$((16 * 32 * 4))
[ "$(of send bytes_sent m4)" = $((message * (4 * 8 * 2 + 2 * 8))) ] ||
    complain "stage 0 sends $(of send bytes_sent m4)"

# Each stage tells its own program, and to whom it sends.
runs 4 train --model lesson --data lesson --layers 2 --steps 1 --pp 2 --narrate --global-batch 4 \
    --micro-batch 1 --sample 0
says 'pipeline stage 0, step 1, told by 2 ranks' out
says 'rank 1 -> 3: ' out
sed -n '/pipeline stage 1,/,$p' out >last
says 'loss of its sample: rank 2: ' last
says 'rank 2 -> 0: ' last

# A checkpoint resumes with any other P, N, T and stage, and its digest is that of a run that never
# stopped.
saves() { # saves N words...: six steps; `resumed` gets the digest
    n=$1
    shift
    # shellcheck disable=SC2086 # words
    runs "$n" train $model $batch --steps 6 --checkpoint saved --save-every 3 --keep 9 "$@"
    digest_of out >resumed
}
batch="--global-batch 8 --micro-batch 1 --reproducible --dropout 0.1 --dtype bf16 --tp-slices 4 --bits portable"
saves 8 --pp 4 --tp 2
mv resumed undisturbed
verifies saved
runs 0 generate saved --prompt Once --tokens 12
mv out text
for layout in "4 4 1 1" "4 2 1 1" "4 2 0 2" "2 1 0 2" "4 1 3 1" "1 1 0 1"; do
    set -- $layout
    rm -rf first && cp -r saved first && rm -r first/step-00000006
    mv saved kept && mv first saved
    saves "$1" --pp "$2" --stage "$3" --tp "$4" --resume
    same undisturbed resumed "resumed on $1 ranks with --pp $2, stage $3, --tp $4"
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
refuses 2 '--pp 2 x --tp 2 does not divide 6 ranks: start 4 ranks' 6 train $model --pp 2 --tp 2
refuses 2 '1 x 2 (8 ranks / --pp 2 / --tp 2)' 8 train $model --pp 2 --tp 2 --global-batch 5 \
    --micro-batch 1
refuses 2 '--partition owner: that cuts the model once' 2 train $model --pp 2 --partition owner
finish

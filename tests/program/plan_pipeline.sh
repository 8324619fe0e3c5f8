# zero plan --pipeline: GPipe and 1F1B beside ZeRO's stages, their programs, and what is refused.
. "$(dirname "$0")/common.sh"
export OMPI_MCA_pml=none # a plan starts no MPI
shape="--layers 6 --hidden 48 --heads 4 --seq 32 --vocab 100"

# values KEY: the numbers of all members of the last JSON with that name.
values() {
    sed -n "s/^ *\"$1\": *\([0-9.]*\),*$/\1/p" out | tr '\n' ' '
}

# equals NAME FOUND EXPECTED
equals() {
    [ "$2" = "$3" ] || complain "$words: $1 is '$2', expected $3"
}

# 3 stages of 2 blocks, 2 replicas: 4 microbatches per rank are 12 per pipeline. Both schedules
# have the bubble's formula (3-1) / (12+3-1), and keep 12 microbatches, or 3, 2, 1.
batch="--micro-batch 1 --global-batch 24"
# shellcheck disable=SC2086 # words
runs 0 plan $shape $batch --ranks 6 --pipeline 3 --recompute --network 1e-6,1G --flops 1G
narrow 100 out
for word in 'P = 3 stages x D = 2 replicas' 'm = 12 microbatches of 1 sequence per' gpipe 1f1b \
    'between stages' 'microbatches alive' '(P-1) / (m+P-1)' '14.3 %' 'bubble and exposed' \
    'in each line the stage' 'stages that compute equally long'; do
    says "$word" out
done
tr -s ' ' <out >squeezed
says 'microbatches alive 12 3 1 1 1 1' squeezed
# shellcheck disable=SC2086 # words
runs 0 plan $shape $batch --ranks 6 --pipeline 3 --recompute --network 1e-6,1G --flops 1G --json
is_json out
equals alive "$(values microbatches_alive)" '12 12 12 3 2 1 '
equals formula "$(values microbatches_alive_formula)" '12 12 12 3 2 1 '
message=$((12 * 32 * 48 * 4))
equals activations "$(values activation_bytes_sent)" \
    "$message $message 0 $message $message 0 "
equals gradients "$(values gradient_bytes_sent)" "0 $message $message 0 $message $message "
tied=$(((132 * 48 + 127) / 128 * 128 * 4)) # the embedding's parameters, padded for two ranks
equals tied "$(values tied_bytes_sent)" "$message 0 $tied $message 0 $tied "

# The stages of ZeRO beside pipelines are those without them.
tr -d '\n' <out | grep -o '"peak": *{ *"bytes": *[0-9]*' >beside
# shellcheck disable=SC2086 # words
runs 0 plan $shape $batch --ranks 6 --stage all --recompute --json
tr -d '\n' <out | grep -o '"peak": *{ *"bytes": *[0-9]*' >alone
same beside alone 'peaks of stages'

# Programs of the stage of a rank: rank 5 is the second replica of the last stage.
# shellcheck disable=SC2086 # words
runs 0 plan $shape $batch --ranks 6 --pipeline 3 --rank 5 --show-schedule
narrow 100 out
for word in 'gpipe, stage 2 of 3' '1f1b, stage 2 of 3' 'RECEIVE         block 3' 'FORWARD         block 4' \
    'SEND            embedding' 'peak'; do
    says "$word" out
done
# The last stage of 1F1B ends each microbatch before the next one.
sed -n '/^1f1b/,$p' out | grep -o ' FORWARD  *head\| BACKWARD  *head' | tr -d ' \n' | sed 's/head//g' >passes
equals 'the order' "$(sed 's/FORWARDBACKWARD//g' passes)" ''
# shellcheck disable=SC2086 # words
runs 0 plan $shape $batch --ranks 6 --pipeline 3 --show-schedule --json
is_json out
says '"op": "SEND"' out

refused() { # refused TEXT words...
    text=$1
    shift
    # shellcheck disable=SC2086 # words
    refuses 2 "$text" 0 plan $shape --ranks 6 "$@"
}
refused '--pipeline 4: 6 ranks cannot be divided among 4 stages' --pipeline 4
refused '--pipeline with --machine: it puts ranks on shared nodes' --pipeline 3 \
    --machine v100-dgx2 --dtype fp16
refuses 2 'there are 2; expected 2 to 2' 0 plan --layers 2 --ranks 6 --pipeline 6
refused '--pipeline 1: expected a whole number from 2' --pipeline 1
refused '--pipeline with --stage' --pipeline 3 --stage 1
refused '--pipeline with --stage' --pipeline 3 --stage all
refused '--pipeline with --chart' --pipeline 3 --chart
refused '--pipeline with --fit' --pipeline 3 --fit 1G
refused '--pipeline with --memory-limit' --pipeline 3 --memory-limit 1G
refused '--pipeline with --tp' --pipeline 3 --tp 2
refused '--pipeline with --device' --pipeline 3 --device cuda
refused '--pipeline with --offload' --pipeline 3 --offload .
refused '--pipeline with --reproducible' --pipeline 3 --reproducible
refused '--pipeline with --partition owner' --pipeline 3 --partition owner
refused '--pipeline with --fake-nodes' --pipeline 3 --fake-nodes 2
refused 'takes no other options' --pipeline 3 --models
refuses 2 '--pipeline: no such option' 0 train --pipeline 2
finish

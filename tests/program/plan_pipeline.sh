# zero plan --pp: GPipe and 1F1B beside ZeRO's stages (--stage all), a stage's program, and what is
# refused.
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
runs 0 plan $shape $batch --ranks 6 --pp 3 --stage all --recompute --network 1e-6,1G --flops 1G
narrow 100 out
for word in 'P = 3 stages x D = 2 replicas' 'm = 12 microbatches of 1 sequence per' gpipe 1f1b \
    'between stages' 'microbatches alive' '(P-1) / (m+P-1)' '14.3 %' 'bubble and exposed' \
    'in each line the stage' 'stages that compute equally long'; do
    says "$word" out
done
tr -s ' ' <out >squeezed
says 'microbatches alive 12 3 1 1 1 1' squeezed
# shellcheck disable=SC2086 # words
runs 0 plan $shape $batch --ranks 6 --pp 3 --stage all --recompute --network 1e-6,1G --flops 1G --json
is_json out
equals alive "$(values microbatches_alive)" '12 12 12 3 2 1 '
equals formula "$(values microbatches_alive_formula)" '12 12 12 3 2 1 '
message=$((12 * 32 * 48 * 4))
equals activations "$(values output_bytes)" "$message $message 0 $message $message 0 "
equals gradients "$(values gradient_bytes)" "0 $message $message 0 $message $message "
tied=$(((132 * 48 + 127) / 128 * 128 * 4)) # the embedding's parameters, padded for two ranks
equals 'of the embedding' "$(values first_gradient_bytes)" "$message 0 0 $message 0 0 "
equals tied "$(values parameter_bytes)" "0 0 $tied 0 0 $tied "

# The stages of ZeRO beside pipelines are those without them, and those of pipelines what a plan of
# their ranks says.
peaks() {
    tr -d '\n' <out | grep -o '"peak": *{ *"bytes": *[0-9]*' | tr -d ' '
}
peaks >beside
# shellcheck disable=SC2086 # words
runs 0 plan $shape $batch --ranks 6 --stage all --recompute --json
peaks >alone
for kind in gpipe 1f1b; do
    for rank in 1 3 5; do
        # shellcheck disable=SC2086 # words
        runs 0 plan $shape $batch --ranks 6 --pp 3 --pp-schedule $kind --rank $rank --recompute --json
        peaks >>alone
    done
done
sort beside >peaks_beside
sort alone >peaks_alone
same peaks_beside peaks_alone 'peaks of stages'

# Programs of the stage of a rank: rank 5 is the second replica of the last stage.
# shellcheck disable=SC2086 # words
runs 0 plan $shape $batch --ranks 6 --pp 3 --rank 5 --show-schedule
for word in 'RECEIVE         block 3' 'FORWARD         block 4' 'SEND            embedding' 'peak'; do
    says "$word" out
done
# The last stage of 1F1B ends each microbatch before the next one; evaluations and texts only go forward.
grep -o ' FORWARD  *head\| BACKWARD  *head' out | tr -d ' \n' | sed 's/head//g' >passes
equals 'the order' "$(sed 's/FORWARDBACKWARD//g; s/\(FORWARD\)*$//' passes)" ''
# shellcheck disable=SC2086 # words
runs 0 plan $shape $batch --ranks 6 --pp 3 --rank 5
says 'stage 2 of 3 (1f1b): block 4 to head; 1 microbatch alive at most' out

refused() { # refused TEXT words...
    text=$1
    shift
    # shellcheck disable=SC2086 # words
    refuses 2 "$text" 0 plan $shape --ranks 6 "$@"
}
refused '--pp 4 does not divide 6 ranks' --pp 4 --stage all
refuses 2 'there are 2; expected 1 to 2' 0 plan --layers 2 --ranks 6 --pp 6 --stage all
refused '--pp with --stage all shows' --pp 3 --stage all --chart
refused '--pp with --stage all shows' --pp 3 --stage all --show-schedule
refused '--pp with --stage all shows' --pp 3 --stage all --fit 1G
refused '--pp with --stage all shows' --pp 3 --stage all --memory-limit 1G
refused '--pp 3 with --partition owner' --pp 3 --stage all --partition owner
finish

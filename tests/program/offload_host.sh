# Optimizer states in the host's memory beside a device, through the program: what is refused, what a run
# and a plan say, and that a run may be resumed with or without it.
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/common.sh"
tiny="$tiny --global-batch 6"
beside="--device fake --offload host"

# ---- what is refused ----

refuses 2 "lie in the host's memory already" 0 train $tiny --offload host
refuses 2 "lie in the host's memory already" 0 plan --model tiny --ranks 2 --offload host
refuses 2 'the host updates at the end of the step' 0 train $tiny $beside \
    --offload-when backward --clip 0
refuses 2 'needs a directory for the scratch file' 0 train $tiny $beside --stage 3 \
    --offload-parameters
refuses 2 'needs a directory for the scratch file' 0 train $tiny $beside --delayed-update 2
refuses 2 'not yet updated beside a device' 0 train $tiny --device fake --offload "$work"

# ---- equal bits, saved and resumed in either place ----

# ends_alike WORDS...: three ranks end with the digest of the run without a device.
ends_alike() {
    runs 3 train $model --steps 4 "$@"
    digest_of out >got
    same expected got "$words"
}

for stage in 1 3; do
    model="$tiny --stage $stage --dtype bf16 --activations fp32"
    runs 3 train $model --steps 4
    digest_of out >expected
    ends_alike $beside --metrics m$stage
    says 'updated by its CPU' out
    check 3 4 m$stage bits
    runs 3 train $model $beside --steps 4 --save-every 2 --checkpoint saved --check-memory
    rm -r saved/step-00000004
    cp -r saved again
    ends_alike $beside --resume --checkpoint saved
    ends_alike --device fake --resume --checkpoint again
    rm -rf saved again
done

# ---- the plan ----

runs 0 plan --model gpt2 --ranks 4 --stage 2 --dtype bf16 $beside
says "optimizer states lie in the host's memory" out
grep -q '^  optimizer states .* 0 B .* 373319424$' out || complain "$words: where are the states?"
grep -q '^  updated parameters  *62219904 ' out || complain "$words: what is stored?"
runs 0 plan --model tiny --ranks 2 --stage 2 --show-schedule $beside
says 'FETCH_GRAD ' out
says 'STORE_PARAM ' out
runs 0 plan --model tiny --ranks 2 --stage 2 --json $beside
is_json out
says '"offload_host": "on"' out
finish

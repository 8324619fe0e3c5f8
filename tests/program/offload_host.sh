# Optimizer states beside a device, in the host's memory or a file, through the program: what is refused,
# what a run and a plan say, and that a run may be resumed with or without it.
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/common.sh"
finds_a_disk
tiny="$tiny --global-batch 6"
beside="--device fake --offload host"

# ---- what is refused ----

refuses 2 "lie in the host's memory already" 0 train $tiny --offload host
refuses 2 "lie in the host's memory already" 0 plan --model tiny --ranks 2 --offload host
refuses 2 'the norm is known after the last gradient' 0 train $tiny $beside --offload-when backward
refuses 2 'needs a directory for the scratch file' 0 train $tiny $beside --stage 3 \
    --offload-parameters
refuses 2 '--delayed-update without --offload' 0 train $tiny --device fake --delayed-update 2
refuses 2 'offload-parameters with --device' 2 train $tiny --device fake --stage 3 --offload . \
    --offload-parameters
refuses 2 'offload-activations with --device' 0 plan $small --device fake --offload . \
    --recompute --offload-activations

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
    ends_alike $beside --offload-when end
    ends_alike $beside --metrics m$stage
    says 'updated by its CPU, lazy' out
    check 3 4 m$stage bits
    runs 3 train $model $beside --steps 4 --save-every 2 --checkpoint saved --check-memory
    rm -r saved/step-00000004
    cp -r saved again
    ends_alike $beside --resume --checkpoint saved
    ends_alike --device fake --resume --checkpoint again
    rm -rf saved again
    [ -n "$disk" ] || continue
    ends_alike --device fake --offload "$disk" --save-every 2 --checkpoint saved
    rm -r saved/step-00000004
    says 'lazy, 4 blocks in memory' out
    says 'as planned, to the byte' out
    ends_alike --device fake --offload "$disk" --offload-when end --resume --checkpoint saved
    rm -rf saved
    # Delayed updates have numbers of their own.
    runs 3 train $model --steps 4 --offload "$disk" --delayed-update 2
    digest_of out >expected
    ends_alike $beside --delayed-update 2
    ends_alike --device fake --offload "$disk" --delayed-update 2
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
says '"offload_host": true' out
says '"offload": "lazy"' out

# A third tier: the host has slots, gradients and rounded parameters, and the file the states.
runs 0 plan --model gpt2 --ranks 4 --stage 2 --dtype bf16 --device fake --offload .
says 'optimizer states lie in the file' out
grep -q '^  offload slots .* 0 B .* 12582912$' out || complain "$words: where are the slots?"
grep -q '^  optimizer states  *37[0-9]* .* 37[0-9]* ' out || complain "$words: what moves?"
grep -q '^  updated parameters  *62219904 ' out || complain "$words: what is stored?"

# ---- what fits, in both memories ----

large="--layers 2 --hidden 512 --heads 8 --seq 16 --global-batch 2 --micro-batch 1 --data stories:64K
    --device fake"
run 2 train $large --device-memory 100MiB
exits 3
says '--offload host' err
run 2 train $large --device-memory 100MiB --memory-limit 120MiB
exits 3
grep -q -- '--offload host' err && complain "$words: expected no advice of --offload host, as 120 MiB of the host are too few for the states"
says '--offload DIR' err
runs 0 plan $large --ranks 2 --fit 200M --offload host --memory-limit 160M
says 'of the host, of at most 160000000' out
refuses 2 'but not --memory-limit' 0 plan $large --ranks 2 --fit 2G --offload host --memory-limit 60M
refuses 2 'but not --memory-limit' 0 plan $large --ranks 2 --fit batch --device-memory 2G \
    --offload host --memory-limit 60M
finish

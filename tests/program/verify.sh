# zero train --record and zero verify: a step of any layout has equal bits in any other one.
. "$(dirname "$0")/common.sh"
model="--model lesson --data lesson --steps 3 --quiet"

# verified RECORDER 'OPTIONS' VERIFIER 'OPTIONS': numbers of ranks, 0 without mpirun.
verified() {
    # shellcheck disable=SC2086 # words
    runs "$1" train $model $2 --record step.safetensors
    # shellcheck disable=SC2086 # words
    runs "$3" verify step.safetensors $4
    says "equal bits" out
}

for stage in 0 1 2 3; do
    verified 3 "--stage $stage" 3 "--stage $((3 - stage))"
    verified 2 "--stage $stage --reproducible --global-batch 4 --micro-batch 1" 4 "--stage 3"
done
verified 3 "--stage 2" 0 "--threads 2"
verified 3 "--stage 1 --dropout 0.1 --shuffle" 3 "--stage 3 --recompute"
verified 2 "--stage 2 --dtype fp16" 2 "--stage 0"
verified 2 "--stage 3 --dtype bf16 --clip 0.01" 2 "--stage 1 --bucket 64"
verified 4 "--model tiny --data stories --global-batch 4 --sample 0 --stage 3 --tp 2" 2 "--tp 2"
verified 2 "--model tiny-llama --data stories --global-batch 2 --sample 0 --tp-slices 2" 2 "--tp 2"
finds_a_disk
[ -z "$disk" ] || verified 2 "--stage 2 --offload $disk" 2 "--stage 3"
[ -z "$disk" ] || verified 3 "--stage 3" 3 "--stage 2 --offload $disk"

# Sequences that do not divide among the ranks, microbatches that do not divide a rank's.
verified 3 "--global-batch 3" 2 "--stage 2"
verified 3 "--global-batch 3" 4 "--stage 3"
verified 0 "--global-batch 4 --micro-batch 4 --reproducible" 2 "--stage 1"
runs 3 train $model --global-batch 6 --micro-batch 2 --record uneven.safetensors
runs 4 verify uneven.safetensors
says "3 ranks x 1 microbatch of 2 x" out
says "24 targets that count" out
says "equal bits" out

# A run that records no step says why.
runs 0 train --model lesson --data lesson --steps 2 --quiet --checkpoint all
runs 0 train --model lesson --data lesson --steps 2 --quiet --checkpoint all --resume --record none.safetensors
says "none.safetensors: no step is recorded, because this run had no step left" err
[ ! -e none.safetensors ] || complain "a file of no step"
rm -f out err
"$zero" train --model lesson --data lesson --steps 90000000 --quiet --checkpoint half --metrics m \
    --record none.safetensors >out 2>err &
job=$!
await 120 grep -qs '"step":' m || complain "no step in two minutes"
kill -TERM $job
wait $job
says "none.safetensors: no step is recorded, because the run was stopped before" err
[ ! -e none.safetensors ] || complain "a file of a step that was not made"

# Where bits are not promised, the measured tolerance decides.
runs 2 train $model --global-batch 12 --micro-batch 2 --record step.safetensors
runs 3 verify step.safetensors --backend naive
says "within tolerance" out

# The same in JSON; rows of the file are compared, not what a run says.
runs 0 verify step.safetensors --json
is_json out
says '"verdict": "equal bits"' out
says '"n_wrong": 0' out

# What differs is found, whatever it is: the last byte of a weight, a loss.
size=$(wc -c <step.safetensors)
cp step.safetensors bad.safetensors
printf '\001\100' | dd of=bad.safetensors bs=1 seek=$((size - 20)) conv=notrunc 2>dd.out
run 0 verify bad.safetensors
exits 1
says "the step is wrong" err
says "wrong       " out

# ---- mistakes ----

refuses 2 "expected one step file" 0 verify
refuses 2 "--lr: the step file says what is computed" 0 verify step.safetensors --lr 1
refuses 4 "none.safetensors" 0 verify none.safetensors
head -c 3000 step.safetensors >bad.safetensors
refuses 4 "bad.safetensors" 0 verify bad.safetensors
refuses 2 "--record b.jsonl is a file of --metrics as well" 0 train --record b.jsonl --metrics b.jsonl
exit $failed

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
    verified 3 "--model tiny-llama --data stories --global-batch 3 --sample 0 --stage $stage" \
        3 "--stage $((3 - stage))"
done
says " of a rank are planned, and " out
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

# Threads judge rows in turns, and find the same.
"$zero" verify bad.safetensors --json 2>err | grep -v '"resident":' >alone
"$zero" verify bad.safetensors --json --threads 3 2>err | grep -v '"resident":\|"planned":' >together
grep -v '"planned":' alone >one && same one together "what 1 and 3 threads find"

# The broken step of lesson 16.
runs 3 train --model lesson --data lesson --backend naive --steps 2 --quiet --record step.safetensors
LC_ALL=C sed -i 's/updates\\":1/updates\\":2/' step.safetensors
run 0 verify step.safetensors
exits 1
says "with Adam's step count one too low" out

# ---- two files ----

# differ 'TEXT' A B: zero compare says so and ends with 1.
differ() {
    run "${4:-0}" compare "$2" "$3"
    exits 1
    says "$1" out
}

runs 2 train $model --global-batch 12 --micro-batch 2 --record one.safetensors
runs 2 train $model --global-batch 12 --micro-batch 2 --stage 1 --record same.safetensors
runs 0 compare one.safetensors same.safetensors
says 'differs     sharding: "stage 0" | "stage 1"' out
says '16 with equal bits' out
# One update, from equal weights: sums in another order are within the tolerance.
first="--model lesson --data lesson --steps 1 --quiet --global-batch 12"
runs 2 train $first --micro-batch 2 --record a.safetensors
runs 3 train $first --micro-batch 1 --stage 3 --record b.safetensors
for n in 0 3; do
    runs $n compare a.safetensors b.safetensors --stage 1
    says 'tensors     0 with equal bits, 16 within tolerance, 0 different' out
    says 'differs     ranks: 2 | 3' out
    says 'differs     microbatches: 3 | 4' out
    [ "$(grep -c 'every tensor is right' out)" -eq 2 ] || complain "$words: expected two right files"
done
runs 0 compare a.safetensors b.safetensors --json
is_json out
says '"verdict": "within tolerance"' out
# The order of sequences does not count.
python3 - <<'END'
import json
data = bytearray(open("a.safetensors", "rb").read())
n = int.from_bytes(data[:8], "little")
for name in ("tokens", "targets"):
    begin, end = (8 + n + x for x in json.loads(data[8:8 + n])[name]["data_offsets"])
    data[begin:end] = data[begin + 16:end] + data[begin:begin + 16]
open("turned.safetensors", "wb").write(data)
END
runs 0 compare a.safetensors turned.safetensors
says 'equal bits' out
# Of two different runs each result is what its inputs make, whichever has more samples.
for pair in "one.safetensors a.safetensors" "step3.safetensors one.safetensors" "one.safetensors step3.safetensors"; do
    [ -e step3.safetensors ] || runs 3 train $model --seed 7 --record step3.safetensors
    differ 'the inputs differ, and each result is what its inputs make' $pair
    says 'differs     weight before the step of wte.weight' out
done
# Facts of the computation are inputs, too; of the same facts a wrong file differs where it is wrong.
runs 2 train $first --micro-batch 2 --lr 0.002 --record lr.safetensors
differ 'each result is what its inputs make' a.safetensors lr.safetensors
says 'differs     lr: 0.0' out
# spoil OUT TENSOR BYTE IN: its first number has another exponent.
spoil() {
    at=$(python3 -c 'import json, sys
data = open("one.safetensors", "rb").read()
n = int.from_bytes(data[:8], "little")
print(8 + n + json.loads(data[8:8 + n])[sys.argv[1]]["data_offsets"][0] + int(sys.argv[2]))' "$2" "$3")
    cp "${4:-one.safetensors}" "$1"
    printf '\300' | dd of="$1" bs=1 seek="$at" conv=notrunc 2>dd.out
}
spoil bad.safetensors loss 7
differ 'first       loss' one.safetensors bad.safetensors
spoil bad.safetensors norm 7
differ 'first       norm' one.safetensors bad.safetensors
spoil bad.safetensors variance_after/transformer.h.0.mlp.c_fc.bias 3
differ 'first       variance of h.0.mlp.c_fc.bias: element 0;' one.safetensors bad.safetensors
says 'bad.safetensors: 1 tensor wrong' out
spoil bad.safetensors after/transformer.h.0.mlp.c_fc.weight 3
differ 'first       weight of h.0.mlp.c_fc.weight: row 0;' one.safetensors bad.safetensors 2
says 'bad.safetensors: 1 tensor wrong' out
spoil bad.safetensors momentum_after/transformer.ln_f.bias 3
spoil worse.safetensors momentum_after/transformer.wte.weight 3 bad.safetensors
differ 'first       gradient of ln_f.bias: element 0;' one.safetensors worse.safetensors
says 'different   gradient of wte.weight: row 0;' out
runs 0 train --model tiny --data stories --steps 1 --sample 0 --global-batch 1 --quiet --record tiny.safetensors
run 0 compare one.safetensors tiny.safetensors
exits 1
says 'are steps of two models: ' err

# ---- mistakes ----

printf '{"step": 1, "loss": 1}\n' >metrics.jsonl
refuses 2 'is not a step file, so nothing is computed' 0 compare metrics.jsonl metrics.jsonl --stage 1
refuses 2 "--lr: the step file says what is computed" 0 compare one.safetensors one.safetensors --lr 1
refuses 4 "metrics.jsonl" 0 compare one.safetensors metrics.jsonl
refuses 2 "two step files, found 1" 0 compare one.safetensors
refuses 2 "expected one step file" 0 verify
refuses 2 "--lr: the step file says what is computed" 0 verify step.safetensors --lr 1
refuses 4 "none.safetensors" 0 verify none.safetensors
head -c 3000 step.safetensors >bad.safetensors
refuses 4 "bad.safetensors" 0 verify bad.safetensors
refuses 2 "--record b.jsonl is a file of --metrics as well" 0 train --record b.jsonl --metrics b.jsonl
exit $failed

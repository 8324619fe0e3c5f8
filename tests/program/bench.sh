# bench.sh BENCH_STEP BENCH_KERNELS LAUNCH...: the benchmarks run with tiny models and small arrays,
# their output adds up, and they refuse unknown words. The others are in the same folder.
. "$(dirname "$0")/common.sh"
step=$zero
kernels=$checker
collectives=$(dirname "$step")/bench_collectives
offload=$(dirname "$step")/bench_offload
memory=$(dirname "$step")/bench_memory

# run N PROGRAM words...: runs the program on N ranks. Writes the files out and err; sets $code to
# the exit code.
run() {
    n=$1
    shift
    words="$* ($n ranks)"
    on "$n" "$@" >out 2>err
    code=$?
}

refuses() {
    expected=$1
    text=$2
    shift 2
    run "$@"
    exits "$expected"
    says "$text" err
}

count() { # count N KEY: N rows have this key
    [ "$(grep -c "\"$2\":" rows.json)" -eq "$1" ] || complain "$words: expected $2 in $1 rows"
}

small="--model tiny --layers 2 --hidden 32 --heads 2 --seq 16 --rounds 2 --json rows.json"

# Each pair of a stage and a dtype is a row, in the order given. The others are compared with the
# first.
runs 2 "$step" $small --steps 2 --stages 3,0 --dtypes fp16,fp32
count 4 step_seconds
count 4 products_of_sgemm
[ "$(sed -n 's/^ *"stage": //p' rows.json | tr -d '\n')" = 3,3,0,0, ] ||
    complain "$words: expected stages 3, 3, 0, 0"
grep -qx ' *"over_first": 1.0,' rows.json || complain "$words: expected 1.0 for the first row"

# The shares of all classes of instructions add up to at most one step.
awk '/"share_/ { sum = 0; inside = 1 }
     inside && /"[A-Z_]+":/ { gsub(",", ""); sum += $2 }
     inside && /}/ { inside = 0; n++; if (sum < 0.5 || sum > 1.0001) bad++ }
     END { exit !(n == 8 && !bad) }' rows.json || complain "$words: the shares do not add up"

# The output has the formulas, the rates next to sgemm's, and the time by class.
for text in '(6 N + 6 L T C) tokens' 'utilisation = flops / (time of a step' \
    'Gflop/s per rank' 'sgemm' 'BACKWARD block' 'FORWARD embedding' 'exchange while computing'; do
    says "$text" out
done
count 4 sgemm_flops_per_second

# The formula counts 6 (12 L C^2 + V C) + 6 L T C flops per token, for 4 x 16 tokens.
flops=$((64 * (6 * (12 * 2 * 32 * 32 + 256 * 32) + 6 * 2 * 16 * 32)))
wrote=$(sed -n 's/^ *"model_flops_per_step": \([0-9.e+]*\),/\1/p' rows.json | head -n 1)
awk -v a="$flops" -v b="$wrote" 'BEGIN { exit !(b / a > 0.9999 && b / a < 1.0001) }' ||
    complain "$words: $wrote model flops, expected $flops"

runs 1 "$step" $small --stage 2 --micro-batch 1 --global-batch 2
count 1 step_seconds

# The shares of all kernels and products add up to 1.
for dtype in fp32 bf16; do
    runs 2 "$kernels" $small --stage 1 --dtype $dtype --micro-batch 1 --global-batch 4
    count 18 seconds_per_element
    awk '/"share":/ { sum += $2 } END { exit !(sum > 0.999 && sum < 1.001) }' rows.json ||
        complain "$words: the shares do not add up to 1"
done

runs 1 "$kernels" $small --dropout 0.25 --micro-batch 1 --global-batch 1
says 'dropout 0.25; cpu backend' out

# By default all kinds of collectives run. Sizes take the suffixes that all numbers take.
runs 2 "$collectives" --sizes 64KiB,64K --types fp32 --rounds 1 --json rows.json
for kind in reduce-scatter all-gather reduce broadcast; do
    says "\"operation\": \"$kind\"" rows.json
done
says '"bytes": 65536,' rows.json
says '"bytes": 64000,' rows.json
runs 2 "$collectives" --sizes 64KiB --types fp32 --kinds broadcast --rounds 1 --json rows.json
[ "$(grep -c '"operation":' rows.json)" -eq "$(grep -c '"operation": "broadcast"' rows.json)" ] ||
    complain "$words: expected rows of broadcast only"

# A row for each model and stage, without recomputation and then with it.
runs 0 "$memory" --models tiny --stages 3,0 --json rows.json
count 4 caching_bytes
[ "$(sed -n 's/^ *"stage": \([0-9]\),/\1/p' rows.json | tr -d '\n')" = 3030 ] ||
    complain "$words: expected stages 3, 0, 3, 0"
says 'the best fit, split if' out
refuses 2 '--models gpt5: expected some of tiny,lesson,gpt2' 0 "$memory" --models gpt5
refuses 2 '--stages 4: expected some of 0,1,2,3' 0 "$memory" --stages 4
refuses 4 'cannot be written' 0 "$memory" --models tiny --json /no/such/folder/file

# Texts, by threads and without: a row for each type and context, and the speed of memory.
generate=$(dirname "$step")/bench_generate
small_gpt="--layers 2 --hidden 32 --heads 2 --vocab 256"
runs 0 "$generate" $small_gpt --texts 6
says '6 texts at one time, 1 threads' out
[ "$(grep -cE '^(fp32|bf16) +(32|512|990) +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+$' out)" -eq 6 ] ||
    complain "$words: expected six rows"
[ "$(grep -cE '^(fp32|bf16) .* reads [0-9.]+ GB/s$' out)" -eq 2 ] ||
    complain "$words: expected the speed of memory"
runs 0 "$generate" $small_gpt --context 512 --no-whole
[ "$(grep -cE '^(fp32|bf16) +512 +[0-9.]+ +- +- +[0-9.]+$' out)" -eq 2 ] ||
    complain "$words: expected two rows"
runs 0 "$generate" $small_gpt --context 32 --no-whole --activations fp16
[ "$(grep -cE '^fp16 +32 +[0-9.]+ +- +- +[0-9.]+$' out)" -eq 1 ] ||
    complain "$words: expected one row"
refuses 2 'expected one' 2 "$generate" $small_gpt
refuses 2 '--context 100: expected 0, 32, 512 or 990' 0 "$generate" --context 100

# A row for the disk, and one for each number of slots. The build may lie in memory, which
# bench_offload refuses.
disk=$(dirname "$step")
if [ "$(stat -f -c %T "$disk")" != tmpfs ]; then
    runs 2 "$offload" "$disk" --elements 3M --threads 2 --rounds 1 --json rows.json
    count 5 of_disk
    [ "$(sed -n 's/^ *"slots": //p' rows.json | tr -d '\n')" = null,2,3,4,8, ] ||
        complain "$words: expected 2, 3, 4, 8 slots"
    says 'AdamW, 4 slots' out
fi
refuses 2 'expected one DIR' 0 "$offload"
refuses 2 'expected one DIR' 0 "$offload" a b
[ "$(stat -f -c %T /dev/shm)" = tmpfs ] && refuses 2 'lies in memory' 0 "$offload" /dev/shm
refuses 2 '--stages 0,9: expected some of 0,1,2' 0 "$step" --stages 0,9
refuses 2 '--stages 1,1: expected some of 0,1,2' 0 "$step" --stages 1,1
refuses 2 '--stages 0,: expected some of' 0 "$step" --stages 0,
refuses 2 '--dtypes fp32,fp8: expected some of fp32,bf16,fp16' 0 "$step" --dtypes fp32,fp8
refuses 2 '--dtypes bf16,bf16: expected' 0 "$step" --dtypes bf16,bf16
refuses 2 '--rounds 0: expected a whole number from 1 to 1000' 0 "$step" --rounds 0
refuses 2 '--steps needs a value' 0 "$kernels" --steps
refuses 2 'no such option' 0 "$step" --modle tiny
refuses 2 'not a multiple' 2 "$step" --model tiny --micro-batch 2 --global-batch 6
refuses 2 '--tp 2: bench_step measures beside whole products' 2 "$step" --model tiny --tp 2
refuses 2 'takes one --stage and one' 0 "$kernels" --model tiny --stages 0,1
refuses 4 'cannot be written' 0 "$step" --model tiny --json /no/such/folder/file
refuses 4 'cannot be written' 0 "$collectives" --json /no/such/folder/file
refuses 2 'give --overlap or --backward, not both' 0 "$collectives" --overlap --backward
refuses 2 '--kinds reduce,gather: expected some of' 0 "$collectives" --kinds reduce,gather
finish

# bench.sh BENCH_STEP BENCH_KERNELS LAUNCH...: the benchmarks run with tiny models and small arrays,
# their output adds up, and they refuse unknown words. RANKS in the launch line is the number of
# ranks; bench_collectives is beside BENCH_STEP.
step=$1
kernels=$2
collectives=$(dirname "$step")/bench_collectives
shift 2
launch=$*
failed=0
work=$(mktemp -d) && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

complain() {
    echo "FAILED: $words: $*"
    sed 's/^/  /' out err
    failed=$((failed + 1))
}

# run N PROGRAM words...: writes the files out and err, and sets $code to the exit code. With N = 0
# the program runs without the launcher.
run() {
    n=$1
    shift
    words="$* ($n ranks)"
    with=$(echo "$launch" | sed "s/RANKS/$n/")
    [ "$n" -gt 0 ] || with=
    $with "$@" >out 2>err
    code=$?
}

runs() {
    run "$@"
    [ $code -eq 0 ] || complain "exit code $code"
}

refuses() {
    expected=$1
    text=$2
    shift 2
    run "$@"
    [ $code -eq "$expected" ] || complain "exit code $code, expected $expected"
    grep -qF -e "$text" err || complain "expected '$text'"
}

count() { # count N KEY: N rows have this key
    [ "$(grep -c "\"$2\":" rows.json)" -eq "$1" ] || complain "expected $2 in $1 rows"
}

small="--model tiny --layers 2 --hidden 32 --heads 2 --seq 16 --rounds 2 --json rows.json"

# Each pair of a stage and a dtype is a row, in the order given; the others are compared with the
# first.
runs 2 "$step" $small --steps 2 --stages 3,0 --dtypes fp16,fp32
count 4 step_seconds
count 4 products_of_sgemm
[ "$(sed -n 's/^ *"stage": //p' rows.json | tr -d '\n')" = 3,3,0,0, ] || complain "stages in order"
grep -qx ' *"over_first": 1.0,' rows.json || complain "the first over itself is 1"

# The shares of all classes of instructions add up to one step, or less.
awk '/"share_/ { sum = 0; inside = 1 }
     inside && /"[A-Z_]+":/ { gsub(",", ""); sum += $2 }
     inside && /}/ { inside = 0; n++; if (sum < 0.5 || sum > 1.0001) bad++ }
     END { exit !(n == 8 && !bad) }' rows.json || complain "shares do not add up"

# The output has the formulas, the rates beside sgemm's, the time by class.
for text in '(6 N + 6 L T C) tokens' 'utilisation = flops / (time of a step' \
    'Gflop/s per rank' 'sgemm' 'BACKWARD block' 'FORWARD embedding' 'exchange while computing'; do
    grep -qF -e "$text" out || complain "expected '$text'"
done
count 4 sgemm_flops_per_second

# Flops by the formula: 6 (12 L C^2 + V C) + 6 L T C per token, for 4 x 16 tokens.
flops=$((64 * (6 * (12 * 2 * 32 * 32 + 256 * 32) + 6 * 2 * 16 * 32)))
wrote=$(sed -n 's/^ *"model_flops_per_step": \([0-9.e+]*\),/\1/p' rows.json | head -n 1)
awk -v a="$flops" -v b="$wrote" 'BEGIN { exit !(b / a > 0.9999 && b / a < 1.0001) }' ||
    complain "model flops $wrote, expected $flops"

runs 1 "$step" $small --stage 2 --micro-batch 1 --global-batch 2
count 1 step_seconds

# All kernels, and the products; their shares add up to 1.
for dtype in fp32 bf16; do
    runs 2 "$kernels" $small --stage 1 --dtype $dtype --micro-batch 1 --global-batch 4
    count 18 seconds_per_element
    awk '/"share":/ { sum += $2 } END { exit !(sum > 0.999 && sum < 1.001) }' rows.json ||
        complain "shares do not add up to 1"
done

# Every kind of collective by default; sizes have the suffixes of all numbers.
runs 2 "$collectives" --sizes 64KiB,64K --types fp32 --rounds 1 --json rows.json
for kind in reduce-scatter all-gather reduce broadcast; do
    grep -q "\"operation\": \"$kind\"" rows.json || complain "expected rows of $kind"
done
grep -q '"bytes": 65536,' rows.json || complain "64KiB is 65536 bytes"
grep -q '"bytes": 64000,' rows.json || complain "64K is 64000 bytes"
runs 2 "$collectives" --sizes 64KiB --types fp32 --kinds broadcast --rounds 1 --json rows.json
[ "$(grep -c '"operation":' rows.json)" -eq "$(grep -c '"operation": "broadcast"' rows.json)" ] ||
    complain "expected rows of broadcast only"

refuses 2 '--stages 0,9: expected some of 0,1,2,3' 0 "$step" --stages 0,4
refuses 2 '--stages 1,1: expected some of 0,1,2,3, each once' 0 "$step" --stages 1,1
refuses 2 '--stages 0,: expected some of' 0 "$step" --stages 0,
refuses 2 '--dtypes fp32,fp8: expected some of fp32,bf16,fp16' 0 "$step" --dtypes fp32,fp8
refuses 2 '--dtypes bf16,bf16: expected' 0 "$step" --dtypes bf16,bf16
refuses 2 '--rounds 0: expected a whole number from 1 to 1000' 0 "$step" --rounds 0
refuses 2 '--steps needs a value' 0 "$kernels" --steps
refuses 2 'no such option' 0 "$step" --modle tiny
refuses 2 'not a multiple' 2 "$step" --model tiny --micro-batch 2 --global-batch 6
refuses 2 'takes one --stage and one' 0 "$kernels" --model tiny --stages 0,1
refuses 4 'cannot be written' 0 "$step" --model tiny --json /no/such/folder/file
refuses 4 'cannot be written' 0 "$collectives" --json /no/such/folder/file
refuses 2 'give --overlap or --backward, not both' 0 "$collectives" --overlap --backward
refuses 2 '--kinds reduce,gather: expected some of' 0 "$collectives" --kinds reduce,gather
[ $failed -eq 0 ]

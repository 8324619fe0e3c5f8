# bench.sh BENCH_STEP BENCH_KERNELS LAUNCH...: they run, for tiny models, and what they write adds
# up; they refuse what they do not know. In the launch line RANKS is the number of ranks.
step=$1
kernels=$2
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

# run N PROGRAM words...: leaves the files out and err, and the exit code in $code. N is 0 for a
# program that nothing launches.
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

count() { # count N KEY: so many rows have this key
    [ "$(grep -c "\"$2\":" rows.json)" -eq "$1" ] || complain "expected $2 in $1 rows"
}

small="--model tiny --layers 2 --hidden 32 --heads 2 --seq 16 --rounds 2 --json rows.json"

# Each pair of a stage and a dtype is a row, in the order given; the first is the measure.
runs 2 "$step" $small --steps 2 --stages 3,0 --dtypes fp16,fp32
count 4 step_seconds
count 4 products_of_sgemm
[ "$(sed -n 's/^ *"stage": //p' rows.json | tr -d '\n')" = 3,3,0,0, ] || complain "stages in order"
grep -qx ' *"over_first": 1.0,' rows.json || complain "the first over itself is 1"

# Shares are of one step: of all classes of instructions together never more.
awk '/"share_/ { sum = 0; inside = 1 }
     inside && /"[A-Z_]+":/ { gsub(",", ""); sum += $2 }
     inside && /}/ { inside = 0; n++; if (sum < 0.5 || sum > 1.0001) bad++ }
     END { exit !(n == 8 && !bad) }' rows.json || complain "shares do not add up"

# What is printed: the formulas, the rates beside sgemm's, the time by phase.
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

# All kernels, and the products; their shares are a whole.
for dtype in fp32 bf16; do
    runs 2 "$kernels" $small --stage 1 --dtype $dtype --micro-batch 1 --global-batch 4
    count 18 seconds_per_element
    awk '/"share":/ { sum += $2 } END { exit !(sum > 0.999 && sum < 1.001) }' rows.json ||
        complain "shares do not add up to 1"
done

refuses 2 '--stages 0,4: expected some of 0,1,2,3' 0 "$step" --stages 0,4
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
[ $failed -eq 0 ]

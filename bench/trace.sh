#!/bin/sh
# Cost of --trace: training steps with and without it, in pairs.
#
#     sh bench/trace.sh [BUILD FOLDER [PAIRS [RANKS [OPTIONS OF TRAIN...]]]]   (build, 5, 2)
#
# Without options stage 3 of the preset `tiny`, steps of 10 to 20 ms: many instructions in little time,
# where a trace costs most. The run of a pair that goes first changes from pair to
# pair. Prints the median step of each run (without the first 3), their ratio, and the processor
# time of both jobs; then the medians over the pairs. Fails if a digest differs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../build}
pairs=${2:-5}
ranks=${3:-2}
if [ $# -lt 3 ]; then shift $#; else shift 3; fi
[ $# -gt 0 ] || set -- --stage 3 --global-batch 8 --steps 300
program=$(cd "$build" && pwd)/zero
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
export OPENBLAS_NUM_THREADS=1
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# steps NAME OPTIONS...: a run. Writes "median-of-steps processor-seconds" to NAME, its digest to
# NAME.digest.
steps() {
    name=$work/$1
    shift
    rm -f "$name.jsonl"
    # shellcheck disable=SC2016 # expanded by the shell that times the job
    sh -c '"$@" >"$0.out" 2>"$0.err" || exit; times' "$name" \
        mpirun -n "$ranks" --map-by :OVERSUBSCRIBE --bind-to none \
        "$program" train --sample 0 --eval-every 0 --log-every 1000000 \
        --metrics "$name.jsonl" "$@" >"$name.times" || { cat "$name.err" >&2; exit 1; }
    sed -n 's/^  digest *//p' "$name.out" >"$name.digest"
    median=$(grep '"final"' "$name.jsonl" | sed -n 's/.*"median": *\([0-9.e-]*\).*/\1/p')
    processor=$(sed -n 2p "$name.times" | awk '{
        for (i = 1; i <= NF; i++) { split($i, t, /[ms]/); sum += 60 * t[1] + t[2] }
        print sum }')
    echo "$median $processor" >"$name"
}

traced() { steps traced --trace "$work/t.json" "$@"; }
plain() { steps plain "$@"; }

median() { sort -g | awk '{ x[NR] = $1 } END { print (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2 }'; }
column() { awk -v n="$1" '{ print $n }' "$work/all" | median; }

: >"$work/all"
printf '%-6s %12s %12s %8s %12s %12s %8s\n' pair 'plain, ms' 'traced, ms' ratio \
    'plain, s' 'traced, s' ratio
for pair in $(seq "$pairs"); do
    if [ $((pair % 2)) -eq 1 ]; then
        plain "$@"
        traced "$@"
    else
        traced "$@"
        plain "$@"
    fi
    cmp -s "$work/plain.digest" "$work/traced.digest" || {
        echo "digests differ: $(cat "$work/plain.digest") without, $(cat "$work/traced.digest")" >&2
        exit 1
    }
    paste -d ' ' "$work/plain" "$work/traced" |
        awk '{ printf "%.5f %.5f %.5f %.2f %.2f %.5f\n", 1e3 * $1, 1e3 * $3, $3 / $1, $2, $4, $4 / $2 }' >>"$work/all"
    # shellcheck disable=SC2046 # words
    printf '%-6s %12s %12s %8s %12s %12s %8s\n' "$pair" $(tail -n 1 "$work/all")
done
printf '%-6s %12s %12s %8s %12s %12s %8s\n' median "$(column 1)" "$(column 2)" "$(column 3)" \
    "$(column 4)" "$(column 5)" "$(column 6)"
echo "digest $(cat "$work/traced.digest"), the same in all runs"
echo "trace of the last run: $(wc -c <"$work/t.json") bytes"

#!/bin/sh
# How good the first row of zero plan --best is: its step, measured, over the fastest of a full sweep of
# measured steps. Machines: this one with two ranks, its numbers by zero info --machine; and four nodes,
# which are network namespaces behind slow links (tests/multinode/nodes.sh; needs root on Linux). Nothing
# else may run; a quarter of an hour.
#
#     sh bench/best.sh [BUILD FOLDER]    (build)
#
# In the environment: STEPS=12 of a run, the first three left out; RATES='1gbit', none if
# empty.
# A sweep: every stage, micro batches of all of a rank's sequences and of half of them, with --recompute
# or without, every --tp. Words of the first row are given as they stand.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=$(cd "${1:-$here/../build}" && pwd)/zero
nodes=$here/../tests/multinode/nodes.sh
steps=${STEPS:-12} rates=${RATES-1gbit}
export ZERO_NODES_OWNER=$$ OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
trap 'sh "$nodes" down best 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

median() { # of lines of numbers
    sort -g | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

# step WORDS...: seconds of the median step with these words, or nothing.
step() {
    rm -f "$work/m"
    # shellcheck disable=SC2086 # words
    timeout 300 $start "$program" train $model --data stories:64K --tokenizer byte --eval-every 0 \
        --sample 0 --quiet --steps "$steps" --metrics "$work/m" "$@" >"$work/out" 2>&1 || return 0
    sed -n 's/.*"step_seconds":\([^,]*\),.*/\1/p' "$work/m" | tail -n +4 | median
}

# pair RANKS SEQUENCES OF A STEP MACHINE'S NAME, WORDS OF THE MACHINE...
pair() {
    ranks=$1 batch=$2 name=$3
    shift 3
    # shellcheck disable=SC2086
    words=$("$program" plan --best $model --ranks "$ranks" --global-batch "$batch" "$@" |
        sed -n 's/^  1 .*iB  *//p')
    [ -n "$words" ] || { echo "$name: $model: no first row" && return; }
    # shellcheck disable=SC2086
    first=$(step --global-batch "$batch" --micro-batch $words)
    best=$first best_words=$words tried=1
    for tp in 1 2 4; do
        for micro in 1 2; do
            for stage in 0 1 2 3; do
                for recompute in '' --recompute; do
                    [ $((ranks % tp)) -eq 0 ] || continue
                    [ $tp -lt "$ranks" ] || [ $stage -eq 0 ] || continue
                    own=$((batch * tp / ranks / micro))
                    other="$own --stage $stage --tp $tp $recompute"
                    # shellcheck disable=SC2086
                    took=$(step --global-batch "$batch" --micro-batch $other)
                    [ -n "$took" ] || continue
                    tried=$((tried + 1))
                    if awk "BEGIN { exit !($took < $best) }"; then best=$took best_words=$other; fi
                done
            done
        done
    done
    # Both again, by turns: the fastest of many is also the luckiest of many.
    : >"$work/a" && : >"$work/b"
    for _ in 1 2 3 4 5 6 7; do
        # shellcheck disable=SC2086
        step --global-batch "$batch" --micro-batch $words >>"$work/a"
        # shellcheck disable=SC2086
        step --global-batch "$batch" --micro-batch $best_words >>"$work/b"
    done
    first=$(median <"$work/a") best=$(median <"$work/b")
    awk -v f="$first" -v b="$best" -v n="$tried" -v model="$model" -v name="$name" \
        -v words="$words" -v best="$best_words" 'BEGIN {
        printf "| %s | %s | %s | %.4f | %s | %.4f | %d | %.3f |\n", model, name, words, f, best, b, n, f / b
    }'
}

models='--layers 4 --hidden 256 --heads 8 --seq 64 --vocab 512
--layers 2 --hidden 512 --heads 8 --seq 32 --vocab 512
--layers 6 --hidden 128 --heads 4 --seq 128 --vocab 512
--layers 8 --hidden 192 --heads 6 --seq 32 --vocab 512
--layers 2 --hidden 384 --heads 6 --seq 256 --vocab 512'

echo '| model | machine | first row of --best | step, s | fastest measured | step, s | of | ratio |'
echo '|---|---|---|---|---|---|---|---|'
"$program" info --machine "$work/here.machine" >/dev/null
start='mpirun -n 2 --map-by :OVERSUBSCRIBE'
echo "$models" >"$work/models"
while read -r model; do
    pair 2 8 'this one, 2 ranks' --machine "$work/here.machine" </dev/null
done <"$work/models"
[ -n "$rates" ] || exit 0
sh "$nodes" possible
sh "$nodes" up best 4
start="sh $nodes run best 1,1,1,1 --"
for rate in $rates; do
    sh "$nodes" rate best "$rate"
    wire=$(echo "$rate" | sed 's/gbit/ 1e9/; s/mbit/ 1e6/' | awk '{ print $1 * $2 * 0.956 / 8 }')
    while read -r model; do
        # Four ranks share the cores: the rate of one while all compute.
        for k in 0 1 2 3; do
            # shellcheck disable=SC2086
            "$program" train $model --global-batch 2 --data stories:64K --tokenizer byte --eval-every 0 \
                --sample 0 --quiet --steps "$steps" --metrics "$work/one.$k" >/dev/null 2>&1 &
        done
        wait
        # shellcheck disable=SC2086
        flops=$("$program" plan $model --ranks 1 --global-batch 2 --network 1,1 --flops 1 --json |
            tr -d ' \n' | sed 's/.*"compute_seconds":\([^,]*\),.*/\1/')
        seconds=$(sed -n 's/.*"step_seconds":\([^,]*\),.*/\1/p' "$work"/one.? | median)
        flops=$(awk "BEGIN { printf \"%.6g\", $flops / $seconds }")
        pair 4 8 "4 nodes, $rate" --network "14e-6,$wire" --flops "$flops" --memory-limit 1G </dev/null
    done <"$work/models"
done

#!/bin/sh
# bench/busy.sh: steps beside processes that never give way, over the same steps alone.
#
#     sh bench/busy.sh [ROUNDS]
#
# Needs a built tree in build, and a machine that has nothing else to do. Two such processes for
# each core run beside every second run.
set -eu
zero=build/zero
rounds=${1:-3}
work=$(mktemp -d)
others=
trap 'for p in $others; do kill "$p" 2>/dev/null || :; done; rm -rf "$work"' EXIT
cores=$(nproc)

# run NAME RANKS THREADS: adds a line "NAME milliseconds" for the median step
run() {
    mpirun -n "$2" --map-by :OVERSUBSCRIBE --bind-to none "$zero" train --model tiny \
        --data stories:256K --tokenizer byte --global-batch 4 --threads "$3" --steps 60 \
        --eval-every 0 --sample 0 --metrics "$work/m" >"$work/out" 2>&1
    sed -n 's/^  step time *\([0-9.]*\) ms.*/'"$1"' \1/p' "$work/out" >>"$work/times"
    rm "$work/m"
}

median() { # median NAME
    sed -n "s/^$1 //p" "$work/times" | sort -n | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'
}

printf '| ranks x threads on %s cores | alone, ms | busy, ms | ratio |\n|---|---|---|---|\n' "$cores"
for setup in "$cores 1" "1 $cores" "$((2 * cores)) 1"; do
    : >"$work/times"
    for round in $(seq "$rounds"); do
        # shellcheck disable=SC2086 # words
        run alone $setup
        for other in $(seq $((2 * cores))); do
            sh -c 'while :; do :; done' &
            others="$others $!"
        done
        # shellcheck disable=SC2086
        run busy $setup
        for p in $others; do kill "$p"; done
        wait 2>/dev/null || :
        others=
    done
    alone=$(median alone) busy=$(median busy)
    echo "| $setup | $alone | $busy | $(echo "$alone $busy" | awk '{ printf "%.1f", $2 / $1 }') |" |
        sed 's/^| \([0-9]*\) /| \1 x /'
done

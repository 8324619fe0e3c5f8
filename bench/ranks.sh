#!/bin/sh
# Tokens per second of `zero train` on 1, 2 and 4 ranks of this machine, alternately in every round,
# so that other processes disturb all alike: medians, and the ratio to one rank in the same round.
#
#     sh bench/ranks.sh [ROUNDS [TRAIN OPTIONS]]        (5 rounds of 60 steps by default)
set -eu
zero=$(cd "$(dirname "$0")/.." && pwd)/build/zero
rounds=${1:-5}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- --steps 60
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

round=0
while [ "$round" -lt "$rounds" ]; do
    for ranks in 1 2 4; do
        mpirun -n $ranks --map-by :OVERSUBSCRIBE --bind-to none \
            "$zero" train --sample 0 --eval-every 0 "$@" 2>"$work/err" |
            awk '/^  speed/ { print $2 }' | grep . >>"$work/$ranks" ||
            { cat "$work/err" >&2; exit 1; }
    done
    round=$((round + 1))
done

median() {
    sort -n | awk '{ x[NR] = $1 } END { print (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2 }'
}
echo "ranks  tokens/s  of one rank   (medians of $rounds rounds: zero train $*)"
for ranks in 1 2 4; do
    ratio=$(paste "$work/$ranks" "$work/1" | awk '{ print $1 / $2 }' | median)
    printf '%5d  %8.0f  %11.2f\n' $ranks "$(median <"$work/$ranks")" "$ratio"
done

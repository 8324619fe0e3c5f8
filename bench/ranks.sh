#!/bin/sh
# Tokens per second of `zero train` on 1, 2, 4 ranks of this machine, in turns, so that a noisy
# machine disturbs all alike; medians, and the ratio to one rank of the same round.
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

round=0
while [ "$round" -lt "$rounds" ]; do
    for ranks in 1 2 4; do
        mpirun -n $ranks --map-by :OVERSUBSCRIBE --bind-to none \
            "$zero" train --sample 0 --eval-every 0 "$@" 2>/dev/null |
            awk '/^  speed/ { print $2 }' >>"$work/$ranks"
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

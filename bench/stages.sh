#!/bin/sh
# Training steps of all stages between two nodes, with and without overlap: network namespaces of
# this machine with a link of 1 Gbit/s (tests/multinode/nodes.sh; needs root on Linux), one rank on
# each. The model is one whose computing takes longer than communicating.
#
#     sh bench/stages.sh [BUILD FOLDER [OPTIONS OF zero train]]      (build by default)
#
# Options replace those of the model. STEPS in the environment: the steps of a run (12).
#
# Per step, on rank 0: the median step, the seconds in which collectives were in progress, and those
# of them in which the rank did nothing else (exposed).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../build}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- --layers 6 --hidden 256 --heads 8 --seq 128 --global-batch 32
program=$(cd "$build" && pwd)/zero
nodes=$here/../tests/multinode/nodes.sh
steps=${STEPS:-12}
export ZERO_NODES_OWNER=$$

sh "$nodes" possible
sh "$nodes" up stages 2 1gbit
work=$(mktemp -d)
trap 'sh "$nodes" down stages; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

per_step() { # per_step KEY FILE: seconds of "gather" and "reduce" together
    tail -n 1 "$2" | tr '{' ',' | tr ',' '\n' | sed -n "s/^\"$1\"://p" | head -n 2 |
        awk -v n="$steps" '{ sum += $1 } END { print sum / n }'
}

median_step() {
    sed -n 's/.*"step_seconds":\([0-9.e-]*\).*/\1/p' "$1" | sort -g |
        awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'
}

printf '%5s %8s %10s %12s %12s %9s\n' stage overlap step/s exchange/s exposed/s digest
for stage in 0 1 2 3; do
    for overlap in on off; do
        file=$work/metrics.json
        sh "$nodes" run stages 1,1 -- "$program" train "$@" --data stories:256K --eval-every 0 \
            --sample 0 --steps "$steps" --stage $stage --overlap $overlap --metrics "$file" \
            >"$work/out" 2>&1 || {
            cat "$work/out" >&2
            exit 1
        }
        digest=$(tail -n 1 "$file" | sed 's/.*"digest":"\([0-9a-f]\{8\}\).*/\1/')
        printf '%5s %8s %10.3f %12.3f %12.3f %9s\n' $stage $overlap "$(median_step "$file")" \
            "$(per_step seconds "$file")" "$(per_step exposed_seconds "$file")" "$digest"
    done
done

#!/bin/sh
# Generation beside PyTorch: tokens of one text, each by a step with a cache of keys and values, on two
# cores. build/bench_generate (1 rank, 2 threads) and bench/torch_generate.py take turns.
#
#     sh bench/peers_generate.sh [ROUNDS]          (3 by default, and at least)
#
# In the environment, as lists with spaces (bench/README.md, "Beside PyTorch"):
#     PYTHON    interpreters whose torch is measured [/usr/bin/python3: Debian's python3-torch]
#     CONTEXTS  tokens that the text has [32 512 990]
#     DTYPES    of fp32 bf16 [both]
#     MODES     of plain compiled mask (compiled, over the whole cache), for torch [all]
#     HEAT      a mode that takes HEAT times as long as the fastest leaves after a round [1.25]
#     QUICK     1: one round is enough, for trying: not for quoting
set -eu
here=$(cd "$(dirname "$0")" && pwd)
generate=$here/../build/bench_generate
rounds=${1:-3}
contexts=${CONTEXTS:-32 512 990}
dtypes=${DTYPES:-fp32 bf16}
modes=${MODES:-plain compiled mask}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# shellcheck source=bench/peers_common.sh
. "$here/peers_common.sh"

# All contexts and dtypes come from one call.
ours() {
    "$generate" --threads 2 --no-whole >"$work/ours" 2>"$work/err" || : >"$work/ours"
    for dtype in $dtypes; do
        for case in $contexts; do
            seconds=$(awk -v dtype="$dtype" -v context="$case" \
                '$1 == dtype && $2 == context { print 1 / $3 }' "$work/ours")
            case=context-$case
            record ours,2-threads "$seconds" "$seconds" 0
        done
    done
}

torch() { # torch PYTHON MODE CONTEXT
    name=torch-$(cat "$(note_of "$1")"),$2
    contends "$name" || return 0
    case $2 in
    plain) set -- "$1" "$3" ;;
    compiled) set -- "$1" "$3" --compile ;;
    mask) set -- "$1" "$3" --compile --mask ;;
    *)
        echo "$program: MODES: no mode $2: expected plain, compiled or mask" >&2
        return 1
        ;;
    esac
    python=$1 context=$2
    shift 2
    torch_env 2 "$python" "$here/torch_generate.py" --dtype "$dtype" --context "$context" \
        --tokens 32 "$@" >"$work/out" 2>"$work/err" || : >"$work/out"
    record "$name" "$(value_of step_seconds)" "$(value_of step_seconds)" 0
}

demand_rounds
demand_built "$generate"
find_torch

round=0
while [ "$round" -lt "$rounds" ]; do
    ours
    for dtype in $dtypes; do
        for context in $contexts; do
            case=context-$context
            for python in $found; do
                for mode in $modes; do torch "$python" "$mode" "$context"; done
            done
        done
    done
    round=$((round + 1))
done

describe_machine
sed -n '1,/^$/p' "$work/ours"
printf '\na token of one text; seconds, medians of %s rounds%s\n' "$rounds" "$quoting"
table best

#!/bin/sh
# portable.sh NATIVE PORTABLE [OPTIONS...]: seconds per step of a build for any CPU of this kind
# beside a build for this CPU. NATIVE and PORTABLE are build folders, OPTIONS those of zero train.
#
# Both builds take a short run and a longer one alternately, on one core; the difference leaves
# steps alone. It is time in user mode, so other processes may run beside it. In the environment:
# ROUNDS (7); CORE, the core to use (0); STEPS, the steps in the difference (10).
set -eu
[ $# -ge 2 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
native=$1
portable=$2
shift 2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OPENBLAS_NUM_THREADS=1
export LC_ALL=C
steps=${STEPS:-10}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

seconds() { # seconds BUILD STEPS OPTIONS...: the process's time in user mode
    build=$1
    n=$2
    shift 2
    bash -c 'TIMEFORMAT=%U; time taskset -c "$0" "$@" >/dev/null 2>"'"$work"'/err"' "${CORE:-0}" \
        "$build/zero" train --data stories:64K --eval-every 0 --sample 0 "$@" --steps "$n" 2>&1 ||
        { cat "$work/err" >&2; exit 1; }
}

difference() { # difference BUILD OPTIONS...: seconds per step, of one run and a longer one
    build=$1
    shift
    short=$(seconds "$build" 1 "$@")
    long=$(seconds "$build" $((steps + 1)) "$@")
    echo "$short $long $steps" | awk '{ printf "%.6f\n", ($2 - $1) / $3 }'
}

round=0
while [ $round -lt "${ROUNDS:-7}" ]; do
    if [ $((round % 2)) -eq 0 ]; then
        a=$(difference "$native" "$@")
        b=$(difference "$portable" "$@")
    else
        b=$(difference "$portable" "$@")
        a=$(difference "$native" "$@")
    fi
    echo "$a $b" | tee -a "$work/rounds" |
        awk '{ printf "native %.4f s, portable %.4f s per step: %.3f\n", $1, $2, $2 / $1 }'
    round=$((round + 1))
done
awk '{ print $2 / $1 }' "$work/rounds" | sort -n | awk '
    { x[NR] = $1 }
    END {
        median = (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2
        printf "portable/native: median %.3f, %.3f to %.3f\n", median, x[1], x[NR]
    }'

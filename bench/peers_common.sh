#!/bin/sh
# shellcheck disable=SC2154 # `here`, `rounds`, `round`, `case`, `dtype` are those of the script
# peers_common.sh - sourced by peers.sh and peers_generate.sh, which set `here` and `rounds`: rounds in
# which programs take turns, kept as lines for peers_runs.awk, and what is said about them.

pythons=${PYTHON:-/usr/bin/python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
: >"$work/runs"
: >"$work/left_out"
began=$(date +%s)
load=$(cut -d' ' -f1 /proc/loadavg)
program=$(basename "$0")
quoting=
[ "${QUICK:-}" != 1 ] || quoting=" (QUICK: not for quoting)"

# Settings that make torch fastest (their effects: bench/results). Waiting threads sleep. malloc
# keeps its memory, in huge pages, and does not request the large arrays of every step anew.
# Version 1 uses AVX2 in its own loops unless it is told to use AVX-512.
kept=8589934592
tunables=glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=$kept:glibc.malloc.trim_threshold=$kept
loops=
! grep -qw avx512bw /proc/cpuinfo || loops=ATEN_CPU_CAPABILITY=avx512

# MKL, which newer torch brings, multiplies fp32 at less than half of its rate on AMD's CPUs, unless a
# library that is loaded before it says that the CPU is one of Intel's.
preload=
if grep -q AuthenticAMD /proc/cpuinfo; then
    preload=$work/intel.so
    echo 'int mkl_serv_intel_cpu_true(void) { return 1; }' >"$work/intel.c"
    "${CC:-cc}" -shared -fPIC -o "$preload" "$work/intel.c"
fi

torch_env() { # torch_env THREADS COMMAND...
    n=$1
    shift
    env $loops LD_PRELOAD="$preload" OMP_WAIT_POLICY=passive OMP_NUM_THREADS="$n" OPENBLAS_NUM_THREADS="$n" \
        MKL_NUM_THREADS="$n" GLIBC_TUNABLES="$tunables" "$@"
}

demand_rounds() { # medians of one or two rounds are no medians
    fewest=3
    [ -z "$quoting" ] || fewest=1
    [ "$rounds" -ge $fewest ] 2>/dev/null && return
    echo "$program: ROUNDS: expected a whole number from $fewest on, not $rounds" \
        "(QUICK=1 takes fewer than 3, for trying only)" >&2
    return 1
}

demand_built() { # demand_built PROGRAM
    [ -x "$1" ] && return
    echo "$program: $1 is not built: cmake -B build && cmake --build build" >&2
    return 1
}

leave_out() { # leave_out PROGRAM REASON: named once, and again in the report
    grep -qxF "$1: left out: $2" "$work/left_out" && return
    echo "$1: left out: $2" | tee -a "$work/left_out" >&2
}

note_of() { # note_of PYTHON: the file with its torch's version
    echo "$work/$(echo "$1" | tr / _)"
}

find_torch() { # the interpreters that have torch
    found=
    for python in $pythons; do
        if "$python" -c 'import torch; print(torch.__version__.split("+")[0])' 2>/dev/null \
            >"$(note_of "$python")"; then
            found="$found $python"
        else
            leave_out torch "not installed for $python (apt-get install python3-torch, or PYTHON=)"
        fi
    done
}

value_of() { # value_of KEY: in the line of JSON that torch wrote; of a list the first
    sed -n "s/.*\"$1\": \\[*\\([0-9][0-9.e+-]*\\).*/\\1/p" "$work/out"
}

record() { # record PROGRAM SECONDS LEAST BYTES: median and fastest step of this case and dtype
    took=$(($(date +%s) - began)) began=$(date +%s)
    if [ -n "$2" ]; then
        echo "$case $dtype $round $1 $2 $3 $4" >>"$work/runs"
        echo "round $((round + 1)) of $rounds: $case $dtype $1: $(printf %.4f "$2") s a step, $took s in all" >&2
    else
        leave_out "$case $dtype $1" "failed: $(grep -v '^ *$' "$work/err" | tail -n 1)"
    fi
}

contends() { # contends PROGRAM: it was near the fastest mode of torch in the first round
    [ "$round" -eq 0 ] || awk -v race="$case $dtype 0" -v name="$1" -v heat="${HEAT:-1.25}" '
        index($0, race " torch-") == 1 {
            if (!least || $5 < least) least = $5
            if ($4 == name) mine = $5
        }
        END { exit !(mine && mine <= heat * least) }' "$work/runs"
}

describe_machine() {
    date -u '+%Y-%m-%d'
    lscpu | awk -F': *' '
        /^Model name/ { name = $2 }
        /^CPU\(s\)/ { n = $2 }
        END { print n " cores, " name }'
    echo "load average at the start: $load"
    for python in $found; do
        torch_env 1 env ONEDNN_VERBOSE=1 DNNL_VERBOSE=1 "$python" "$here/torch_gpt2.py" --versions \
            2>&1 | sed -n 's/.*cpu,isa:/oneDNN on /p; /^torch/p'
    done
    cat "$work/left_out"
}

table() { # table NAME AWK-OPTIONS...
    name=$1
    shift
    awk "$@" -f "$here/median.awk" -f "$here/peers_runs.awk" -f "$here/peers_$name.awk" "$work/runs"
}

#!/bin/sh
# Training steps of other programs beside ours, on two cores: PyTorch (bench/torch_gpt2.py) and
# llm.c. In every round each program takes its steps once; ratios are those of the same round.
#
#     sh bench/peers.sh [ROUNDS]          (3 by default: 20 minutes on a quiet machine)
#
# In the environment, as lists with spaces (bench/README.md, "Beside PyTorch"):
#     PYTHON   interpreters whose torch is measured [/usr/bin/python3: Debian's python3-torch]
#     LLMC     a folder of llm.c with its .bin files and train_gpt2 built [left out]
#     CASES    of gpt2-1024 gpt2-256 small-2048 [all]
#     DTYPES   of fp32 bf16 [both]
#     MODES    of single ddp zero, for torch [all]
#     COMPILE  off: torch 2 without torch.compile [on]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
zero=$here/../build/zero
rounds=${1:-3}
pythons=${PYTHON:-/usr/bin/python3}
cases=${CASES:-gpt2-1024 gpt2-256 small-2048}
dtypes=${DTYPES:-fp32 bf16}
modes=${MODES:-single ddp zero}
warmup=2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

describe() { # describe CASE: layers hidden heads T V sequences, and steps after the warm-up
    case $1 in
    gpt2-1024) echo 12 768 12 256 50257 4 4 ;;
    gpt2-256) echo 12 768 12 64 50257 4 8 ;;
    small-2048) echo 6 384 6 256 256 8 6 ;;
    *) echo "peers.sh: no case $1: expected gpt2-1024, gpt2-256 or small-2048" >&2 && return 1 ;;
    esac
}

median() {
    sort -g | awk '{ x[NR] = $1 }
        END { if (NR) print (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2 }'
}

least() {
    sort -g | head -n 1
}

version_of() { # version_of PYTHON: its torch's version, noted at the start
    cat "$work/$(echo "$1" | tr / _)"
}

record() { # record PROGRAM SECONDS LEAST BYTES: median and fastest step of this case and dtype
    if [ -n "$2" ]; then
        echo "$case $dtype $round $1 $2 $3 $4" >>"$work/runs"
        echo "round $((round + 1)) of $rounds: $case $dtype $1: $(printf %.3f "$2") s" >&2
    else
        echo "peers.sh: $1 failed at $case $dtype:" >&2
        tail -n 3 "$work/err" >&2
    fi
}

ours() { # ours STAGE LAYERS HIDDEN HEADS T V SEQUENCES STEPS
    stage=$1
    tokenizer=bpe:300
    [ "$6" != 256 ] || tokenizer=byte
    rm -f "$work/metrics"
    mpirun -n 2 --bind-to none "$zero" train --model gpt2 --layers "$2" --hidden "$3" \
        --heads "$4" --seq "$5" --vocab "$6" --micro-batch $(($7 / 2)) --global-batch "$7" \
        --steps $((warmup + $8)) --stage "$stage" --dtype "$dtype" --data self \
        --tokenizer $tokenizer --sample 0 --eval-every 0 --metrics "$work/metrics" \
        >"$work/out" 2>"$work/err" || tail -n 3 "$work/out" >>"$work/err"
    sed -n 's/^  compute *//p' "$work/out" >"$work/ours.$dtype"
    sed -n 's/.*"step_seconds":\([0-9.e-]*\).*/\1/p' "$work/metrics" |
        tail -n +$((warmup + 1)) >"$work/steps"
    record "ours,stage-$stage" "$(median <"$work/steps")" "$(least <"$work/steps")" \
        "$(sed -n 's/.*"resident_peak_bytes":\([0-9]*\).*/\1/p' "$work/metrics")"
}

# Settings that make torch fastest (their effects: bench/results). Waiting threads sleep. malloc
# keeps its memory, in huge pages, and does not request the large arrays of every step anew.
# Version 1 uses AVX2 in its own loops unless it is told to use AVX-512.
kept=8589934592
tunables=glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=$kept:glibc.malloc.trim_threshold=$kept
loops=
! grep -qw avx512bw /proc/cpuinfo || loops=ATEN_CPU_CAPABILITY=avx512

torch() { # torch PYTHON MODE LAYERS HIDDEN HEADS T V SEQUENCES STEPS
    version=$(version_of "$1") threads=1 compile=
    [ "$2" != single ] || threads=2
    case $version,${COMPILE:-on} in
    1.*,* | *,off) ;;
    *) compile=--compile ;;
    esac
    env $loops OMP_WAIT_POLICY=passive OMP_NUM_THREADS=$threads OPENBLAS_NUM_THREADS=$threads \
        MKL_NUM_THREADS=$threads GLIBC_TUNABLES=$tunables "$1" "$here/torch_gpt2.py" \
        --mode "$2" --dtype "$dtype" --layers "$3" --hidden "$4" --heads "$5" --seq "$6" \
        --vocab "$7" --batch "$8" --steps "$9" --warmup $warmup $compile \
        >"$work/out" 2>"$work/err" || : >"$work/out"
    record "torch-$version,$2${compile:+,compiled}" \
        "$(sed -n 's/.*"step_seconds": \([0-9.e-]*\).*/\1/p' "$work/out")" \
        "$(sed -n 's/.*"least_seconds": \([0-9.e-]*\).*/\1/p' "$work/out")" \
        "$(sed -n 's/.*"resident_bytes": \[\([0-9]*\).*/\1/p' "$work/out")"
}

# Its batch (4 sequences of 64) and its 40 steps are constants: it is stopped after as many as ours.
llmc() { # llmc STEPS
    (cd "$LLMC" && OMP_NUM_THREADS=2 stdbuf -oL ./train_gpt2 2>"$work/err") |
        sed -n 's/.*(took \([0-9.]*\) ms).*/\1/p' | head -n $((warmup + $1)) |
        awk -v first=$warmup 'NR > first { print $1 / 1000 }' >"$work/steps"
    record llm.c,2-threads "$(median <"$work/steps")" "$(least <"$work/steps")" 0
}

# ---- programs ----

if [ ! -x "$zero" ]; then
    echo "peers.sh: $zero is not built: cmake -B build && cmake --build build" >&2
    exit 1
fi
if ! [ "$rounds" -ge 1 ] 2>/dev/null; then
    echo "peers.sh: ROUNDS: expected a whole number from 1 on, not $rounds" >&2
    exit 1
fi
for case in $cases; do describe "$case" >"$work/case"; done
found=
for python in $pythons; do
    if "$python" -c 'import torch; print(torch.__version__.split("+")[0])' 2>/dev/null \
        >"$work/$(echo "$python" | tr / _)"; then
        found="$found $python"
    else
        echo "torch: left out: not installed for $python" \
            "(apt-get install python3-torch, or PYTHON=)"
    fi
done
if [ -z "${LLMC:-}" ]; then
    echo "llm.c: left out (LLMC=FOLDER, with train_gpt2 built, gpt2_124M.bin and its data)"
elif [ ! -x "$LLMC/train_gpt2" ] || [ ! -f "$LLMC/gpt2_124M.bin" ]; then
    echo "llm.c: left out: no train_gpt2 or no gpt2_124M.bin in $LLMC (make train_gpt2)"
    LLMC=
fi

# ---- measure ----

load=$(cut -d' ' -f1 /proc/loadavg)
round=0
while [ "$round" -lt "$rounds" ]; do
    for case in $cases; do
        # shellcheck disable=SC2046 # words
        set -- $(describe "$case")
        for dtype in $dtypes; do
            ours 0 "$@"
            for python in $found; do
                for mode in $modes; do torch "$python" "$mode" "$@"; done
            done
            ours 1 "$@"
            [ "$case,$dtype" != gpt2-256,fp32 ] || [ -z "${LLMC:-}" ] || llmc "$7"
        done
    done
    round=$((round + 1))
done

# ---- report ----

date -u '+%Y-%m-%d'
lscpu | awk -F': *' '
    /^Model name/ { name = $2 }
    /^CPU\(s\)/ { n = $2 }
    END { print n " cores, " name }'
echo "load average at the start: $load"
for dtype in $dtypes; do echo "ours, $dtype: $(cat "$work/ours.$dtype")"; done
for python in $found; do
    env $loops ONEDNN_VERBOSE=1 DNNL_VERBOSE=1 "$python" "$here/torch_gpt2.py" --versions 2>&1 |
        sed -n 's/.*cpu,isa:/oneDNN on /p; /^torch/p'
done

for case in $cases; do
    # shellcheck disable=SC2046
    set -- $(describe "$case")
    printf '\n%s: %s layers, %s wide, %s heads, T %s, V %s; ' "$case" "$1" "$2" "$3" "$4" "$5"
    printf '%s tokens per step; medians of %s rounds\n' $(($4 * $6)) "$rounds"
    awk -v wanted="$case" -v tokens=$(($4 * $6)) -f "$here/peers.awk" "$work/runs"
done

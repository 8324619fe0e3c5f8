#!/bin/sh
# compile.sh SOURCES [ARCHITECTURE ...]: every gpu/*.cu by nvcc, which must give no warning and no
# kernel that needs a stack or spills registers: both would show as slow local memory only. Without
# nvcc (NVCC, in PATH, or in /usr/local/cuda) it skips itself. Architectures: those of 70, 75, 80 and 90 that nvcc knows.
set -u
sources=${1:?compile.sh needs the folder of the sources}
shift
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
if ! command -v "$nvcc" >/dev/null; then
    echo "skipped: there is no nvcc"
    exit 77
fi
known=$("$nvcc" --list-gpu-arch | sed 's/compute_//') || exit 1
wanted=${*:-70 75 80 90}
generate=
for sm in $wanted; do
    if echo "$known" | grep -qx "$sm"; then
        generate="$generate -gencode arch=compute_$sm,code=sm_$sm"
    else
        echo "not compiled: $("$nvcc" --version | sed -n 's/.*release //p') has no sm_$sm"
    fi
done
if [ -z "$generate" ]; then
    echo "nvcc knows none of: $wanted"
    exit 1
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# One file; its output goes to $work. Sums and updates with the CPU's bits have no contraction.
compile() {
    name=$(basename "$1")
    options=
    if [ "$name" = exact.cu ]; then options=-fmad=false; fi
    "$nvcc" -std=c++17 $options $generate -Werror all-warnings -Xptxas -v \
        -Xcompiler -Wall,-Wextra,-fPIC -I"$sources" -I"$sources/src" -I"$sources/include" \
        -c "$1" -o "$work/$name.o" >"$work/$name.log" 2>&1
    echo $? >"$work/$name.rc"
}

# One file's output: the status, what was said, and each kernel's memory.
look() {
    name=$(basename "$1")
    log=$work/$name.log
    if [ "$(cat "$work/$name.rc")" != 0 ] || grep -qi 'warning' "$log"; then
        cat "$log"
        echo "$name: nvcc fails or warns"
        return 1
    fi
    awk -v name="$name" '
        /Compiling entry function/ { sm = $NF; kernels++ }
        /Function properties for/ { kernel = $NF }
        /bytes stack frame/ {
            if ($1 + $5 + $9 > 0) {
                print name ": " kernel " for " sm ":" $0
                bad = 1
            }
        }
        / registers/ { n = $0; sub(/.*Used /, "", n); if (n + 0 > most) most = n + 0 }
        END {
            printf "%s: %d kernels, at most %d registers\n", name, kernels, most
            exit bad || kernels == 0
        }' "$log"
}

status=0
for file in "$sources"/gpu/*.cu; do
    compile "$file" &
    first=${first:-}
    if [ -n "$first" ]; then wait && first=; else first=1; fi
done
wait
for file in "$sources"/gpu/*.cu; do look "$file" || status=1; done
exit $status

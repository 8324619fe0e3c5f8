# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # names that check.sh and its other files share
# How the parts of check.sh run `zero train` and read its results. Read by check.sh.

# The folder of cuBLAS: the toolkit's, or that of PyTorch's wheels.
find_cublas() {
    wanted=$(ldd "$here/bin/libzero_cuda.so" | sed -n 's/^\t*\(libcublas\.so[^ ]*\).*/\1/p')
    for folder in /usr/local/cuda/lib64 /usr/local/cuda/lib /usr/lib/x86_64-linux-gnu \
        $(python3 -c 'import site; print(*(p + "/nvidia/*/lib" for p in site.getsitepackages()))' \
            2>/dev/null); do
        if [ -e "$folder/$wanted" ]; then
            echo "$folder"
            return
        fi
    done
}

set_up() {
    [ -f "$here/mpi.env" ] || stop 2 "this part runs in a pack: sh gpu/check.sh pack [DIR]"
    # The folders of MPI, written by pack.
    mpi_prefix='' mpi_bin='' mpi_libraries='' mpi_data='' mpi_settings='' mpi_pmix=''
    # shellcheck disable=SC1091
    . "$here/mpi.env"
    cublas=$(find_cublas)
    # For checkpoints; logs stay.
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/zero-gpu-check.XXXXXX")
    trap 'rm -rf "$scratch"' EXIT
    export OPAL_PREFIX="$here$mpi_prefix" OPAL_PKGLIBDIR="$here$mpi_libraries"
    export OPAL_PKGDATADIR="$here$mpi_data" OPAL_SYSCONFDIR="$here$mpi_settings"
    export PMIX_INSTALL_PREFIX="$here$mpi_pmix" OMPI_MCA_rmaps_base_oversubscribe=1
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_btl_vader_single_copy_mechanism=none
    export ZERO_PLUGINS="$here/bin" ZERO_TEST_DEVICE="$device"
    export PATH="$here$mpi_bin:$PATH" OPENBLAS_NUM_THREADS=1
    libraries_here="$here/lib${cublas:+:$cublas}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    [ -z "${GPUS:-}" ] || export CUDA_VISIBLE_DEVICES="$GPUS"
    python=${PYTHON:-python3}
}

# left: the seconds that LIMIT leaves.
left() {
    echo $((${LIMIT:-1000000} - ($(date +%s) - began_at)))
}

# in_time COMMAND...: ends it after $most seconds, which check.sh and the longer parts set, or when LIMIT is
# over: exit code 124.
in_time() {
    allowed=$(left)
    [ "$allowed" -gt 0 ] || return 124
    [ "$allowed" -lt "$most" ] || allowed=$most
    timeout -k 5 "$allowed" "$@"
}

# with COMMAND...: in time, with the pack's libraries. Other programs, as python3, keep their own.
with() {
    in_time env LD_LIBRARY_PATH="$libraries_here" "$@"
}

# zero RANKS NAME OPTIONS...: trains; output in NAME.txt, metrics in NAME.jsonl.
zero() {
    ranks=$1 name=$2
    shift 2
    rm -f "$work/$name.jsonl"
    with mpirun -n "$ranks" --map-by :OVERSUBSCRIBE --bind-to none "$here/bin/zero" train "$@" \
        --eval-every 0 --sample 0 --metrics "$work/$name.jsonl" >"$work/$name.txt" 2>&1
    code=$?
    [ $code -ne 124 ] || echo "zero: ended after $allowed s, the time of this step" >>"$work/$name.txt"
    return $code
}

digest() { # digest NAME
    sed -n 's/^ *digest  *\([0-9a-f]*\).*/\1/p' "$work/$1.txt"
}

losses() { # losses NAME: one a line
    sed -n 's/.*"step":[0-9]*,"loss":\([^,]*\),.*/\1/p' "$work/$1.jsonl"
}

# apart NAME NAME: the largest relative difference of two runs' losses, or "nan"
apart() {
    losses "$1" >"$work/a"
    losses "$2" >"$work/b"
    paste "$work/a" "$work/b" | awk '
        NF != 2 || $1 + 0 != $1 || $2 + 0 != $2 { bad = 1 }
        { d = ($1 - $2) / $2; if (d < 0) d = -d; if (d > most) most = d }
        END { print bad || NR == 0 ? "nan" : most + 0 }'
}

within() { # within VALUE LIMIT
    awk -v x="$1" -v limit="$2" 'BEGIN { exit !(x != "nan" && x + 0 <= limit + 0) }'
}

# last_words FILE: why a program has failed, in one line: what zero says, since mpirun speaks last.
last_words() {
    { grep -m 3 '^zero: ' "$1" || tail -3 "$1"; } | tr '\n' ' '
}

# run_or_fail RANKS NAME OPTIONS...: zero, and a failure with its last words if it does not end well.
run_or_fail() {
    zero "$@" && return
    failed "$2: $(last_words "$work/$2.txt")"
}

# run_if_room RANKS NAME OPTIONS...: the same, but too little memory is no failure.
run_if_room() {
    zero "$@" && return
    if grep -q "are available\|of memory" "$work/$2.txt"; then
        not_run "$2: $(last_words "$work/$2.txt")"
        return 1
    fi
    failed "$2: $(last_words "$work/$2.txt")"
}

# check_same NAME OF: has the digest of OF.
check_same() {
    if [ -n "$(digest "$1")" ] && [ "$(digest "$1")" = "$(digest "$2")" ]; then
        ok "$1: digest $(digest "$1")"
    else
        failed "$1: digest $(digest "$1"), but $2 has $(digest "$2")"
    fi
}

# memory_of COMMAND...: runs it; sets taken to the most MiB that the GPU had in use beyond what it
# had before, or to nothing where that is not told.
memory_of() {
    used="nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -i ${GPUS:-0}"
    before=$($used 2>/dev/null)
    : >"$work/used"
    (while $used; do sleep 0.1; done) >"$work/used" 2>/dev/null &
    watcher=$!
    "$@"
    code=$?
    kill $watcher 2>/dev/null
    wait $watcher 2>/dev/null
    taken=$(sort -n "$work/used" | tail -1 | awk -v b="$before" '{ print $1 - b }')
    return $code
}

# step_seconds NAME [KEY]: the median of the seconds of a run's steps after the third, or of the last one of
# fewer; KEY names other seconds of its steps.
step_seconds() {
    sed -n '/"loss":/s/.*"'"${2:-step_seconds}"'":\([^,]*\),.*/\1/p' "$work/$1.jsonl" >"$work/seconds"
    [ "$(wc -l <"$work/seconds")" -gt 3 ] && from=4 || from=$(wc -l <"$work/seconds")
    tail -n +"$from" "$work/seconds" | sort -n |
        awk '{ x[NR] = $1 } END { printf "%.4g", x[int((NR + 1) / 2)] }'
}

# busy NAME: the share of a step in which the GPU did not wait for messages and copies, or "nan".
busy() {
    grep -q '"exposed_seconds":[0-9]' "$work/$1.jsonl" || {
        echo nan
        return
    }
    awk -v waited="$(step_seconds "$1" exposed_seconds)" -v step="$(step_seconds "$1")" \
        'BEGIN { if (step > 0) printf "%.3f", 1 - waited / step; else print "nan" }'
}

# number NAME KEY: a whole number in the last line of a run's metrics; that of --json, if NAME is a plan.
number() {
    sed -n "s/.*\"$2\": *\([0-9]*\).*/\1/p" "$work/$1" | sed -n '$p'
}

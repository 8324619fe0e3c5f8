#!/bin/sh
# Everything about the CUDA backend that needs a GPU, in parts of less than 10 minutes each.
#
#   sh gpu/check.sh pack [DIR]    builds for any CPU, with CUDA, and gathers in DIR [build/gpu-check]
#                                 what a machine with a GPU may lack: the programs, the plugin, MPI
#                                 and all libraries but the C library's and CUDA's
#   sh DIR/check.sh PART...       on the machine with a GPU, in a copy of DIR:
#
#     devices     what is there; refusals
#     kernels     every kernel against the CPU's, and the memory's rules
#     sanitizer   the same under compute-sanitizer: memcheck, racecheck, initcheck, synccheck
#     digests     1, 2 and 4 ranks on one GPU, stages 0-3, all collectives, optimizer on the host, by
#                 CUDA IPC (auto) and staged, twice: equal digests, losses within 1e-4 of the CPU's
#     resume      saved on the CPU and resumed on the GPU, and back
#     texts       tokens through the cache: each text the same alone and in company, tokens per second
#     stories     1000 steps in bf16 and fp16: loss above the entropy, within 1 % of the CPU's
#     speed       GPT-2 124M and 1.5B beside PyTorch (python3 with torch); memory planned and taken
#     shares      kernels beside the GPU's copy rate, products beside cuBLAS alone
#     all         all of them
#
# Prints one line a check: "ok", "FAILED" or "not run" (with the reason), and what was measured.
# Exit code: 1 if a check failed, 3 if one could not run, 2 for a wrong command line.
#
#   GPUS=0,1                chooses devices (CUDA_VISIBLE_DEVICES)
#   DEVICE=cuda-emulated    tries this script itself where there is no GPU
set -u

here=$(cd "$(dirname "$0")" && pwd)
device=${DEVICE:-cuda}
failures=0
unable=0

ok() {
    echo "ok        $*"
}

failed() {
    echo "FAILED    $*"
    failures=$((failures + 1))
    return 1
}

not_run() {
    echo "not run   $*"
    unable=$((unable + 1))
}

stop() { # stop CODE WORDS
    code=$1
    shift
    echo "check.sh: $*" >&2
    exit "$code"
}

# ---- pack ----

# libraries FILE...: paths of the libraries that they need, without the C library's and CUDA's,
# which have to fit the machine's kernel and driver.
libraries() {
    for file in "$@"; do ldd "$file" 2>/dev/null; done |
        sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u |
        grep -v -E '/(ld-linux|libc|libm|libdl|librt|libpthread|libcublas|libcublasLt|libcuda)[.-]'
}

# mpi_path KEY: a folder of this Open MPI.
mpi_path() {
    ompi_info --parsable --path "$1" | sed -n "s/^path:$1://p" | sed -n 1p
}

# The folders keep their names below the pack's root, so that OPAL_PREFIX moves them all at once.
pack_mpi() {
    command -v ompi_info >/dev/null || stop 3 "pack takes Open MPI along; ompi_info was not found"
    for key in pkglibdir pkgdatadir sysconfdir; do
        from=$(mpi_path $key)
        mkdir -p "$to$from"
        cp -RL "$from/." "$to$from"
    done
    for program in mpirun orted; do
        mkdir -p "$to$(mpi_path bindir)"
        cp -L "$(command -v $program)" "$to$(mpi_path bindir)/$program"
    done
    # Fabrics and OpenSHMEM need large libraries, and a single machine needs neither.
    for unwanted in ofi ucx psm openib spml memheap sshmem scoll atomic; do
        rm -f "$to$(mpi_path pkglibdir)"/mca_*"$unwanted"*
    done
    # PMIx is Open MPI's or the system's; its plugins are found by a variable of its own.
    for folder in /usr/lib/*/pmix2/lib/pmix /usr/lib/*/pmix2/share; do
        [ -d "$folder" ] || continue
        mkdir -p "$to$folder"
        cp -RL "$folder/." "$to$folder"
    done
    # shellcheck disable=SC2046 # paths without blanks
    cp -L $(libraries $(find "$to" -name '*.so*' -type f) "$to$(mpi_path bindir)"/*) "$to/lib"
    cat >"$to/mpi.env" <<EOF
mpi_prefix=$(mpi_path prefix)
mpi_bin=$(mpi_path bindir)
mpi_libraries=$(mpi_path pkglibdir)
mpi_data=$(mpi_path pkgdatadir)
mpi_settings=$(mpi_path sysconfdir)
mpi_pmix=$(ls -d /usr/lib/*/pmix2 2>/dev/null)
EOF
}

pack() {
    source=$(dirname "$here")
    [ -f "$source/CMakeLists.txt" ] || stop 2 "pack is for a checkout, not for a pack"
    to=${1:-$source/build/gpu-check}
    build=$source/build/with-cuda
    cmake -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=Release -DZERO_NATIVE=OFF \
        -DZERO_CUDA=ON >"$build.log" 2>&1 || {
        cat "$build.log"
        stop 3 "the build with CUDA could not be configured"
    }
    cmake --build "$build" --parallel "$(nproc)" --target zero bench_kernels zero_cuda \
        test_kernels_on_gpu test_kernels_exact_on_gpu test_kernels_masks_on_gpu \
        test_kernels_rows_on_gpu test_kernels_texts_on_gpu test_attention_kernels_on_gpu || stop 1 "the build failed"
    # For trying this script: DEVICE=cuda-emulated.
    cmake --build "$build" --parallel "$(nproc)" --target zero_cuda_emulated ||
        echo "there is no emulated device in this pack"
    rm -rf "$to"
    mkdir -p "$to/bin" "$to/lib" "$to/tests"
    cp "$build/zero" "$build/bench_kernels" "$build/libzero_cuda.so" "$to/bin"
    cp "$build"/libzero_cuda_emulated.so "$to/bin" 2>/dev/null || :
    cp "$build"/tests/gpu/*_on_gpu "$to/tests"
    cp "$here/check.sh" "$source/bench/torch_gpt2.py" "$to"
    # shellcheck disable=SC2046 # paths without blanks
    cp -L $(libraries "$to"/bin/* "$to"/tests/*) "$to/lib"
    pack_mpi
    echo "$to: $(du -sh "$to" | cut -f1). Copy it to a machine with a GPU, and there:"
    echo "  sh $(basename "$to")/check.sh all"
}

# ---- on the machine with a GPU ----

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
    work=$(mktemp -d "${TMPDIR:-/tmp}/zero-gpu-check.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    export OPAL_PREFIX="$here$mpi_prefix" OPAL_PKGLIBDIR="$here$mpi_libraries"
    export OPAL_PKGDATADIR="$here$mpi_data" OPAL_SYSCONFDIR="$here$mpi_settings"
    export PMIX_INSTALL_PREFIX="$here$mpi_pmix" OMPI_MCA_rmaps_base_oversubscribe=1
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_btl_vader_single_copy_mechanism=none
    export PATH="$here$mpi_bin:$PATH" OPENBLAS_NUM_THREADS=1
    libraries_here="$here/lib${cublas:+:$cublas}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    [ -z "${GPUS:-}" ] || export CUDA_VISIBLE_DEVICES="$GPUS"
}

# with COMMAND...: with the pack's libraries. Other programs, as python3, keep their own.
with() {
    LD_LIBRARY_PATH="$libraries_here" "$@"
}

# zero RANKS NAME OPTIONS...: trains; output in NAME.txt, metrics in NAME.jsonl.
zero() {
    ranks=$1 name=$2
    shift 2
    with mpirun -n "$ranks" --map-by :OVERSUBSCRIBE --bind-to none "$here/bin/zero" train "$@" \
        --eval-every 0 --sample 0 --metrics "$work/$name.jsonl" >"$work/$name.txt" 2>&1
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

# run_or_fail RANKS NAME OPTIONS...: zero, and a failure with its last words if it does not end well.
run_or_fail() {
    zero "$@" && return
    failed "$2: $(tail -3 "$work/$2.txt" | tr '\n' ' ')"
}

devices() {
    nvidia-smi --query-gpu=name,memory.total,driver_version,compute_mode --format=csv,noheader ||
        not_run "nvidia-smi"
    with "$here/bin/zero" info | sed -n '/[Dd]evice/,/^$/p'
    echo "cuBLAS in ${cublas:-no known folder}"
    if zero 1 first --model tiny --device "$device" --steps 2 --data stories:64K; then
        ok "zero train --device $device"
    else
        not_run "zero train --device $device: $(tail -3 "$work/first.txt" | tr '\n' ' ')"
    fi
}

kernels() {
    for test in "$here"/tests/*_on_gpu; do
        if with "$test" >"$work/kernels.txt" 2>&1; then
            ok "$(basename "$test"): $(grep -c '^\[       OK' "$work/kernels.txt") tests"
        else
            failed "$(basename "$test"): $(grep -E 'FAILED|ERROR' "$work/kernels.txt" | head -5)"
        fi
    done
}

sanitizer() {
    tool=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
    if [ -z "$tool" ]; then
        not_run "compute-sanitizer was not found"
        return
    fi
    for kind in memcheck racecheck initcheck synccheck; do
        for test in "$here"/tests/*_on_gpu; do
            if with "$tool" --tool $kind --error-exitcode 9 "$test" \
                >"$work/sanitizer.txt" 2>&1; then
                ok "$kind, $(basename "$test"): 0 errors"
            else
                failed "$kind, $(basename "$test"): $(grep -m 3 '=====' "$work/sanitizer.txt")"
            fi
        done
    done
}

# check_same NAME OF: has the digest of OF.
check_same() {
    if [ -n "$(digest "$1")" ] && [ "$(digest "$1")" = "$(digest "$2")" ]; then
        ok "$1: digest $(digest "$1")"
    else
        failed "$1: digest $(digest "$1"), but $2 has $(digest "$2")"
    fi
}

digests() {
    small="--model tiny --steps 20 --global-batch 8 --micro-batch 2 --data stories:256K"
    for dtype in fp32 bf16 fp16; do
        for ranks in 1 2 4; do
            # shellcheck disable=SC2086 # words
            run_or_fail $ranks "$dtype-$ranks" $small --dtype $dtype --device "$device" || continue
            # shellcheck disable=SC2086
            run_or_fail $ranks "$dtype-$ranks-cpu" $small --dtype $dtype || continue
            far=$(apart "$dtype-$ranks" "$dtype-$ranks-cpu")
            if within "$far" "$([ $dtype = fp32 ] && echo 1e-4 || echo 2e-2)"; then
                ok "$dtype, $ranks ranks: losses $far of the CPU's at most"
            else
                failed "$dtype, $ranks ranks: losses differ by $far of the CPU's"
            fi
            more_digests $dtype "$ranks"
        done
    done
}

# All stages with all collectives in bf16; of the other types the stages.
more_digests() {
    algorithms=auto
    [ "$1" != bf16 ] || algorithms="p2p shm mpi hier"
    for stage in 0 1 2 3; do
        for algorithm in $algorithms; do
            for more in "" "--offload host" "--device-exchange staged"; do
                case "$algorithm $more" in # what changes nothing is left out
                mpi\ -* | hier\ -* | p2p\ *staged | shm\ *host) continue ;;
                esac
                name="$1-$2-stage$stage-$algorithm${more:+-${more##* }}"
                # shellcheck disable=SC2086 # words
                run_or_fail "$2" "$name" $small --dtype "$1" --device "$device" --stage $stage \
                    --collectives $algorithm $more || continue
                # MPI adds in an order of its own: there the stages agree with each other.
                same=$1-$2
                [ "$algorithm" != mpi ] || same=$1-$2-stage0-mpi
                check_same "$name" "$same"
            done
        done
    done
}

resume() {
    small="--model tiny --global-batch 8 --micro-batch 2 --data stories:256K --stage 2"
    for way in "cpu $device" "$device cpu"; do
        first=${way% *} second=${way#* }
        rm -rf "$work/saved"
        # shellcheck disable=SC2086 # words
        set -- $small --checkpoint "$work/saved"
        run_or_fail 2 "saved-on-$first" "$@" --device "$first" --steps 10 &&
            run_or_fail 2 "loaded-on-$second" "$@" --device "$second" --steps 10 --resume &&
            check_same "loaded-on-$second" "saved-on-$first" &&
            run_or_fail 2 "resumed-on-$second" "$@" --device "$second" --steps 20 --resume &&
            ok "resumed-on-$second: loss $(losses "resumed-on-$second" | tail -1)"
    done
}

# generated NAME OPTIONS...: the texts of three prompts, in NAME.txt; their seconds in $seconds.
generated() {
    name=$1
    shift
    begin=$(date +%s.%N)
    with "$here/bin/zero" generate "$work/texts" --prompts "$work/prompts" "$@" \
        >"$work/$name.txt" 2>"$work/$name.err" || {
        failed "$name: $(tail -3 "$work/$name.err" | tr '\n' ' ')"
        return 1
    }
    seconds=$(awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { print b - a }')
}

texts() {
    rm -rf "$work/texts"
    printf 'Once upon a time\nThe cat\nA dog and' >"$work/prompts"
    run_or_fail 1 texts-model --model tiny --steps 50 --data stories:256K \
        --checkpoint "$work/texts" || return
    generated texts-cpu --temperature 0 --tokens 100 &&
        generated texts-fp32 --temperature 0 --tokens 100 --device "$device" &&
        if cmp -s "$work/texts-cpu.txt" "$work/texts-fp32.txt"; then
            ok "texts, fp32: the CPU's words"
        else
            failed "texts, fp32: other words than the CPU's"
        fi
    for dtype in fp32 bf16 fp16; do
        generated texts-alone --tokens 100 --device "$device" --dtype $dtype --batch 1 || continue
        generated texts-together --tokens 100 --device "$device" --dtype $dtype || continue
        if cmp -s "$work/texts-alone.txt" "$work/texts-together.txt"; then
            ok "texts, $dtype: alone as in company, 300 tokens in $seconds s with start-up"
        else
            failed "texts, $dtype: alone they are others than in company"
        fi
    done
}

stories() {
    for dtype in bf16 fp16; do
        for place in cpu "$device"; do
            run_or_fail 1 "stories-$dtype-$place" --model tiny --steps 1000 --dtype $dtype \
                --data stories:4M --device "$place" || return
        done
        ours=$(losses "stories-$dtype-$device" | tail -50 | awk '{ s += $1 } END { print s / NR }')
        cpu=$(losses stories-$dtype-cpu | tail -50 | awk '{ s += $1 } END { print s / NR }')
        entropy=$(sed -n 's/^ *entropy  *\([0-9.]*\).*/\1/p' "$work/stories-$dtype-$device.txt" | tail -1)
        if awk -v x="$ours" -v y="$cpu" -v least="$entropy" \
            'BEGIN { exit !(least != "" && x >= least && x < y * 1.01 && y < x * 1.01) }'; then
            ok "stories, $dtype: loss $ours, the CPU's $cpu, entropy $entropy"
        else
            failed "stories, $dtype: loss $ours, the CPU's $cpu, entropy $entropy"
        fi
    done
}

# memory_of COMMAND...: runs it; sets taken to the most MiB that the GPU had in use beyond what it
# had before.
memory_of() {
    used="nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -i ${GPUS:-0}"
    before=$($used)
    : >"$work/used"
    (while :; do $used; sleep 0.2; done) >"$work/used" 2>/dev/null &
    watcher=$!
    "$@"
    code=$?
    kill $watcher 2>/dev/null
    wait $watcher 2>/dev/null
    taken=$(sort -n "$work/used" | tail -1 | awk -v b="$before" '{ print $1 - b }')
    return $code
}

# The median of the last steps' seconds.
step_seconds() {
    sed -n 's/.*"step_seconds":\([^,]*\),.*/\1/p' "$work/$1.jsonl" | tail -n +4 | sort -n |
        awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'
}

# speed_of MODEL LAYERS HIDDEN HEADS BATCH
speed_of() {
    options="--model $1 --dtype bf16 --seq 1024 --global-batch $5 --micro-batch $5"
    # shellcheck disable=SC2086 # words
    memory_of run_or_fail 1 "speed-$1" $options --device "$device" --steps 15 --data stories:8M \
        --tokenizer byte --vocab 50257 || return
    ours=$(step_seconds "speed-$1")
    # shellcheck disable=SC2086
    planned=$(with "$here/bin/zero" plan $options --ranks 1 --device cuda --tokenizer byte \
        --vocab 50257 --json | sed -n '/"device": {/,/}/s/.*"needed": *\([0-9]*\).*/\1/p' | sed -n 1p)
    planned=$(awk -v b="${planned:-0}" 'BEGIN { printf "%.0f", b / 1048576 }')
    echo "          $1: $ours s a step of $5 x 1024 tokens"
    if awk -v a="$taken" -v b="$planned" 'BEGIN { exit !(a <= 1.02 * b && b <= 1.02 * a) }'; then
        ok "$1: GPU memory taken $taken MiB, planned $planned MiB"
    else
        failed "$1: GPU memory taken $taken MiB, planned $planned MiB: more than 2 % apart"
    fi
    python3 "$here/torch_gpt2.py" --device cuda --compile --dtype bf16 --layers "$2" --hidden "$3" \
        --heads "$4" --seq 1024 --batch "$5" --steps 12 --warmup 5 >"$work/torch.txt" 2>&1 || {
        not_run "PyTorch, $1: $(tail -2 "$work/torch.txt" | tr '\n' ' ')"
        return
    }
    theirs=$(sed -n 's/.*"step_seconds": \([^,]*\),.*/\1/p' "$work/torch.txt")
    ratio=$(awk -v a="$theirs" -v b="$ours" 'BEGIN { printf "%.3f", a / b }')
    echo "          PyTorch: $(grep torch "$work/torch.txt" | tail -1)"
    if within 0.55 "$ratio"; then
        ok "$1, batch $5: $ratio of PyTorch's speed"
    else
        failed "$1, batch $5: $ratio of PyTorch's speed, less than 0.55"
    fi
}

speed() {
    speed_of gpt2 12 768 12 16
    speed_of gpt2-xl 48 1600 25 4
}

# judge_shares DTYPE: the least shares of the copy rate, and of cuBLAS.
judge_shares() {
    judged=$(awk '
        function need(names, share,    list, i) {
            for (i = split(names, list, ";"); i > 0; i--) least[list[i]] = share
        }
        BEGIN {
            need("adamw;round;accumulate;sum of squares", 0.85)
            need("layernorm;layernorm backward;bias, gelu;bias, gelu backward", 0.75)
            need("add branch;cross-entropy", 0.75)
            need("products of matrices", 0.97)
        }
        {
            name = substr($0, 1, 22)
            sub(/ +$/, "", name)
            if (!(name in least)) next
            seen++
            split(substr($0, 23), column)
            if (column[5] + 0 < least[name]) print name " " column[5] " < " least[name] ";"
        }
        END { if (seen < 10) print "rows are missing" }' "$work/shares.txt")
    if [ -z "$judged" ]; then ok "shares, $1"; else failed "shares, $1: $judged"; fi
}

shares() {
    for dtype in bf16 fp16; do
        if with mpirun -n 1 "$here/bin/bench_kernels" --device "$device" --model gpt2 --seq 1024 \
            --micro-batch 8 --global-batch 8 --dtype $dtype --rounds 5 >"$work/shares.txt" 2>&1; then
            cat "$work/shares.txt"
            judge_shares $dtype
        else
            failed "bench_kernels, $dtype: $(tail -3 "$work/shares.txt" | tr '\n' ' ')"
        fi
    done
}

# ---- start ----

[ $# -gt 0 ] || stop 2 "no part is given; the head of this script lists them"
if [ "$1" = pack ]; then
    shift
    pack "$@"
    exit
fi
[ "$*" != all ] || set -- devices kernels sanitizer digests resume texts stories speed shares
for part in "$@"; do
    case $part in
        devices | kernels | sanitizer | digests | resume | texts | stories | speed | shares) ;;
        *) stop 2 "there is no part '$part'; the head of this script lists them" ;;
    esac
done
set_up
for part in "$@"; do
    began=$(date +%s)
    echo "=== $part"
    "$part"
    echo "=== $part: $(($(date +%s) - began)) s"
done
[ $failures -eq 0 ] || exit 1
[ $unable -eq 0 ] || exit 3

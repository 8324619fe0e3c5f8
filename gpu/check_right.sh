# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # names that check.sh and its other files share
# The parts of check.sh about right results. Read by check.sh.

devices() {
    nvidia-smi --query-gpu=name,memory.total,driver_version,compute_mode --format=csv,noheader ||
        not_run "nvidia-smi"
    with "$here/bin/zero" info | sed -n '/[Dd]evice/,/^$/p'
    echo "cuBLAS in ${cublas:-no known folder}"
    if zero 1 first --model tiny --device "$device" --steps 2 --data stories:64K; then
        ok "zero train --device $device"
    else
        not_run "zero train --device $device: $(last_words "$work/first.txt")"
    fi
}

# All programs at one time: they are small.
kernels() {
    for test in "$here"/tests/*_on_gpu; do
        name=$(basename "$test")
        (
            with "$test" >"$work/$name.txt" 2>&1
            echo $? >"$work/$name.code"
        ) &
    done
    wait
    for test in "$here"/tests/*_on_gpu; do
        name=$(basename "$test") code=$(cat "$work/$(basename "$test").code")
        if [ "$code" = 0 ]; then
            ok "$name: $(grep -c '^\[       OK' "$work/$name.txt") tests"
        else
            failed "$name: code $code: $(grep -E 'FAILED|ERROR' "$work/$name.txt" | head -5)"
        fi
    done
}

sanitizer() {
    tool=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
    if [ -z "$tool" ]; then
        not_run "compute-sanitizer was not found"
        return
    fi
    most=300
    for kind in memcheck racecheck initcheck synccheck; do
        for test in "$here"/tests/*_on_gpu; do
            name=$kind-$(basename "$test")
            if with "$tool" --tool $kind --error-exitcode 9 "$test" >"$work/$name.txt" 2>&1; then
                ok "$name: 0 errors"
            else
                failed "$name: code $?: $(grep -m 3 '=====' "$work/$name.txt")"
            fi
        done
    done
}

digests() {
    # With larger steps a loss jumps, and a rounding grows to 1e-4 of it: measured on an H200.
    small="--model tiny --steps 20 --lr 3e-4 --global-batch 8 --micro-batch 2 --data stories:256K"
    for dtype in fp32 bf16 fp16; do
        for ranks in 1 2 4; do
            # shellcheck disable=SC2086 # words
            run_or_fail $ranks "$dtype-$ranks" $small --dtype $dtype --device "$device" || continue
            # shellcheck disable=SC2086
            run_or_fail $ranks "$dtype-$ranks-cpu" $small --dtype $dtype --activations $dtype || continue
            far=$(apart "$dtype-$ranks" "$dtype-$ranks-cpu")
            if within "$far" "$([ $dtype = fp32 ] && echo 1e-5 || echo 2e-3)"; then
                ok "$dtype, $ranks ranks: losses $far of the CPU's at most"
            else
                failed "$dtype, $ranks ranks: losses differ by $far of the CPU's"
            fi
            more_digests $dtype "$ranks"
            [ "$ranks" -ne 2 ] || tiers $dtype
        done
    done
    digests_of_messages
}

# MPI sends from and receives into the devices' memory, if it can.
digests_of_messages() {
    if [ "${ZERO_EMULATED_MPI:-0}" = 0 ] &&
        ! with "$here/bin/zero" info | grep -q '^mpi cuda  *CUDA-aware'; then
        not_run "messages from and to devices: MPI is not CUDA-aware"
        return
    fi
    for ranks in 2 4; do
        for stage in 0 1 2 3; do
            name="bf16-$ranks-stage$stage-messages"
            # shellcheck disable=SC2086 # words
            run_or_fail $ranks "$name" $small --dtype bf16 --device "$device" --stage $stage \
                --collectives p2p --device-exchange mpi && check_same "$name" "bf16-$ranks"
        done
    done
}

# States beside the device, on 2 ranks: each place of the update has the digest without, and a delayed
# update one of its own, in memory and in a file of DISK.
tiers() {
    disk=${DISK:-$PWD}
    with "$here/bin/zero" info --offload "$disk" >/dev/null 2>&1 ||
        { not_run "no file in $disk: DISK=DIR names a directory on a disk"; return; }
    n=0
    for how in "host --offload-when end" "$disk" "$disk --offload-when end" \
        "host --delayed-update 9" "$disk --delayed-update 9"; do
        n=$((n + 1)) same=$1-2
        [ $n -lt 4 ] || same=$1-2-tier4
        # shellcheck disable=SC2086 # words
        run_or_fail 2 "$1-2-tier$n" $small --dtype "$1" --device "$device" --stage 3 \
            --offload $how && check_same "$1-2-tier$n" "$same"
    done
}

# All stages with all collectives in bf16; of the other types the stages.
more_digests() {
    algorithms=auto
    [ "$1" != bf16 ] || algorithms="p2p shm mpi hier"
    for stage in 0 1 2 3; do
        for algorithm in $algorithms; do
            for more in "" "--offload host" "--device-exchange staged" "--fake-nodes 2"; do
                case "$algorithm $more $2" in # what changes nothing is left out
                mpi\ -* | hier\ --[od]* | p2p\ *staged* | shm\ *host*) continue ;;
                hier\ --fake*\ 4) ;; # IPC inside nodes, messages between them
                *\ --fake*) continue ;;
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
        rm -rf "$scratch/saved"
        # shellcheck disable=SC2086 # words
        set -- $small --checkpoint "$scratch/saved"
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
    with "$here/bin/zero" generate "$scratch/texts" --prompts "$work/prompts" "$@" \
        >"$work/$name.txt" 2>"$work/$name.err" || {
        failed "$name: $(last_words "$work/$name.err")"
        return 1
    }
    seconds=$(awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { print b - a }')
}

texts() {
    rm -rf "$scratch/texts"
    printf 'Once upon a time\nThe cat\nA dog and' >"$work/prompts"
    run_or_fail 1 texts-model --model tiny --steps 50 --data stories:256K \
        --checkpoint "$scratch/texts" || return
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
    most=300
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

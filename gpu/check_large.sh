# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # names that check.sh and its other files share
# The parts of check.sh about the optimizer on the host, and about ranks that share a GPU. Read by
# check.sh.

large() {
    most=580
    shape_of gpt2-xl 48 1600 25
    batch="--global-batch 256 --micro-batch 4"
    [ "$device" = cuda ] || batch="--global-batch 8 --micro-batch 2"
    for place in device host; do
        more=
        [ $place = device ] || more="--offload host"
        # shellcheck disable=SC2086 # words
        run_if_room 1 large-$place $shape $batch --steps 4 --device "$device" $more || return
        say "          optimizer on the $place: $(step_seconds large-$place) s a step"
    done
    check_same large-host large-device
    judge "optimizer on the host" "$(ratio_of "$(step_seconds large-device)" "$(step_seconds large-host)")" \
        0.85 "of the speed with it on the GPU"
}

# free_bytes: what a run may take: of the GPU, and of the machine's memory. Sets gpu_free and host_free.
free_bytes() {
    gpu_free=$(nvidia-smi --query-gpu=memory.free --format=csv,noheader,nounits -i "${GPUS:-0}" 2>/dev/null |
        awk '{ printf "%.0f", 0.97 * $1 * 1048576 }')
    host_free=$(awk '/MemAvailable/ { printf "%.0f", 0.9 * $2 * 1024 }' /proc/meminfo)
    [ "$device" = cuda ] || gpu_free=560000000 host_free=64000000
}

# plan_layers LAYERS OPTIONS...: a plan of the model with LAYERS layers, in plan.json; sets needs to the bytes
# of the host.
plan_layers() {
    layers=$1
    shift
    plan_of "$@" --layers "$layers" &&
        needs=$(sed -n '/"host": {/,/}/p' "$work/plan.json" | sed -n 's/.*"needed": *\([0-9]*\).*/\1/p')
}

# find_layers OPTIONS...: the most layers that --fit finds for the GPU, or fewer, if the host's memory would
# not do. Sets layers and needs.
find_layers() {
    plan_of "$@" --fit "$gpu_free" || return 1
    over=$(sed -n '/"fits": {/,/}/p' "$work/plan.json" | sed -n 's/.*"layers": *\([0-9]*\).*/\1/p')
    plan_layers "$over" "$@" || return 1
    [ "$needs" -gt "$host_free" ] || return 0
    most=0
    while [ $((over - most)) -gt 1 ]; do
        plan_layers $(((most + over) / 2)) "$@" || return 1
        if [ "$needs" -gt "$host_free" ]; then over=$layers; else most=$layers; fi
    done
    plan_layers "$most" "$@"
}

# check_planned NAME: what the run has measured is what it planned; its process has little more.
check_planned() {
    metrics=$1.jsonl
    peak=$(number "$metrics" planned_peak_bytes)
    host_peak=$(number "$metrics" host_planned_peak_bytes)
    if [ -n "$peak" ] && [ -n "$host_peak" ] && [ "$(number "$metrics" measured_peak_bytes)" = "$peak" ] &&
        [ "$(number "$metrics" host_measured_peak_bytes)" = "$host_peak" ]; then
        ok "$1: peaks as planned, $peak bytes of the device and $host_peak of the host"
    else
        failed "$1: other peaks than planned"
    fi
    resident=$(number "$metrics" resident_peak_bytes)
    if [ "$device" != cuda ]; then
        say "          resident $resident bytes, the emulated device's, too"
    elif within "$resident" "$(awk -v b="$needs" 'BEGIN { printf "%.0f", 1.03 * b }')"; then
        ok "$1: resident $resident bytes, planned $needs"
    else
        failed "$1: resident $resident bytes, more than 1.03 times the planned $needs"
    fi
}

fit() {
    most=580
    free_bytes
    if [ -z "$gpu_free" ]; then
        not_run "the largest model: nvidia-smi does not tell what is free"
        return
    fi
    shape_of gpt2-xl 48 1600 25
    options="--offload host --device $device --recompute --global-batch 1 --micro-batch 1"
    # shellcheck disable=SC2086 # words
    if ! find_layers $shape $options || [ "$layers" -eq 0 ]; then
        not_run "no layer fits $gpu_free bytes of the GPU and $host_free of the host"
        return
    fi
    say "          $layers layers fit $gpu_free bytes of the GPU and $host_free of the host"
    # shellcheck disable=SC2086
    memory_of run_if_room 1 fit $shape $options --layers "$layers" --steps 3 || return
    # shellcheck disable=SC2086
    judge_memory fit $shape $options --layers "$layers"
    check_planned fit
    say "          losses $(losses fit | tr '\n' ' '); $(step_seconds fit) s a step"
}

# copied NAME: bytes between host and device by collectives.
copied() {
    sed -n '$p' "$work/$1.jsonl" | grep -o '"bytes_\(fetched\|stored\)":[0-9]*' |
        awk -F: '{ s += $2 } END { printf "%.0f", s }'
}

ipc() {
    shape_of gpt2 12 768 12
    for way in ipc staged; do
        # shellcheck disable=SC2086 # words
        run_if_room 2 exchange-$way $shape --global-batch 8 --micro-batch 4 --steps $steps --stage 2 \
            --collectives shm --device "$device" --device-exchange $way || return
        say "          $way: $(step_seconds exchange-$way) s a step, $(copied exchange-$way) bytes" \
            "between host and device, $(busy exchange-$way) of a step without waiting for it"
    done
    check_same exchange-ipc exchange-staged
    if [ "$(copied exchange-ipc)" = 0 ] && [ "$(copied exchange-staged)" -gt 0 ]; then
        ok "ipc: nothing between host and device"
    else
        failed "ipc: $(copied exchange-ipc) bytes between host and device"
    fi
    judge "ipc" "$(ratio_of "$(step_seconds exchange-staged)" "$(step_seconds exchange-ipc)")" 1 \
        "of the speed of staged exchanges"
}

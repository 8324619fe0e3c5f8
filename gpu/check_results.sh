# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # names that check.sh and its other files share
# The results of check.sh as a file of the day and the machine, as in bench/results. Read by check.sh.

gpu_name() {
    name=$(nvidia-smi --query-gpu=name --format=csv,noheader -i "${GPUS:-0}" 2>/dev/null | sed -n 1p)
    [ "$device" = cuda ] || name=$device
    echo "${name:-unknown GPU}"
}

# describe_machine: lines of a file's head.
describe_machine() {
    nvidia-smi --query-gpu=name,memory.total,driver_version,clocks.max.sm --format=csv,noheader 2>/dev/null ||
        echo "no nvidia-smi"
    sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sort | uniq -c | sed 's/^ *//; s/ / x /'
    awk '/MemTotal/ { printf "%.0f GiB of memory\n", $2 / 1048576 }' /proc/meminfo
    echo "Linux $(uname -r), $(with "$here/bin/zero" --version | sed -n 1p)"
    "$python" -c 'import torch; print("PyTorch", torch.__version__, "CUDA", torch.version.cuda)' \
        2>/dev/null || echo "no PyTorch"
}

# open_results: sets results, and work to the folder of what programs say.
open_results() {
    folder=${RESULTS:-$PWD/results}
    work=$folder/logs
    mkdir -p "$work" || stop 3 "results go to $folder, which cannot be written"
    folder=$(cd "$folder" && pwd) work=$folder/logs
    name=$(gpu_name | tr 'A-Z /' 'a-z--' | tr -cd 'a-z0-9-')
    results=$folder/$(date +%Y-%m-%d)-$name.md
}

# head_results: a new file begins with the machine. After set_up.
head_results() {
    [ -e "$results" ] || {
        printf '# %s: %s\n\n' "$(date +%Y-%m-%d)" "$(gpu_name)"
        describe_machine | sed 's/^/    /'
    } >"$results" || stop 3 "$results cannot be written"
}

begin_results() { # begin_results PART
    printf '\n## %s\n\n    sh check.sh %s    # %s\n\n' "$1" "$1" "$(date +%H:%M)" >>"$results"
}

# show FILE: its lines, on stdout and in the results.
show() {
    cat "$1"
    sed 's/^/    /; s/ *$//' "$1" >>"$results"
}

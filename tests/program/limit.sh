# The largest model that `zero plan --fit` finds trains in a control group of that size; a tenth more,
# forced past the check, does not: limit.sh ZERO. Needs root and control groups that can be written.
set -u
zero=$1
megabytes=600
options='--hidden 256 --heads 4 --seq 64 --micro-batch 4 --data self'

skip() {
    echo "skipped: $*"
    exit 77
}

[ "$(id -u)" -eq 0 ] || skip "control groups need root"
version=1 group=/sys/fs/cgroup/memory/zero-limit-$$
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
    version=2 group=/sys/fs/cgroup/zero-limit-$$
fi
mkdir "$group" 2>/dev/null || skip "no control group can be made in ${group%/*}"
work=$(mktemp -d)
trap "rm -rf $work; until rmdir $group; do sleep 0.1; done 2>/dev/null" EXIT
trap 'exit 1' HUP INT TERM
case $version in
    1) limit_file=$group/memory.limit_in_bytes swap_file=$group/memory.memsw.limit_in_bytes ;;
    2) limit_file=$group/memory.max swap_file=$group/memory.swap.max ;;
esac
echo ${megabytes}000000 2>/dev/null >"$limit_file" || skip "$limit_file cannot be written"
[ ! -f "$swap_file" ] || [ $version -eq 1 ] || echo 0 >"$swap_file"

train() { # train LAYERS OPTIONS...: one step inside the group
    layers=$1
    shift
    # shellcheck disable=SC2086,SC2016 # words; $$ of the shell that goes into the group
    sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
        "$zero" train $options --layers "$layers" --steps 1 --sample 0 --eval-every 0 "$@" \
        >"$work/out" 2>&1
}

# shellcheck disable=SC2086
fits=$("$zero" plan $options --fit ${megabytes}M | sed -n 's/^fits .*up to \([0-9]*\) layers.*/\1/p')
[ -n "$fits" ] || { echo "FAILED: zero plan --fit names no number of layers"; exit 1; }
train "$fits" || { echo "FAILED: $fits layers do not train in ${megabytes} MB:"; cat "$work/out"; exit 1; }
echo "$fits layers train in $megabytes MB"
more=$((fits + (fits + 9) / 10))
if train $more; then echo "FAILED: $more layers are not refused"; exit 1; fi
grep -q 'MiB are there for it' "$work/out" || { echo "FAILED: refused for another reason:"; cat "$work/out"; exit 1; }
echo "$more layers are refused"
if train $more --memory-limit 0; then echo "FAILED: $more layers train there, too"; exit 1; fi
echo "$more layers, forced, do not train"

# Memory in control groups: limit.sh ZERO LAUNCH... What a plan needs is what a run takes, within a
# tenth; with less it is refused before it takes anything. The largest model that `zero plan --fit`
# finds trains in a group of that size; a tenth more, forced past the check, does not. Needs root and
# control groups that can be written. In the launch line RANKS stands for the number of ranks.
set -u
zero=$1
shift
launch=$*
megabytes=600
failed=0
# shellcheck disable=SC2086 # options are words
options='--hidden 256 --heads 4 --seq 64 --micro-batch 4'

skip() {
    echo "skipped: $*"
    exit 77
}

! grep -q __asan_init "$zero" || skip "sanitizers need memory of their own"
[ "$(id -u)" -eq 0 ] || skip "control groups need root"
version=1 group=/sys/fs/cgroup/memory/zero-limit-$$
limit_name=memory.limit_in_bytes peak_name=memory.max_usage_in_bytes
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
    version=2 group=/sys/fs/cgroup/zero-limit-$$
    limit_name=memory.max peak_name=memory.peak
fi
mkdir "$group" 2>/dev/null || skip "no control group can be made in ${group%/*}"
work=$(mktemp -d)
remove() { until rmdir "$group"; do sleep 0.1; done 2>/dev/null; }
trap 'rm -rf $work; remove' EXIT
trap 'exit 1' HUP INT TERM

# limit BYTES: a new group, which has had no peak yet.
limit() {
    remove
    mkdir "$group" || exit 1
    echo "$1" 2>/dev/null >"$group/$limit_name" || skip "$group/$limit_name cannot be written"
    [ $version -eq 1 ] || echo 0 2>/dev/null >"$group/memory.swap.max"
}

fail() {
    echo "FAILED: $*"
    cat "$work/out"
    failed=$((failed + 1))
}

train() { # train RANKS OPTIONS...: one step, whose ranks are in the group
    line=
    [ "$1" -eq 1 ] || line=$(echo "$launch" | sed "s/RANKS/$1/")
    shift
    # shellcheck disable=SC2086,SC2016 # words; $$ of the shell that goes into the group
    $line sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
        "$zero" train --data self --steps 1 --sample 0 --eval-every 0 "$@" \
        >"$work/out" 2>&1
}

mib() { echo $(($1 >> 20)); }

# Where the kernel tells a group's peak. It counts what the group was first to touch, so libraries,
# which others have read before, count little.
if [ ! -f "$group/$peak_name" ]; then
    echo "peaks are not compared: there is no $peak_name here"
else
    for ranks in 1 2; do
        for stage in 0 3; do
            what="stage $stage on $ranks rank(s)"
            large="--layers 12 --hidden 512 --heads 8 --seq 128 --micro-batch 2 --stage $stage"
            needed=$("$zero" plan $large --data self --ranks $ranks --fake-nodes 1 --json |
                grep -o '"needed": *[0-9]*' | head -n 1 | grep -o '[0-9]*')
            needed=$((ranks * needed))

            limit $((needed + (8 << 20)))
            train $ranks $large || fail "$what: does not train in $(mib $needed) MiB, its need"
            peak=$(cat "$group/$peak_name")
            echo "$what: needs $(mib $needed) MiB, took $(mib "$peak") MiB"
            apart=$((needed > peak ? needed - peak : peak - needed))
            [ $((10 * apart)) -le "$peak" ] ||
                fail "$what: $(mib $needed) MiB planned, $(mib "$peak") MiB taken: apart by more than a tenth"

            limit $((needed - needed / 20))
            train $ranks $large
            code=$?
            peak=$(cat "$group/$peak_name")
            echo "$what: in a twentieth less, refused with $code after taking $(mib "$peak") MiB"
            [ $code -eq 3 ] || fail "$what: exit code $code in a twentieth less than it needs, expected 3"
            grep -q 'MiB are available' "$work/out" || fail "$what: refused for another reason"
            [ $((peak / ranks)) -lt $((100 << 20)) ] || fail "$what: $(mib "$peak") MiB taken before it was refused"
        done
    done
fi

limit ${megabytes}000000
# shellcheck disable=SC2086
fits=$("$zero" plan $options --data self --fit ${megabytes}M | sed -n 's/^fits .*up to \([0-9]*\) layers.*/\1/p')
[ -n "$fits" ] || { echo "FAILED: zero plan --fit names no number of layers"; exit 1; }
train 1 $options --layers "$fits" || fail "$fits layers do not train in ${megabytes} MB"
echo "$fits layers train in $megabytes MB"
more=$((fits + (fits + 9) / 10))
train 1 $options --layers $more && fail "$more layers are not refused"
grep -q 'MiB are available' "$work/out" || fail "$more layers are refused for another reason"
echo "$more layers are refused"
train 1 $options --layers $more --memory-limit 0 && fail "$more layers train there, too"
echo "$more layers, forced, do not train"
[ $failed -eq 0 ]

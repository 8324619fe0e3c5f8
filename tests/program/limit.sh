# Memory in control groups. A run takes what its plan needs, within a tenth. With a tenth less it is
# refused before it takes any. The largest model that `zero plan --fit` finds trains in a group of
# that size; one a tenth larger does not, even with --memory-limit 0. Needs root and control groups
# that can be written.
set -u
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/common.sh"
megabytes=600
options='--hidden 256 --heads 4 --seq 64 --micro-batch 4'

! grep -q __asan_init "$zero" || skip "sanitizers need more memory than is planned"
[ "$(id -u)" -eq 0 ] || skip "control groups need root"
version=1 group=/sys/fs/cgroup/memory/zero-limit-$$
limit_name=memory.limit_in_bytes peak_name=memory.max_usage_in_bytes
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
    version=2 group=/sys/fs/cgroup/zero-limit-$$
    limit_name=memory.max peak_name=memory.peak
fi
mkdir "$group" 2>/dev/null || skip "no control group can be made in ${group%/*}"
remove() { until rmdir "$group"; do sleep 0.1; done 2>/dev/null; }
trap 'cd / && rm -rf "$work"; remove' EXIT

# limit BYTES: makes a new group with this limit, whose peak starts at zero.
limit() {
    remove
    mkdir "$group" || exit 1
    echo "$1" 2>/dev/null >"$group/$limit_name" || skip "$group/$limit_name cannot be written"
    [ $version -eq 1 ] || echo 0 2>/dev/null >"$group/memory.swap.max"
}

# train RANKS OPTIONS...: runs one step, with the ranks in the group. One rank needs no mpirun.
train() {
    with=$1
    [ "$with" -gt 1 ] || with=0
    shift
    # shellcheck disable=SC2016 # $$ of the shell that enters the group
    on "$with" sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
        "$zero" train --data self --steps 1 --sample 0 --eval-every 0 "$@" >out 2>err
}

mib() { echo "$(($1 >> 20)) MiB"; }

# needs RANKS OPTIONS...: prints the bytes that all ranks need together.
needs() {
    with=$1
    shift
    each=$("$zero" plan "$@" --data self --ranks "$with" --fake-nodes 1 --json |
        grep -o '"needed": *[0-9]*' | head -n 1 | grep -o '[0-9]*')
    echo $((with * each))
}

# The kernel charges a page to the group that touches it first. Libraries, which other processes
# have read before, therefore count little.
takes_what_it_needs() { # takes_what_it_needs RANKS STAGE
    what="stage $2 on $1 rank(s)"
    large="--layers 12 --hidden 512 --heads 8 --seq 128 --micro-batch 2 --stage $2"
    needed=$(needs "$1" $large)

    limit $((needed + (8 << 20)))
    train "$1" $large || complain "$what: does not train in the $(mib $needed) that it needs"
    peak=$(cat "$group/$peak_name")
    echo "$what: needs $(mib $needed), took $(mib "$peak")"
    error=$((needed > peak ? needed - peak : peak - needed))
    [ $((10 * error)) -le "$peak" ] ||
        complain "$what: took $(mib "$peak"), expected $(mib $needed) within a tenth"

    limit $((needed - needed / 10))
    train "$1" $large
    code=$?
    peak=$(cat "$group/$peak_name")
    echo "$what: with 10 % less it ended with exit code $code after it took $(mib "$peak")"
    [ $code -eq 3 ] || complain "$what: exit code $code with 10 % less than it needs, expected 3"
    grep -q 'MiB are available' err || complain "$what: refused for another reason"
    [ $((peak / $1)) -lt $((100 << 20)) ] ||
        complain "$what: took $(mib "$peak") before it was refused"
}

if [ ! -f "$group/$peak_name" ]; then
    echo "peaks are not compared: there is no $peak_name here"
else
    for n in 1 2; do
        for stage in 0 3; do takes_what_it_needs $n $stage; done
    done
fi

limit ${megabytes}000000
fits=$("$zero" plan $options --data self --fit ${megabytes}M |
    sed -n 's/^fits .*up to \([0-9]*\) layers.*/\1/p')
[ -n "$fits" ] || {
    echo "FAILED: zero plan --fit gives no number of layers"
    exit 1
}
train 1 $options --layers "$fits" || complain "$fits layers do not train in $megabytes MB"
echo "$fits layers train in $megabytes MB"
more=$((fits + (fits + 9) / 10))
train 1 $options --layers $more && complain "$more layers are not refused"
grep -q 'MiB are available' err || complain "$more layers are refused for another reason"
echo "$more layers are refused"
train 1 $options --layers $more --memory-limit 0 && complain "$more layers train without a check"
echo "$more layers do not train without a check"
finish

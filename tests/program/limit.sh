# Memory in control groups. A run takes what its plan needs, within a tenth. With a tenth less it is
# refused before it takes any. The largest model that `zero plan --fit` finds trains in a group of
# that size; one a tenth larger does not, even with --memory-limit 0. With its optimizer states in a
# file a run takes less, and the page cache does not take their place. Data that does not fit is refused
# before it is read; a text whose tokens do not fit is refused while they are made. Needs root and
# control groups that can be written.
set -u
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/common.sh"
megabytes=600
large='--hidden 512 --heads 8 --seq 128 --micro-batch 2'
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
trap 'cd / && rm -rf "$work" ${made_disk:+"$made_disk"}; remove' EXIT

# limit BYTES: makes a new group with this limit, whose peak starts at zero.
limit() {
    remove
    mkdir "$group" || exit 1
    echo "$1" 2>/dev/null >"$group/$limit_name" || skip "$group/$limit_name cannot be written"
    [ $version -eq 1 ] || echo 0 2>/dev/null >"$group/memory.swap.max"
}

steps=1

# train RANKS OPTIONS...: runs $steps steps, with the ranks in the group. One rank needs no mpirun.
train() {
    with=$1
    [ "$with" -gt 1 ] || with=0
    shift
    # shellcheck disable=SC2016 # $$ of the shell that enters the group
    on "$with" sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" \
        "$zero" train --data self --steps $steps --sample 0 --eval-every 0 "$@" >out 2>err
}

finds_a_disk
[ -n "$disk" ] || echo "no states in files: $(cat info)"

mib() { echo "$(($1 >> 20)) MiB"; }

# needs RANKS OPTIONS...: prints the bytes that all ranks need together.
needs() {
    with=$1
    shift
    each=$("$zero" plan "$@" --data self --ranks "$with" --fake-nodes 1 --json |
        grep -o '"needed": *[0-9]*' | head -n 1 | grep -o '[0-9]*')
    echo $((with * each))
}

# took WHAT: the run in the group took the $needed bytes, within a tenth.
took() {
    peak=$(cat "$group/$peak_name")
    echo "$1: needs $(mib $needed), took $(mib "$peak")"
    error=$((needed > peak ? needed - peak : peak - needed))
    [ $((10 * error)) -le "$peak" ] ||
        complain "$1: took $(mib "$peak"), expected $(mib $needed) within a tenth"
}

# The kernel charges a page to the group that touches it first. Libraries, which other processes
# have read before, therefore count little.
takes_what_it_needs() { # takes_what_it_needs RANKS OPTIONS...
    n=$1
    shift
    what="$* on $n rank(s)"
    set -- $large "$@"
    needed=$(needs "$n" "$@")

    limit $((needed + (8 << 20)))
    train "$n" "$@" || complain "$what: does not train in the $(mib $needed) that it needs"
    took "$what"

    limit $((needed - needed / 10))
    train "$n" "$@"
    code=$?
    peak=$(cat "$group/$peak_name")
    echo "$what: with 10 % less it ended with exit code $code after it took $(mib "$peak")"
    [ $code -eq 3 ] || complain "$what: exit code $code with 10 % less than it needs, expected 3"
    grep -q 'MiB are available' err || complain "$what: refused for another reason"
    [ $((peak / n)) -lt $((100 << 20)) ] ||
        complain "$what: took $(mib "$peak") before it was refused"
}

# The file is written and read in both steps. In a group that may take more than the run needs, what
# the page cache takes is seen.
takes_no_page_cache() { # takes_no_page_cache OPTIONS...
    needed=$(needs 2 $large --offload "$disk" "$@")
    limit $((needed + needed / 8))
    train 2 $large "$@" && complain "$*: trains in $(mib $needed) without a file"
    limit $((4 << 30))
    steps=2
    train 2 $large --offload "$disk" "$@" || complain "$*: does not train with a file"
    steps=1
    took "$* with a file"
}

if [ ! -f "$group/$peak_name" ]; then
    echo "peaks are not compared: there is no $peak_name here"
else
    for stage in 0 3; do
        takes_what_it_needs 1 --layers 12 --stage $stage
        takes_what_it_needs 2 --layers 12 --stage $stage
    done
    if [ -n "$disk" ]; then
        takes_what_it_needs 2 --layers 24 --stage 1 --offload "$disk"
        takes_no_page_cache --layers 24 --stage 1 --dtype bf16
    fi
fi

# The largest model that fits the group trains; one with a tenth more layers does not.
largest_trains() { # largest_trains DISK OPTIONS...
    bytes=${megabytes}M$1
    shift
    limit ${megabytes}000000
    fits=$("$zero" plan $options "$@" --data self --fit "$bytes" |
        sed -n 's/^fits .*up to \([0-9]*\) layers.*/\1/p')
    [ -n "$fits" ] || {
        echo "FAILED: zero plan --fit $bytes $* gives no number of layers"
        exit 1
    }
    what="$options $*"
    train 1 $what --layers "$fits" || complain "$what: $fits layers do not train in $bytes"
    echo "$what: $fits layers train in $bytes"
    more=$((fits + (fits + 9) / 10))
    train 1 $what --layers $more && complain "$what: $more layers are not refused"
    grep -q 'MiB are available' err ||
        complain "$what: $more layers are refused for another reason"
    echo "$what: $more layers are refused"
}

largest_trains ''
train 1 $options --layers $more --memory-limit 0 && complain "$more layers train without a check"
echo "$more layers do not train without a check"

[ -z "$disk" ] || largest_trains ,8G --offload "$disk"
# Data without room: nobody is killed, and both numbers are said.
no_room() { # no_room MEGABYTES 'TEXT' RANKS OPTIONS...
    limit "${1}000000"
    what="in $1 MB"
    text=$2
    n=$3
    shift 3
    what="$* on $n rank(s) $what"
    train "$n" $little "$@"
    code=$?
    [ $code -eq 3 ] || complain "$what: exit code $code, expected 3"
    grep -qE "$text" err || complain "$what: expected '$text'"
    echo "$what: $(grep '^zero: .*MiB' err)"
}
little='--layers 1 --hidden 16 --heads 2 --seq 16 --global-batch 6'
head -c 400000000 /dev/zero >zeros.bin
yes 'the fox saw the grapes' | head -c 80000000 >text
copied='381.5 MiB of tokens need 762.9 MiB of memory, as they are copied'
no_room 300 '381.5 MiB of tokens need 381.5 MiB of memory, and [0-9.]* MiB are available' \
    1 --data zeros.bin --vocab 256
no_room 700 "$copied once .* and [0-9.]* MiB are available" 3 --data zeros.bin --vocab 256
no_room 60 '76.3 MiB of tokens need 76.3 MiB of memory, and' 1 --data text
no_room 200 'tokens of 76.3 MiB of text need more than the [0-9.]* MiB of memory that' \
    1 --data text --tokenizer char
no_room 200 'tokens of 76.3 MiB of text need more than the [0-9.]* MiB of memory that' \
    1 --data text --tokenizer char --threads 2
no_room 320 'its 152.6 MiB of tokens are copied once .* and [0-9.]* MiB of memory are available' \
    3 --data text --tokenizer char
# A plan has what the data leaves.
no_room 460 'the plan needs .* MiB are available' 1 --data zeros.bin --vocab 256 --hidden 512 --layers 6
train 1 $little --data zeros.bin --vocab 256 --memory-limit 0 ||
    complain "400 MB of tokens do not train in 460 MB without a check"
finish

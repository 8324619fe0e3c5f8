# collective_faults.sh PROGRAM LAUNCH...: the watchdog names the rank that misuses
# zero/collective.h, and nothing else goes wrong. In the launch line RANKS stands for the number of
# ranks.
program=$1
shift
launch=$*
failed=0
limit=3 # seconds; ranks of a busy machine need them to answer
work=$(mktemp -d) && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT

# fault N MODE TEXT...: N ranks end with the watchdog's exit code, and the message has the texts.
fault() {
    n=$1 mode=$2
    shift 2
    # shellcheck disable=SC2046 # words
    TMPDIR=$work timeout -k 5 60 $(echo "$launch" | sed "s/RANKS/$n/") "$program" "$mode" $limit \
        >err 2>&1
    code=$?
    ok=yes
    [ $code -eq 86 ] || ok="exit code $code"
    for text in "$@"; do
        tr -d '\000' <err | grep 'faults: rank' | grep -qF -e "$text" || ok="expected '$text'"
    done
    echo "$mode ($n ranks): $ok"
    [ "$ok" = yes ] && return
    sed 's/^/  /' err
    failed=1
}

fault 3 skip 'rank 2 is behind' 'ranks 0-1: waiting for all-reduce 4 of 100 fp32 in group' \
    "rank 2: waiting for the end of the group"
fault 3 other-kind 'rank 2 is elsewhere' 'reduce-scatter 1 of 1000 fp32' \
    'rank 2: waiting for all-reduce 1 of 4096 fp32'
fault 2 other-size 'rank 1 is elsewhere' 'all-reduce 0 of 1000 fp32' 'all-reduce 0 of 500 fp32'
fault 3 other-size 'rank 2 is elsewhere' 'all-reduce 0 of 1000 fp32' 'all-reduce 0 of 500 fp32'
fault 3 other-size-in-memory 'rank 2 is elsewhere' 'all-gather 0 of 40000 bytes'
fault 3 other-type 'rank 2 is elsewhere' 'all-reduce 0 of 1000 int32'
fault 3 other-root 'rank 2 is elsewhere' 'broadcast 0 of 4096 bytes from rank 1'
fault 3 asleep 'rank 2 is behind' 'rank 2: computing after all-reduce 0 of 100 fp32' \
    'at load_batch, train.py:57'
fault 4 asleep-in-a-mesh '; rank 3 is behind. State:' "in group 'shard 1'" "in group 'replicas"
fault 3 not-there '; rank 2 is behind. State:' "ranks 0-1: waiting for opening in group 'mesh'"
fault 3 lonely-receive 'rank 2: waiting for exchange'
exit $failed

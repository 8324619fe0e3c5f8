# The disk is full, or a limit on the size of files is reached, while checkpoints are saved.
if [ "$FULL_DISK" != alone ]; then
    unshare -m true 2>/dev/null || {
        echo "skipped: a disk of one's own takes root on Linux (unshare -m, mount)"
        exit 77
    }
    FULL_DISK=alone exec unshare -m sh "$0" "$@"
fi
. "$(dirname "$0")/common.sh"
tiny="--layers 1 --hidden 16 --heads 1 --seq 8 --global-batch 6 --data stories:8K --eval-every 0 --sample 0"
mkdir disk
mount -t tmpfs -o size=400k tmpfs disk || {
    echo "skipped: a disk of one's own cannot be mounted"
    exit 77
}
trap 'cd / && umount "$work/disk" && rm -rf "$work"' EXIT

# saves N OPTIONS...: on N ranks, a checkpoint after each of 6 steps.
saves() {
    n=$1
    shift
    rm -rf disk/ckpt
    run "$n" train $tiny --steps 6 --checkpoint disk/ckpt --save-every 1 --log-every 1 "$@"
    [ $code -eq 3 ] || complain "$words: exit code $code, expected 3"
    saved=$(grep -c '^checkpoint: step ' out)
}

# fails N: that many lines; each says where, what was to be written and what is there for it.
fails() {
    [ "$(grep -c '^zero: .*the checkpoint of step .* failed' err)" -eq "$1" ] ||
        complain "$words: expected $1 lines about a failed checkpoint"
    ! grep '^zero: .*failed' err | grep -qv 'disk/ckpt.*\(takes .* MiB and .* are free\|no space for its .* bytes\)' ||
        complain "$words: expected directory, bytes and room in each line"
}

# All that was announced is there, whole, and nothing else.
left() {
    [ "$(ls -A disk/ckpt)" = "$(sed -n 's/^checkpoint: step .* in .*\(step-[0-9]*\),.*/\1/p' out)" ] ||
        complain "$words: left are $(ls -A disk/ckpt)"
    "$zero" checkpoint verify disk/ckpt >verified 2>&1 || {
        complain "$words: does not verify"
        cat verified
    }
}

# Of the checkpoints that do not fit some miss it by their shards, some by their last few bytes.
for size in 400k 464k 480k 484k; do
    for n in 0 3; do
        mount -o remount,size=$size tmpfs disk
        saves $n --keep 9
        [ "$saved" -ge 1 ] && [ "$saved" -le 4 ] || complain "$words: $saved checkpoints in $size"
        fails $((6 - saved))
        left
        [ "$(grep -c '^step .*| loss' out)" -eq 6 ] || complain "$words: the run did not go on"
        saves $n --keep 9 --save-required
        fails 1
        left
        [ "$(grep -c '^step .*| loss' out)" -eq $((saved + 1)) ] ||
            complain "$words: the run went on"
    done
done

# Full in the middle of a run, with room again later. What the run prints goes through a pipe that
# is read as the disk is filled and emptied, so it cannot be over before.
fill_and_empty() {
    while read -r line; do
        echo "$line"
        case $line in
            'checkpoint: step '*) cat /dev/zero >>disk/ballast ;;
            *failed*) break ;;
        esac
    done 2>/dev/null
    rm disk/ballast
    cat
}
rm -rf disk/ckpt
words="zero train on a disk that is full for a while"
{
    "$zero" train $tiny --steps 1500 --checkpoint disk/ckpt --save-every 1 --keep 1 --log-every 1 2>&1
    echo "exit code $?"
} | fill_and_empty >out
: >err
says 'exit code 0' out
says 'checkpoint: step 1500 ' out
says 'failed: ' out
left_over=$(ls -A disk/ckpt)
[ "$left_over" = step-00001500 ] || complain "$words: left are $left_over"

# A stop that finds the disk full is tried again until it can be saved.
ask_on_full_disk() {
    while read -r line; do
        echo "$line"
        case $line in
            'pid '*) pid=${line#pid } ;;
            'step '*1/*) kill -USR1 "$pid" ;;
            'checkpoint: step '*) cat /dev/zero >>disk/ballast; kill -USR2 "$pid" ;;
            *failed*) break ;;
        esac
    done 2>/dev/null
    rm disk/ballast
    cat
}
rm -rf disk/ckpt
words="zero train that is to stop on a full disk"
{
    sh -c 'echo pid $$; exec "$@"' sh "$zero" train $tiny --steps 1000000 --checkpoint disk/ckpt \
        --log-every 1000 2>&1
    echo "exit code $?"
} | ask_on_full_disk >out
says 'failed: ' out
says 'exit code 75' out
says 'stopped on request after step' out
"$zero" checkpoint verify disk/ckpt >>out 2>&1 || complain "$words: does not verify"
finish

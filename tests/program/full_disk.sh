# The disk is full while checkpoints are saved.
if [ "$FULL_DISK" != alone ]; then
    unshare -m true 2>/dev/null || {
        echo "skipped: a private disk needs root on Linux (unshare -m, mount)"
        exit 77
    }
    FULL_DISK=alone exec unshare -m sh "$0" "$@"
fi
. "$(dirname "$0")/common.sh"
tiny="--layers 1 --hidden 16 --heads 1 --seq 8 --global-batch 6 --data stories:8K
    --eval-every 0 --sample 0"
mkdir disk
mount -t tmpfs -o size=400k tmpfs disk || skip "a private disk cannot be mounted"
trap 'cd / && umount "$work/disk" && rm -rf "$work"' EXIT

# saves N OPTIONS...: N ranks train 6 steps and save a checkpoint after each.
saves() {
    n=$1
    shift
    rm -rf disk/ckpt
    run "$n" train $tiny --steps 6 --checkpoint disk/ckpt --save-every 1 --log-every 1 "$@"
    exits 3
    saved=$(grep -c '^checkpoint: step ' out)
}

# fails N: N lines are about failed checkpoints. Each gives the directory, the bytes that a file
# needs, and the free ones where they are known.
fails() {
    [ "$(grep -c '^zero: .*the checkpoint of step .* failed' err)" -eq "$1" ] ||
        complain "$words: expected $1 lines about a failed checkpoint"
    needs='disk/ckpt.*\(takes .* MiB and .* are free\|no space for its .* bytes\)'
    ! grep '^zero: .*failed' err | grep -qv "$needs" ||
        complain "$words: expected the directory and the bytes in each line"
}

# The directory holds every announced checkpoint, and nothing else.
left() {
    holds disk/ckpt $(sed -n 's/^checkpoint: step .* in .*\(step-[0-9]*\),.*/\1/p' out)
    verifies disk/ckpt
}

# With some sizes the shards do not fit, with others only the last few bytes do not.
for size in 400k 464k 480k 484k; do
    for n in 0 3; do
        mount -o remount,size=$size tmpfs disk
        saves $n --keep 9
        [ "$saved" -ge 1 ] && [ "$saved" -le 4 ] || complain "$words: $saved checkpoints in $size"
        fails $((6 - saved))
        left
        [ "$(grep -c '^step .*| loss' out)" -eq 6 ] || complain "$words: the run did not continue"
        saves $n --keep 9 --save-required
        fails 1
        left
        # The step beside the save is over before the run ends.
        steps=$(grep -c '^step .*| loss' out)
        [ "$steps" -eq $((saved + 1)) ] || [ "$steps" -eq $((saved + 2)) ] ||
            complain "$words: the run continued"
    done
done

# The disk is full for a while in the middle of a run. The reader of the run's output fills and
# empties the disk before it reads on, so the run cannot end earlier.
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
    "$zero" train $tiny --steps 1500 --checkpoint disk/ckpt --save-every 1 --keep 1 \
        --log-every 1 2>&1
    echo "exit code $?"
} | fill_and_empty >out
: >err
says 'exit code 0' out
says 'checkpoint: step 1500 ' out
says 'failed: ' out
holds disk/ckpt step-00001500

# The metrics of a run on a disk that is full for a while: whole lines, and the next one says how
# many are lost.
fill_while_lost() {
    after=0
    while read -r line; do
        echo "$line"
        case $line in
            'step '*' 3/'*) cat /dev/zero >>disk/ballast ;;
            *'lines are lost'*) after=1 ;;
            *) [ $after -eq 0 ] || after=$((after + 1)) ;;
        esac
        [ $after -lt 20 ] || break
    done 2>/dev/null
    rm disk/ballast
    cat
}
words="zero train --metrics on a disk that is full for a while"
mount -o remount,size=2m tmpfs disk
{
    "$zero" train $tiny --steps 3000 --metrics disk/m --log-every 1 2>&1
    echo "exit code $?"
} | fill_while_lost >out
says 'exit code 0' out
[ "$(grep -c 'warning: --metrics disk/m: lines are lost: No space left' out)" -eq 1 ] ||
    complain "$words: expected one warning"
grep -c '^{.*}$' disk/m >lines
[ "$(cat lines)" -eq "$(wc -l <disk/m)" ] || complain "$words: expected whole lines only"
is_json disk/m
lost=$(sed -n 's/.*"lost_lines":\([0-9]*\).*/\1/p' disk/m)
[ "${lost:-0}" -gt 0 ] || complain "$words: expected one number of lost lines"
[ $(($(cat lines) + ${lost:-0})) -eq 3002 ] || complain "$words: $(cat lines) lines, $lost lost"
"$zero" compare disk/m disk/m >compared 2>&1 || complain "$words: $(cat compared)"
rm disk/m
mount -o remount,size=484k tmpfs disk

# A run that is asked to stop on a full disk tries again until it can save.
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
verifies disk/ckpt
finish

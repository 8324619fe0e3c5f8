# States in a scratch file, through the program: what is refused; disks that lack something, are
# full, or fail; kills; checkpoints; memory. TIMES kills of a rank or of the launcher.
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/common.sh"
times=${TIMES:-4}
trap 'cd / && umount "$work/small" 2>/dev/null; rm -rf "$work" ${made_disk:+"$made_disk"}' EXIT
finds_a_disk
[ -n "$disk" ] || skip "no disk at $started_in: $(cat info)"
tiny="$tiny --global-batch 6"
model="--layers 4 --hidden 512 --heads 8 --seq 16 --micro-batch 1 --data self --eval-every 0
    --sample 0"

# left: DIR has no file.
left() {
    [ -z "$(ls -A "$disk")" ] || complain "$words: left in the directory: $(ls -A "$disk")"
}

# ---- what is refused ----

refuses 2 'the norm is known after the last gradient' 0 train $tiny --offload "$disk" \
    --offload-when backward
refuses 2 '--offload-parameters needs --stage 3' 2 train $tiny --stage 2 --offload "$disk" \
    --offload-parameters
refuses 2 '--offload-activations needs --recompute' 0 train $tiny --offload "$disk" \
    --offload-activations
refuses 2 'needs a directory for the scratch file' 0 train $tiny --stage 3 --offload-parameters
refuses 2 'needs a directory for the scratch file' 0 train $tiny --recompute --offload-activations
for depth in 0 65; do
    refuses 2 '--offload-depth' 0 train $tiny --offload "$disk" --offload-depth $depth
done
refuses 2 'fp16' 0 train $tiny --offload "$disk" --offload-when backward --clip 0 --dtype fp16
refuses 3 "$disk/missing" 2 train $tiny --offload "$disk/missing"
if [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ]; then
    refuses 2 'lies in memory (tmpfs)' 2 train $tiny --offload /dev/shm
fi

# ---- disks that lack something ----

runs 2 train $tiny --stage 3 --steps 3
digest_of out >expected

# shimmed N words...: run with the variables in $preload for the shim.
shimmed() {
    n=$1
    shift
    words="zero $* ($n ranks, $preload)"
    on "$n" env LD_PRELOAD="$SHIM" $preload "$zero" "$@" >out 2>err
    code=$?
    legible err
}

# trains 'TEXT': the run has the digest of memory, and says how the file works.
trains() {
    shimmed 2 train $tiny --stage 3 --steps 3 --offload "$disk" --offload-parameters
    exits 0
    digest_of out >digest
    same expected digest "$words"
    says "$1" out
    left
}
preload=
trains "offload       $disk, lazy, 4 blocks in memory; "
preload=DISK_LACKS=O_DIRECT
trains 'through the page cache: no O_DIRECT there'
preload=DISK_LACKS=O_TMPFILE
trains 'the file had a name for a moment: no O_TMPFILE there'

# ---- threads ----

# Calls of such units poll, so updates run ahead while several threads compute.
wide="--hidden 256 --steps 3 --micro-batch 1 --data stories:60K --tokenizer byte --eval-every 0
    --sample 0 --watchdog 60 --clip 0"
for when in lazy backward delayed; do
    how="--offload-when $when"
    [ $when != delayed ] || how='--delayed-update 2'
    for n in 0 3; do
        runs $n train $wide --threads 1 --offload "$disk" $how
        digest_of out >expected
        runs $n train $wide --threads 2 --offload "$disk" $how
        digest_of out >digest
        same expected digest "$words"
    done
    OMP_NUM_THREADS=2 runs 0 train $wide --offload "$disk" $how
    OMP_NUM_THREADS=1 runs 0 train $wide --offload "$disk" $how --expect-digest "$(digest_of out)"
done
left

# ---- disks that fail ----

# fails CODE 'TEXT' FAULT AT words...: the fault on rank 1 ends the run with a message that names
# rank, block and byte. No checkpoint is made of what is left.
fails() {
    expected_code=$1
    text=$2
    preload="DISK_RANK=1 DISK_FAULT=$3 DISK_AT=$4"
    shift 4
    rm -rf saved
    began=$(date +%s)
    shimmed 3 train $tiny --stage 2 --steps 40 --checkpoint saved --save-every 1 --keep 100 \
        --watchdog 20 --offload "$disk" "$@"
    exits "$expected_code"
    [ $(($(date +%s) - began)) -le 60 ] || complain "$words: it took more than a minute"
    grep '^zero: ' err | grep 'rank 1: ' | grep 'block [0-9]' | grep 'at byte [0-9]' |
        grep -qF -e "$text" || complain "$words: expected rank, block, byte and '$text'"
    found=$(find saved -name 'step-*' 2>/dev/null | wc -l)
    [ "$found" -eq "$(grep -c '^checkpoint: step' out)" ] ||
        complain "$words: other checkpoints than announced"
    [ "$found" -eq 0 ] || verifies saved
    left
}
fails 3 'Input/output error' read-error 120 --offload-when end
fails 3 'Input/output error' write-error 150 --offload-when lazy
fails 4 'the disk is faulty' wrong-bit 130 --offload-when end
fails 4 'the disk is faulty' wrong-bit 170 --offload-when backward --clip 0

# ---- small and read-only disks ----

if [ "$(id -u)" -eq 0 ] && dd if=/dev/zero of=image bs=1M count=12 2>/dev/null &&
    mkfs.ext4 -q image 2>/dev/null && mkdir small && mount -o loop image small 2>/dev/null; then
    runs 0 train $tiny --steps 1 --offload small # 8 MiB are free
    refuses 3 'cannot be reserved' 0 train $model --steps 1 --offload small
    says 'MiB are free there' err
    grep -q 'a scratch file of [0-9.]* MiB' err || complain "$words: expected the bytes"
    room=$(df -k --output=avail small | tail -n 1)
    dd if=/dev/zero of=small/ballast bs=1k count=$((room - 1024)) 2>/dev/null # 1 MiB
    refuses 3 'MiB are free there' 2 train $model --steps 1 --offload small
    cat /dev/zero >>small/ballast 2>/dev/null
    refuses 3 '0.0 MiB are free there' 0 train $tiny --steps 1 --offload small
    mount -o remount,ro small
    refuses 3 'Read-only file system' 2 train $tiny --steps 1 --offload small
    umount small
else
    echo "small and read-only disks are not tried: they need root, mkfs.ext4 and mount"
fi

# ---- kills ----

seed=${SEED:-$(date +%s)}
state=$seed
echo "seed $seed, $times kills"
draw() {
    state=$(((state * 1103515245 + 12345) % 2147483648))
    drawn=$(((state / 65536) % $1))
}

has_ranks() { [ -n "$(ranks_of "$job")" ]; }
has_ended() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:[[:space:]]*Z' "/proc/$1/status"; }

# kills ROUND: a rank or the launcher is killed at a random moment; no rank and no file stays.
kills() {
    words="kill $1 (seed $seed)"
    on 3 "$zero" train $tiny --stage $(($1 % 4)) --steps 1000000 --log-every 100000 --watchdog 20 \
        --offload "$disk" >out 2>err &
    job=$!
    await 120 has_ranks || complain "$words: no ranks"
    draw 30
    sleep "$(awk "BEGIN { print $drawn / 100 }")"
    ranks=$(ranks_of $job)
    victim=$(echo $ranks | cut -d ' ' -f 1)
    [ $(($1 % 2)) -eq 0 ] || victim=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$victim/status")
    kill -9 "$victim"
    wait $job 2>/dev/null
    for pid in $ranks; do
        await 60 has_ended "$pid" || complain "$words: process $pid still runs"
    done
    left
}
round=0
while [ $round -lt "$times" ]; do
    round=$((round + 1))
    kills $round
done

# ---- checkpoints ----

# A run changes between file and memory, and between numbers of ranks.
batch="--layers 1 --hidden 16 --heads 2 --seq 8 --data stories:16K --tokenizer byte
    --eval-every 0 --sample 0 --global-batch 8 --micro-batch 1 --reproducible --steps 6"

runs 1 train $batch
digest_of out >expected
goes_on_to 2 2 --stage 2 --offload "$disk"
goes_on_to 3 4 --resume --stage 3
goes_on_to 4 1 --resume --offload "$disk" --offload-when end
goes_on_to 6 4 --resume --stage 3 --offload "$disk" --offload-parameters --recompute \
    --offload-activations
digest_of out >ended
same expected ended "$words"
left

# ---- memory ----

# The states of 13 million parameters are 150 MiB.
resident() {
    sed -n 's/.* MiB planned, \([0-9]*\)\.[0-9]* MiB resident at most.*/\1/p' out
}
planned() {
    sed -n 's/^  memory  *\([0-9]*\)\.[0-9]* MiB planned.*/\1/p' out
}
runs 0 train $model --steps 2 --dtype bf16
digest_of out >expected
in_memory=$(resident)
most=$(planned)
runs 0 train $model --steps 2 --dtype bf16 --offload "$disk" --memory-limit $(((most - 30) << 20))
digest_of out >digest
same expected digest "$words"
saved=$((in_memory - $(resident)))
echo "$in_memory MiB resident in memory, $saved MiB less with a file"
grep -q __asan_init "$zero" || [ "$saved" -gt 120 ] ||
    complain "$words: expected 120 MiB less in memory"
run 0 train $model --steps 2 --dtype bf16 --memory-limit $(((most - 30) << 20))
exits 3
says "MiB are available" err
finish

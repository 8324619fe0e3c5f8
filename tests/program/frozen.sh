# A disk stops answering, or a rank computes for ever: the job ends with 86 and says which file or
# step, on one rank, too. A disk that is only slow is waited for.
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/common.sh"
limit=5
[ -z "${SANITIZED-}" ] || limit=10
finds_a_disk
[ -n "$disk" ] || skip "no disk at $started_in: $(cat info)"
trap 'cd / && thaw && umount "$work/mount" 2>/dev/null; rm -rf "$work" ${made_disk:+"$made_disk"}' EXIT
any="$tiny --global-batch 6 --log-every 1000 --watchdog $limit"
job="$any --steps 4"
frozen="LD_PRELOAD=$FREEZE FREEZE_PATH="
hanging="LD_PRELOAD=$SHIM HANG_IN=frexp"

# stops 'VARIABLES' 'TEXT' N words...: with these variables zero ends with 86 and one message, which
# contains TEXT. Four such jobs run at a time: they mostly wait.
case=0 running=
stops() {
    case=$((case + 1))
    mkdir case$case
    variables=$1
    echo "$2" >case$case/text
    n=$3
    shift 3
    echo "$variables zero $* ($n ranks)" >case$case/words
    (
        cd case$case || exit
        for _ in 1 2 3 4 5; do
            on "$n" env $variables "$zero" "$@" >out 2>err
            echo $? >code
            grep -q 'MPI has taken\|ranks has taken' err || break # the machine was too busy
        done
    ) &
    running="$running $!"
    [ $((case % 4)) -ne 0 ] || settle
}
settle() {
    wait $running
    running=
    for at in case[0-9]*; do
        cp $at/out $at/err .
        words=$(cat $at/words)
        code=$(cat $at/code)
        legible err
        exits 86
        says "$(cat $at/text)" err
        [ "$(grep '^zero: ' err | grep -vc '^zero: \(warning\|note\): ')" -eq 1 ] ||
            complain "$words: expected one message"
        rm -r $at
    done
}

# A slow disk, until the others are done. In one step the other ranks wait for rank 1 longer than the
# limit, of which each of its calls takes a quarter.
on 3 env LD_PRELOAD="$FREEZE" FREEZE_PATH="$disk" FREEZE_CALLS='read write' FREEZE_RANK=1 \
    FREEZE_SECONDS=$((limit / 4)).4 "$zero" train $any --steps 2 --stage 2 \
    --offload "$disk" --offload-depth 1 >slow.out 2>slow.err &
slow_job=$!

# ---- files that are written ----

unwritten="$disk: cannot be written (its scratch file): no answer for"
stops "${frozen}$disk FREEZE_CALLS=write FREEZE_AT=4" "$unwritten" 0 \
    train $any --steps 1000 --offload "$disk"
stops "${frozen}$disk FREEZE_CALLS=write FREEZE_AT=9 FREEZE_RANK=1" "rank 1: $unwritten" 3 \
    train $any --steps 1000 --offload "$disk" --stage 2
stops "${frozen}/a/.tmp-step-00000002 FREEZE_CALLS=fsync" '.safetensors: cannot be synced: no answer for' 0 \
    train $job --checkpoint "$disk/a" --save-every 2
stops "${frozen}.safetensors FREEZE_CALLS=write FREEZE_RANK=2" \
    '-00002-of-00003.safetensors: cannot be written: no answer for' 3 \
    train $job --checkpoint "$disk/b" --save-every 2
stops "${frozen}/c/.tmp-step-00000002 FREEZE_CALLS=rename" \
    "$disk/c/.tmp-step-00000002: cannot be renamed: no answer for" 3 \
    train $job --checkpoint "$disk/c" --save-every 2
stops "${frozen}/e/ FREEZE_CALLS=rename" "$disk/e/" 0 train $job --checkpoint "$disk/e"
stops "${frozen}/m FREEZE_CALLS=write FREEZE_AT=2" "$disk/m: cannot be written" 0 \
    train $job --metrics "$disk/m"

# ---- files that are read ----

runs 3 train $any --steps 2 --checkpoint "$disk/d"
printf 'Some text, again and again.%.0s' $(seq 1 200) >"$disk/text"
stops "${frozen}.safetensors FREEZE_CALLS=read FREEZE_RANK=1" \
    '.safetensors: cannot be read: no answer for' 3 train $job --checkpoint "$disk/d" --resume
stops "${frozen}/manifest.json FREEZE_CALLS=open" \
    'manifest.json: cannot be opened for reading: no answer for' 0 \
    generate "$disk/d" --watchdog $limit
stops "${frozen}$disk/text FREEZE_CALLS=stat" "$disk/text: cannot be examined: no answer for" 0 \
    train $tiny --watchdog $limit --data "$disk/text" --steps 1

# ---- computing ----

# The third of four steps: a rank's logarithms are those of its positions, and of their heads.
stops "$hanging HANG_AFTER=300" 'has not moved for' 0 train $job
stops "$hanging HANG_AFTER=110" 'has not moved for' 3 train $job --stage 1
stops "$hanging HANG_AFTER=110 HANG_RANK=2" 'rank 2' 3 train $job --stage 3
if ! "$zero" info --json | grep -q '"threads_in_a_rank": false'; then
    # The first thread waits for the other one, which has a share of attention.
    stops "$hanging HANG_AFTER=100 HANG_BESIDE=1" 'has not moved for' 0 \
        train $job --hidden 256 --heads 4 --threads 2
fi
# A device that hangs.
! "$zero" train --help all 2>&1 | grep -q "'fake'" ||
    stops 'ZERO_FAKE_STOP=200' 'a copy of the device: cannot be ended: no answer for' 0 train $job --device fake
settle

# ---- the slow disk ----

wait $slow_job
code=$?
words='a slow disk'
cp slow.out out
cp slow.err err
exits 0
digest_of out >digest
runs 3 train $any --steps 2 --stage 2
digest_of out >expected
same expected digest "$words"

# ---- a file system that is frozen, as for a snapshot ----

thaw() {
    fsfreeze -u "$work/mount" 2>/dev/null
    return 0
}
freezes() { fsfreeze -f "$work/mount" 2>/dev/null; }
saves() { ls mount/saved 2>/dev/null | grep -q '^step-0*[1-9][0-9][0-9]'; } # not its first one
is_told() { grep -q 'no answer for' err; }
ended() {
    wait $pid
    code=$?
    exits 86
}
if [ "$(id -u)" -eq 0 ] && dd if=/dev/zero of=image bs=1M count=64 2>/dev/null &&
    mkfs.ext4 -q image 2>/dev/null && mkdir mount && mount -o loop image mount 2>/dev/null &&
    freezes; then
    for n in 0 3; do
        thaw
        rm -rf mount/saved
        words="a frozen file system ($n ranks)"
        on $n "$zero" train $any --steps 1000000 --save-every 10 --keep 1 \
            --checkpoint mount/saved >out 2>err &
        pid=$!
        await 60 saves || complain "$words: it does not train"
        freezes
        (sleep 300 && thaw) & # whatever becomes of this script
        guard=$!
        await 240 is_told || { complain "$words: not a word" && thaw && kill $pid; }
        [ $n -eq 0 ] || ended # the launcher does not wait for a process that cannot end
        thaw
        [ $n -gt 0 ] || ended
        kill $guard 2>/dev/null
    done
    umount mount
else
    echo "no file system is frozen: that needs root, mkfs.ext4, mount and fsfreeze"
fi
finish

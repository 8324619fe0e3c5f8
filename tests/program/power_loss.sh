# The power fails behind every call of the writer of checkpoints; power_loss.c says what must hold.
# Takes $SHIM, $POWER_LOSS, and of random losses behind each call $STATES.
. "$(dirname "$0")/common.sh"
states=${STATES:-25}
tiny="--layers 1 --hidden 16 --heads 1 --seq 8 --global-batch 6 --data stories:8K --eval-every 0 --sample 0"

mkdir tree
lost=$(mktemp -d /dev/shm/zero-power-loss.XXXXXX 2>/dev/null) || lost=$(mktemp -d) # quick, if it can be
trap 'cd / && rm -rf "$work" "$lost"' EXIT

# recorded RANKS OPTIONS...: one run more in the log.
recorded() {
    n=$1
    shift
    words="zero train $* ($n ranks)"
    on "$n" env SHIM_DIR=tree SHIM_LOG=log LD_PRELOAD="$SHIM" \
        "$zero" train $tiny --checkpoint tree/ckpt --save-every 1 "$@" >out 2>err
    code=$?
    [ $code -eq 0 ] || complain "$words: exit code $code, expected 0"
}

# loses SEED STATES [CALL TEXT]: what power_loss.c says of the log.
loses() {
    words="power_loss $*"
    "$POWER_LOSS" log "$lost" "$@" >out 2>err
}

recorded 3 --steps 3 --stage 2 --keep 2
recorded 2 --steps 5 --stage 3 --keep 1 --resume
[ "$(grep -c ' announce ' log)" -eq 5 ] || complain "the log: expected 5 announcements"

if loses 1 "$states"; then
    tail -n 1 out
    diff -r tree "$lost/end" >out 2>err || complain "the log is not all that changed the directory"
else
    complain "a power loss may cost checkpoints"
fi

# What a writer could forget, each of which must be seen.
for what in 'fsync shard-00001' 'fsync manifest' 'fsync tokenizer' 'fsync .tmp-step-00000002' \
    'fsync ckpt' 'write shard-00002'; do
    grep " ${what% *} [^ ]*${what#* }" log >/dev/null || { complain "the log has no $what"; continue; }
    loses 1 10 $what && complain "left out and not seen: $what"
    [ $? -eq 1 ] || complain "$what: power_loss ended for another reason"
done
finish

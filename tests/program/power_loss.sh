# The power fails after every call of the writer of checkpoints; power_loss.c says what must hold.
# SHIM and POWER_LOSS are programs; STATES is the number of random losses after each call. With SEED
# the runs have a random configuration; then MUTATIONS files of what they saved are damaged (MUTATE).
. "$(dirname "$0")/common.sh"
states=${STATES:-25}
tiny="--layers 1 --hidden 16 --heads 1 --seq 8 --global-batch 6 --data stories:8K
    --eval-every 0 --sample 0"

mkdir tree
# In memory it is faster, where that is possible.
lost=$(mktemp -d /dev/shm/zero-power-loss.XXXXXX 2>/dev/null) || lost=$(mktemp -d)
trap 'cd / && rm -rf "$work" "$lost"' EXIT

# recorded RANKS OPTIONS...: appends the calls of one more run to the log.
recorded() {
    n=$1
    shift
    words="zero train $* ($n ranks)"
    on "$n" env SHIM_DIR=tree SHIM_LOG=log LD_PRELOAD="$SHIM" \
        "$zero" train $tiny --checkpoint tree/ckpt --save-every 1 "$@" >out 2>err
    code=$?
    exits 0
}

# loses SEED STATES [CALL TEXT]: replays the log with losses; with CALL and TEXT also without the
# calls that they name.
loses() {
    words="power_loss $*"
    "$POWER_LOSS" log "$lost" "$@" >out 2>err
}

# Two runs, each with a layout and a cadence of its own.
if [ -n "${SEED:-}" ]; then
    seed=$SEED
    . "$(dirname "$0")/draws.sh"
    finds_a_disk
    trap 'cd / && rm -rf "$work" "$lost" ${made_disk:+"$made_disk"}' EXIT
    draws_kind
    tiny="--layers 1 --heads 2 --seq 8 --global-batch 12 --data stories:8K --eval-every 0 --sample 0"
    for last in '--steps 3' '--steps 6 --resume'; do
        draws_layout
        draw 3
        every=$((drawn + 1))
        draw 3
        recorded "$ranks" $last $kind $layout --save-every $every --keep $((drawn + 1))
        echo "$words"
    done
    if [ "${MUTATIONS:-0}" -gt 0 ]; then
        "$MUTATE" tree/ckpt "$SEED" "$MUTATIONS" >out 2>err || complain "mutate"
        cat out
    elif loses "$SEED" "$states"; then
        diff -r tree "$lost/end" >out.diff 2>&1 || complain "the log lacks changes of the directory"
        sed -n 's/.* \([0-9]*\) of them different.*/cases \1/p' out
    else
        complain "a power loss can destroy checkpoints"
    fi
    finish
fi

recorded 3 --steps 3 --stage 2 --keep 2
recorded 2 --steps 5 --stage 3 --keep 1 --resume
[ "$(grep -c ' announce ' log)" -eq 5 ] || complain "the log: expected 5 announcements"

if loses 1 "$states"; then
    tail -n 1 out
    diff -r tree "$lost/end" >out 2>err || complain "the log lacks changes of the directory"
else
    complain "a power loss can destroy checkpoints"
fi

# power_loss must notice when a writer forgets any of these calls.
for what in 'fsync shard-00001' 'fsync manifest' 'fsync tokenizer' 'fsync .tmp-step-00000002' \
    'fsync ckpt' 'write shard-00002'; do
    grep " ${what% *} [^ ]*${what#* }" log >/dev/null || {
        complain "the log has no $what"
        continue
    }
    loses 1 10 $what && complain "power_loss does not notice the missing $what"
    [ $? -eq 1 ] || complain "$what: power_loss ended for another reason"
done
finish

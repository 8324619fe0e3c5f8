# The lesson's machine computes what a real run computes: losses, norms, loss scales and the digest,
# in all their bits, after 1, 2 and 5 steps. Arguments: the program, tell_lesson, the launch line.
tell=$2
. "$(dirname "$0")/../program/common.sh"
words="a lesson"
: >out
: >err
lesson="--model lesson --data lesson --sample 0"

# numbers_of FILE: a line for each step, as tell_lesson prints it, and the digest.
numbers_of() {
    sed -n 's/.*"step":\([0-9]*\),"loss":\([^,]*\),.*"grad_norm":\([^,]*\),"loss_scale":\([^,]*\),.*/\1 \2 \3 \4/p' "$1"
    sed -n 's/.*"digest":"\([0-9a-f]*\)".*/\1/p' "$1"
}

# plain: "65536.0" and "65536" are one number; and whether a step was skipped is left out.
plain() {
    sed 's/\.0\( \|$\)/\1/g; s/^\([0-9]* [^ ]* [^ ]* [^ ]*\) [01]$/\1/'
}

# agrees N options...: N ranks in one process and in N processes.
agrees() {
    n=$1
    shift
    rm -f m
    on "$n" "$zero" train $lesson --backend naive --metrics m "$@" >said 2>&1 || {
        complain "a run on $n ranks with $* ended with $?: $(cat said)"
        return
    }
    numbers_of m | plain >real
    "$tell" "$n" $lesson "$@" >told 2>&1
    plain <told >lesson
    [ "$(wc -l <real)" -ge 2 ] || complain "$*: the run has no metrics"
    cmp -s real lesson || complain "$n ranks, $*: a run and a lesson differ: $(diff real lesson)"
}

for steps in 1 2 5; do
    for stage in 0 1 2 3; do agrees 3 --stage $stage --steps $steps --micro-batch 1; done
done
for stage in 0 1 2 3; do
    agrees 2 --stage $stage --dtype bf16 --micro-batch 2
    agrees 3 --stage $stage --dtype fp16 --global-batch 6 --micro-batch 1
    agrees 4 --stage $stage --dtype bf16 --reproducible --global-batch 8 --micro-batch 1
    agrees 3 --stage $stage --partition owner --dtype bf16
    agrees 4 --stage $stage --tp 2 --heads 2 --dtype fp16 --steps 3
done
for prefetch in 0 2; do agrees 3 --stage 3 --prefetch $prefetch --recompute; done
agrees 3 --stage 3 --persist 100 --bucket 256 --message 256 --overlap off --check-memory
agrees 3 --stage 2 --clip 0.5 --dropout 0.1 --shuffle --check-replicas 2
finds_a_disk
if [ "$disk" ]; then
    for when in end lazy "backward --clip 0"; do
        agrees 3 --stage 3 --dtype bf16 --offload "$disk" --offload-when $when
    done
    agrees 3 --stage 3 --offload "$disk" --offload-parameters --recompute --offload-activations
    agrees 3 --stage 1 --offload "$disk" --delayed-update 2
    agrees 3 --stage 1 --partition owner --offload "$disk"
fi
agrees 8 --stage 3 --dtype bf16 --steps 2

# told_alike N options...: a real run and a lesson tell a step in the same words.
told_alike() {
    n=$1
    shift
    TELL=1 "$tell" "$n" $lesson --steps 1 "$@" >told 2>&1
    sed -n '/^step 1, told by/p; /^ /p' told >lesson
    on "$n" "$zero" train $lesson --backend naive --collectives p2p --steps 1 --narrate "$@" \
        >said 2>err || complain "--narrate $*: $(cat said err)"
    head -n "$(($(grep -n '^step 1, told by' said | sed 's/:.*//') + $(wc -l <lesson) - 1))" said |
        sed -n '/^step 1, told by/,$p' >real
    [ "$(wc -l <lesson)" -ge 50 ] || complain "--narrate $*: a lesson tells little: $(cat told)"
    cmp -s real lesson || complain "$n ranks, $*: they tell different things: $(diff real lesson)"
    awk 'length > 80 || / $/' lesson | grep . && complain "$*: lines are too long or end in blanks"
    grep -q 'nan' lesson && complain "$*: a number is told that is not there"
}
told_alike 3 --stage 3
told_alike 3 --stage 0 --dtype fp16
told_alike 3 --stage 2 --dtype bf16 --global-batch 6 --micro-batch 1
told_alike 3 --stage 1 --partition owner
told_alike 4 --stage 3 --tp 2 --heads 2 --recompute
told_alike 8 --stage 3 --dtype bf16
if [ "$disk" ]; then
    told_alike 3 --stage 3 --offload "$disk" --offload-when end --partition owner --dtype bf16
fi

# Telling changes nothing; a model that is too large is refused, with the remedy.
agrees 3 --stage 3 --steps 2
before=$(cat lesson)
agrees 3 --stage 3 --steps 2 --narrate
[ "$before" = "$(cat lesson)" ] || complain "--narrate changes numbers"
run 9 train $lesson --narrate --steps 1 --sample 0
exits 2
says '9 ranks cannot be told number by number; at most 8 can' err
run 2 train --narrate --steps 1 --data stories:16K
exits 2
says "--model lesson --data lesson" err

# Other numbers would be seen.
agrees 3 --stage 3 --steps 2
before=$(cat lesson)
agrees 3 --stage 3 --steps 2 --seed 7
[ "$before" != "$(cat lesson)" ] || complain "two seeds give the same numbers"

# What a lesson cannot run is refused, with the option.
for option in "--device fake" "--checkpoint c" "--shard-ranks 1" "--collectives shm" \
    "--model tiny --vocab 512 --data stories:16K"; do
    "$tell" 3 $lesson $option >told 2>&1 && complain "a lesson took $option"
    grep -q -e "${option%% *}" told || complain "$option: the message is: $(cat told)"
done
[ $failed -eq 0 ]

# Signals ask a running job for a checkpoint: USR1 to go on, USR2 and TERM to stop with code 75.
. "$(dirname "$0")/common.sh"
# As users start it: then OpenBLAS has threads before main() begins, which block no signal.
unset OPENBLAS_NUM_THREADS
tiny="train $small --sample 0 --eval-every 0"
steps=500 # a signal takes some time to come
runs 3 $tiny --steps $steps
sed -n 's/^  digest *//p' out >expected

# begins N words...: the run in the background; returns when it has made a step.
begins() {
    words="zero $* (in the background)"
    ranks=$1
    shift
    launcher=
    [ "$ranks" -eq 0 ] || launcher=$(echo "$launch" | sed "s/RANKS/$ranks/")
    rm -f m
    $launcher "$zero" "$@" --metrics m >out 2>err &
    job=$!
    tries=0
    until [ -s m ] || [ $tries -ge 3000 ]; do
        tries=$((tries + 1))
        sleep 0.02
    done
    [ $tries -lt 3000 ] || complain "$words: no step in a minute"
}

# ends CODE: the run in the background ends with it.
ends() {
    wait $job
    code=$?
    [ $code -eq "$1" ] || complain "$words: exit code $code, expected $1"
}

saved() {
    sed -n 's/^checkpoint: step \([0-9]*\) .*/\1/p' out
}

# same_digest 'what': as the run that nobody disturbed.
same_digest() {
    sed -n 's/^  digest *//p' out >digest
    same expected digest "$1"
}

# All ranks save after the same step, and the run goes on.
begins 3 $tiny --steps $steps --checkpoint asked
kill -USR1 $job
ends 0
[ "$(saved | wc -l)" -eq 2 ] || complain "$words: expected a checkpoint on request and one at the end"
[ "$(saved | head -n 1)" -lt $steps ] || complain "$words: no checkpoint before the end"
[ "$(ls -A asked | tr '\n' ' ')" = "$(printf 'step-%08d ' $(saved))" ] ||
    complain "$words: $(ls -A asked) are there"
same_digest "a run that was asked for a checkpoint"
runs 0 checkpoint verify asked

# One after the other, as a launcher that takes its time would ask them: still one checkpoint.
begins 3 $tiny --steps $steps --checkpoint slowly
asked=$(ranks_of $job)
for rank in $asked; do
    kill -USR1 "$rank"
    tries=0
    until grep -q '^checkpoint: ' out || [ $tries -ge 3000 ]; do
        tries=$((tries + 1))
        sleep 0.02
    done
done
ends 0
[ "$(echo $asked | wc -w)" -eq 3 ] || complain "$words: expected 3 processes"
[ "$(saved | wc -l)" -eq 2 ] || complain "$words: $(saved | wc -l) checkpoints, expected 2"
same_digest "a run whose ranks were asked one after the other"

# The request to stop wins over the one to go on.
begins 3 $tiny --steps $steps --checkpoint stopped
kill -USR1 $job
kill -USR2 $job
ends 75
step=$(saved | tail -n 1)
says "stopped on request after step $step of $steps, which is saved in stopped; --resume continues" err
[ "$(tail -n 1 m | sed -n 's/.*"step":\([0-9]*\),.*/\1/p')" = "$step" ] ||
    complain "$words: trained on after the checkpoint"
runs 3 $tiny --steps $steps --checkpoint stopped --resume --metrics m
same_digest "a run that was stopped and resumed"
sed -n 's/.*"step":\([0-9]*\),.*/\1/p' m >steps
seq $steps >all_steps
same all_steps steps "the steps in the metrics, appended"

# A process on its own has its TERM; without a place to save to, it ends as any other.
begins 0 $tiny --steps 20000 --checkpoint terminated
kill -TERM $job
ends 75
says 'stopped on request after step' err
runs 0 checkpoint verify terminated
begins 0 $tiny --steps 20000
kill -TERM $job
ends 143

# What cannot be done is said, once for each request, and changes nothing.
begins 3 $tiny --steps $steps
kill -USR1 $job
ends 0
[ "$(grep -c 'asked by a signal for a checkpoint, but there is no --checkpoint' err)" -eq 1 ] ||
    complain "$words: expected one warning"
same_digest "a run that was asked for what it cannot do"
finish

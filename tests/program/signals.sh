# Signals ask a running job for a checkpoint. After USR1 it continues; after USR2 and TERM it stops
# with exit code 75.
. "$(dirname "$0")/common.sh"
# Users do not set this. OpenBLAS then has threads before main() begins, which block no signal.
unset OPENBLAS_NUM_THREADS
tiny="train $small --sample 0 --eval-every 0"

# lasts STEPS: the runs that are signalled have so many steps; `expected` gets their digest.
lasts() {
    steps=$1
    runs 3 $tiny --steps $steps
    digest_of out >expected
}

# begins N words...: starts a run in the background and waits for its first step.
begins() {
    words="zero $* (in the background)"
    ranks=$1
    shift
    launcher=${launch_one-}
    [ "$ranks" -eq 0 ] || launcher=$(echo "$launch" | sed "s/RANKS/$ranks/")
    rm -f m out err
    $launcher "$zero" "$@" --metrics m >out 2>err &
    job=$!
    await 120 grep -qs '"step":' m || complain "$words: no step in two minutes"
}

# ends CODE: the run in the background ends with this exit code.
ends() {
    wait $job
    code=$?
    legible err
    exits "$1"
}

saved() { # prints the steps of the saved checkpoints
    sed -n 's/^checkpoint: step \([0-9]*\) .*/\1/p' out
}

# same_digest 'WHAT': the digest is that of the run without signals.
same_digest() {
    digest_of out >digest
    same expected digest "$1"
}

# All ranks save after the same step, and the run continues. A signal takes some time to arrive, more
# on a busy machine: if the run was over by then, this and what follows have four times the steps.
for more in 500 2000 8000; do
    rm -rf asked
    lasts $more
    begins 3 $tiny --steps $steps --checkpoint asked
    kill -USR1 $job
    ends 0
    [ "$(saved | wc -l)" -gt 1 ] && break
done
[ "$(saved | wc -l)" -eq 2 ] ||
    complain "$words: expected a checkpoint on request and one at the end"
[ "$(saved | head -n 1)" -lt $steps ] || complain "$words: no checkpoint before the end"
holds asked $(printf 'step-%08d ' $(saved))
same_digest "a run that was asked for a checkpoint"
runs 0 checkpoint verify asked

# A slow launcher signals one rank after the other: they still save one checkpoint.
begins 3 $tiny --steps $steps --checkpoint slowly
asked=$(ranks_of $job)
for rank in $asked; do
    kill -USR1 "$rank"
    await 60 grep -qs '^checkpoint: ' out
done
ends 0
[ "$(echo $asked | wc -w)" -eq 3 ] || complain "$words: expected 3 processes"
[ "$(saved | wc -l)" -eq 2 ] || complain "$words: $(saved | wc -l) checkpoints, expected 2"
same_digest "a run whose ranks were asked one after the other"

# A request to stop wins over a request to continue.
begins 3 $tiny --steps $steps --checkpoint stopped
kill -USR1 $job
kill -USR2 $job
ends 75
step=$(saved | tail -n 1)
stop="stopped on request after step $step of $steps"
says "$stop, which is saved in stopped; --resume continues" err
[ "$(tail -n 1 m | sed -n 's/.*"step":\([0-9]*\),.*/\1/p')" = "$step" ] ||
    complain "$words: expected no step after the checkpoint"
runs 3 $tiny --steps $steps --checkpoint stopped --resume --metrics m
same_digest "a run that was stopped and resumed"
sed -n 's/.*"step":\([0-9]*\),.*/\1/p' m >steps
seq $steps >all_steps
same all_steps steps "the steps in the metrics, appended"

# Without a launcher TERM asks for a checkpoint, too. Without --checkpoint it ends the run as usual.
begins 0 $tiny --steps 20000 --checkpoint terminated
kill -TERM $job
ends 75
says 'stopped on request after step' err
runs 0 checkpoint verify terminated
begins 0 $tiny --steps 20000
kill -TERM $job
ends 143

# So does HUP, when a terminal or a connection goes; under nohup it does nothing.
launch_one='env --default-signal=HUP'
$launch_one true 2>/dev/null || launch_one=
begins 0 $tiny --steps 20000 --checkpoint hung_up
kill -HUP $job
ends 75
says 'stopped on request after step' err
runs 0 checkpoint verify hung_up
begins 0 $tiny --steps 20000
kill -HUP $job
ends 129
launch_one=nohup
begins 0 $tiny --steps 20000 --checkpoint detached
kill -HUP $job
kill -USR2 $job
ends 75
launch_one=

# A reader of the output that goes away, as head does, stops the run after a checkpoint, too. What the shell
# waits for is not the run, so its exit code is in a file.
rm -rf read
words="zero train --checkpoint read | head"
{
    "$zero" $tiny --steps 20000 --log-every 1 --checkpoint read 2>err
    echo $? >code
} | head -n 30 >out
code=$(cat code)
exits 3
says 'zero: the standard output cannot be written: Broken pipe; the run stopped after step' err
says 'which is saved in read; --resume continues' err
runs 0 checkpoint verify read

# The first process of a container gets no default action from the kernel, and ends all the same.
first='unshare -fp --mount-proc --kill-child'
if $first true 2>/dev/null && env --default-signal=INT,HUP true 2>/dev/null; then
    begins_first() { # begins_first words...: the run is process 1; `job` is what waits for it
        launch_one="$first env --default-signal=INT,HUP"
        begins 0 "$@"
        launch_one=
        inner=$(cat /proc/$job/task/$job/children)
    }
    for signal in INT:130 TERM:143 HUP:129; do
        begins_first $tiny --steps 20000
        kill -"${signal%:*}" $inner
        ends "${signal#*:}"
    done
    begins_first $tiny --steps 20000 --checkpoint in_container
    kill -TERM $inner
    ends 75
    begins_first $tiny --hidden 384 --seq 256 --global-batch 16 --steps 20000 --checkpoint twice_first
    kill -INT $inner
    await 60 grep -qs 'press Ctrl-C again' err
    kill -INT $inner
    ends 130
else
    echo "not tried: signals to process 1 of a container, which need unshare and env --default-signal"
fi

# So does a Ctrl-C, and the second one ends the run at once. The shell starts programs in the
# background with SIGINT ignored, which they respect.
begins 0 $tiny --steps 20000 --checkpoint unmoved
kill -INT $job
kill -USR2 $job
ends 75
interruptible='env --default-signal=INT'
if $interruptible true 2>/dev/null; then
    launch_one=$interruptible
    begins 0 $tiny --steps 20000 --checkpoint interrupted
    kill -INT $job
    ends 75
    says 'the run saves and stops after this step; press Ctrl-C again' err
    says 'stopped on request after step' err
    runs 0 checkpoint verify interrupted
    # Long steps, so that the second signal comes before the end of the step.
    begins 0 $tiny --hidden 384 --seq 256 --global-batch 16 --steps 20000 --checkpoint twice
    kill -INT $job
    await 60 grep -qs 'press Ctrl-C again' err
    kill -INT $job
    ends 130
    begins 0 $tiny --steps 20000
    kill -INT $job
    ends 130
    launch_one=
fi

# The clock of rank 0 asks for a checkpoint, too: every 10 minutes if nothing else is said.
words="zero train (by the clock)"
runs 3 $tiny --steps $steps --checkpoint often --save-minutes 0.002 --keep 1000
[ "$(saved | wc -l)" -ge 3 ] || complain "$words: $(saved | wc -l) checkpoints, expected several"
same_digest "a run that saved by the clock"
holds often $(printf 'step-%08d ' $(saved))
for row in '10.0:' '0.0:--save-every 100' '5.0:--save-minutes 5 --save-every 100' \
    '0.0:--save-minutes 0'; do
    rm -rf m minutes
    runs 3 $tiny --steps 2 --checkpoint minutes --metrics m ${row#*:}
    grep -q "\"save-minutes\": *${row%%:*}[,}]" m ||
        complain "$words: expected --save-minutes ${row%%:*} in the metrics with '${row#*:}'"
done
refuses 2 'save-minutes needs a directory' 0 $tiny --save-minutes 5

# A request that cannot be met gives one warning and changes nothing.
begins 3 $tiny --steps $steps
kill -USR1 $job
ends 0
[ "$(grep -c 'asked by a signal for a checkpoint, but there is no --checkpoint' err)" -eq 1 ] ||
    complain "$words: expected one warning"
same_digest "a run that was asked for a checkpoint without --checkpoint"
finish

# jobs.sh ZERO LAUNCH...: zero under Slurm on four nodes. Signals ask for checkpoints; what stops with
# exit code 75 is resumed by cmake/slurm/zero.sbatch, which goes back into the queue when it is
# signalled and when it loses a node. The digest is that of a run that never stopped.
. "$(dirname "$0")/cluster.sh"
zero=$1
shift
script=$tests/../cmake/slurm/zero.sbatch
steps=300 # signals take their time
model="--layers 2 --hidden 48 --heads 3 --seq 32 --global-batch 8 --data stories:64K --eval-every 0
    --sample 0 --stage 3 --steps $steps --log-every 1000"
saving="$model --save-every 10"

# Open MPI 4.1.4 started by srun may crash before our first line (cmake/slurm/README.md), on a busy
# machine in one of eight starts. Such a start is repeated, here and by the script.
repeats=0
crashed() {
    ! grep -q '^zero 0' out && grep -q 'Segmentation fault' out && [ $repeats -lt 3 ] || return 1
    repeats=$((repeats + 1))
    echo "Open MPI crashed in MPI_Init; this start is repeated ($repeats of 3)"
}

# begins NAME WORDS...: starts zero on 8 ranks in the background and waits for its fifth step.
begins() {
    name=$1 repeats=0
    shift
    words="srun zero train $*"
    while :; do
        rm -f out m
        # shellcheck disable=SC2086 # words
        on head srun --job-name="$name" --mpi=pmix --wait=10 -N4 -n8 "$zero" train $saving \
            --metrics "$work/m" "$@" >out 2>&1 &
        job=$!
        await 300 step_of m 5 && kill -0 $job && return
        crashed && continue
        complain "$words: expected step 5 in five minutes: $(cat out)"
        finish
    done
}

# step_of FILE STEP: these metrics have come to this step, or the run has ended.
step_of() {
    grep -qs "\"step\": *$2[,}]" "$1" || ! kill -0 "$job" 2>/dev/null
}

# ends CODE: the run in the background ends with this exit code.
ends() {
    wait "$job"
    code=$?
    [ $code -eq "$1" ] || complain "$words: exit code $code, expected $1: $(cat out)"
}

says() { # says 'TEXT' FILE
    grep -qF -e "$1" "$2" || complain "$words: expected '$1' in $2: $(cat "$2")"
}

saved() { # saved FILE: prints the steps of the checkpoints in this output
    sed -n 's/^checkpoint: step \([0-9]*\) .*/\1/p' "$1"
}

same_digest() { # same_digest FILE
    found=$(sed -n 's/^  digest *//p' "$1")
    [ "$found" = "$alone" ] || complain "$words: digest '$found', of a run that never stopped $alone"
}

# The reference: the same on one node.
# shellcheck disable=SC2086 # words
$(echo "$*" | sed 's/RANKS/8/') "$zero" train $model >alone.out 2>&1 || complain "$(cat alone.out)"
alone=$(sed -n 's/^  digest *//p' alone.out)
[ ${#alone} -eq 32 ] || complain "expected a digest: $(cat alone.out)"

# The live line is for terminals that are the user's own: not for those whose lines srun labels.
words="srun -l on a terminal"
labelled() {
    # shellcheck disable=SC2086 # words
    on head env TERM=xterm CI= script -qec "srun -l --mpi=pmix -N2 -n2 $zero train $(echo $model) \
        --steps 3" /dev/null </dev/null >out 2>&1
    grep -q '0: step      3/3' out
}
labelled || labelled || labelled || complain "$words: the run fails: $(cat out)"
grep -q "$(printf '\033')" out && complain "$words: unexpected live line: $(cat out)"

# A command that is typed into a shell of srun --pty is one rank, again and again, whatever the shell's
# step has: the shell's siblings have ended, or sleep.
few="--layers 1 --hidden 16 --heads 2 --seq 16 --data stories:64K --steps 1 --quiet"
typed_are() { # typed_are N: the shell has run that many commands
    [ "$(grep -c '^done' typed 2>/dev/null)" -ge "$1" ]
}
for step in '-N1 -n2' '-N2 -n2 --mpi=pmix'; do
    words="srun $step --pty bash"
    rm -f keys typed
    mkfifo keys
    # shellcheck disable=SC2094 # the shell reads what is typed
    on head script -qec "srun $step --pty bash --norc" /dev/null <keys >screen 2>&1 &
    shell=$!
    exec 3>keys
    echo "cd $work" >&3
    for k in 1 2; do
        echo "$zero train $few >>typed 2>&1; echo done \$? >>typed" >&3
        await 300 typed_are $k || complain "$words: command $k did not end: $(cat typed screen)"
    done
    echo exit >&3
    exec 3>&-
    wait $shell
    [ "$(grep -c '^done 0$' typed)" -eq 2 ] || complain "$words: expected two runs: $(cat typed)"
    [ "$(grep '^  digest ' typed | sort -u | wc -l)" -eq 1 ] ||
        complain "$words: expected one digest: $(cat typed)"
done

# All ranks save after the same step, and the run continues.
begins asked --checkpoint asked --save-every 1000
on head scancel --signal=USR1 --name=asked
ends 0
says '8 ranks, 2 on this node, 4 nodes' out
says 'hier (auto: several nodes with several ranks)' out
[ "$(saved out | wc -l)" -eq 2 ] ||
    complain "$words: expected a checkpoint on request and one at the end: $(cat out)"
same_digest out

# They save and stop; the exit code of srun is theirs.
mkdir runs
begins stopped --checkpoint runs/a
on head scancel --signal=USR2 --name=stopped
ends 75
says 'stopped on request after step' out
stopped=$(saved out | tail -n 1)
[ "$stopped" -lt $steps ] || complain "$words: stopped after step $stopped, expected less than $steps"

# The script resumes it. Signalled, it goes back into the queue.
state_is() { # state_is WORDS: what scontrol says of the job
    on head scontrol show job "$id" >state 2>&1 && grep -q "$1" state
}

# A job that is put back waits for two minutes, so that its processes are gone everywhere; here until
# the nodes say so.
starts_at_once() {
    await 300 state_is 'JobState=PENDING' || complain "$words: not put back: $(cat state batch.out)"
    await 300 all_idle || complain "$words: the nodes are not idle: $(on head sinfo)"
    sleep 2
    on head scontrol update jobid="$id" starttime=now
    restarts=$((restarts + 1))
}

# Succeeds when this start of the job has made ten steps or, with an argument, when the job is done.
has_worked() {
    state_is 'JobState=FAILED' && return
    if [ $# -eq 1 ]; then
        state_is 'JobState=COMPLETED'
    else
        state_is 'JobState=RUNNING' && grep -q " Restarts=$restarts " state &&
            [ "$(grep -c '"step":' runs/a.jsonl)" -ge $((made + 10)) ]
    fi
}

# works 'WHAT' [end]: waits for has_worked.
works() {
    what=$1
    shift
    if ! await 300 has_worked "$@" || grep -q 'JobState=FAILED' state; then
        complain "$words: $what: not at work, or not done, in five minutes: $(cat state batch.out; logs)"
        finish
    fi
    made=$(grep -c '"step":' runs/a.jsonl)
}

words="sbatch $(basename "$script")"
: >runs/a.jsonl
made=0 restarts=0
# shellcheck disable=SC2086 # words
id=$(RUN=runs/a ZERO=$zero on head sbatch --parsable --output=batch.out "$script" $saving) ||
    complain "$words: cannot be submitted"
works 'the first start'
on head scancel --signal=USR2 "$id"
starts_at_once
works 'after USR2'
says "zero.sbatch: start $((restarts + 1)) of this job" batch.out

# Slurm puts it back after the loss of a node.
on head scontrol update nodename=n3 state=down reason=test
on head scontrol update nodename=n3 state=resume
starts_at_once
works 'after the loss of a node' end
says 'ExitCode=0:0' state
says "zero.sbatch: start $((restarts + 1)) of this job" batch.out
[ "$(grep -c '^  resumed ' batch.out)" -ge 3 ] || complain "$words: expected three starts that resume"
same_digest batch.out
finish

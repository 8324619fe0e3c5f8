# faults.sh PROGRAM LAUNCH...: jobs in which a rank misbehaves end as they should. In the launch
# line RANKS stands for the number of ranks.
faults=$1
shift
launch=$*
failed=0
work=$(mktemp -d) && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
mkdir tmp

complain() {
    echo "FAILED: faults $words: $*"
    sed 's/^/  /' err
    failed=$((failed + 1))
}

now() { # in milliseconds
    echo $(($(date +%s%N) / 1000000))
}

# Makes what mpirun wrote fit for grep. Open MPI 5 ends its texts with NUL bytes, so that grep takes
# the file for binary, and may put our message on a line that it has begun.
legible() {
    tr -d '\000' <err | sed 's/\(.\)faults: /\1\
faults: /g' >legible
    mv legible err
}

# Prints leftovers of the job: processes with our mark in their environment, files of mpirun, and
# Open MPI's segments with the job's number. PMIx 5 under Open MPI 4 (Ubuntu 24.04) leaves two files
# of its own whenever a job fails.
left() {
    grep -lsxzF "ZERO_FAULTS=$work" /proc/[0-9]*/environ
    find tmp -mindepth 1 -type f ! -name 'pmix-gds-shmem.*'
    [ ! -s job ] || find /dev/shm -name "vader_segment.*.$(printf %x "$(cat job)").*"
}

# run N words...: runs the program on N ranks. Writes its output to err and sets $code to its exit
# code. The job must leave nothing behind.
run() {
    n=$1
    shift
    words="$* ($n ranks)"
    rm -f job pid.*
    began=$(now)
    # shellcheck disable=SC2016,SC2046 # expanded by the ranks; words
    ZERO_FAULTS="$work" TMPDIR="$work/tmp" timeout -k 5 100 $(echo "$launch" | sed "s/RANKS/$n/") \
        sh -c 'echo "$OMPI_MCA_ess_base_jobid" >job; exec "$0" "$@"' "$faults" "$@" >err 2>&1
    code=$?
    legible
    ended=$(now)
    while [ -n "$(left)" ] && [ $(($(now) - ended)) -lt 30000 ]; do sleep 0.1; done
    [ -z "$(left)" ] || complain "left behind: $(left)"
    echo "faults $words: exit code $code after $((ended - began)) ms"
}

ends() { # ends CODES: with one of these
    case " $* " in *" $code "*) ;; *) complain "exit code $code, expected $*" ;; esac
}
says() { grep '^faults: ' err | grep -qF -e "$1" || complain "expected '$1'"; }
speak() { [ "$(grep -c '^faults: ' err)" -eq "$1" ] || complain "expected $1 message(s)"; }

# When a rank skips an operation, the check finds it at the next one.
run 4 skip-one-checked 10
ends 2
says "rank 3 began reduce-scatter 3 of group 2 (p2p, fp32, 16 elements), \
the others all-gather 3 of group 1 (p2p, fp32, 16 elements)"

# In a family it is found among the ranks with which the operation was due.
run 4 skip-a-join-checked 10
ends 2
says "rank 3 began the end of the group, the others all-gather 3 of JOIN 3 \
(p2p, fp32, 16 elements) in the TP group of ranks 2-3: ranks must"

run 4 skip-a-reduction-checked 10
ends 2
says "rank 3 began the end of the group, the others reduce-scatter 3 of group 3 \
(p2p, fp32, 16 elements) in the shard group of ranks 2-3: ranks must"

# Seconds that the watchdog allows. Ranks of a busy machine need them to answer it.
limit=3

# Without the check the watchdog ends the job, and one rank prints where all ranks are.
run 4 skip-the-last $limit
ends 86
speak 1
says 'rank 3 is elsewhere'
says 'ranks 0-2: waiting for all-gather 7 of group 3'
says 'rank 3: waiting for the end of the group'
run 4 skip-a-join $limit
ends 86
speak 1
says 'rank 3 left out an operation. State:'
says 'rank 2: waiting for all-gather 3 of JOIN 3 in the TP group of ranks 2-3'
says 'rank 0: waiting for reduce-scatter 3 of group 3 in the ZeRO group of ranks 0,2'
run 4 skip-a-reduction $limit
ends 86
speak 1
says 'rank 3 left out an operation. State:'
says 'rank 2: waiting for reduce-scatter 3 of group 3 in the shard group of ranks 2-3'
says 'rank 0: waiting for reduce-scatter 3 of group 3 in the replica group of ranks 0,2'
run 3 skip-a-vote $limit
ends 86
speak 1
says 'rank 2 is behind'
says 'ranks 0-1: waiting for vote 1'
says 'rank 2: computing after the start'
run 3 leave-our-code $limit
ends 86
speak 1
says 'rank 2 does not answer'
says 'rank 2: no answer (dead, stopped, or not in our code)'

run 4 stop $limit
ends 86
speak 1
says 'no progress for'
says 'ranks 0-2: waiting for reduce-scatter 8 of group 0'
says 'rank 3: no answer (dead, stopped, or not in our code)'

# The launcher ends a job in which a rank dies, with or without a watchdog.
for limit in 0 30; do
    run 3 kill $limit
    [ $code -ne 0 ] && [ $code -ne 86 ] ||
        complain "exit code $code, expected that of a killed rank"
    speak 0
done

# A crash ends the job, too: Open MPI's handler must survive a heap that is corrupted while malloc
# holds its lock. Sanitizers end the rank in their own way.
for fault in corrupt-heap abort segv; do
    run 3 $fault 0
    case $code in
        0 | 86 | 124 | 137) complain "exit code $code, expected that of a rank that crashed" ;;
    esac
    speak 0
done

# SIGTERM ends ranks that block it and wait for a stopped rank, with or without a watchdog. It does
# not end them while they make progress.
await() {
    tries=0
    until [ -s pid.0 ] && [ -s pid.1 ] && [ -s pid.2 ]; do
        tries=$((tries + 1))
        [ $tries -le 1000 ] || return
        sleep 0.1
    done
}
end_others() {
    await
    sleep 0.7
    # shellcheck disable=SC2046 # words
    kill -TERM $(cat pid.0 pid.1)
}
for limit in 0 60; do
    rm -f pid.*
    end_others &
    run 3 block-and-stop $limit
    wait
    ends 143 15 # the launcher of MPICH gives the signal itself
    speak 0
done
run 3 block-and-go-on 0
ends 0

# A whole job that is suspended for longer than the limit, and then continued, ends well.
suspend() {
    await
    sleep 0.7
    # shellcheck disable=SC2046 # words
    kill -STOP $(cat pid.*)
    sleep 7
    # shellcheck disable=SC2046
    kill -CONT $(cat pid.*)
}
rm -f pid.*
suspend &
run 3 be-suspended 5
wait
ends 0
speak 0

run 1 want-a-thread 0
ends 2
says 'MPI at thread level MULTIPLE'

[ $failed -eq 0 ]

# faults.sh PROGRAM LAUNCH...: ranks that misbehave, and what becomes of the job. In the launch
# line RANKS stands for the number of ranks.
faults=$1
shift
launch=$*
failed=0
work=$(mktemp -d) && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

complain() {
    echo "FAILED: faults $words: $*"
    sed 's/^/  /' err
    failed=$((failed + 1))
}

# run N words...: leaves the file err, and the exit code in $code.
run() {
    n=$1
    shift
    words="$* ($n ranks)"
    $(echo "$launch" | sed "s/RANKS/$n/") "$faults" "$@" >err 2>&1
    code=$?
}

ends() { [ $code -eq "$1" ] || complain "exit code $code, expected $1"; }
says() { grep '^faults: ' err | grep -qF -e "$1" || complain "expected '$1'"; }
speak() { [ "$(grep -c '^faults: ' err)" -eq "$1" ] || complain "expected $1 message(s)"; }

# The check finds a rank that leaves one out at its next operation.
run 4 skip-one-checked 10
ends 2
says 'rank 3 began reduce-scatter 3 of group 2 (p2p, fp32, 16 elements), the others all-gather 3 of group 1 (p2p, fp32, 16 elements)'

# Without it nobody knows, but the job ends, and one rank says where all of them are.
run 4 skip-the-last 1
ends 86
speak 1
says 'rank 3 is elsewhere'
says 'ranks 0-2: waiting for all-gather 7 of group 3'
says 'rank 3: waiting for the end of the group'
run 3 skip-a-vote 1
ends 86
speak 1
says 'rank 2 is behind'
says 'ranks 0-1: waiting for vote 1'
says 'rank 2: computing after the start'
run 3 leave-our-code 1
ends 86
speak 1
says 'rank 2 does not answer'
says 'rank 2: no answer (dead, stopped, or not in our code)'

run 4 stop 1
ends 86
speak 1
says 'no progress for'
says 'ranks 0-2: waiting for reduce-scatter 8 of group 0'
says 'rank 3: no answer (dead, stopped, or not in our code)'

# A rank that dies is the launcher's, with or without a watchdog.
for limit in 0 30; do
    run 3 kill $limit
    [ $code -ne 0 ] && [ $code -ne 86 ] || complain "exit code $code, expected that of a dead rank"
    speak 0
done

# Suspended as a whole for longer than the limit, and continued: nothing has happened.
suspend() {
    tries=0
    until [ -s pid.0 ] && [ -s pid.1 ] && [ -s pid.2 ]; do
        tries=$((tries + 1))
        [ $tries -le 100 ] || return
        sleep 0.1
    done
    sleep 0.7
    kill -STOP $(cat pid.*)
    sleep 7
    kill -CONT $(cat pid.*)
}
suspend &
run 3 be-suspended 5
wait
ends 0
speak 0

run 1 want-a-thread 0
ends 2
says 'MPI at thread level MULTIPLE'

[ $failed -eq 0 ]

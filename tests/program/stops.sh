# A rank is stopped or hangs while the job starts or ends: the job ends with 86, within 5 s of the
# watchdog's limit; a busy machine is allowed more. TIMES stops in the first second, and as many
# while the job ends.
. "$(dirname "$0")/common.sh"
times=${TIMES:-2}
limit=3
[ -z "${SANITIZED-}" ] || limit=6 # the start of MPI takes several times as long
write_pid='echo $$ >"pid.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"; exec "$0" "$@"'

now() { # in milliseconds
    echo $(($(date +%s%N) / 1000000))
}

# draw N: sets $drawn to a number from 0 to N - 1; each run of this script draws the same ones.
state=1
draw() {
    state=$(((state * 1103515245 + 12345) % 2147483648))
    drawn=$((state / 65536 % $1))
}

pause() { # pause MILLISECONDS
    sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"
}

# begins STEPS OPTIONS...: a job of 3 ranks in the background. The files pid.RANK get their
# processes.
begins() {
    words="zero train --steps $* (3 ranks)"
    rm -f m out err pid.*
    # shellcheck disable=SC2016,SC2086 # expanded by the ranks; words
    ZERO_STOPS="$work" on 3 sh -c "$write_pid" "$zero" train $tiny --global-batch 6 \
        --metrics m --watchdog $limit --steps "$@" >out 2>err &
    job=$!
}

is_running() {
    kill -0 $job 2>/dev/null
}

# stops RANK: $stopped is whether the process was there and did not end by itself.
stops() {
    stopped=0
    read -r victim 2>/dev/null <"pid.$1" && kill -STOP "$victim" 2>/dev/null || return
    since=$(now)
    sleep 0.1
    grep -qs '^State:.*[Tt]' "/proc/$victim/status" && stopped=1
}

# ends: a job with a stopped rank has ended as it should, with one message.
ends() {
    (sleep $((limit + 30)) && kill -KILL "$victim") 2>/dev/null & # a hang ends the script, too
    guard=$!
    wait $job
    code=$?
    passed=$(($(now) - since))
    kill $guard 2>/dev/null
    legible err
    echo "$words: $1: ended with $code after $passed ms: $(grep '^zero: ' err | grep -v warning)"
    exits 86
    [ $passed -le $(((limit + ${LATE:-15}) * 1000)) ] ||
        complain "$words: $passed ms, expected at most $limit + ${LATE:-15} s"
    grep '^zero: ' err | grep -q -e 'that --watchdog allows' -e 'longer than --watchdog allows' ||
        complain "$words: expected a message of the watchdog"
}

# Random moments of the first second.
i=0
while [ $i -lt "$times" ]; do
    draw 3 && rank=$drawn
    draw 1000 && wait_ms=$drawn
    begins 1000000
    await 120 test -s "pid.$rank" || exit 1
    pause "$wait_ms"
    stops "$rank"
    [ $stopped -eq 1 ] || complain "$words: rank $rank is not stopped"
    ends "rank $rank stopped after $wait_ms ms"
    i=$((i + 1))
done

# Random moments after the last line of metrics. A rank that had ended before it could be stopped
# does not count; the job is then done.
i=0 tries=0
while [ $i -lt "$times" ] && [ $tries -lt $((10 * times)) ]; do
    draw 3 && rank=$drawn
    draw 50 && wait_ms=$drawn
    tries=$((tries + 1))
    begins 3
    while ! grep -qs '"final"' m; do is_running || break; done # the job ends within 0.1 s
    [ "$wait_ms" -lt 5 ] || pause "$wait_ms"
    stops "$rank"
    if [ $stopped -eq 0 ]; then
        wait $job
        continue
    fi
    ends "rank $rank stopped $wait_ms ms after the last step"
    i=$((i + 1))
done
[ $i -eq "$times" ] || complain "only $i of $times ranks could be stopped while they ended"
# hangs N CALL 'PHASE' BEFORE: on N ranks, without mpirun if N is 0, this call never returns. The
# ranks' shells run the words BEFORE first. Where MPI cannot start within the limit, the call is not
# reached: then the job has four times as long.
hangs() {
    for most in $limit $((4 * limit)) $((16 * limit)); do
        since=$(now)
        # shellcheck disable=SC2086,SC2016 # words; expanded by the ranks
        on "$1" env HANG_IN="$2" sh -c "$4"' LD_PRELOAD=$SHIM exec "$0" "$@"' "$zero" train $tiny \
            --steps 1 --global-batch 6 --watchdog $most >out 2>err
        code=$?
        passed=$(($(now) - since - most * 1000))
        words="$2 hangs ($1 ranks)"
        legible err
        echo "$words: ended with $code, $passed ms after the limit"
        grep -q "$3 has taken" err || ! grep -q 'starting MPI has taken' err || continue
        break
    done
    exits 86
    says "$3 has taken longer than the $most s that --watchdog allows" err
}

# A single rank has nobody who could notice that it hangs. A limit on the address space leaves no
# room for threads.
hangs 0 MPI_Init_thread 'starting MPI' ''
hangs 0 MPI_Finalize 'ending MPI' ''
limited=''
[ -n "${SANITIZED-}" ] || limited='ulimit -v 1500000;'
hangs 3 MPI_Comm_dup 'making the group of all ranks' "$limited"
hangs 3 MPI_Finalize 'ending MPI' "$limited"
# The others wait for a rank that has stopped where the watchdog itself ends.
STOP_RANK=0 hangs 3 MPI_Ireduce_scatter_block 'ending the watchdog' ''
left=$(grep -lsxzF "ZERO_STOPS=$work" /proc/[0-9]*/environ)
[ -z "$left" ] || complain "left behind: $left"
finish

# During training a rank is stopped or crashes, or the whole job is suspended.
. "$(dirname "$0")/common.sh"
# The watchdog's limit holds for the start of MPI, too, also on a machine that has other work. With
# sanitizers that and steps take several times as long.
limit=10 steps=1000
[ $slow -eq 1 ] || limit=20 steps=150

now() { # in milliseconds
    echo $(($(date +%s%N) / 1000000))
}

# begin OPTIONS...: trains on 3 ranks in the background, with metrics in the file m, and waits for 9
# steps. The files pid.RANK get the ranks' processes.
begin() {
    words="zero train $* (3 ranks)"
    rm -f m out err pid.*
    # shellcheck disable=SC2016 # expanded by the ranks
    write_pid='echo $$ >"pid.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"; exec "$0" "$@"'
    # shellcheck disable=SC2086 # words
    ZERO_STUCK="$work" on 3 sh -c "$write_pid" "$zero" train $small --sample 0 --eval-every 0 \
        --log-every 1000000 --metrics m "$@" >out 2>err &
    job=$!
    if ! await 120 has_begun || ! grep -q '"step": *9,' m; then
        complain "$words: expected 9 steps within two minutes"
        exit 1
    fi
}

# has_begun: the job has made 9 steps, or has ended.
has_begun() {
    grep -qs '"step": *9,' m || ! kill -0 $job 2>/dev/null
}

# stops PIDS...: returns once they are stopped, which takes a moment.
stops() {
    kill -STOP "$@"
    for pid; do await 60 grep -qs '^State:[[:space:]]*[Tt]' "/proc/$pid/status"; done
}

# ends CODES: the job ends with one of these exit codes and leaves no process behind.
ends() {
    since=$(now)
    wait $job
    code=$?
    legible err
    echo "$words: ended with $code after $(($(now) - since)) ms"
    echo "$1" | grep -qw $code || complain "$words: exit code $code, expected one of $1"
    await 30 nothing_left || complain "$words: left behind: $left"
}

nothing_left() {
    ! left=$(grep -lsxzF "ZERO_STUCK=$work" /proc/[0-9]*/environ)
}

# Only the watchdog notices a stopped rank. It names the rank and the step that the others are in:
# the one after the last step in the metrics.
for collectives in auto p2p; do
    begin --steps 1000000 --watchdog $limit --stage 3 --collectives $collectives
    stops "$(cat pid.1)"
    ends 86
    [ "$(grep '^zero: ' err | grep -vc '^zero: warning: ')" -eq 1 ] ||
        complain "$words: expected one message"
    step=$(($(grep -c '"step":' m) + 1))
    says 'rank 1 does not answer' err
    says 'rank 1: no answer (dead, stopped, or not in our code)' err
    says ": in step $step, waiting for " err
done

# A rank that crashes ends the job at once, and the launcher says so.
codes='134 139 1'
with_mpich && codes='6 11 15' # the signal itself, or that with which it ends the other ranks
for signal in ABRT SEGV; do
    begin --steps 1000000 --watchdog 60
    kill -$signal "$(cat pid.2)"
    ends "$codes"
    with_mpich || says 'exited' err # MPICH's launcher may end before it has printed
done

digest() {
    sed -n 's/.*"digest": *"\([0-9a-f]*\)".*/\1/p' m
}

# A job that is suspended with its launcher for longer than the watchdog's limit, and then
# continued, ends well. One rank is stopped first and continued last, so that the others wait.
begin --steps $steps --watchdog $limit
ends 0
alone=$(digest)
[ ${#alone} -eq 32 ] || complain "$words: expected a digest of 32 digits, found '$alone'"
begin --steps $steps --watchdog $limit
launcher=$(cut -d ' ' -f 4 <"/proc/$(cat pid.0)/stat")
stops "$(cat pid.1)"
sleep 0.3
stops "$launcher" "$(cat pid.0)" "$(cat pid.2)"
done=$(grep -c '"step":' m)
sleep $((limit + 5))
[ "$(grep -c '"step":' m)" -eq "$done" ] || complain "$words: trained while it was suspended"
[ "$done" -lt $steps ] || complain "$words: expected to suspend it before its last step"
kill -CONT "$(cat pid.0)" "$(cat pid.2)"
sleep 1
kill -CONT "$launcher" "$(cat pid.1)" # Open MPI's launcher forwards it to all ranks
ends 0
[ "$(digest)" = "$alone" ] || complain "$words: digest $(digest), undisturbed $alone"
finish

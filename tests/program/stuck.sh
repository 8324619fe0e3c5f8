# During training a rank is stopped or crashes, or the whole job is suspended.
. "$(dirname "$0")/common.sh"
limit=3 steps=400
# With sanitizers steps and the start of MPI take several times as long.
[ $slow -eq 1 ] || limit=12 steps=150

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
    tries=0
    until grep -q '"step": *9,' m 2>/dev/null; do
        tries=$((tries + 1))
        if ! kill -0 $job 2>/dev/null || [ $tries -gt 1200 ]; then
            complain "$words: expected 9 steps within a minute"
            exit 1
        fi
        sleep 0.05
    done
}

# ends CODES: the job ends with one of these exit codes and leaves no process behind.
ends() {
    since=$(now)
    wait $job
    code=$?
    legible err
    echo "$words: ended with $code after $(($(now) - since)) ms"
    echo "$1" | grep -qw $code || complain "$words: exit code $code, expected one of $1"
    tries=0
    while left=$(grep -lsxzF "ZERO_STUCK=$work" /proc/[0-9]*/environ) && [ $tries -lt 30 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    [ -z "$left" ] || complain "$words: left behind: $left"
}

# Only the watchdog notices a stopped rank. It names the rank and the step that the others are in:
# the one after the last step in the metrics.
for collectives in auto p2p; do
    begin --steps 1000000 --watchdog $limit --stage 3 --collectives $collectives
    kill -STOP "$(cat pid.1)"
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
kill -STOP "$(cat pid.1)"
sleep 0.3
kill -STOP "$launcher" "$(cat pid.0)" "$(cat pid.2)"
done=$(grep -c '"step":' m)
sleep $((2 * limit))
[ "$(grep -c '"step":' m)" -eq "$done" ] || complain "$words: trained while it was suspended"
[ "$done" -lt $steps ] || complain "$words: expected to suspend it before its last step"
kill -CONT "$(cat pid.0)" "$(cat pid.2)"
sleep 1
kill -CONT "$launcher" "$(cat pid.1)" # Open MPI's launcher forwards it to all ranks
ends 0
[ "$(digest)" = "$alone" ] || complain "$words: digest $(digest), undisturbed $alone"
finish

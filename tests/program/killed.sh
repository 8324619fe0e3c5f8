# SIGKILL ends a rank at a random moment, TIMES times. After each the run is resumed with a random
# number of ranks and stage, and its optimizer states in memory or in a file. It ends with the digest
# of a run that was never killed. SEED decides all that is random.
. "$(dirname "$0")/common.sh"
times=${TIMES:-6}
seed=${SEED:-$(date +%s)}
. "$(dirname "$0")/draws.sh"
finds_a_disk
[ -n "$disk" ] || echo "no states in files: $(cat info)"
echo "seed $seed, $times times"
one_of fp32 bf16
long="train $tiny --dtype $one --global-batch 8 --micro-batch 1 --reproducible --watchdog 20
    --steps $((500 * times + 300)) --log-every 100000"

# lives PID: the process exists and is not a zombie.
lives() {
    [ -e /proc/"$1" ] && ! grep -q '^State:[[:space:]]*Z' /proc/"$1"/status 2>/dev/null
}

# kill_a_rank PID: waits until processes below PID run the program, and kills a random one of them.
# Fails if the job has ended.
kill_a_rank() {
    n_found=0
    while [ "$n_found" -eq 0 ]; do
        lives "$1" || return 1
        found=$(ranks_of "$1")
        n_found=$(echo $found | wc -w)
    done
    draw "$n_found"
    kill -9 "$(echo $found | cut -d ' ' -f $((drawn + 1)))" 2>/dev/null
}

# starts ROUND: starts the next part of the run in the background, in a random layout.
starts() {
    draw 3
    ranks=$((1 << drawn))
    draw 4
    stage=$drawn
    draw 3
    resume=--resume
    [ -d run ] || resume=
    every=$((drawn + 1))
    places
    words="round $1, $ranks ranks, stage $stage, every $every steps, $places (seed $seed)"
    rm -f out err
    on "$ranks" "$zero" $long --stage $stage --save-every $every --checkpoint run $resume $places \
        --metrics m >out 2>err &
    job=$!
}

# waits PID: waits for a random time, counted from the launch in one third of the cases. Otherwise
# it is counted from the first save: then even on a slow machine the run is among steps and saves.
waits() {
    draw 3
    if [ "$drawn" -gt 0 ]; then
        tries=0
        until grep -qs '^checkpoint: ' out || [ $tries -ge 200 ] || ! lives "$1"; do
            tries=$((tries + 1))
            sleep 0.05
        done
        draw 40
    else
        draw 100
    fi
    sleep "$(awk "BEGIN { print $drawn / 100 }")"
}

# Every published checkpoint is whole, no matter when the job was killed.
check_saved() {
    find run -maxdepth 1 -name 'step-*' 2>/dev/null | grep -q . || return 0
    verifies run
}

round=0
killed=0
started=0
while [ $killed -lt "$times" ] && [ $round -lt $((4 * times)) ]; do
    round=$((round + 1))
    starts $round
    waits $job
    if kill_a_rank $job; then
        wait $job
        code=$?
        if [ $code -eq 0 ]; then break; fi # the job ended before the signal came
        killed=$((killed + 1))
        grep -q '^checkpoint: ' out && started=$((started + 1))
        legible err
        grep '^zero: ' err | grep -v '^zero: warning: ' | grep -q 'checkpoint\|step-' &&
            complain "$words: a checkpoint was refused"
    else
        wait $job
        break
    fi
    check_saved
done
echo "$killed jobs killed, $started of them after they saved; $(ls run | tail -n 1)"
[ $killed -eq "$times" ] || complain "only $killed of $times jobs were killed"

mkdir -p run # all kills may have come before it was made
runs 2 $long --stage 3 --checkpoint run --resume --metrics m
digest_of out >resumed
[ -z "$disk" ] || [ -z "$(ls -A "$disk")" ] || complain "$words: left on the disk: $(ls -A "$disk")"
ls -A run | grep -v '^step-' >left && complain "$words: left behind: $(cat left)"
[ "$(ls run | wc -l)" -le 2 ] || complain "$words: more than two checkpoints are kept"
runs 1 $long --stage 0 --metrics undisturbed
digest_of out >expected
same expected resumed "killed $killed times (seed $seed)"
[ -s expected ] || complain "$words: no digest"

# The metrics contain every step, and a step that was repeated has the same loss each time.
losses() {
    sed -n 's/.*"step":\([0-9]*\),"loss":\([^,]*\),.*"grad_norm":\([^,]*\),.*/\1 \2 \3/p' "$1" |
        sort -nu
}
losses m >losses_resumed
losses undisturbed >losses_expected
same losses_expected losses_resumed "losses of all steps (seed $seed)"
echo "cases $killed"
finish

# A rank is killed with SIGKILL at any moment, again and again; each time the run is resumed, on
# another number of ranks and in another stage. It ends as if nobody had disturbed it. How often,
# and the seed of all that is random: TIMES and SEED.
. "$(dirname "$0")/common.sh"
times=${TIMES:-6}
seed=${SEED:-$(date +%s)}
echo "seed $seed, $times times"
tiny="train --layers 1 --hidden 16 --heads 2 --seq 8 --data stories:16K --tokenizer byte --sample 0
    --eval-every 0 --global-batch 8 --micro-batch 1 --reproducible --watchdog 20
    --steps $((100 * times + 300)) --log-every 100000"

# draw N: 0 .. N-1 in $drawn
drawn=0
state=$seed
draw() {
    state=$(((state * 1103515245 + 12345) % 2147483648))
    drawn=$(((state / 65536) % $1))
}

# lives PID: and is no zombie that nobody has waited for.
lives() {
    [ -e /proc/"$1" ] && ! grep -q '^State:[[:space:]]*Z' /proc/"$1"/status 2>/dev/null
}

# kill_a_rank PID: one of the job below it dies, as soon as there is one; which, is drawn. Fails
# when the job has ended.
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

# starts ROUND: the next part of the run in the background, in a layout that is drawn.
starts() {
    draw 3
    ranks=$((1 << drawn))
    draw 4
    stage=$drawn
    draw 3
    resume=--resume
    [ -d run ] || resume=
    words="round $1, $ranks ranks, stage $stage, every $((drawn + 1)) steps (seed $seed)"
    on "$ranks" "$zero" $tiny --stage $stage --save-every $((drawn + 1)) --checkpoint run $resume \
        --metrics m >out 2>err &
    job=$!
}

# Until some moment: every third time since the launch, else since the first save, for then the
# run is among steps and saves however slow the machine is.
waits() {
    draw 3
    if [ "$drawn" -gt 0 ]; then
        tries=0
        until grep -q '^checkpoint: ' out || [ $tries -ge 200 ] || ! lives "$1"; do
            tries=$((tries + 1))
            sleep 0.05
        done
        draw 40
    else
        draw 100
    fi
    sleep "$(awk "BEGIN { print $drawn / 100 }")"
}

# Everything that is published is whole, whenever it was that the job died.
check_saved() {
    find run -maxdepth 1 -name 'step-*' 2>/dev/null | grep -q . || return 0
    on 0 "$zero" checkpoint verify run >out 2>err || complain "$words: does not verify"
    return 0
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
        if [ $code -eq 0 ]; then break; fi # it had ended by then
        killed=$((killed + 1))
        grep -q '^checkpoint: ' out && started=$((started + 1))
        grep '^zero: ' err | grep -v '^zero: warning: ' | grep -q 'checkpoint\|step-' &&
            complain "$words: a checkpoint was refused"
    else
        wait $job
        break
    fi
    check_saved
done
echo "$killed killed, $started of them after a save of their own; $(ls run | tail -n 1)"
[ $killed -eq "$times" ] || complain "only $killed of $times jobs were killed"

runs 2 $tiny --stage 3 --checkpoint run --resume --metrics m
sed -n 's/^  digest *//p' out >resumed
ls -A run | grep -v '^step-' >left && complain "$words: left behind: $(cat left)"
[ "$(ls run | wc -l)" -le 2 ] || complain "$words: more than two checkpoints are kept"
runs 1 $tiny --stage 0 --metrics undisturbed
sed -n 's/^  digest *//p' out >expected
same expected resumed "killed $killed times (seed $seed)"
[ -s expected ] || complain "$words: no digest"

# Each step is in the metrics, with one loss however often it was done.
losses() {
    sed -n 's/.*"step":\([0-9]*\),"loss":\([^,]*\),.*"grad_norm":\([^,]*\),.*/\1 \2 \3/p' "$1" | sort -nu
}
losses m >losses_resumed
losses undisturbed >losses_expected
same losses_expected losses_resumed "losses of all steps (seed $seed)"
finish

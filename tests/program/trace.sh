# zero train --trace: what a run's trace says is what the run did, on every stage, with everything
# that moves data, on clocks that differ, and when the run does not end well.
. "$(dirname "$0")/common.sh"
: "${TRACE_CHECKER:?} ${CLOCK_SHIM:?}"
model="--layers 2 --hidden 32 --heads 4 --seq 16 --data stories:16K --tokenizer byte
    --eval-every 3 --sample 0"
log=1000000

# found 'WORDS' FILES...: viewers can draw the trace, check_trace accepts the files, and what it
# found has these words.
found() {
    expected=$1
    shift
    is_trace "$1"
    "$TRACE_CHECKER" "$@" >seen 2>&1 || complain "$words: $(cat seen)"
    grep -qF -e "$expected" seen || complain "$words: expected '$expected', found '$(cat seen)'"
}

# traces RANKS OPTIONS...: a run with a trace in t.json and metrics in m.
traces() {
    n=$1
    shift
    rm -f t.json m
    # shellcheck disable=SC2086 # words
    runs "$n" train $model --log-every $log --steps 6 --trace t.json --metrics m "$@"
}

# planned RANKS OPTIONS...: rank 0's spans have names, bytes and live bytes of the plan.
planned() {
    n=$1
    shift
    # shellcheck disable=SC2086
    "$zero" plan $model --ranks "$n" --fake-nodes 1 --show-schedule --json "$@" >plan 2>err ||
        complain "$words: no plan"
    found "steps 4-6" t.json m plan
}

# All stages on three ranks, and one and four ranks: the last 3 steps, as planned; equal digests with
# and without.
for case in 3:0 3:1 3:2 3:3 1:0 4:3; do
    n=${case%:*} stage=${case#*:}
    # shellcheck disable=SC2086
    runs $n train $model --log-every $log --steps 6 --stage $stage
    plain=$(digest_of out)
    traces $n --stage $stage
    [ ${#plain} -eq 32 ] && [ "$(digest_of out)" = "$plain" ] ||
        complain "$words: a trace changes the digest"
    says 'trace: steps 4 to 6 in t.json' out
    says 'kept in ' out
    found "ranks $n steps 4-6" t.json m
    planned $n --stage $stage
done

# A run that is refused leaves nothing in the place of its trace.
mkdir place
refuses 2 'cannot be told number by number' 3 train --model tiny --data stories:64K --narrate --trace place/t.json
[ -z "$(ls -A place)" ] || complain "a refused run leaves $(ls -A place)"

# Several microbatches, tensor parallelism, replicas, owners, pretended nodes, recomputing.
traces 3 --stage 2 --global-batch 12 --micro-batch 2
planned 3 --stage 2 --global-batch 12 --micro-batch 2
traces 4 --tp 2 --stage 3 --global-batch 8
grep '"reduce-scatter block 0"' t.json | grep -q '"first":2,' ||
    complain "$words: expected a JOIN of the TP group of ranks 2 and 3"
grep '"all-gather block 0"' t.json | grep -q '"first":1,' ||
    complain "$words: expected a GATHER of the ZeRO group of ranks 1 and 3"
found 'ranks 4 steps 4-6' t.json m
traces 4 --shard-ranks 2 --stage 3
found 'ranks 4 steps 4-6' t.json m
traces 3 --partition owner --stage 2
found 'ranks 3 steps 4-6' t.json m
traces 3 --stage 3 --progress-thread 1 --collectives p2p --check collectives
found 'ranks 3 steps 4-6' t.json m

# Windows of steps, and of ranks. A run that ends before them has its last steps.
traces 3 --trace-steps 2
found 'ranks 3 steps 2-2' t.json m
traces 3 --trace-steps 1-6 --trace-ranks 0,2
found 'ranks 2 steps 1-6' t.json m
traces 3 --trace-steps 2-3 --trace-ranks 1-2
found 'ranks 2 steps 2-3' t.json
traces 1 --steps 2
found 'ranks 1 steps 1-2' t.json m
traces 0
found 'ranks 1 steps 4-6' t.json m

# A scratch file has rows of its own; updates that ran ahead, too.
finds_a_disk
if [ -n "$disk" ]; then
    traces 3 --stage 3 --offload "$disk" --offload-parameters
    found 'ranks 3 steps 4-6' t.json m
    grep -qF '"rank 2 file 1"' t.json || complain "$words: expected a row of the file"
    traces 3 --stage 1 --offload "$disk" --recompute --offload-activations
    found 'ranks 3 steps 4-6' t.json m
    traces 3 --stage 1 --offload "$disk" --delayed-update 3 --trace-steps 1-3
    found 'ranks 3 steps 1-3' t.json m
    says 'epilogue: UPDATE' t.json
fi

# Instructions of a device are those of the host, and the file says so.
"$zero" info >info 2>&1
if grep -q '^devices .*fake' info; then
    traces 3 --stage 3 --device fake
    found 'ranks 3 steps 4-6' t.json m
    says "seldom waits; the device's own times are in the profile\"" t.json
fi

# The second of two nodes has a clock that is 3 s ahead, and runs faster: its collectives are in
# flight when those of the first node are. The checker allows what the file says of its clocks.
clock_of() { # clock_of WORD: a number of the trace's first event
    sed -n "s/.*\"$1\":\([0-9.]*\).*/\1/p" t.json | head -n 1
}
# shellcheck disable=SC2016 # expanded by the ranks
apart='export LD_PRELOAD="$CLOCK_SHIM"; exec "$0" "$@"'
export CLOCK_FROM=2 CLOCK_SHIM
for drift in 0 100; do
    words="zero train with clocks that differ (4 ranks, drift $drift)"
    # shellcheck disable=SC2086
    CLOCK_AHEAD=3 CLOCK_DRIFT=$drift on 4 sh -c "$apart" "$zero" train $model --stage 3 \
        --log-every $log --steps 12 --fake-nodes 2 --trace t.json --metrics m >out 2>err ||
        complain "$words: failed"
    found 'ranks 4 steps 10-12' t.json m
    pairs=$(sed -n 's/.* pairs \([0-9]*\) .*/\1/p' seen)
    [ "$pairs" -gt 100 ] || complain "$words: $pairs pairs of ranks, expected more than 100"
    awk -v u="$(clock_of clock_uncertainty)" 'BEGIN { exit !(u > 0 && u < 1) }' ||
        complain "$words: expected an uncertainty between 0 and 1 s"
done
unset CLOCK_FROM

# A diverged run has its last steps of all ranks; a stopped one as well.
# shellcheck disable=SC2086
run 3 train $model --steps 8 --trace t.json --lr 100 --lr-min 1 --clip 0 --warmup 0
[ "$code" -ne 0 ] || complain "$words: expected it to diverge"
found 'ranks 3 steps 1-' t.json
says '"note":"the run has failed: these are its last steps"' t.json

# await_steps N: waits until the metrics in m have N steps.
await_steps() {
    await 120 grep -qs "\"step\": *$1," m || complain "$words: no step $1 within two minutes"
}
# shellcheck disable=SC2016 # expanded by the ranks
write_pid='echo $$ >"pid.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"; exec "$0" "$@"'
rm -f m t.json
words='zero train --checkpoint (3 ranks, SIGUSR2)'
# shellcheck disable=SC2086
on 3 sh -c "$write_pid" "$zero" train $model --steps 1000000 --log-every $log --metrics m \
    --checkpoint saved --trace t.json --trace-steps 900000-900003 >out 2>err &
job=$!
await_steps 9
kill -USR2 "$(cat pid.1)"
wait $job
code=$?
exits 75
says 'trace: steps ' out
found 'ranks 3 steps ' t.json m
says '"note":"the run was stopped' t.json

# The watchdog ends a job: the rank that speaks writes its own steps, the last of them not ended. Its
# limit holds for the start of MPI, too, on a machine that may have other work.
rm -f m t.json pid.*
words='zero train --watchdog (3 ranks, one stopped)'
# shellcheck disable=SC2086
on 3 sh -c "$write_pid" "$zero" train $model --steps 1000000 --log-every $log --eval-every 0 \
    --stage 3 --metrics m --trace t.json --watchdog $((10 + 2 * slow)) >out 2>err &
job=$!
await_steps 9
kill -STOP "$(cat pid.1)"
wait $job
code=$?
exits 86
legible err
says ' alone' err
found 'ranks 1 steps ' t.json
says ', not ended","cat":"communication"' t.json
says '"note":"the watchdog has ended the job' t.json

# Wishes that cannot be fulfilled, before anything begins.
alone='expected a step or a range of steps from 1 on'
for steps in 0-1 5-3 x 3- -4 1-2-3 1,2 ''; do
    # shellcheck disable=SC2086
    run 0 train $model --steps 6 --trace t.json --trace-steps=$steps
    exits 2
done
refuses 2 "$alone" 0 train --steps 6 --trace t.json --trace-steps 5-3
refuses 2 'the run has steps 1 to 6' 0 train --steps 6 --trace t.json --trace-steps 5-7
refuses 2 '--trace-steps without --trace' 0 train --trace-steps 5
refuses 2 '--trace-ranks without --trace' 0 train --trace-ranks 0
refuses 2 'such as 0-7,64' 0 train --trace t.json --trace-ranks 2-1
refuses 2 'a job of 2 has ranks 0 to 1' 2 train --trace t.json --trace-ranks 0,2
refuses 2 'found a device' 2 train --trace /dev/null
refuses 2 'cannot be opened as a directory' 2 train --trace nowhere/t.json

# A trace does not take the place of the metrics, which stay, nor of the data.
echo '{"step": 1}' >both
cp both before
refuses 2 '--trace ./both is a file of --metrics as well' 2 train --trace ./both --metrics both
same both before "metrics that a trace would have overwritten"
# Nor do metrics take the place of the data or the options.
yes 'a line of text for the model to read' | head -n 400 >text
cp text before
refuses 2 '--metrics ./text is a file of --data as well' 2 train --data text --metrics ./text
same text before "data that metrics would have overwritten"
refuses 2 '--trace new is a file of --metrics' 2 train --trace new --metrics new
echo '{"steps": 6}' >options.json
refuses 2 '--metrics options.json is a file of --config' 0 train --metrics options.json \
    --config options.json
refuses 2 '--trace options.json is a file of --config' 0 train --trace options.json \
    --config options.json
head -c 8192 /dev/zero | tr '\000' 'a' >letters
refuses 2 '--trace letters is a file of --data' 0 train --trace letters --data letters \
    --tokenizer byte
# shellcheck disable=SC2086
run 2 train $model --steps 1000000 --trace t.json --trace-steps 1-1000000
exits 2
says 'MiB, more than 64' err
says 'give --trace-ranks with fewer of the 2 ranks, or --trace-steps with fewer than 1000000' err

# A directory that goes away costs the trace and nothing else: the run is complete.
mkdir gone
rm -f m
words='zero train --trace gone/t.json (1 rank)'
# shellcheck disable=SC2086
"$zero" train $model --steps 4000 --eval-every 0 --log-every $log --metrics m \
    --trace gone/t.json >out 2>err &
job=$!
await_steps 3
rm -r gone
wait $job
code=$?
exits 3
says 'the run is complete, but it has no trace: ' err
[ "$(digest_of out | wc -c)" -eq 33 ] || complain "$words: expected a digest"

# A name from outside is escaped, and a resumed run has the steps that it makes.
rm -rf saved
name='<b>"&\.json'
# shellcheck disable=SC2086
runs 2 train $model --steps 4 --trace "$name" --checkpoint saved
found 'ranks 2 steps 2-4' "$name"
# shellcheck disable=SC2086
runs 2 train $model --steps 6 --trace t.json --checkpoint saved --resume --trace-steps 3-5
found 'ranks 2 steps 5-5' t.json
# shellcheck disable=SC2086
runs 2 train $model --steps 6 --trace u.json --checkpoint saved --resume --trace-steps 1-2
[ ! -e u.json ] || complain "$words: expected no file"
finish

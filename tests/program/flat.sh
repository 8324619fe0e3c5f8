# A long run stays as it is: STEPS steps of a tiny model on four ranks, with saves, evaluation,
# metrics and states in a file (if there is a disk), and a text at its end.
#
#   memory         resident bytes of each rank, sampled every EVERY seconds (1). The line of least
#                  squares over the samples of the second half of the steps rises by at most 4 bytes
#                  a step: a page in 1000 steps
#   descriptors    the fewest of each rank in the third quarter and in the last one are as many (a
#                  save has some for a moment); two checkpoints stay
#   step time      the median of the last tenth of steps over that of the first: at most LIMIT, 1.02
. "$(dirname "$0")/common.sh"
steps=${STEPS:-100000}
limit=${LIMIT:-1.02}
finds_a_disk
where=
[ -n "$disk" ] && where="--offload $disk"
model="--layers 1 --hidden 16 --heads 2 --seq 8 --data stories:16K --tokenizer byte"
on 4 "$zero" train $model --global-batch 4 --stage 3 --dtype bf16 --steps "$steps" --eval-every 500 \
    --eval-batches 1 --checkpoint saved --save-every 1000 --keep 2 --metrics m \
    --log-every "$steps" --sample 32 $where >run 2>err &
job=$!

# sample: appends the process, the step, resident KiB and descriptors of each rank.
sample() {
    step=$(tail -n 1 m 2>/dev/null | sed -n 's/^{"step":\([0-9]*\),.*/\1/p')
    for pid in $(ranks_of $job); do
        resident=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' /proc/"$pid"/status 2>/dev/null)
        open=$(ls /proc/"$pid"/fd 2>/dev/null | wc -l)
        [ -n "$step" ] && [ -n "$resident" ] && [ "$open" -gt 0 ] &&
            echo "$pid $step $resident $open" >>samples
    done
}
while kill -0 $job 2>/dev/null; do
    sample
    sleep "${EVERY:-1}"
done
wait $job
code=$?
tail -n 3 run >out
words="zero train, $steps steps"
exits 0
grep '^zero: ' err | grep -qv 'warning\|note' && complain "$words: messages"
grep '^  time  ' run

sort -k 1,1n -k 2,2n samples | awk -v steps="$steps" '
    function end() {
        if (pid == "") return
        slope = (n * sxy - sx * sy) / (n * sxx - sx * sx)
        printf "rank %s: %d samples, slope %.6f KiB a step; %d to %d KiB, at least %d, then %d descriptors\n",
            pid, n, slope, low, high, fewest[0], fewest[1]
        if (n < 20 || slope > 0.004 || fewest[0] != fewest[1]) bad = 1
    }
    $2 > steps / 2 && $2 < steps {
        if ($1 != pid) {
            end()
            pid = $1; n = sx = sy = sxx = sxy = 0
            low = high = $3; fewest[0] = fewest[1] = 1e9
        }
        n++; sx += $2; sy += $3; sxx += $2 * $2; sxy += $2 * $3
        if ($3 < low) low = $3
        if ($3 > high) high = $3
        quarter = $2 > 3 * steps / 4
        if ($4 < fewest[quarter]) fewest[quarter] = $4
    }
    END { end(); exit bad || pid == "" }' >slopes || complain "$words: it grows"
cat slopes
[ "$(find saved -mindepth 1 -maxdepth 1 -name 'step-*' | wc -l)" -eq 2 ] || complain "$words: not 2 checkpoints"
[ -z "$disk" ] || [ -z "$(ls -A "$disk")" ] || complain "$words: left on the disk"

sed -n 's/^{"step":\([0-9]*\),.*"step_seconds":\([^,]*\),.*/\1 \2/p' m >times
median() { sort -g | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'; }
first=$(awk -v n="$steps" '$1 <= n / 10 && $1 > 10 { print $2 }' times | median)
last=$(awk -v n="$steps" '$1 > 9 * n / 10 { print $2 }' times | median)
echo "$first $last" | awk -v limit="$limit" '{
    printf "step time: first tenth %.3f ms, last tenth %.3f ms, ratio %.4f\n", 1e3 * $1, 1e3 * $2, $2 / $1
    exit $2 / $1 > limit }' || complain "$words: steps become slower"
echo "metrics: $(wc -c <m) bytes in $(wc -l <m) lines"
finish

# Results beside their run: --quiet, --expect-digest, zero compare, and what the program says about
# options that do not do what one may expect.
. "$(dirname "$0")/common.sh"
length='--steps 8 --eval-every 4'
once="$small --steps 1 --warmup 0 --eval-every 0 --sample 0"

# --quiet changes no bits. It prints the last loss and the digest, and makes no sample.
runs 3 train $small $length --metrics loud --sample 5
cp out loud.out
digest=$(digest_of out)
runs 3 train $small $length --metrics quiet --sample 5 --quiet
sed -n 's/^  \([a-z]*\) .*/\1/p' out >rows
[ "$(echo $(cat rows)) $(wc -l <out)" = 'loss digest 2' ] || complain "$words: expected two lines"
[ "$(digest_of out)" = "$digest" ] || complain "$words: another digest"
same_line=$(grep '^  loss  ' loud.out)
says "$same_line" out
check 3 8 quiet bits_quiet
check 3 8 loud bits_loud
same bits_loud bits_quiet 'a quiet run'
runs 3 train $once --quiet --fake-nodes 2
says '  digest  ' out
refuses 2 'give one, not both' 0 train --quiet --progress live

# Warnings are printed all the same.
refuses 2 'No such' 0 train $small --quiet --config nosuch
if [ -c /dev/full ]; then
    runs 1 train $small --steps 2 --quiet --metrics /dev/full
    says 'zero: warning: --metrics /dev/full: lines are lost: No space left on device' err
fi

# --expect-digest: the run ends with 1 after its summary if the digest is another one.
runs 3 train $small $length --sample 0 --expect-digest "$digest"
runs 3 train $small $length --sample 0 --expect-digest "$(echo "$digest" | tr a-f A-F)" --quiet
other=$(echo "$digest" | tr 0-9a-f 1-9a-f0)
run 3 train $small $length --sample 0 --expect-digest "$other" --metrics unexpected
exits 1
[ "$(grep '^zero: ' err | grep -cv ': warning: ')" -eq 1 ] ||
    complain "$words: expected one message"
says "the digest is $digest, and --expect-digest is $other" err
[ "$(digest_of out)" = "$digest" ] || complain "$words: expected the whole summary"
check 3 8 unexpected bits_unexpected
refuses 2 'expected 32 hexadecimal digits' 0 train --expect-digest 12ab
runs 2 train $tiny --global-batch 4 --steps 2 --checkpoint saved
run 2 train $tiny --global-batch 4 --steps 2 --checkpoint saved --resume --expect-digest "$other"
exits 1
says 'nothing to do' out

# zero compare: 0 for equal results, whatever the settings; 1 for others; 2 for an unreadable file.
differs() { # differs 'TEXT' A B: zero compare says so and ends with 1
    run 0 compare "$2" "$3"
    exits 1
    says "$1" out
    [ "$(grep -c '^zero: ' err)" -eq 1 ] || complain "$words: expected one message"
}
runs 0 compare loud loud
says "equal: 8 steps, digest \"$digest\"" out
says 'the settings are equal' out
says 'not compared, because they are measured: step_seconds, tokens_per_second, elapsed, exposed_seconds' out
runs 3 train $small $length --sample 5 --metrics sharded --stage 3 --bucket 600
runs 0 compare loud sharded
says 'equal: 8 steps' out
for row in '  --stage: 0 | 3' '  --bucket: 1048576 | 600'; do says "$row" out; done
[ "$(grep -c '^  ' out)" -eq 2 ] || complain "$words: expected two settings"
# Thinned metrics: the first step, the last, each third and those that are validated.
runs 3 train $small $length --sample 5 --metrics thin --metrics-every 3
[ "$(sed -n 's/^{"step":\([0-9]*\),.*/\1/p' thin | tr '\n' ' ')" = '1 3 4 6 8 ' ] ||
    complain "$words: other lines: $(cut -c 1-12 thin)"
for pair in 'loud thin' 'thin loud'; do
    runs 0 compare $pair
    says "equal: 5 steps, digest \"$digest\"" out
done
says '  --metrics-every: 3 | 1' out
runs 0 report thin
says 'note: 3 steps between the first and the last have no line' out
says 'median of 3 steps without the first 2' out
sed '4s/"loss":[^,]*/"loss":7/' thin >wrong
differs 'step 4, loss: ' loud wrong
head -n 5 thin >stopped
differs 'step 7, step: 7 | missing' loud stopped
runs 2 train $small $length --sample 5 --metrics other --seed 2
differs 'step 1, loss: ' loud other
says 'loud and other differ from step 1 on, first in loss' err
for row in '  --seed: 1337 | 2' '  ranks: 3 | 2'; do says "$row" out; done
runs 3 train $small --steps 8 --eval-every 8 --sample 5 --metrics seldom
differs 'step 4, val_loss: ' loud seldom
says ' | missing' out
differs 'step 4, val_loss: missing | ' seldom loud
sed '5s/"step_seconds":[^,]*/"step_seconds":7/; 5s/"elapsed":[^,}]*/"elapsed":7/' loud >slower
runs 0 compare loud slower
sed '6s/"grad_norm":[^,]*/"grad_norm":7.5/; 9s/"loss":[^,]*/"loss":7/' loud >wrong
differs 'step 5, grad_norm: ' loud wrong
says ' | 7.5' out
sed "s/$digest/$other/" loud >forged
differs "digest: \"$digest\" | \"$other\"" loud forged
head -n 7 loud >stopped
differs 'step 7, step: 7 | missing' loud stopped
differs 'step 7, step: missing | 7' stopped loud
head -n 9 loud >killed
differs "digest: \"$digest\" | missing" loud killed
runs 0 compare killed killed
says 'equal: 8 steps, and neither run has ended' out
sed 1d loud >nameless
runs 0 compare loud nameless
says 'settings are unknown: nameless does not say what its run was' out
# A run that is killed in step 6 and resumed from step 4 has the results of the whole run.
(head -n 6 loud && head -c 60 loud && echo &&
    sed '1s/"resumed_step":0/"resumed_step":4/; 2,5d' loud) \
    >resumed
runs 0 compare loud resumed
says '  resumed_step: 0 | 4' out
refuses 2 'nosuch: cannot be opened' 0 compare loud nosuch
printf '{"step": 1}\nnot JSON\n{"step": 2}\n' >damaged
run 0 compare loud damaged
exits 2
says 'damaged, line 2' err
: >empty
refuses 2 'empty: expected the metrics of a run' 0 compare empty loud
refuses 2 'zero: compare needs two files of --metrics, or two step files, found 1' 0 compare loud

# Options given more than once.
notes() { # notes N: the last run printed this many
    [ "$(grep -c '^zero: note: ' err)" -eq "$1" ] || complain "$words: expected $1 notes"
}
runs 2 train $once --steps 9 --steps 1 --stage=0 --stage 2
notes 2
says 'note: --steps is given more than once; the last one counts: 1' err
says 'stage 2, fp32, 2 ranks' out
printf '{"steps": 9}' >nine.json
runs 0 train $small --config nine.json --steps 1 --warmup 0 --sample 0
notes 0

# The head says which variable gave a rank several threads.
export OMP_NUM_THREADS=2
runs 0 train $once --metrics m
if "$zero" info --json | grep -q '"threads_in_a_rank": true'; then
    says '  threads       2 per rank, because of OMP_NUM_THREADS; ' out
    says '"threads":2' m
    runs 0 train $once --backend naive
    says 'because of OMP_NUM_THREADS: they change nothing' out
    runs 0 train $once --threads 1
    grep -q '^  threads ' out && complain "$words: expected no line about threads"
fi
unset OMP_NUM_THREADS
runs 0 train $once
grep -q '^  threads ' out && complain "$words: expected no line about threads"
finish

# Directories of checkpoints: which options are refused before training, which files are removed,
# who may read them, and how a broken checkpoint is handled.
. "$(dirname "$0")/common.sh"
tiny="$tiny --global-batch 4"

# flip FILE OFFSET: flips one bit of the byte there.
flip() {
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    printf "\\$(printf %o $((byte ^ 16)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

runs 2 train $tiny --steps 6 --checkpoint good --save-every 2 --keep 9
digest_of out >expected
holds good step-00000002 step-00000004 step-00000006
runs 0 checkpoint verify good
[ "$(grep -c ': OK: step' out)" -eq 3 ] || complain "$words: expected three checkpoints to be OK"

# Wrong use.
touch file
mkdir empty
refuses 2 '--checkpoint' 0 train $tiny --save-every 2
refuses 2 '--checkpoint' 0 train $tiny --resume
refuses 2 'file: cannot be opened as a directory' 0 train $tiny --checkpoint file
refuses 2 'nosuch/deeper: cannot be made' 0 train $tiny --checkpoint nosuch/deeper
refuses 2 'nosuch: cannot be opened as a directory: No such file' 2 \
    train $tiny --checkpoint nosuch --resume
refuses 2 'holds checkpoints up to step 6: continue with --resume' 2 \
    train $tiny --checkpoint good
# A path so long that a checkpoint's name would be cut off is refused.
long=$(awk 'BEGIN { for (i = 0; i < 6; i++) printf "%0200d/", 0 }')
mkdir -p "$long"
refuses 2 'the path has 1206 bytes: expected at most 960' 2 train $tiny --checkpoint "$long"
refuses 2 'the path has 1206 bytes: expected at most' 0 checkpoint verify "$long"
[ ! -e nosuch ] || complain "$words: a mistyped directory was created"
refuses 4 'holds no checkpoint' 0 checkpoint verify empty
refuses 4 'nosuch: cannot be opened' 0 checkpoint show nosuch
refuses 2 'expected one directory' 0 checkpoint verify good empty
refuses 2 "did you mean 'verify'" 0 checkpoint verifi good
refuses 2 'good/step-00000002 is a checkpoint: give the directory that it is in' 2 \
    train $tiny --checkpoint good/step-00000002 --resume
refuses 2 'good/step-00000002 is a checkpoint' 0 train $tiny --checkpoint good/step-00000002
[ "$(ls good/step-00000002 | wc -l)" -eq 4 ] || complain "$words: a checkpoint was written to"
runs 0 train $tiny --steps 1 --checkpoint empty --resume
says 'from nothing: there is no checkpoint yet' out
says 'weights       random, seed' out

# The error names each option that must not change. The output shows those that may.
printf '{"layers": 1, "hidden": 16, "heads": 2, "seq": 8, "data": "stories:16K",
  "tokenizer": "byte", "sample": 0, "eval-every": 0, "global-batch": 4, "steps": 6}' >run.json
# cannot_become OPTION VALUE 'TEXT'
cannot_become() {
    refuses 2 "${1#--} $2 $3" 0 train --config run.json --checkpoint good --resume $1 $2
    says "cannot resume good/step-00000006: " err
}
cannot_become --layers 2 '(saved: 1)'
cannot_become --hidden 32 '(saved: 16)'
cannot_become --heads 4 '(saved: 2)'
cannot_become --seq 16 '(saved: 8)'
cannot_become --seed 1 '(saved: 1337)'
cannot_become --vocab 300 '(saved: 256)'
cannot_become --data stories:17K 'holds other tokens'
runs 2 train $tiny --steps 6 --checkpoint good --resume --lr 0.01 --stage 2
says '--lr 0.01 (saved: ' out
says 'weights       from the checkpoint' out
says '--stage 2 (saved: 0)' out
says 'nothing to do: all 6 steps were done before' out
grep -q '^done\|^  traffic' out && complain "$words: a summary of a run without steps"
digest_of out >resumed
same expected resumed "resumed with nothing left to do"

# Only one run at a time may use a directory. The next one waits, says so once, and continues.
"$zero" train $tiny --steps 100000000 --checkpoint busy --metrics m >/dev/null 2>&1 &
job=$!
until grep -q '"step":' m 2>/dev/null || ! kill -0 $job; do sleep 0.05; done
rm -f err
(
    tries=0
    until grep -q 'waiting up to' err 2>/dev/null || [ $((tries += 1)) -gt 1200 ]; do sleep 0.1; done
    sleep 12 # longer than the watchdog's time, which is long enough for a machine that has other work
    kill -USR2 $job
) &
run 2 train $tiny --steps 1 --checkpoint busy --resume --watchdog 10
exits 2
[ "$(grep -c '^zero: warning: ' err)" -eq 1 ] || complain "$words: expected one line about the wait"
says "zero: warning: busy: waiting up to 30 s for process $job on " err
says ', beyond --steps 1: give --steps ' err
wait $job
[ $? -eq 75 ] || complain "the run in busy did not stop with exit code 75"
wait

# Leftovers of crashed runs are removed at the next start; other files stay.
cp -r good left
mkdir left/.tmp-step-00000008 left/.del-step-00000001 left/.tmp-mine left/step-9
touch left/.tmp-step-00000008/shard left/.del-step-00000001/manifest.json left/notes
runs 2 train $tiny --steps 6 --checkpoint left --resume
holds left .tmp-mine notes step-00000002 step-00000004 step-00000006 step-9

# Leftovers and old checkpoints that cannot be removed stay, with a warning each: a directory in
# them, or a link, which is not followed. They stop no run and no save.
rm -rf left && cp -r good left
mv left/step-00000004 linked && ln -s ../linked left/step-00000004
mkdir left/step-00000002/notes
mkdir -p left/.tmp-step-00000000/notes left/.tmp-step-00000008/notes left/.tmp-step-00000001
ln -s ../linked left/.del-step-00000003
for steps in 7 8 9; do
    runs 2 train $tiny --steps $steps --checkpoint left --resume --keep 1
    says "checkpoint: step $steps in left/" out
    for name in .tmp-step-00000000/notes .tmp-step-00000008/notes .del-step-00000003 step-00000004; do
        [ "$(grep -c "^zero: warning: .* stays: left/$name: cannot be removed: " err)" -eq 1 ] ||
            complain "$words: expected one warning of $name"
    done
done
holds left .del-step-00000002 .del-step-00000003 .tmp-step-00000000 .tmp-step-00000008 \
    step-00000004 step-00000009
diff -r good/step-00000004 linked || complain "$words: files were removed through a link"

# A directory that is moved during a run is noticed, and again when it is back.
moves() { # moves OPTIONS...: starts a run in "place" and moves it to "away" after its first save
    rm -f out err # the run of before has written there that it saved
    "$zero" train $tiny --steps 100000000 --log-every 100000000 --save-every 50 --checkpoint place \
        "$@" >out 2>err &
    job=$!
    await 60 grep -qs '^checkpoint: step 50 ' out || complain "no checkpoint in place"
    mv place away || kill -9 $job
}
moves
await 60 grep -q 'of step .* failed: place: nothing is there any more: ' err ||
    complain "a moved directory: expected a warning"
saves=$(grep -c '^checkpoint: step ' out)
saves_again() { [ "$(grep -c '^checkpoint: step ' out)" -gt "$saves" ]; }
mv away place
await 60 saves_again || complain "a moved directory that is back: expected a checkpoint"
# Later steps that are not this run's cost none of its own, and stay.
mkdir place/step-99999998 place/step-99999999
saves=$(grep -c '^checkpoint: step ' out)
await 60 saves_again || complain "later steps of others: expected a checkpoint"
kill -USR2 $job
wait $job
[ $? -eq 75 ] || complain "a moved directory that is back: expected exit code 75"
rmdir place/step-99999998 place/step-99999999 || complain "later steps of others are gone"
[ "$(ls place | wc -l)" -eq 2 ] || complain "beside later steps: expected 2 of this run, not $(ls place)"
verifies place
last=$(sed -n 's/^checkpoint: step .* in \(place[^,]*\),.*/\1/p' out | tail -n 1)
[ -d "$last" ] || complain "$last was announced, and is not there"
rm -r place
moves --save-required
wait $job
code=$?
words="zero train --save-required in a directory that was moved"
exits 3
says 'failed: place: nothing is there any more: the directory that was opened by this path' err
rm -r away

# Checkpoints are private under any umask with which MPI itself can start.
for mask in 000 022; do
    (umask $mask && run 2 train $tiny --steps 2 --save-every 1 --checkpoint "dir$mask" &&
        [ $code -eq 0 ]) || complain "umask $mask: no checkpoint"
    find "dir$mask" -type d ! -perm 0700 -o -type f ! -perm 0600 >open
    [ ! -s open ] || complain "umask $mask: not private: $(cat open)"
    [ "$(find "dir$mask" -type f | wc -l)" -eq 8 ] || complain "umask $mask: files are missing"
done

# A broken checkpoint ends the run with an error that names it. With --resume-older the run goes
# back to the one before and saves that step again.
for file in manifest.json:300 tokenizer.json:20 shard-00001-of-00002.safetensors:9 \
    shard-00001-of-00002.safetensors:30000; do
    rm -rf hurt && cp -r good hurt
    flip "hurt/step-00000006/${file%:*}" "${file#*:}"
    refuses 4 "step-00000006/${file%:*}" 2 train $tiny --steps 8 --checkpoint hurt --resume
    says '--resume-older goes back to step 4' err
    run 0 checkpoint verify hurt
    exits 4
    says 'step-00000006: broken: ' out
    [ "$(grep -c ': OK: step' out)" -eq 2 ] || complain "$words: expected two checkpoints to be OK"
    says "step-00000006/${file%:*}" err
    cp -r hurt/step-00000006 before
    runs 1 train $tiny --micro-batch 2 --steps 6 --stage 3 --checkpoint hurt --resume-older --keep 9
    says 'going back to step 4' err
    holds hurt broken-step-00000006 step-00000002 step-00000004 step-00000006
    diff -r before hurt/broken-step-00000006 || complain "$words: the broken checkpoint was changed"
    rm -r before
    runs 0 checkpoint verify hurt
done
says 'step-00000006: OK' out
refuses 4 'shard-00001-of-00002.safetensors: h.0.' 0 checkpoint verify hurt/broken-step-00000006

# When all checkpoints are broken, --resume-older fails too.
for step in 2 4; do flip "good/step-0000000$step/manifest.json" 100; done
flip good/step-00000006/shard-00000-of-00002.safetensors 40000
refuses 4 'shard-00000-of-00002.safetensors: ' 2 train $tiny --steps 6 --checkpoint good --resume
run 2 train $tiny --steps 6 --checkpoint good --resume-older
exits 4
says 'and there is no older checkpoint' err
[ "$(ls good | wc -l)" -eq 3 ] || complain "$words: a checkpoint was moved, though none was loaded"

# A run that is refused because --resume was forgotten keeps the old metrics.
runs 1 train $tiny --steps 2 --checkpoint more --metrics m
cp m before
refuses 2 'continue with --resume' 2 train $tiny --steps 4 --checkpoint more --metrics m
same before m "the metrics after a run that was refused"

# A run that finds all steps done leaves its metrics as they are.
runs 2 train $tiny --steps 2 --checkpoint more --resume --metrics m
says 'nothing to do: all 2 steps were done before' out
grep '^checkpoint: ' out && complain "$words: it saved again what is there"
same before m "the metrics after a run with nothing left to do"

# A metrics file that ends in half a line is continued.
head -c -400 m >cut && mv cut m
runs 1 train $tiny --steps 4 --checkpoint more --resume --metrics m
[ "$(sed -n 's/^{"step":\([34]\),.*}$/\1/p' m | tr '\n' ' ')" = "3 4 " ] ||
    complain "$words: expected a line each for steps 3 and 4"
finish

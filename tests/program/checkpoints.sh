# Directories of checkpoints: what is refused before anything is trained, what is cleared away,
# who may read them, and what becomes of one that is broken.
. "$(dirname "$0")/common.sh"
tiny="--layers 1 --hidden 16 --heads 2 --seq 8 --data stories:16K --tokenizer byte --sample 0
    --eval-every 0 --global-batch 4"

# flip FILE OFFSET: one bit of it.
flip() {
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    printf "\\$(printf %o $((byte ^ 16)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

digest() {
    sed -n 's/^  digest *//p' out
}

runs 2 train $tiny --steps 6 --checkpoint good --save-every 2 --keep 9
digest >expected
[ "$(ls -A good | tr '\n' ' ')" = "step-00000002 step-00000004 step-00000006 " ] ||
    complain "$words: $(ls -A good) are there"
runs 0 checkpoint verify good
[ "$(grep -c ': OK: step' out)" -eq 3 ] || complain "$words: expected three that are OK"

# Wrong use.
touch file
mkdir empty
refuses 2 '--checkpoint' 0 train $tiny --save-every 2
refuses 2 '--checkpoint' 0 train $tiny --resume
refuses 2 'file: cannot be opened as a directory' 0 train $tiny --checkpoint file
refuses 2 'nosuch/deeper: cannot be made' 0 train $tiny --checkpoint nosuch/deeper
refuses 2 'nosuch: cannot be opened as a directory: No such file' 2 train $tiny --checkpoint nosuch \
    --resume
refuses 2 'holds checkpoints up to step 6: continue with --resume' 2 train $tiny \
    --checkpoint good
# Names of checkpoints come after it, and a path that was cut would be another one.
long=$(awk 'BEGIN { for (i = 0; i < 6; i++) printf "%0200d/", 0 }')
mkdir -p "$long"
refuses 2 'the path has 1206 bytes: expected at most 960' 2 train $tiny --checkpoint "$long"
refuses 2 'the path has 1206 bytes: expected at most' 0 checkpoint verify "$long"
[ ! -e nosuch ] || complain "$words: made a directory that was only mistyped"
refuses 4 'holds no checkpoint' 0 checkpoint verify empty
refuses 4 'nosuch: cannot be opened' 0 checkpoint show nosuch
refuses 2 'expected one directory' 0 checkpoint verify good empty
refuses 2 "did you mean 'verify'" 0 checkpoint verifi good
refuses 2 'good/step-00000002 is a checkpoint: give the directory that it is in' 2 train $tiny \
    --checkpoint good/step-00000002 --resume
refuses 2 'good/step-00000002 is a checkpoint' 0 train $tiny --checkpoint good/step-00000002
[ "$(ls good/step-00000002 | wc -l)" -eq 4 ] || complain "$words: wrote into a checkpoint"
runs 0 train $tiny --steps 1 --checkpoint empty --resume
says 'from nothing: there is no checkpoint yet' out
says 'weights       random, seed' out

# What must not change is named, and what may change is shown.
printf '{"layers": 1, "hidden": 16, "heads": 2, "seq": 8, "data": "stories:16K", "tokenizer": "byte",
  "sample": 0, "eval-every": 0, "global-batch": 4, "steps": 6}' >run.json
for change in '--layers 2:--layers 2 (saved: 1)' '--hidden 32:--hidden 32 (saved: 16)' \
    '--heads 4:--heads 4 (saved: 2)' '--seq 16:--seq 16 (saved: 8)' '--seed 1:--seed 1 (saved: 1337)' \
    '--vocab 300:--vocab 300 (saved: 256)' '--data stories:17K:--data stories:17K holds other tokens'; do
    text=${change##*:--}
    refuses 2 "$text" 0 train --config run.json --checkpoint good --resume ${change%%:--*}
    says 'these options differ from the saved run' err
done
runs 2 train $tiny --steps 6 --checkpoint good --resume --lr 0.01 --stage 2
says '--lr 0.01 (saved: ' out
says 'weights       from the checkpoint' out
says '--stage 2 (saved: 0)' out
says 'nothing to do: all 6 were done before' out
digest >resumed
same expected resumed "resumed with nothing left to do"

# One run at a time.
"$zero" train $tiny --steps 1000000 --checkpoint busy --metrics m >/dev/null 2>&1 &
job=$!
until [ -s m ] || ! kill -0 $job; do sleep 0.05; done
refuses 2 'busy: another process writes checkpoints there' 2 train $tiny --checkpoint busy --resume
kill -USR2 $job
wait $job
[ $? -eq 75 ] || complain "the run in busy did not stop with 75"

# What dead runs have left goes at the next start; what is somebody else's stays.
cp -r good left
mkdir left/.tmp-step-00000008 left/.del-step-00000001 left/.tmp-mine left/step-9
touch left/.tmp-step-00000008/shard left/.del-step-00000001/manifest.json left/notes
runs 2 train $tiny --steps 6 --checkpoint left --resume
[ "$(ls -A left | LC_ALL=C sort | tr '\n' ' ')" = \
    ".tmp-mine notes step-00000002 step-00000004 step-00000006 step-9 " ] ||
    complain "$words: $(ls -A left) are there"

# Private, whatever the umask; MPI itself does not start where its files cannot be read.
for mask in 000 022; do
    (umask $mask && on 2 "$zero" train $tiny --steps 2 --save-every 1 --checkpoint "dir$mask" >out 2>err) ||
        complain "umask $mask: no checkpoint"
    find "dir$mask" -type d ! -perm 0700 -o -type f ! -perm 0600 >open
    [ ! -s open ] || complain "umask $mask: not private: $(cat open)"
    [ "$(find "dir$mask" -type f | wc -l)" -eq 8 ] || complain "umask $mask: files are missing"
done

# A broken one ends the run and is named; asked to, the run goes back and saves that step again.
for file in manifest.json:300 tokenizer.json:20 shard-00001-of-00002.safetensors:9 \
    shard-00001-of-00002.safetensors:30000; do
    rm -rf hurt && cp -r good hurt
    flip "hurt/step-00000006/${file%:*}" "${file#*:}"
    refuses 4 "step-00000006/${file%:*}" 2 train $tiny --steps 8 --checkpoint hurt --resume
    says '--resume-older goes back to step 4' err
    run 0 checkpoint verify hurt
    [ $code -eq 4 ] || complain "$words: exit code $code, expected 4"
    says 'step-00000006: broken: ' out
    [ "$(grep -c ': OK: step' out)" -eq 2 ] || complain "$words: expected two that are OK"
    says "step-00000006/${file%:*}" err
    cp -r hurt/step-00000006 before
    runs 1 train $tiny --micro-batch 2 --steps 6 --stage 3 --checkpoint hurt --resume-older --keep 9
    says 'going back to step 4' err
    [ "$(ls -A hurt | tr '\n' ' ')" = \
        "broken-step-00000006 step-00000002 step-00000004 step-00000006 " ] ||
        complain "$words: $(ls -A hurt) are there"
    diff -r before hurt/broken-step-00000006 || complain "$words: what is broken was not kept"
    rm -r before
    runs 0 checkpoint verify hurt
done
says 'step-00000006: OK' out
refuses 4 'shard-00001-of-00002.safetensors: h.0.' 0 checkpoint verify hurt/broken-step-00000006

# None is left; not even by going back.
for step in 2 4; do flip "good/step-0000000$step/manifest.json" 100; done
flip good/step-00000006/shard-00000-of-00002.safetensors 40000
refuses 4 'shard-00000-of-00002.safetensors: ' 2 train $tiny --steps 6 --checkpoint good --resume
run 2 train $tiny --steps 6 --checkpoint good --resume-older
[ $code -eq 4 ] || complain "$words: exit code $code, expected 4"
says 'and there is no older checkpoint' err
[ "$(ls good | wc -l)" -eq 3 ] || complain "$words: something was moved, though nothing was loaded"

# What the run has written down stays when --resume is forgotten.
runs 1 train $tiny --steps 2 --checkpoint more --metrics m
cp m before
refuses 2 'continue with --resume' 2 train $tiny --steps 4 --checkpoint more --metrics m
same before m "the metrics, after a run that was refused"

# A metrics file that ends in half a line is gone on with.
head -c 400 m >cut && mv cut m
runs 1 train $tiny --steps 4 --checkpoint more --resume --metrics m
[ "$(sed -n 's/^{"step":\([34]\),.*}$/\1/p' m | tr '\n' ' ')" = "3 4 " ] ||
    complain "$words: steps 3 and 4 have no lines of their own"
finish

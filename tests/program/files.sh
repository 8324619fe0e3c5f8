# Files that are written: never in the place of what is read, by one run at a time, and through nobody's link.
# SHIM is the library of storage_shim.c.
. "$(dirname "$0")/common.sh"
bare="--layers 1 --hidden 16 --heads 2 --seq 8 --eval-every 0 --sample 0 --global-batch 4"
tiny="$bare --data stories:16K --tokenizer byte"

# ---- what is read is not overwritten, nor joined by what the next run would read ----
yes 'a line of text for the model to read' | head -n 200 >line
mkdir data data/deep data/.hidden
cp line data/a.txt
cp line data/deep/b.txt
ln data/a.txt second
ln -s data/deep/b.txt third
runs 0 train $bare --steps 2 --checkpoint ck --data line
runs 0 checkpoint export ck --to model
cp -r data data.before
cp -r ck ck.before
cp -r model model.before
for option in --metrics --trace; do
    for name in data/a.txt ./data/deep/b.txt second third "$PWD/data/a.txt"; do
        refuses 2 "$option $name is a file of --data as well" 0 train $bare --data data $option $name
    done
    refuses 2 "$option third is a file of --data as well" 2 train $bare --data 'data/*' $option third
    refuses 2 "$option second is a file of --val-data as well" 0 train $bare --data line --val-data data \
        $option second
    for name in data/new data/deep/new; do
        refuses 2 "$option $name would be read as --data the next time" 0 train $bare --data data \
            $option $name
        refuses 2 "would be read as --data the next time" 0 train $bare --data 'd*' $option $name
    done
    refuses 2 "$option data/new.txt would be read as --data" 0 train $bare --data 'data/*.txt' \
        $option data/new.txt
    for name in model/config.json model/tokenizer.json model/model.safetensors; do
        refuses 2 "$option $name is a file of --init-from as well" 0 train $bare --init-from model \
            --data line $option $name
    done
    refuses 2 "$option model/vocab.json would be read as --tokenizer" 0 train $bare --data line \
        --tokenizer model $option model/vocab.json
    refuses 2 "$option ck/step-00000002/manifest.json is a file of --checkpoint" 0 train $bare \
        --data line --checkpoint ck --resume $option ck/step-00000002/manifest.json
done
refuses 2 '--checkpoint data/ck would be read as --data the next time' 0 train $bare --data data \
    --checkpoint data/ck
refuses 2 '--checkpoint data/ would be read as --data' 2 train $bare --data data --checkpoint data/
refuses 2 '--out data/study would be read as --data' 0 sweep --ranks 1 --weak --micro-batch 1 \
    --data data --out data/study
refuses 2 '--to ck/step-00000002/gpt2 would be read as the checkpoint' 0 checkpoint export ck \
    --to ck/step-00000002/gpt2
refuses 2 '--to ck/step-00000009/ would be read as a checkpoint' 0 checkpoint export ck \
    --to ck/step-00000009/
for name in data ck model; do
    diff -r $name.before $name || complain "$name was changed by what was refused"
done
# What is hidden, or beside the files that are read, is nobody's data.
runs 0 train $bare --steps 2 --data data --metrics data/.hidden/m --trace data/.t.json
runs 0 train $bare --steps 2 --data 'data/*.txt' --metrics data/m.jsonl --trace data/t.json
runs 0 train $bare --steps 2 --data line --metrics ck/m.jsonl --checkpoint ck --resume
runs 0 checkpoint export ck --to ck/gpt2
rm -r data ck

# ---- one run at a time ----
# waits OPTIONS...: while a run writes its files, a second one with these options waits, says so once, and
# begins when the first one is gone.
waits() {
    words="zero train $* beside another run"
    rm -f m t.json out err
    "$zero" train $tiny --steps 100000000 --metrics m --trace t.json >/dev/null 2>&1 &
    first=$!
    await 60 grep -qs '"step":' m || complain "$words: no step in the metrics"
    on 2 "$zero" train $tiny --steps 2 "$@" >out 2>err &
    second=$!
    await 60 grep -qs 'waiting up to 30 s for another process, which writes' err || complain "$words: does not wait"
    [ ! -s out ] || complain "$words: expected nothing on stdout"
    lines=$(wc -l <m)
    more_lines() { [ "$(wc -l <m)" -gt "$lines" ]; }
    await 60 more_lines || complain "$words: the first run writes no lines any more"
    [ "$(grep -c '"run":' m)" -eq 1 ] || complain "$words: two runs have written to m"
    [ -e .t.json.tmp ] || complain "expected what was begun of t.json"
    kill -KILL $first
    wait $first
    wait $second
    code=$?
    legible err
    exits 0
    [ "$(grep -c '^zero: warning: .*waiting' err)" -eq 1 ] || complain "$words: expected one line about the wait"
}
waits --metrics m
says 'zero: warning: --metrics m: waiting up to 30 s for another process, which writes it' err
check 2 2 m bits
waits --trace t.json
says 'zero: warning: --trace t.json: waiting up to 30 s for another process, which writes it' err
is_trace t.json
"$zero" lesson 1 --save answers </dev/null >/dev/null 2>&1
[ -s answers ] || complain "zero lesson 1 --save answers: no file"
{
    flock -x 9 2>/dev/null && refuses 3 'another lesson writes to it' 0 lesson 1 --save answers
} 9>>answers

# What a killed run leaves stops nobody, whatever its number was.
rm m
"$zero" train $tiny --steps 100000000 --metrics m --trace t.json >/dev/null 2>&1 &
job=$!
await 60 grep -qs '"step":' m || complain "no step in the metrics"
kill -KILL $job
wait $job
[ -e .t.json.tmp ] || complain "expected what was begun of t.json"
runs 0 train $tiny --steps 2 --metrics m --trace t.json
[ ! -e .t.json.tmp ] || complain "$words: a leftover stays"
runs 0 report m --out page.html
cp page.html .page.html.tmp
runs 0 report m --out page.html
[ ! -e .page.html.tmp ] || complain "$words: a leftover stays"
# Devices are everybody's.
"$zero" train $tiny --steps 100000 --metrics /dev/null >/dev/null 2>&1 &
job=$!
runs 0 train $tiny --steps 2 --metrics /dev/null
kill -KILL $job
wait $job

# ---- two users ----
if [ "$(id -u)" -ne 0 ] || ! setpriv --reuid=65534 --clear-groups true 2>/dev/null; then
    echo "not tried: two users, which needs root and setpriv"
    finish
fi
chmod 755 . # the other user comes here
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
mkdir own own/dir theirs
echo secret >own/secret
echo inside >own/dir/step-00000001
chmod 751 own/dir
chmod 640 own/secret
chown 65534:65534 theirs
state() { # prints what is in own/
    find own | LC_ALL=C sort | while read -r name; do stat -c '%n %a %u %g %h %F' "$name"; done
    cat own/secret own/dir/*
}
state >before
untouched() { # untouched: after the last run
    state >after
    same before after "$words: what another user's link leads to"
}
# traps NAMES...: links of the other user at these names, to a file and to a directory.
traps() {
    for name in "$@"; do
        case $name in
            */) as_nobody ln -sfn "$PWD/own/dir" "theirs/${name%/}" ;;
            *) as_nobody ln -sfn "$PWD/own/secret" "theirs/$name" ;;
        esac
    done
}
traps m t.json .t.json.tmp s.json .s.json.tmp page .page.tmp answers gpt2/ .tmp-gpt2/
refuses 2 'it is a link in a directory that other users can change' 0 train $tiny --metrics theirs/m
untouched
refuses 2 'found a symbolic link' 0 train $tiny --trace theirs/t.json
untouched
refuses 2 'found a symbolic link' 0 simulate --ranks 2 --stage 1 --network 1us,1G --flops 1T \
    --trace theirs/s.json
untouched
refuses 2 'found a symbolic link' 0 report m --out theirs/page
untouched
refuses 2 'it is a link in a directory' 0 lesson 1 --save theirs/answers
untouched
runs 0 train $tiny --steps 2 --checkpoint kept
refuses 2 'theirs/gpt2 exists' 0 checkpoint export kept --to theirs/gpt2
untouched
rm theirs/gpt2 theirs/t.json theirs/page theirs/s.json
run 0 checkpoint export kept --to theirs/gpt2
exits 3
says 'theirs/.tmp-gpt2: cannot be removed: it is a symbolic link' err
untouched
# The temporary names alone stop nothing.
runs 0 train $tiny --steps 2 --trace theirs/t.json
is_trace theirs/t.json
untouched
runs 0 report m --out theirs/page
untouched

# Checkpoints: every name that a run makes or removes there.
mkdir theirs/ck
chown 65534:65534 theirs/ck
traps ck/.lock ck/.tmp-step-00000000/ ck/.tmp-step-00000001/ ck/.tmp-step-00000002/ \
    ck/.del-step-00000001/ ck/step-00000001/
run 0 train $tiny --steps 3 --save-every 1 --keep 1 --checkpoint theirs/ck --resume
untouched
rm theirs/ck/step-00000001
runs 0 train $tiny --steps 3 --save-every 1 --keep 1 --checkpoint theirs/ck
untouched
verifies theirs/ck
runs 2 train $tiny --steps 4 --save-every 1 --keep 1 --checkpoint theirs/ck --resume
untouched
# The other user is quick: a link takes the place of what was just made, before anything is done to it.
mkdir theirs/quick
chown 65534:65534 theirs/quick
quick() { # quick CALL: a run whose call of that number is swapped; its calls are in the file `log`
    rm -rf theirs/quick log log.data
    mkdir theirs/quick
    chown 65534:65534 theirs/quick
    LD_PRELOAD="$SHIM" SHIM_DIR=theirs/quick SHIM_LOG=log SHIM_KIND=swap SHIM_SWAP="$PWD/own/dir" \
        SHIM_AT="$1" "$zero" train $tiny --steps 3 --save-every 1 --keep 9 --checkpoint theirs/quick \
        >out 2>err
    code=$?
}
for turn in 1 2 3; do
    words="zero train --checkpoint theirs/quick, whose directory number $turn is swapped for a link"
    quick 0
    quick "$(awk -v turn=$turn '$3 == "mkdir" && ++n == turn { print $2 }' log)"
    grep -q ' swap$' log || complain "$words: it was not"
    grep -q '^zero: .*cannot be opened as a directory' err || complain "$words: expected a message"
    untouched
done

# Studies: logs and metrics are made anew, and what others may change is said.
sweep="sweep --ranks 1 --weak --micro-batch 1 --steps 4 --warm-up 1 --layers 1 --hidden 16 --heads 2 --seq 8
    --data stories:16K --tokenizer byte"
mkdir theirs/study theirs/linked
chown 65534:65534 theirs/study theirs/linked
traps linked/points/
echo '{"study": 1}' >theirs/linked/study.json
run 0 $sweep --out theirs/linked
exits 4
untouched
as_nobody mkdir theirs/study/points
as_nobody ln -s "$PWD/own/secret" theirs/study/points/stage0-ranks1.log
runs 0 $sweep --out theirs/fresh
point=$(basename theirs/fresh/points/*.log .log)
echo '{"study": 1}' >theirs/study/study.json
chown 65534:65534 theirs/study/study.json
traps "study/points/$point.log" "study/points/$point.jsonl"
runs 0 $sweep --out theirs/study
says 'zero: warning: theirs/study belongs to another user, who can change what is in it' err
[ ! -L "theirs/study/points/$point.log" ] || complain "$words: the log is a link"
untouched
finish

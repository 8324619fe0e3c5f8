# Odd options that are legal.
. "$(dirname "$0")/common.sh"
quick="--data stories:64K --seq 8 --eval-every 0 --sample 0"

runs 0 train --data stories:64K --layers 1 --hidden 1 --heads 1 --seq 1 --steps 1 --sample 3
runs 0 train $quick --steps=1 --warmup 0 --log-every 7 --clip 0 --lr 0
[ "$(grep -c '^step' out)" -eq 1 ] || complain "$words: expected one line for the one step"
grep -q -e '^----' -e validation out && complain "$words: unexpected sample or evaluation"
runs 0 train --data stories:64K --seq 8 --steps 2 --sample 20 --tokenizer byte --vocab 1000 \
    --dropout 0.1
runs 0 train $quick --steps 2 --bucket 1048576 --threads 2
runs 0 train $quick --steps 2 --layers 1 --hidden 16 --heads 2 --backend naive
says 'naive backend' out
runs 5 train $quick --steps 2 --micro-batch 2
says '10 sequences = 5 x 1 x 2 (ranks x microbatches x sequences)' out
runs 8 train $quick --steps 2 --global-batch 32 --micro-batch 2
says '32 sequences = 8 x 2 x 2' out

# Without lines the head and the summary remain.
runs 2 train $quick --steps 2 --progress none --metrics m
check 2 2 m bits
grep -q '^step' out && complain "$words: lines of progress"
says '  digest ' out

# A run whose metrics cannot be written continues with a warning.
if [ -c /dev/full ]; then
    runs 0 train $quick --steps 2 --metrics /dev/full
    [ "$(grep -c 'warning: --metrics' err)" -eq 1 ] || complain "$words: expected one warning"
fi

# A standard output that is full ends a command at the first write, with the reason.
full() { # full N words...
    n=$1
    shift
    words="zero $* >/dev/full ($n ranks)"
    : >out
    on "$n" "$zero" "$@" >/dev/full 2>err
    code=$?
    exits 3
    says 'zero: the standard output cannot be written: No space left on device' err
}
if [ -c /dev/full ]; then
    full 0 --help
    full 0 plan
    full 0 train $small --steps 1000000
fi

# With closed standard descriptors nothing is printed into the files of a library.
"$zero" train $quick --steps 1000000 --log-every 1000000 --metrics closed <&- >&- 2>&- &
await 60 test -s closed || complain "closed descriptors: the run does not begin"
for fd in 0 1 2; do
    [ "$(readlink /proc/$!/fd/$fd)" = /dev/null ] || [ ! -d /proc/$! ] ||
        complain "closed descriptors: $fd leads to $(readlink /proc/$!/fd/$fd)"
done
kill $!
wait $!

# Metrics into a pipe: refused without a reader, and complete with one. A reader that goes away
# costs lines and not the run.
mkfifo pipe
refuses 2 '--metrics pipe: nobody reads this pipe: start its reader first' 0 \
    train $quick --steps 2 --metrics pipe
timeout 60 cat pipe >m &
runs 2 train $quick --steps 2 --metrics pipe
wait $!
check 2 2 m bits
timeout 60 head -n 3 pipe >m &
runs 0 train $quick --steps 300 --metrics pipe
[ "$(grep -c 'warning: --metrics pipe: lines are lost: Broken pipe' err)" -eq 1 ] ||
    complain "$words: expected one warning"

# A reader that closes the pipe early ends the run without a crash.
("$zero" train $small --steps 1000000 --log-every 1 2>err; echo $? >code) | head -n 1 >out
grep -q '^zero' out || complain "a closed pipe: no first line"
[ "$(cat code)" -ne 0 ] || complain "a closed pipe: exit code 0"
grep -q -e Sanitizer -e Segmentation err && complain "a closed pipe: the program crashed"
finish

#!/bin/sh
# Cost of checkpoints: saving and verifying beside a plain copy of the same length, and the vote of
# all ranks after each step on whether one of them was asked to save.
#
#     sh bench/checkpoint.sh [BUILD FOLDER [ROUNDS [DIRECTORY]]]   (build, 5, a new one in /tmp)
#
# GPT-2 (124 M parameters, 1.4 GiB) on two ranks. In each round dd writes and syncs a file of the
# checkpoint's length, a run saves a checkpoint, cat reads it, `zero checkpoint verify` reads and
# checks it, and four ranks load it at stages 3 and 0. Beside them four processes of dd read as
# much into memory as the ranks hold: a quarter each, and all of it each. All read from the page
# cache, each after REST seconds (20): a virtual machine gives memory that rests back to its host,
# and fetches it at half the speed. Medians over the rounds, of ratios too. The last line has the
# bytes that the ranks read to load it, over the checkpoint's: 1.00 if each is read once.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../build}
rounds=${2:-5} rest=${REST:-20}
program=$(cd "$build" && pwd)/zero
work=${3:-$(mktemp -d)}
trap 'rm -rf "$work/save" "$work/plain" "$work/out" "$work/err" "$work"/reads.*; rmdir "$work" 2>/dev/null' EXIT
trap 'exit 1' INT TERM
export OPENBLAS_NUM_THREADS=1
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

train() {
    mpirun -n 2 --map-by :OVERSUBSCRIBE --bind-to none \
        "$program" train --sample 0 --eval-every 0 "$@"
}

now() { date +%s%N; }

seconds() { # seconds COMMAND...: the time that it takes
    began=$(now)
    "$@" >/dev/null 2>"$work/err" || { cat "$work/err" >&2; exit 1; }
    awk -v a="$began" -v b="$(now)" 'BEGIN { printf "%.4f", (b - a) / 1e9 }'
}

median() { sort -g | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'; }

column() { awk -v n="$1" '{ print $n }' "$work/out" | median; }

write_plain() { dd if=/dev/zero of="$work/plain" bs=4M count="$blocks" conv=fsync; }
read_all() { cat "$work"/save/step-*/*.safetensors; }
verify() { "$program" checkpoint verify "$work/save"; }

# hold PARTS: four processes of dd run at once. The plain file is cut into PARTS, and each process
# reads one part into memory.
hold() {
    for i in 0 1 2 3; do
        dd if="$work/plain" bs=$(((blocks << 22) / $1)) skip=$((i % $1)) count=1 iflag=fullblock of=/dev/null &
    done
    wait
}

# seconds_of_loading STAGE: on four ranks, as the run prints them; their reads go to $work/reads.
seconds_of_loading() {
    rm -f "$work"/reads.*
    mpirun -n 4 --map-by :OVERSUBSCRIBE --bind-to none sh -c '
        reads=$1; shift; "$@"; sed -n "s/^rchar: //p" /proc/$$/io >"$reads.$$"' sh "$work/reads" \
        "$program" train --resume --checkpoint "$work/save" --stage "$1" --global-batch 4 --eval-every 0 \
        --sample 0 2>"$work/err" | sed -n 's/^  resumed .* loaded in \([0-9.]*\) s$/\1/p' | grep . ||
        { cat "$work/err" >&2; exit 1; }
}

seconds_of_saving() { # as the run prints them
    train --model gpt2 --vocab 50257 --seq 64 --micro-batch 1 --steps 1 --stage 1 \
        --data stories:256K --checkpoint "$work/save" 2>"$work/err" |
        sed -n 's/^checkpoint: .*, \([0-9.]*\) s$/\1/p' | grep . ||
        { cat "$work/err" >&2; exit 1; }
}

short_steps() {
    train --layers 2 --hidden 48 --heads 3 --seq 32 --global-batch 4 --steps 4000 \
        --log-every 100000 --data stories:64K "$@"
}

blocks=354 # of 4 MiB: 1416 MiB, the length of the checkpoint
: >"$work/out"
for _ in $(seq "$rounds"); do
    rm -rf "$work/save" "$work/plain"
    plain=$(seconds write_plain)
    save=$(seconds_of_saving)
    cat=$(seconds read_all)
    check=$(seconds verify)
    sleep "$rest"
    load3=$(seconds_of_loading 3)
    sleep "$rest"
    load0=$(seconds_of_loading 0)
    sleep "$rest"
    hold3=$(seconds hold 4)
    sleep "$rest"
    hold0=$(seconds hold 1)
    echo "$plain $save $cat $check $load3 $hold3 $load0 $hold0" |
        awk '{ print $1, $2, $2 / $1, $3, $4, $4 / $3, $5, $6, $5 / $6, $7, $8, $7 / $8, $5 / $3, $7 / $3 }' \
            >>"$work/out"
done
echo "seconds for $((4 * blocks)) MiB, median of $rounds rounds"
echo "  write: dd with fsync $(column 1), save $(column 2), ratio $(column 3)"
echo "  read:  cat $(column 4), verify $(column 5), ratio $(column 6)"
echo "  load:  stage 3: dd to memory $(column 8), load $(column 7), ratio $(column 9); to cat $(column 13)"
echo "         stage 0: dd to memory $(column 11), load $(column 10), ratio $(column 12); to cat $(column 14)"
echo "  bytes read at stage 0: $(cat "$work"/reads.* | awk -v all="$(du -sb "$work"/save/step-* | cut -f 1)" '
    { n += $1 } END { printf "%.4f", n / all }') of the checkpoint's"

: >"$work/out"
for _ in $(seq "$rounds"); do
    rm -rf "$work/save"
    without=$(seconds short_steps)
    with=$(seconds short_steps --checkpoint "$work/save")
    echo "$without $with" | awk '{ print $1, $2, $2 / $1, ($2 - $1) / 4000 * 1e6 }' >>"$work/out"
done
echo "4000 steps of a model of 83 K parameters, median of $rounds rounds"
echo "  without --checkpoint $(column 1) s, with it $(column 2) s, ratio $(column 3)"
echo "  vote: $(column 4) microseconds per step"

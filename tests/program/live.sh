# The live line: on the user's own terminal and nowhere else, within the window, and gone before any
# other output. script(1) makes the pseudo-terminals.
. "$(dirname "$0")/common.sh"
script -qec true /dev/null </dev/null >out 2>err || skip "there is no script(1) with -e and -c"
quick="--layers 1 --hidden 32 --heads 2 --seq 32 --data stories:64K --tokenizer byte --sample 0
    --global-batch 6"
TERM=xterm
export TERM
unset CI

# terminal COLUMNS 'COMMAND': runs it on a pseudo-terminal, with the same standard input. `out` gets
# what a user would see: no carriage returns before line ends, drawings as "<step ...>" and erasures
# as "<>"; `err` is empty.
terminal() {
    words="$2 (in $1 columns)"
    script -qec "stty cols $1 rows 24; $2" /dev/null >shown
    code=$?
    : >err
    tr '\r\033<>' '\001\002()' <shown |
        sed "s/$one\(step [^$one$two]*\)$two\[K$one/<\1>/g; s/$one$two\[K/<>/g; s/$one\$//" >out
}
one=$(printf '\001')
two=$(printf '\002')

# is_clean: each drawing of the last command was redrawn or erased before anything else came.
is_clean() {
    grep -q '<step [^<>]*>\([^<]\|$\)' out && complain "$words: output into a line that is drawn"
    grep -q "[$one$two]" out && complain "$words: carriage returns or escapes outside the line"
    return 0
}

# draws COLUMNS: the last command drew the line with a loss, each time in less than so many columns.
draws() {
    tr '>' '\n' <out | sed -n 's/.*<step/step/p' >drawn
    grep -q '^step .* loss ' drawn || complain "$words: no live line"
    narrow $(($1 - 1)) drawn
}

# draws_nothing: not a single control character.
draws_nothing() {
    grep -q "[<$one$two]" out && complain "$words: unexpected live line"
    return 0
}

# lines FILE: what stays in this output, without the drawings and what changes from run to run.
lines() {
    sed 's/<[^>]*>//g' "$1" | sed -n '/^step\|^checkpoint:/s/ *|[^|]*ms |.*\|, [0-9.]* s$//p; /^  digest/p'
}

# The same lines as into a pipe, which they are today.
saving="--steps 300 --log-every 40 --eval-every 70 --save-every 90 --keep 9"
runs 0 train $quick $saving --checkpoint piped
lines out | sed s/piped/shown/ >expected
for columns in 60 80 200; do
    rm -rf shown.d
    terminal $columns "$zero train $quick $saving --checkpoint shown" </dev/null
    exits 0
    is_clean
    draws $columns
    lines out >found
    same expected found "$words: lines on stdout"
    rm -rf shown
done
grep -q '^step .* \[#* *\]  loss .*val.* tok/s .*: .* compute .* exposed  left .* saved' drawn ||
    complain "$words: expected all parts of the line"
finish

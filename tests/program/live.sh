# The live line: on the user's own terminal and nowhere else, within the window, and gone before any
# other output. script(1) makes the pseudo-terminals.
. "$(dirname "$0")/common.sh"
script -qec true /dev/null </dev/null >out 2>err || skip "there is no script(1) with -e and -c"
env --default-signal=INT true 2>out || skip "this env cannot restore SIGINT"
quick="--layers 1 --hidden 32 --heads 2 --seq 32 --data stories:64K --tokenizer byte"
quick="$quick --sample 0 --global-batch 6"
TERM=xterm
SHELL=/bin/sh
export TERM SHELL
unset CI

# shows: `out` gets what a user saw on the last terminal: drawings as "<step ...>", erasures as "<>",
# and no carriage returns before line ends. `err` is empty.
shows() {
    : >err
    tr '\r\033<>' '\001\002()' <screen |
        sed "s/$one\(step [^$one$two]*\)$two\[K$one/<\1>/g; s/$one$two\[K/<>/g; s/$one\$//" >out
}

# terminal COLUMNS 'COMMAND': runs it on a pseudo-terminal.
terminal() {
    words="$2 (in $1 columns)"
    script -qec "stty cols $1 rows 24; $2" /dev/null </dev/null >screen
    code=$?
    shows
}

# begins COLUMNS TEXT 'COMMAND': starts it on a pseudo-terminal whose keys are descriptor 3, and waits
# until the line has this text. Keys are not echoed: a ^C would lie in the line, if one is drawn.
begins() {
    words="$3 (in $1 columns)"
    rm -f screen
    # The background ignores SIGINT.
    timeout 120 script -qfec "stty cols $1 rows 24 -echo; exec env --default-signal=INT $3" /dev/null \
        <keys >screen &
    job=$!
    exec 3>keys
    await 60 has_drawn "$2" || complain "$words: no live line with '$2'"
}

has_drawn() {
    [ -e screen ] && shows && drawings && grep -q "$1" drawn
}

# drawings: the file `drawn` gets a line for each.
drawings() {
    tr '>' '\n' <out | sed -n 's/.*<step/step/p' >drawn
}

# ends CODE: what begins has started ends with this code.
ends() {
    wait $job
    code=$?
    exec 3>&-
    shows
    exits "$1"
}

one=$(printf '\001')
two=$(printf '\002')

# is_clean: each drawing of the last command was redrawn or erased before anything else came.
is_clean() {
    grep -q '<step [^<>]*>\([^<]\|$\)' out && complain "$words: output into a line that is drawn"
    grep -q "[$one$two]" out && complain "$words: carriage returns or escapes outside the line"
    return 0
}

# fits COLUMNS: each drawing is narrower than COLUMNS.
fits() {
    drawings
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

# The same lines as into a pipe.
saving="--log-every 40 --eval-every 70 --save-every 90 --keep 9 --checkpoint run"
runs 0 train $quick --steps 300 $saving
lines out >expected
rm -r run
terminal 80 "$zero train $quick --steps 300 $saving"
exits 0
grep -q '<step 0/300' out || complain "$words: no live line"
is_clean
fits 80
lines out >found
same expected found "$words: lines on stdout"

# At most four drawings a second, as the clock of the whole command has it.
start=$(date +%s)
terminal 80 "$zero train $quick --steps 3000 --log-every 5 --eval-every 0"
drawings
[ "$(wc -l <drawn)" -le $((4 * ($(date +%s) - start + 1) + 1)) ] ||
    complain "$words: more than four drawings a second"

# Whatever fits the window is shown. Ctrl-C is answered and obeyed on a clean line.
mkfifo keys
endless="train $quick --steps 100000000 --log-every 1000 --eval-every 50 --eval-batches 1"
for columns in 60 80 200; do
    case $columns in
    60) text=' loss .* left ' ;;
    80) text=' loss .* (val .*)  .* tok/s .* left ' ;;
    200) text='% \[#* *\]  loss .* (val .*)  .* tok/s  .* ms: .* compute .* exposed  left .*  saved ' ;;
    esac
    rm -rf run
    begins $columns "$text" "$zero $endless --checkpoint run --save-every 100"
    printf '\003' >&3
    ends 75
    says '<>zero: note: the run saves and stops' out
    says '<>zero: stopped on request after step' out
    is_clean
    fits $columns
done

# What else is printed while a run trains: a step's narration.
terminal 80 "$zero train --model lesson --data lesson --steps 3 --narrate --sample 0"
exits 0
grep -q '<step 0/3' out || complain "$words: no live line"
says 'step 1, told by 1 rank' out
is_clean

# A signal that ends the process leaves no line behind.
begins 80 ' loss ' "$zero $endless"
printf '\003' >&3
ends 130
is_clean

# A terminal that goes away takes the run with it.
begins 80 ' loss ' "$zero $endless"
rank=$(ranks_of $job)
has_ended() {
    [ ! -e "/proc/$rank" ] || grep -q '^State:.*Z' "/proc/$rank/status"
}
kill -KILL $(cat /proc/$job/task/*/children)
await 60 has_ended || {
    complain "$words: the run outlives its terminal"
    kill -KILL "$rank"
}
wait $job
exec 3>&-

# Not on a terminal that cannot move its cursor, in CI, or when asked for less.
short="$zero train $quick --steps 20"
for command in "TERM=dumb $short" "TERM= $short" "CI=true $short" "$short --progress lines" \
    "$short --progress none" "$short --quiet"; do
    terminal 80 "$command"
    exits 0
    draws_nothing
done
TERM=dumb terminal 80 "$short --progress live"
grep -q '<step 0/20' out || complain "$words: no live line"

# Under mpirun the ranks' output passes through pipes, or through terminals that are not the user's.
several=$(echo "$launch" | sed s/RANKS/3/)
terminal 60 "$several $short"
exits 0
says 'step     20/20' out
draws_nothing
OMPI_MCA_iof_base_redirect_app_stderr_to_stdout=1 terminal 60 "$several $short"
exits 0
says 'step     20/20' out
draws_nothing

# Those who ask for it get it, as wide as the window, which MPICH's ranks cannot ask.
begins 60 ' loss .* left ' "$several $zero $endless --progress live"
with_mpich || fits 60
printf '\003' >&3
wait $job
exec 3>&-

# In a pipe, too.
run 0 train $quick --steps 3000 --progress live
exits 0
grep -q "$(printf '\033')" err || complain "$words: expected a line that is erased at the end"
grep -q "$(printf '\033')" out && complain "$words: escapes on stdout"
finish

# zero homework: solutions of students, right ones of several designs and wrong ones with their sentences
# (course/homework/NN.txt), programs that do harm, skeletons, a folder as JSON. EXERCISES: of which, "01 02";
# what is not of one exercise, and harm, are tested with the first.
. "$(dirname "$0")/common.sh"
OMPI_MCA_pml=none
export OMPI_MCA_pml
solutions=$support/../course/homework
mkdir tmp
TMPDIR=$work/tmp
export TMPDIR
empty() { [ -z "$(ls tmp)" ]; }
# milliseconds: CPU time, in the file of times(1), of all that this script has run: others may use the machine.
milliseconds() {
    tail -1 times | tr 'ms' '  ' | awk '{printf "%d", 1000 * (60 * ($1 + $3) + $2 + $4)}'
}

runs 0 homework
n=$(grep -c '^ *[0-9]* ' out)
[ "$n" -eq 12 ] || complain "zero homework lists $n exercises, expected 12"
narrow 80 out

# ---- each solution ----

python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null && has_python=1 || has_python=

mkdir precious
right=0 wrong=0 slowest=0
for number in $EXERCISES; do
    file=$solutions/$number.txt
    rm -rf sent
    mkdir sent
    awk '/^=== / {name = $2; sub(/:$/, "", name); sub(/^=== [^ ]* /, ""); print name "\t" $0 >"expected"; next}
         {print >"sent/" name}' "$file"
    if [ ! "$has_python" ]; then
        rm -f sent/*.py
        grep -v '^[^	]*\.py	' expected >some
        mv some expected
    fi
    run 0 homework check "${number#0}" sent --json
    exits 1
    [ "$(wc -l <out)" -eq "$(wc -l <expected)" ] || complain "exercise $number: $(wc -l <out) lines"
    while read -r name words; do
        grep -F "\"sent/$name\"" out >line
        if [ "$words" = right ]; then
            right=$((right + 1))
            grep -q '"passed":true' line || complain "exercise $number, $name: $(cat line)"
        else
            wrong=$((wrong + 1))
            grep -q '"passed":false' line && grep -qF "$words" line ||
                complain "exercise $number, $name: expected '$words': $(cat line)"
        fi
    done <expected
    # Sentences of any exercise can be looked for where nothing was called.
    echo 'int my_' >broken.c
    run 0 homework check "${number#0}" broken.c
    exits 1
    says 'It does not compile' out
    # One check, in time.
    one=$(awk -F'\t' '$2 == "right" {print $1; exit}' expected)
    times >times
    start=$(milliseconds)
    runs 0 homework check "${number#0}" "sent/$one"
    times >times
    took=$(($(milliseconds) - start))
    [ $took -le $slowest ] || slowest=$took
    rm expected
done
echo "$right right solutions, $wrong wrong ones; the slowest check of one took $slowest ms of CPU time"
n=$(echo "$EXERCISES" | wc -w)
[ ! "$has_python" ] || { [ $right -ge $((3 * n)) ] && [ $wrong -ge $((3 * n)) ]; } ||
    complain "$right right and $wrong wrong solutions of $n exercises"
[ $slowest -lt $((3000 * slow)) ] || complain "one check took $slowest ms"
[ -d precious ] || complain "a student's program has removed a directory"
empty || complain "left behind: $(ls tmp)"

# ---- skeletons: they compile, and are not solutions ----

for number in $EXERCISES; do
    number=${number#0}
    runs 0 homework start "$number" "start$number"
    run 0 homework check "$number" "start$number/student.c" ${has_python:+"start$number/student.py"}
    exits 1
    says 'student.c: wrong' out
    [ ! "$has_python" ] || says 'student.py: wrong' out
    for word in 'not compile' SyntaxError NameError 'ended with'; do
        grep -qF "$word" out && complain "exercise $number: a skeleton: $word"
    done
    narrow 80 "start$number/exercise.txt"
done
[ "${EXERCISES%% *}" = 01 ] || finish
refuses 2 'has a file exercise.txt already' 0 homework start 1 start1

# ---- other numbers, another compiler, an ordinary user ----

awk '/^=== / {name = $2; sub(/:$/, "", name); next} {print >"start1/" name}' "$solutions/01.txt"
runs 0 homework check 1 start1/ring.c --seed 7
says 'start1/ring.c: right' out
refuses 3 'nocc: cannot be started' 0 homework check 1 start1/ring.c --compiler nocc
refuses 3 'nopython: cannot be started' 0 homework check 1 start1/ring.py --python nopython
refuses 2 'there are exercises 1 to 12' 0 homework check 13 start1/ring.c
refuses 2 'expected start or check' 0 homework grade
refuses 4 'missing.c' 0 homework check 1 missing.c
refuses 2 'expected zero homework check N FILE' 0 homework check 1
as_nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
if [ "$(id -u)" -eq 0 ] && $as_nobody "$zero" --version >/dev/null 2>&1; then
    chmod 755 "$work"
    mkdir open
    chmod 1777 open
    words="zero homework as an ordinary user"
    for file in ring.c forks.c; do
        TMPDIR=$work/open $as_nobody \
            "$zero" homework check 1 "start1/$file" >>out 2>err
    done
    says 'start1/ring.c: right' out
    says 'start1/forks.c: wrong' out
    says 'start a process' out
    [ -z "$(ls open)" ] || complain "an ordinary user's check leaves files"
fi

# ---- interrupted: nothing is left ----

"$zero" homework check 1 start1/endless.c >out 2>err &
sleep 1
[ -n "$(ls tmp)" ] || complain "a check has no directory to be left"
kill -KILL $!
wait $! 2>/dev/null
await 5 empty || complain "killed: left behind: $(ls tmp)"

finish

# zero lesson: graded answers, right, wrong and hostile; its numbers are those of zero plan and of runs.
. "$(dirname "$0")/common.sh"

# lesson FILE words...: answers from a file.
lesson() {
    input=$1
    shift
    words="zero lesson $* <$input"
    OMPI_MCA_pml=none "$zero" lesson "$@" <"$input" >out 2>err
    code=$?
}

OMPI_MCA_pml=none runs 0 lesson
for word in 'who holds what' 'one step of stage 3' 'mixed precision' accumulation prefetch partitions \
    'tensor parallelism' offload checkpoints 'figure 1' activations buffers 'loss scaling'; do
    says "$word" out
done
n=$(grep -c '^ *[0-9]* .* questions ' out)
questions=$(awk '/ questions /{for (i = 2; i <= NF; i++) if ($i == "questions") n += $(i - 1)} END{print n}' out)
narrow 80 out

# ---- right and wrong answers ----

printf '4800\n3200\n2400\n1600\n12288\n4096\n2.56\n' >right
lesson right 1
exits 0
says '7 of 7 right' out
[ -s err ] && complain "$words: expected nothing on stderr"
printf '3600\n3200\n2400\n1600\n12288\n4096\n2.56\n' >wrong
lesson wrong 1
exits 1
says 'That is 12 Psi' out
says 'The answer is 4800 bytes (4.69 KiB).' out
says '6 of 7 right' out
[ "$(cat err)" = 'zero: 1 of 7 answers: wrong' ] || complain "$words: expected one message"
printf '4800\n4,800\n1200\n600\n4800\n1600\n1.56\n' >wrong
lesson wrong 1
exits 1
for hint in 'stage 0: nothing is divided' 'forgets the padding' 'the padding alone'; do
    says "$hint" out
done
[ "$(grep -c 'Not this' out)" -eq 6 ] || complain "$words: expected six wrong answers"
printf '2048\n2048\n4096\n1.5\n2\n16\n' >wrong
lesson wrong 3
exits 1
for hint in 'gathers all groups twice' "the paper's 3 Psi / 2 Psi" 'REDUCE does not grow' \
    "the ranks' ratio"; do
    says "$hint" out
done

# A second try, and answers in other forms
printf '3600\n4.8k\n3,200 bytes\n2400 B\n1600\n12 KiB\n4KiB\n2.7x\n2.56x\n' >again
lesson again 1 --tries 2
exits 0
says '7 of 7 right, 2 of them at the second try or later' out
printf '2400\n3200\n' >half
lesson half 1 --ranks 6
exits 1
says 'question 1.3 and those after it are open' out
says 'wrong or missing' err
: >nothing
lesson nothing 2
exits 1
says 'question 2.1 and those after it are open' out
printf '?\nq\n' >leaves
lesson leaves 1
exits 1
says 'question 1.2 and those after it are open' out
says 'To go on: zero lesson 1 --from 2' out
tail -n +2 right >rest
lesson rest 1 --from 2
exits 0
says '6 of 6 right' out
refuses 2 'lesson 1 has 7 questions' 0 lesson 1 --from 8

# What is saved can be graded.
printf '3600\n4800\n3200\n12\n?\n1600\nq\n' >some
lesson some 1 --tries 2 --ranks 3 --save saved.txt
lesson right 3 --save saved.txt
run 0 lesson --check saved.txt
exits 1
grep -q '^1.1   4800  *right' out || complain "$words: expected the last answer to 1.1"
grep -q '^1.5   .*no answer' out || complain "$words: expected no answer to 1.5"
grep -q '^3.1 ' out || complain "$words: expected both lessons"
lesson right 1 --student anna --save anna.saved
[ "$(head -n 1 anna.saved)" = 'STUDENT anna' ] || complain 'the file does not begin with anna'
grep -q '^NAME saved$' saved.txt || complain 'saved.txt is not named in itself'
# Nobody's answers are added to those with other numbers.
refuses 2 'the numbers of --student anna' 0 lesson 1 --student ben --save anna.saved
refuses 2 'the numbers of --student anna' 0 lesson 1 --save anna.saved
refuses 2 'the numbers of the class' 0 lesson 1 --student ben --save saved.txt
refuses 2 'without blanks' 0 lesson 1 --student 'anna ' --save new.txt
[ -e new.txt ] && complain 'a file was made for a name that is refused'
[ "$(wc -l <anna.saved)" -eq 8 ] || complain 'anna.saved has changed'
# What was answered is in the file before the lesson ends.
mkfifo answers
"$zero" lesson 1 --save broken.txt <answers >out 2>err &
pupil=$!
exec 3>answers
echo 4800 >&3
for _ in $(seq 100); do
    grep -q '1.1 = 4800' broken.txt 2>/dev/null && break
    sleep 0.1
done
kill -9 $pupil
wait $pupil 2>/dev/null
exec 3>&-
grep -q '^1.1 = 4800$' broken.txt || complain 'an interrupted lesson has lost its answers'
refuses 2 'nosuch/file' 0 lesson 1 --save nosuch/file
refuses 2 'nothing is asked' 0 lesson 1 --answers --save saved.txt
refuses 2 'give the number' 0 lesson --save saved.txt

# ---- hostile input ----

head -c 200000 /dev/zero >zeros
head -c 200000 /dev/zero | tr '\000' 7 >sevens
head -c 100000 /dev/urandom >random
yes -- -1e999999 | head -n 1000 >huge
printf 'inf\nnan\n-5\n0x12c0\n\033[2J\033]0;x\007\n%%s%%n%%n\n99999999999999999999999999\n' >odd
printf '48\00000\n\n\n  \n\t\n;rm -rf /\n$(id)\n' >blank
printf '\377\376\303(\n' >invalid
for file in zeros sevens random huge odd blank invalid; do
    for n_lesson in 1 2 7; do
        lesson $file $n_lesson
        exits 1
        [ "$(grep -c '^zero: ' err)" -eq 1 ] || complain "$words: expected one message"
        LC_ALL=C grep -q "$(printf '[\001-\010\013-\037]')" out &&
            complain "$words: control characters in the output"
        [ "$(grep -c '  Right:' out)" -eq 0 ] || complain "$words: something was right"
    done
done
# Files without an end
refuses 4 'line 1' 0 lesson --check /dev/zero
lesson /dev/zero 3
exits 1

# ---- all answers equal those of zero plan ----

compares() { # compares words...
    runs 0 lesson --answers "$@"
    narrow 80 out
    "$CHECK_LESSON" "$zero" <out >compared || complain "$words: $(cat compared)"
    # Those that no plan answers: sums and losses of a run, digests, files, scales.
    # Lessons after 15 are not checked twice, so that a new one is one file.
    open=$(sed -n 's/^- //p' compared | awk '$1 < 16' | tr '\n' ' ')
    [ "$open" = '2.3 2.4 4.1 4.2 11.1 11.2 11.3 11.5 13.2 15.1 15.2 15.3 15.4 15.5 ' ] ||
        complain "$words: answers that come from no plan: $open"
}
compares
says 'The answer is 1 digest.' out
# A line of a plan has its table's head above it, column by column; what a file takes follows.
grep -A 1 '^  per step  *collectives  bytes sent' out | grep -q '^  REDUCE              3        2048' ||
    complain "$words: the columns of the traffic do not stand below their head"
grep -A 1 '^ *micro  *bytes  *bytes live$' out | grep -q '^ *[0-9]*  REDUCE       final            0               512' ||
    complain "$words: the columns of the program do not stand below their head"
grep -A 2 'model states 2.00 KiB' out | grep -q -- '- 3.00 KiB: optimizer states lie in the file' ||
    complain "$words: the sum of the model states does not add up"
cp out standard
cp compared by_plan
compares --ranks 2 --dtype bf16
compares --ranks 8 --layers 4 --hidden 12 --microbatches 3
for name in anna ben; do
    compares --student $name
    cp out $name.1
    runs 0 lesson --answers --student $name
    same out $name.1 "the variant of $name twice"
done
differ anna.1 ben.1 'two variants'
grep '^[0-9.]* = ' anna.1 >answers.1
grep '^[0-9.]* = ' ben.1 >answers.2
differ answers.1 answers.2 'the answers of two variants'

# The answers that no plan has are those of a run.
answer() { sed -n "s/^$1 = //p" standard; }
for stage in 0 3; do
    runs 3 train --model lesson --data lesson --backend naive --global-batch 3 --stage $stage \
        --steps 5 --log-every 1 --metrics run$stage.jsonl
done
loss=$(sed -n 's/.*"step": *1,.*"loss": *\([0-9.]*\).*/\1/p' run3.jsonl | head -n 1)
awk -v a="$loss" -v b="$(answer 2.4)" 'BEGIN { d = a - b; exit !(a > 0 && d * d < 1e-10) }' ||
    complain "the loss of step 1 is $loss, the lesson says $(answer 2.4)"
# The commands of lesson 11: files have 12 bytes for each parameter, behind their headers; one rank
# resumes what three have written.
states() {
    total=0
    for file in "$1"/step-*/shard-*; do
        header=$(od -An -t u8 -N 8 "$file")
        total=$((total + $(wc -c <"$file") - header - 8))
    done
    echo $total
}
for row in 'ck fp32 3' 'ck16 bf16 3' 'whole fp32 0'; do
    set -- $row
    runs 3 train --model lesson --data lesson --backend naive --global-batch 3 --dtype $2 --stage $3 --steps 1 \
        --checkpoint $1
    [ "$(states $1)" = "$(answer 11.1)" ] || complain "$row: $(states $1) bytes of states in the files"
done
runs 0 train --model lesson --data lesson --backend naive --global-batch 3 --stage 0 --steps 2 \
    --checkpoint ck --resume
runs 3 train --model lesson --data lesson --backend naive --global-batch 3 --dtype fp16 --stage 1 --steps 5 \
    --lr 10 --warmup 0 --log-every 1 --metrics wild.jsonl
scale=$(sed -n 's/.*"step": *5,.*"loss_scale": *\([0-9]*\).*/\1/p' wild.jsonl | head -n 1)
[ "$scale" = "$(answer 15.4)" ] || complain "step 5 has the scale $scale, the lesson says $(answer 15.4)"

digest=$(tail -n 1 run3.jsonl | sed -n 's/.*"digest": *"\([0-9a-f]\{8\}\).*/\1/p')
says "digest $digest..." standard
[ "$(answer 4.2)" = 1 ] || complain "the stages have $(answer 4.2) digests"

# ---- screens ----

# A screen with its question fits 22 lines; so does what follows the answer.
yes 0 | head -n 40 >zeroes
number=0
while [ $number -lt "$n" ]; do
    number=$((number + 1))
    for options in '--ranks 3' '--ranks 8 --layers 4 --hidden 12 --dtype bf16'; do
        lesson zeroes $number $options
        narrow 80 out
        awk '/^---- lesson/ { if (n > 22) bad = 1; n = 0 } { n++ }
            /^[0-9]+\.[0-9]+ .*= / { if (n > 22) bad = 1; n = 0 }
            END { exit bad || n > 22 }' out || complain "$words: a screen has more than 22 lines"
    done
done
runs 0 lesson 2 --no-questions
grep -q ' = $' out && complain "$words: expected no questions"
narrow 80 out
runs 0 lesson --no-questions --ranks 8
narrow 80 out

# ---- files of answers ----

grep '^[0-9.]* = ' standard >all
runs 0 lesson --check all
says "$questions of $questions right" out
{ printf 'STUDENT anna\n# by herself\n'; cat answers.1; } >anna
{ printf 'STUDENT ben\n'; cat answers.1; } >copied
runs 0 lesson --check anna
run 0 lesson --check copied
exits 1
{ echo 'NAME Clara Example'; sed 's/^1.1 = .*/1.1 = 3600/' all | head -n 8; } >clara
{ cat anna copied clara; printf 'NAME dan\n1.1 = 3600\n1.2 = inf\n'; } >class
run 0 lesson --grade class
exits 1
says 'Clara Example ' out
grep -q '^anna  *1:=======  *2:========' out && says " $questions of $questions right" out || complain "$words: anna is right"
grep -q '^dan  *1:m?-----  *0 of 7 right, 2 of '"$questions"' answered$' out || complain "$words: dan has answered two questions"
grep -q '2 x  1.1' out || complain "$words: two have made the mistake of 1.1"
narrow 80 out
"$zero" lesson --grade - <class >piped 2>err
same out piped 'a class from a file and from a pipe'
run 0 lesson --check clara
exits 1
says 'That is 12 Psi' out
grep -q 4800 out && complain "$words: --check tells the answer"
run 0 lesson 2 --check clara
exits 1

# Files of Windows, and names with letters of two bytes
{ printf '\357\273\277STUDENT anna\r\n'; sed 's/$/\r/' answers.1; } >windows
{ printf '\357\273\277STUDENT \303\204\303\204\303\204\303\204\303\204\303\204\303\204\303\204\303\204\303\204\303\204\303\204\303\204\r\n1.1 = 5\r\n'; } >letters
cat windows letters windows >class
run 0 lesson --grade class
exits 1
[ "$(grep -c "$questions of $questions right$" out)" -eq 2 ] || complain "$words: files of Windows are not read"
grep -q "^$(printf '\303\204%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13)        1:" out ||
    complain "$words: the name is not 20 columns wide"
# Without its last newline a file would swallow the next student.
{ printf 'NAME eve\n1.1 = 4800'; cat clara; } >class
refuses 4 'line 2, answers of eve: two files meet' 0 lesson --grade class

refuses 4 'No such file' 0 lesson --check nosuch
refuses 4 'directory' 0 lesson --grade .
refuses 4 'no answers' 0 lesson --check nothing
printf '1.1 = 4800\nhello\n' >broken
refuses 4 'line 2' 0 lesson --check broken
printf '1.1 = 4800\n1.99 = 5\n' >broken
refuses 4 'no such question' 0 lesson --check broken
printf '99999999999999999999.1 = 5\n' >broken
refuses 4 'no such question' 0 lesson --check broken
for file in zeros sevens invalid; do refuses 4 "line 1" 0 lesson --grade $file; done
run 0 lesson --grade random
exits 4

refuses 2 'lessons 1 to' 0 lesson 99
refuses 2 'lessons 1 to' 0 lesson one
refuses 2 'takes one lesson' 0 lesson 1 2
refuses 2 'from 2 to 8' 0 lesson --ranks 9
refuses 2 'multiple of 4' 0 lesson --hidden 6
refuses 2 'not both' 0 lesson --answers --no-questions
refuses 2 'not both' 0 lesson --check all --grade all
refuses 2 'did you mean --student' 0 lesson --studnet anna
finish

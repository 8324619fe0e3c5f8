# zero report: what it says of runs, whole and killed, of studies, and what it refuses.
. "$(dirname "$0")/common.sh"

train() { # train STAGE FILE [OPTIONS]: a run of three ranks
    stage=$1 metrics=$2
    shift 2
    # shellcheck disable=SC2086 # words
    runs 3 train $tiny --eval-every 4 --global-batch 6 --micro-batch 2 --steps 12 --stage "$stage" \
        --metrics "$metrics" "$@"
}
train 3 a.jsonl
train 0 b.jsonl

# figure KEY FILE [words...]: this figure of the first run
figure() {
    key=$1
    shift
    "$zero" report "$@" --json | sed -n "s/^ *\"$key\": \([^,]*\),*$/\1/p" | head -n 1
}

# ---- a whole run ----

runs 0 report a.jsonl
narrow 80 out
digest=$(sed -n 's/.*"digest":"\([0-9a-f]*\)".*/\1/p' a.jsonl)
for text in 'a.jsonl' 'stage 3' '3 ranks on 1 node' "digest $digest" 'tokens per second' \
    'waited for others' imbalance overlap 'optimizer states' BACKWARD 'median of 9 steps'; do
    says "$text" out
done
grep -q DIFFERS out && complain "$words: a ledger differs from its plan"
grep -q note: out && complain "$words: a whole run has a note"
median=$(tail -n 1 a.jsonl | sed 's/.*"median":\([^,]*\).*/\1/')
[ "$(figure step_seconds a.jsonl)" = "$median" ] ||
    complain "the step takes $(figure step_seconds a.jsonl), but $median in the metrics"
runs 0 report a.jsonl --json
is_json out
for key in compute exposed overlap; do
    awk -v x="$(figure $key a.jsonl)" 'BEGIN { exit !(x != "" && x >= 0 && x <= 1) }' ||
        complain "$key is $(figure $key a.jsonl), not a share"
done

# A ledger that differs is seen.
sed 's/"measured_peak_bytes":[0-9]*/"measured_peak_bytes":7/' a.jsonl >other.jsonl
runs 0 report other.jsonl
says DIFFERS out

# Each number of the CSV is that of the metrics.
runs 0 report a.jsonl --csv
[ "$(wc -l <out)" -eq 13 ] || complain "$words: expected 12 rows and one of names"
for column in 3:loss 5:lr 6:grad_norm 7:loss_scale 8:tokens 9:step_seconds \
    10:exposed_seconds 11:tokens_per_second 12:elapsed; do
    sed -n "s/.*\"step\":.*\"${column#*:}\":\([^,}]*\).*/\1/p" a.jsonl >wanted
    sed 1d out | cut -d , -f "${column%:*}" | paste -d ' ' - wanted |
        awk '$1 - $2 != 0 || $1 == "" { exit 1 } END { exit NR != 12 }' ||
        complain "$words: the column ${column#*:} differs from the metrics"
done
[ "$(sed 1d out | cut -d , -f 4 | grep -c .)" -eq 3 ] ||
    complain "$words: expected three validation losses"

# ---- runs that were stopped, resumed, damaged ----

head -n 8 a.jsonl >killed.jsonl
runs 0 report killed.jsonl
says '7 steps' out
says 'the end is missing: the run was stopped after step 7 of 12' out
grep -q 'optimizer states' out && complain "$words: a ledger without its line"
grep -q ' $' out && complain "$words: blanks at the end of a line"
{ head -n 8 a.jsonl && sed -n 9p a.jsonl | head -c 60; } >half.jsonl
runs 0 report half.jsonl
says '7 steps' out
says 'half a line' out
{
    head -n 8 a.jsonl
    head -n 1 a.jsonl | sed 's/"resumed_step":0/"resumed_step":4/'
    sed -n '6,13s/"loss":[^,]*/"loss":1.5/p' a.jsonl
    tail -n 1 a.jsonl
} >resumed.jsonl
runs 0 report resumed.jsonl --csv
[ "$(sed 1d out | cut -d , -f 2 | tr '\n' ' ')" = "1 2 3 4 5 6 7 8 9 10 11 12 " ] ||
    complain "$words: steps are missing or there twice"
[ "$(sed 1d out | cut -d , -f 3 | grep -c '^1.5$')" -eq 8 ] ||
    complain "$words: the later lines of steps do not count"
sed '3s/"loss":[^,]*/"loss":null/; 4s/^{/{"lost_lines":2,"newer":[],/' a.jsonl >odd.jsonl
runs 0 report odd.jsonl
says '2 lines could not be written' out
runs 0 report odd.jsonl --csv
sed -n 3p out | grep -q '^odd.jsonl,2,,' || complain "$words: null is not empty"

sed '5s/"tokens":48/"tokens":-1/' a.jsonl >bad.jsonl
refuses 4 'bad.jsonl, line 5: "tokens": expected a whole number from 0' 0 report bad.jsonl
sed '14s/"planned_bytes_sent"/"bytes"/' a.jsonl >bad.jsonl
refuses 4 'bad.jsonl, line 14: "reduce": "planned_bytes_sent" is missing' 0 report bad.jsonl
echo 'no metrics' >text
printf '{\n  "steps": 5\n}\n' >other.json
refuses 4 'text: expected the metrics of a run, as zero train --metrics writes them, found text' 0 report text
refuses 4 'found one JSON value' 0 report other.json
refuses 4 'nosuch.jsonl' 0 report a.jsonl nosuch.jsonl
mkfifo pipe
refuses 4 'expected a regular file' 0 report pipe

# ---- several runs ----

runs 0 report a.jsonl b.jsonl killed.jsonl other.jsonl
narrow 80 out
says 'digests of B and A: equal' out
says '--stage: A 3 | B 0' out
awk '/C\/A/ { n = 6 } /D\/A/ { n = 4 } /\/A/ { heads++ } $1 == "loss" && NF != n { bad = 1 } $1 == "loss" { rows++ }
    END { exit bad || heads != 2 || rows != 2 }' out || complain "$words: a table lacks cells"
says 'DIFFERS from its plan' out
runs 0 report a.jsonl b.jsonl --csv
[ "$(wc -l <out)" -eq 25 ] || complain "$words: expected 24 rows and one of names"
runs 0 report a.jsonl a.jsonl
says 'the settings are equal' out
set --
for i in 1 2 3 4 5 6 7 8; do set -- "$@" a.jsonl a.jsonl a.jsonl a.jsonl a.jsonl a.jsonl a.jsonl a.jsonl; done
runs 0 report "$@" --csv
refuses 2 'after 64 others' 0 report "$@" a.jsonl

# ---- files ----

name='<b>"&.jsonl'
cp a.jsonl "$name"
runs 0 report "$name"
[ "$(head -n 1 out)" = "$name" ] || complain "$words: its name is shown otherwise"
runs 0 report "$name" --csv
[ "$(sed -n 2p out | cut -d , -f 1)" = '"<b>""&.jsonl"' ] || complain "$words: its name is not quoted"
escape=$(printf 'e\033[7m.jsonl')
cp a.jsonl "$escape"
runs 0 report "$escape"
grep -q "$(printf '\033')" out && complain "$words: a control character of a name is printed"

runs 0 report a.jsonl --json --out report.json
is_json report.json
says "report.json: $(wc -c <report.json | tr -d ' ') bytes" out
runs 0 report a.jsonl b.jsonl --out page.html
grep -q '</html>' page.html || complain "$words: the page has no end"
cp a.jsonl before
refuses 2 'would be overwritten' 0 report b.jsonl a.jsonl --out ./a.jsonl
ln a.jsonl linked
refuses 2 'would be overwritten' 0 report a.jsonl --out linked
same a.jsonl before "a file to report on"
refuses 2 'give one, not both' 0 report a.jsonl --csv --json
refuses 2 'zero: report needs a file' 0 report
run 0 report a.jsonl --out nosuch/report.html
[ "$code" -ne 0 ] || complain "$words: expected a failure"

# A file that cannot be written completely is not there, and what was there stays.
echo older >report.csv
words="zero report --csv --out in 1 KiB"
(ulimit -f 1 && "$zero" report a.jsonl b.jsonl a.jsonl b.jsonl a.jsonl --csv --out report.csv) >out 2>err &&
    complain "$words: expected a failure"
[ "$(cat report.csv)" = older ] || complain "$words: the older file is gone"
[ -z "$(ls -A | grep '\.tmp$')" ] || complain "$words: left $(ls -A | grep '\.tmp$')"
"$zero" report a.jsonl --csv 2>err | head -n 1 >out
says 'run,step,loss' out
[ -s err ] && complain "an output that is closed early: $(cat err)"

# ---- a trace: the slow rank is the late one ----

"$zero" simulate --model gpt2 --ranks 3 --stage 3 --micro-batch 1 --network 1us,10G --flops 1T \
    --slow 1:0.5 --trace trace.json >out 2>err || complain "the simulation failed"
runs 0 report --trace trace.json
narrow 80 out
says 'simulated: 3 of 3 ranks on 3 nodes, step 2' out
awk '$3 == "began" { late = 1; next } late && NF == 5 && $1 ~ /^[0-9]+$/ { most = $3 > most ? $3 : most; last[$1] = $3 }
    END { exit !(most > 10 && last[1] == most && last[0] == 0 && last[2] == 0) }' out ||
    complain "$words: expected rank 1 to be the last one"
refuses 2 'give one' 0 report a.jsonl --hta hta
runs 0 report --trace trace.json --hta hta
for rank in 0 1 2; do
    is_json "hta/rank-$rank.json"
    says "\"rank\": $rank, \"world_size\": 3" "hta/rank-$rank.json"
    says '"ncclKernel all-gather block 0"' "hta/rank-$rank.json"
    says '"cat": "kernel", "name": "BACKWARD block 3, microbatch 0"' "hta/rank-$rank.json"
    says 'ProfilerStep#2' "hta/rank-$rank.json"
done
runs 0 report --trace trace.json --csv
sed 1d out | awk -F, '{ d = $3 - $4 - $5 - $6 - $7 - $8 } d > 1e-8 || -d > 1e-8 { exit 1 }
    END { exit NR != 3 }' || complain "$words: the kinds do not add up to the step"
runs 0 report a.jsonl --trace trace.json --json
is_json out
refuses 2 'would be overwritten' 0 report a.jsonl --trace trace.json --out trace.json
refuses 2 'other columns' 0 report a.jsonl --trace trace.json --csv
refuses 4 'a.jsonl' 0 report --trace a.jsonl
"$zero" simulate --model gpt2 --ranks 2 --stage 3 --micro-batch 1 --network 1us,10G --flops 1T \
    --trace other.json >out 2>err || complain "the simulation failed"
refuses 2 'is of 2 ranks, but a.jsonl of 3' 0 report a.jsonl --trace other.json

# A trace of another run with as many ranks is refused; that of a run which had one is not.
train 3 traced.jsonl --trace own.json
runs 0 report traced.jsonl b.jsonl --trace own.json
refuses 2 'own.json is of another run than a.jsonl: its' 0 report a.jsonl --trace own.json
head -c "$(($(wc -c <own.json) - 9))" own.json >part.json
refuses 2 'part.json is of another run than a.jsonl: its' 0 report a.jsonl --trace part.json
# Files of before do not name their run: there the times of steps decide.
sed 's/"id":[0-9]*,//' traced.jsonl >unnamed.jsonl
sed 's/"run":[0-9]*,//' own.json >unnamed.json
runs 0 report unnamed.jsonl --trace own.json
runs 0 report traced.jsonl --trace unnamed.json
sed 's/"step_seconds":/"step_seconds":1/' unnamed.jsonl >longer.jsonl
refuses 2 'unnamed.json is of another run than longer.jsonl, or' 0 report longer.jsonl --trace unnamed.json

# ---- studies ----

"$zero" sweep --layers 1 --hidden 16 --heads 2 --seq 8 --data stories:16K --tokenizer byte --ranks 1,3 --stage 3 --weak --micro-batch 2 --steps 5 --warm-up 3 \
    --launch "$(echo "$launch" | sed 's/RANKS/{}/')" --out study >out 2>err ||
    complain "the sweep failed"
runs 0 report study
narrow 80 out
says 'weak scaling' out
[ "$(grep -cE '^ +3 +[13]  ' out)" -eq 4 ] || complain "$words: expected two points, twice"
runs 0 report study --checklist
narrow 80 out
says "rules of Hoefler and Belli" out
[ "$(grep -cE '^ ?[0-9]+  (met |open) ' out)" -eq 12 ] || complain "$words: expected twelve rules"
says ' 5  open  What varies has an interval: 2 points have fewer than 6 steps' out
refuses 2 'checklist is of studies' 0 report a.jsonl --checklist
runs 0 report study a.jsonl --trace trace.json --artifact all.tar
mkdir unpacked
tar -C unpacked -xf all.tar || complain "all.tar: tar cannot read it"
for file in a.jsonl:run1.jsonl study/study.json:study1/study.json study/points/stage3-ranks3.jsonl:study1/points/stage3-ranks3.jsonl \
    trace.json:trace.json; do
    same "${file%:*}" "unpacked/data/${file#*:}" "$words: ${file%:*}"
done
(cd unpacked && eval "$(sed -n 's|^    zero |"$zero" |p' README.txt)" | sed 's|data/study1/study.json|study|; s|data/run1.jsonl|a.jsonl|; s|data/trace.json|trace.json|' >again)
same unpacked/report.txt unpacked/again "an artifact's own report"
is_json unpacked/report.json
runs 0 report study a.jsonl --trace trace.json --artifact again.tar
cmp -s all.tar again.tar || complain "$words: equal files give other bytes"
refuses 2 'has all forms' 0 report study --artifact all.tar --csv
refuses 2 'would be overwritten' 0 report study --artifact study/study.json
runs 0 report study
runs 0 report study --csv
mv out by_directory
runs 0 report study/study.json --csv
sed 's/^study,/study\/study.json,/' by_directory | sed 1d >wanted
sed 1d out >rows
same rows wanted "a study by its directory and by its file"
cut -d , -f 2-5 rows >wanted
runs 0 report study/study.csv --csv
sed 1d out | cut -d , -f 2-5 >columns
same columns wanted "a study by study.csv and by study.json"
runs 0 report study a.jsonl --json
is_json out
refuses 2 'other columns' 0 report study a.jsonl --csv
refuses 2 'would be overwritten' 0 report study --out study/study.json
sed 's/"state": "measured"/"state": "guessed"/' study/study.json >bad.json
refuses 4 'bad.json, point 1: "state": expected measured, missing or failed' 0 report bad.json
sed '2s/weak/week/' study/study.csv >bad.csv
refuses 4 'bad.csv, row 2: scaling: expected weak or strong, found week' 0 report bad.csv
sed '2s/,/,"/' study/study.csv >bad.csv
refuses 4 'bad.csv, row 2' 0 report bad.csv
mkdir empty
refuses 4 'empty: expected the directory of a study' 0 report empty

finish

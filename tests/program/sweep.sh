# zero sweep: studies that are interrupted and continued, what their files say, and what is refused.
. "$(dirname "$0")/common.sh"

# start.sh N words...: the launch line of all studies here. It writes N into the file `starts`, and
# obeys the files `signal`, with which signal and in which start it ends the sweep, and `fails`, on
# how many ranks it fails.
cat >start.sh <<'END'
n=$1
shift
echo "$n" >>starts
if [ -f signal ] && read -r name start <signal && [ "$(wc -l <starts)" -eq "$start" ]; then
    rm signal
    echo $$ >left
    kill "-$name" $PPID
    exec sleep 100
fi
if [ -f fails ] && [ "$(cat fails)" -eq "$n" ]; then
    echo "first of two lines"
    echo "there are not enough slots" >&2
    exit 1
fi
exec $(echo "$LAUNCH" | sed "s/RANKS/$n/") "$@"
END
export LAUNCH="$launch"
line='sh start.sh {}'
tiny="--layers 1 --hidden 16 --heads 2 --seq 8 --data stories:16K --tokenizer byte"
weak="--ranks 1,2,4 --stage 0,3 --weak --micro-batch 2 --steps 7 --warm-up 3"

sweep() { # sweep CODE options...: the sweep ends with this code
    wanted=$1
    shift
    words="zero sweep $*"
    "$zero" sweep "$@" >out 2>err
    code=$?
    exits "$wanted"
}

no_sweep() { # no_sweep CODE 'TEXT' options...: it is refused before anything runs
    expected=$1
    text=$2
    shift 2
    : >starts
    words="zero sweep $*"
    "$zero" sweep "$@" >out 2>err
    code=$?
    exits "$expected"
    [ "$(grep '^zero: ' err | grep -cv '^zero: note: ')" -eq 1 ] && grep -qF -e "$text" err ||
        complain "$words: expected one message with '$text'"
    [ ! -s out ] && [ ! -s starts ] || complain "$words: expected nothing to run"
}

started() { # started NUMBERS: since the file was emptied these numbers of ranks were started
    [ "$(echo $(cat starts))" = "$*" ] || complain "$words: started $(echo $(cat starts)), not $*"
}

gone() { # the process of the file `left` has ended
    ! kill -0 "$(cat left)" 2>/dev/null
}

# value STAGE RANKS COLUMN [FILE]: a field of study.csv before its first one in quotes.
value() {
    awk -F, -v stage="$1" -v ranks="$2" -v column="$3" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["stage"] == stage && $at["ranks"] == ranks { print $at[column] }' "${4:-study/study.csv}"
}

near() { # near A B 'WHAT': equal but for rounding
    awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(a != "" && d < 1e-6 * b && -d < 1e-6 * b) }' ||
        complain "$3: $1, expected $2"
}

# shares FILE: seconds of each step, and the share that waits for collectives.
shares() {
    sed -n 's/.*"step":.*"step_seconds":\([^,]*\).*"exposed_seconds":\([^,]*\).*/\1 \2/p' "$1" |
        awk '{ printf "%.17g %.17g\n", $1, $2 / $1 }'
}

# quartile SHARE FILE FIRST [COLUMN]: of the times of all steps but the first ones.
quartile() {
    shares "$2" | cut -d ' ' -f "${4:-1}" | sed "1,$3d" | sort -g |
        awk -v share="$1" '{ t[NR - 1] = $1 } END {
            at = share * (NR - 1); below = int(at); above = below < NR - 1 ? below + 1 : below
            printf "%.17g", t[below] + (at - below) * (t[above] - t[below]) }'
}

# right SCALING STUDY FIRST: each row is what the metrics of its point say.
right() {
    csv=$2/study.csv
    for file in "$2"/points/*.jsonl; do
        point=$(basename "$file" .jsonl)
        ranks=${point#*-ranks}
        stage=${point%-ranks*}
        stage=${stage#stage}
        what="$point of $2"
        [ "$(value "$stage" "$ranks" state "$csv")" = measured ] || complain "$what: not measured"
        t=$(quartile 0.5 "$file" "$3")
        near "$(value "$stage" "$ranks" step_seconds "$csv")" "$t" "median of $what"
        near "$(value "$stage" "$ranks" lower_quartile "$csv")" "$(quartile 0.25 "$file" "$3")" \
            "lower quartile of $what"
        near "$(value "$stage" "$ranks" upper_quartile "$csv")" "$(quartile 0.75 "$file" "$3")" \
            "upper quartile of $what"
        t1=$(quartile 0.5 "$2/points/stage$stage-ranks1.jsonl" "$3")
        near "$(value "$stage" "$ranks" efficiency "$csv")" \
            "$(awk -v a="$t1" -v b="$t" -v n="$ranks" -v s="$1" \
                'BEGIN { printf "%.17g", a / b / (s == "strong" ? n : 1) }')" "efficiency of $what"
        tokens=$(sed -n 's/.*"step":1,.*"tokens":\([0-9]*\).*/\1/p' "$file")
        near "$(value "$stage" "$ranks" tokens "$csv")" "$tokens" "tokens of $what"
        near "$(value "$stage" "$ranks" tokens_per_second "$csv")" \
            "$(awk -v n="$tokens" -v t="$t" 'BEGIN { printf "%.17g", n / t }')" "rate of $what"
        near "$(value "$stage" "$ranks" exposed_share "$csv")" "$(quartile 0.5 "$file" "$3" 2)" \
            "exposed share of $what"
    done
}

# A study that is interrupted twice: the second call runs the rest but one, the third nothing.
# shellcheck disable=SC2086 # words
echo TERM 4 >signal
sweep 75 $weak $tiny --launch "$line" --out study
started 1 2 4 1
says 'stopped by signal 15, in stage 3 on 1 rank; 3 of 6 points are measured' err
[ -s out ] && complain "$words: expected no table"
gone || complain "$words: the point's run is still there"
is_json study/study.json
[ "$(wc -l <study/study.csv)" -eq 7 ] || complain "$words: expected 6 rows"
[ "$(grep -c ',missing,' study/study.csv)" -eq 3 ] || complain "$words: expected 3 missing points"
: >starts
echo KILL 3 >signal
"$zero" sweep $weak $tiny --launch "$line" --out study >out 2>err
started 1 2 4
await 10 gone || complain "$words: the run outlives a sweep that is killed"
: >starts
sweep 0 $weak $tiny --launch "$line" --out study
started 4
cp out first.out
[ "$(grep -c ': measured before' err)" -eq 5 ] || complain "$words: expected 5 points that are there"
cp study/study.csv first.csv
right weak study 3
[ "$(wc -l <study/study.csv)" -eq 7 ] || complain "$words: expected 6 rows"
is_json study/study.json
for key in '"scaling": "weak"' '"launch": "sh start.sh {}"' '"micro-batch": 2' '"hosts": ' \
    '"cpu": ' '"mpi": ' '"commit": ' '"node_cores": ' '"load": ' '"fake": false'; do
    says "$key" study/study.json
done
for word in 'weak scaling, 7 steps a point without the first 3' '    3      4 '; do says "$word" out; done
holds study points study.csv study.json
: >starts
sweep 0 $weak $tiny --launch "$line" --out study
started
same first.csv study/study.csv 'a study that is complete'
same first.out out 'its table'

# Metrics without their last line, or of another run, are not complete.
sed -i '$d' study/points/stage3-ranks2.jsonl
sed -i '1s/"micro-batch":2/"micro-batch":3/' study/points/stage0-ranks1.jsonl
sweep 0 $weak $tiny --launch "$line" --out study
started 1 2
right weak study 3

# A study may grow; planned times need no new runs.
: >starts
sweep 0 $weak $tiny --launch "$line" --out study --stage 0,1,3 --ranks 4,1,2 --warm-up 2 \
    --network 1us,1G --flops 10G
started 1 2 4
right weak study 2
says 'planned' out
planned=$(value 3 2 planned_seconds)
"$zero" plan $tiny --ranks 2 --stage 3 --micro-batch 2 --collectives shm --fake-nodes 1 \
    --network 1us,1G --flops 10G --json >plan 2>err
near "$planned" "$(sed -n 's/.*"step_seconds": *\([0-9.e-]*\).*/\1/p' plan | head -n 1)" 'a planned time'
"$zero" simulate $tiny --ranks 2 --stage 3 --micro-batch 2 --collectives shm --fake-nodes 1 \
    --network 1us,1G --flops 10G --json >simulated 2>err
near "$(value 3 2 simulated_seconds)" \
    "$(sed -n 's/.*"simulated_step_seconds": *\([0-9.e-]*\).*/\1/p' simulated | head -n 1)" 'a simulated time'
is_json study/study.json
says '"network": "1us,1G"' study/study.json
sweep 0 $weak $tiny --launch "$line" --out study --stage 0,1,3 --network 1us,1G --flops 10G \
    --most-messages 20
says 'warning: stage 3 on 4 ranks has no simulated time: ' err
[ "$(value 3 4 simulated_seconds)" = '' ] || complain "$words: a time that was refused"

# Changed settings, points left out, and directories of others are refused.
no_sweep 2 '--micro-batch: 2 | 4' $weak $tiny --micro-batch 4 --launch "$line" --out study
no_sweep 2 '--steps: 7 | 8' $weak $tiny --steps 8 --launch "$line" --out study
no_sweep 2 '--dtype: default | "bf16"' $weak $tiny --dtype bf16 --launch "$line" --out study
no_sweep 2 '--launch: "sh start.sh {}" | "sh other.sh {}"' $weak $tiny --launch 'sh other.sh {}' \
    --out study
no_sweep 2 '--weak or --strong: "weak" | "strong"' --strong --global-batch 8 --ranks 1,2,4 \
    --stage 0,1,3 $tiny --launch "$line" --out study
no_sweep 2 'stage 1 on 1 rank, which --stage and --ranks leave out' $weak $tiny --launch "$line" \
    --out study
mkdir other && echo 1 >other/notes
no_sweep 2 'other is not a study: it has no study.json, but notes' $weak $tiny --launch "$line" \
    --out other
holds other notes
mkdir broken && echo '{"study": 1' >broken/study.json
no_sweep 4 'broken/study.json' $weak $tiny --launch "$line" --out broken
echo '{"study": 99}' >broken/study.json
no_sweep 4 '"study"' $weak $tiny --launch "$line" --out broken
no_sweep 3 'nowhere/study' $weak $tiny --launch "$line" --out nowhere/study

# What cannot be a study is refused before anything is made.
study="--launch x{} --out new"
no_sweep 2 'give --ranks 1,2,4' --weak --micro-batch 2 $study
no_sweep 2 'give --out DIR' --weak --micro-batch 2 --ranks 1 --launch 'x {}'
no_sweep 2 'neither --weak nor --strong' --ranks 1,2 --micro-batch 2 $study
no_sweep 2 '--weak with --strong' --ranks 1,2 --weak --strong --global-batch 2 $study
no_sweep 2 '--weak without --micro-batch' --ranks 1,2 --weak $study
no_sweep 2 '--weak with --global-batch' --ranks 1,2 --weak --global-batch 4 --micro-batch 2 $study
no_sweep 2 '--strong without --global-batch' --ranks 1,2 --strong --micro-batch 2 $study
no_sweep 2 'stage 0 on 3 ranks: ' --ranks 1,3 --strong --global-batch 4 $study
for list in 1,,2 1,1 0 1,x 2, ,2 1-4; do
    no_sweep 2 "--ranks $list: expected" --ranks $list --weak --micro-batch 2 $study
done
no_sweep 2 '--stage 0,4: expected' --ranks 1 --stage 0,4 --weak --micro-batch 2 $study
no_sweep 2 'leaves no step to measure' $weak --warm-up 7 $study
no_sweep 2 '--checkpoint: a point' $weak --checkpoint run $study
no_sweep 2 '--warm-up N' $weak --warmup 3 $study
no_sweep 2 'give --launch' --ranks 1,2 --weak --micro-batch 2 --out new
no_sweep 2 'expected {} where' $weak --launch 'mpirun -n 2' --out new
no_sweep 2 '$ would need a shell' $weak --launch 'mpirun -n {} $X' --out new
no_sweep 2 "the quote ' has no end" $weak --launch "mpirun -n {} 'x" --out new
no_sweep 2 'did you mean --stage' --stages 3 $weak $study
no_sweep 3 'nosuch: cannot be started' --ranks 1 --weak --micro-batch 2 --launch 'nosuch {}' --out odd
new='--ranks 1 --weak --micro-batch 2 --out new'
no_sweep 2 '--narrate: a point of a study' $new --narrate
no_sweep 2 '--trace: a point of a study' $new --trace t.json
[ ! -e new ] || complain 'a refused study was made'

# In a Slurm job of too few tasks nothing is started.
printf '#!/bin/sh\nexec sh start.sh "$@"\n' >srun && chmod +x srun
export SLURM_JOB_ID=1 SLURM_NTASKS=2
no_sweep 3 'needs 4 ranks, and this Slurm job has 2 tasks (SLURM_NTASKS)' $weak $tiny \
    --launch './srun {}' --out slurm
unset SLURM_JOB_ID SLURM_NTASKS

# A point that fails: its last lines are shown. With --keep-going the others run.
echo 2 >fails
: >starts
sweep 3 --ranks 1,2,4 --weak --micro-batch 2 --steps 3 $tiny --launch "$line" --out failing
started 1 2
says 'stage 0 on 2 ranks: it ended with exit code 1 before its first step: the launch line may' err
for text in '  | first of two lines' '  | there are not enough slots'; do says "$text" err; done
says ',2,failed,' failing/study.csv
sweep 3 --ranks 1,2,4 --weak --micro-batch 2 --steps 3 $tiny --launch "$line" --out failing \
    --keep-going
started 1 2 2 4
says '    0      2 failed' out
says 'stage 0 on 2 ranks: it ended with exit code 1' out
[ "$(grep -c ',measured,' failing/study.csv)" -eq 2 ] || complain "$words: expected 2 rows"
rm fails
sweep 0 --ranks 1,2,4 --weak --micro-batch 2 --steps 3 $tiny --launch "$line" --out failing
started 1 2 2 4 2
right weak failing 2
printf 'shift\nexec "$@"\n' >alone.sh
sweep 3 --ranks 2 --weak --micro-batch 2 --steps 3 $tiny --launch 'sh alone.sh {}' --out alone
says 'expected a run of 2 ranks, found 1' err
sweep 2 --ranks 2 --weak --micro-batch 2 --steps 3 $tiny --seq 100000 --launch "$line" --out long
says 'ended with exit code 2 before its first step: ' err
printf 'exit 75\n' >stopped.sh
sweep 75 --ranks 2 --weak --micro-batch 2 --steps 3 $tiny --launch 'sh stopped.sh {}' --out stopped
says 'the run stopped on request, in stage 0 on 2 ranks; 0 of 1 points are measured' err

# One process works on a study at a time.
printf 'echo $$ >left\nexec sleep 100\n' >hold.sh
rm left
"$zero" sweep --ranks 1 --weak --micro-batch 2 $tiny --launch 'sh hold.sh {}' --out held \
    >held.out 2>held.err &
holder=$!
await 120 test -s left || complain 'a study did not start'
no_sweep 3 "process $holder on " --ranks 1 --weak --micro-batch 2 $tiny --launch 'sh hold.sh {}' \
    --out held
kill -USR2 $holder
wait $holder
[ $? -eq 75 ] && gone || complain 'a held study did not end with 75'

# A sweep that is stopped ends the ranks of its point.
"$zero" sweep --ranks 2 --weak --micro-batch 2 --steps 500000 $tiny --launch "$line" --out busy \
    >busy.out 2>busy.err &
sweep=$!
await 120 test -s busy/points/stage0-ranks2.jsonl || complain 'a point did not start'
ranks=$(ranks_of $sweep)
[ "$(echo $ranks | wc -w)" -eq 2 ] || complain "expected 2 ranks below the sweep, found '$ranks'"
kill -TERM $sweep
wait $sweep
[ $? -eq 75 ] || complain 'a sweep that was stopped did not end with 75'
for rank in $ranks; do
    echo "$rank" >left
    await 60 gone || complain 'a rank outlives the sweep'
done

# Strong scaling, options from a file, fake nodes; one rank needs no launcher.
printf '{"layers": 1, "hidden": 16, "heads": 2, "seq": 8, "data": "stories:16K", "tokenizer": "byte",
    "stage": 2, "steps": 5, "global-batch": 8, "micro-batch": 2, "prefetch": 1}' >strong.json
: >starts
sweep 0 --ranks 2,1,4 --strong --config strong.json --launch "$line" --out strong
started 1 2 4
right strong strong 2
near "$(value 2 4 tokens_per_rank strong/study.csv)" 16 'tokens per rank'
says 'strong scaling, 5 steps a point without the first 2' out
no_sweep 2 'stage 2 on 1 rank: --fake-nodes 2' --ranks 1,2 --strong --config strong.json \
    --fake-nodes 2 --launch "$line" --out fake
sweep 0 --ranks 2 --strong --config strong.json --fake-nodes 2 --launch "$line" --out fake
[ "$(value 2 2 nodes fake/study.csv) $(value 2 2 fake_nodes fake/study.csv)" = '2 true' ] ||
    complain "$words: expected fake nodes"
says 'f: fake nodes; their times mean nothing' out
sweep 0 --ranks 1 --weak --micro-batch 2 --steps 4 $tiny --out single
right weak single 2
finish

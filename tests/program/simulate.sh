# zero simulate: its output, beside the plan's; what it refuses; its trace.
. "$(dirname "$0")/common.sh"

# With a bad component list MPI fails to start, so a command that succeeds has not started it.
export OMPI_MCA_pml=none
rates="--network 1us,12.5G --flops 1T"
gpt2="--model gpt2 --ranks 8 $rates"

# values KEY FILE: prints the numbers of this key, one per line.
values() {
    sed -n "s/^ *\"$1\": *\([-+0-9.e]*\),*\$/\1/p" "$2"
}

# within LEAST MOST 'WHAT': all numbers on stdin, of which there is one at least, are in that range.
within() {
    awk -v least="$1" -v most="$2" '$1 < least || $1 > most { bad = 1 } END { exit bad || NR == 0 }' ||
        complain "$words: expected $3 from $1 to $2"
}

# step WORDS...: prints the simulated seconds of a step.
step() {
    runs 0 simulate $rates "$@" --json
    values simulated_step_seconds out
}

runs 0 simulate $gpt2 --stage 3
for word in 'simulated      ' '8 on 8 nodes' 'compute ' 'sums ' 'exposed ' 'waiting ' 'mean of ranks' \
    'alpha-beta     ' 'slowest rank   ' 'busiest link   ' 'events in 2 steps' 'simulated / alpha-beta'; do
    says "$word" out
done
[ -s err ] && complain "$words: expected nothing on stderr"
narrow 100 out
runs 0 simulate --help
for word in --slow --adapter --switch --trace --network 'zero simulate --model gpt2'; do
    says "$word" out
done

# All stages: the plan's time is simulated to 0.2 %, and the same text comes twice.
runs 0 simulate $gpt2 --stage all --json
is_json out
cp out first
values simulated_to_alpha_beta out >ratios
within 0.998 1.002 'simulated / alpha-beta' <ratios
[ "$(wc -l <ratios)" -eq 4 ] || complain "$words: expected four stages"
runs 0 simulate $gpt2 --stage all --json
same first out 'JSON of two simulations'
runs 0 plan $gpt2 --stage 2 --json
grep '"step_seconds"' out >planned
runs 0 simulate $gpt2 --stage 2 --json
sed -n '/"alpha_beta"/,/}/p' out | grep '"step_seconds"' | tr -d ' ' >alpha_beta
tr -d ' ' <planned >squeezed
same squeezed alpha_beta 'seconds of zero plan and of alpha_beta'
runs 0 simulate $gpt2 --stage all
narrow 100 out
for word in 'parts of the slowest rank' alpha-beta 'busiest link, messages'; do says "$word" out; done

# All wait for a slow rank.
equal=$(step --model gpt2 --ranks 8 --stage 3)
runs 0 simulate $gpt2 --stage 3 --slow 5:0.8 --json
values simulated_step_seconds out | awk -v of="$equal" '{ print $1 / of }' >slower
within 1.20 1.25 'a step times' <slower
[ "$(values slowest_rank out)" = 5 ] || complain "$words: expected rank 5 to be the slowest"
runs 0 simulate $gpt2 --stage 3 --slow 5:0.8
says 'slowest rank   5' out
says 'rank 5: 0.8 times that' out

# The parts of a rank's step are the step.
for options in '--memory-bandwidth 1G --poll 10ms' '--slow 3:0.5 --adapter 1G --tp 2'; do
    runs 0 simulate $gpt2 --layers 2 --stage all --fake-nodes 4 $options --json
    awk '/"step_seconds"/ { step = $2 }
        /"(compute|sums|exposed|waiting|disk)_seconds"/ { sum += $2 }
        /_rank(s?)": {/ { sum = 0; is_rank = 1 }
        /}/ { if (is_rank) print sum / step; is_rank = 0 }' out >sums
    within 0.999999 1.000001 'parts / step' <sums
    [ "$(wc -l <sums)" -eq 8 ] || complain "$words: expected two ranks of four stages"
done

# Links that ranks share, arithmetic and polls make a step longer.
nodes="--model gpt2 --layers 2 --ranks 8 --fake-nodes 4 --stage 3"
alone=$(step $nodes)
{
    step $nodes --adapter 1G
    step $nodes --memory-bandwidth 1G
    step $nodes --poll 100ms
    step $nodes --node-network 1us,100M
} | awk -v of="$alone" '{ print $1 / of }' >longer
within 1.002 100 'a longer step, times' <longer
[ "$(wc -l <longer)" -eq 4 ] || complain 'expected four longer steps'
adapter=$(step $nodes --adapter 1G)
step $nodes --adapter 1G --switch 1:4 | awk -v of="$adapter" '{ print $1 / of }' >longer
within 1.1 10 'a longer step, times' <longer

# The trace: all ranks, or those of a list; complete or not at all.
runs 0 simulate $gpt2 --layers 2 --stage 3 --trace trace.json
is_trace trace.json
for word in '"name":"zero_trace"' '"command":"zero simulate --model gpt2 --ranks 8 ' '"node 7, simulated"' '"rank 7"' \
    '"FORWARD block 1, microbatch 0"' '"cat":"compute"' '"cat":"communication"' '"cat":"wait"' \
    '"reduce-scatter block 1","cat":"collective","ph":"X"' '"memory of rank 7"' '"optimizer states":'; do
    says "$word" trace.json
done
# The spans of each rank tile its step; what its collectives send is what the plan says.
runs 0 simulate $gpt2 --layers 2 --stage 3 --slow 5:0.8 --json --trace slow.json
is_trace slow.json
values simulated_step_seconds out >seconds
awk 'NR == FNR { step = $1; next } $3 == "step" { print $8 / step }' seconds traced >tiles
within 0.999999 1.000001 'seconds of spans / step' <tiles
[ "$(wc -l <tiles)" -eq 8 ] || complain "$words: expected eight ranks"
runs 0 plan $gpt2 --layers 2 --stage 3 --json
awk '/"(reduce|gather)": {/ { is_op = 1 } /"bytes_sent":/ && is_op { n += $2; is_op = 0 }
    END { print n + 0 }' out >planned
sed -n 's/.* sent //p' traced | sort -u >sent
same planned sent 'bytes that collectives send in the plan and in the trace'
# The stages of a pipeline, each by its own program; a message's two ends have one number.
pipe="$gpt2 --layers 8 --pp 4 --stage 1 --micro-batch 1 --global-batch 16"
runs 0 simulate $pipe --json --trace pipe.json
is_trace pipe.json
values simulated_step_seconds out >seconds
awk 'NR == FNR { step = $1; next } $3 == "step" { print $8 / step }' seconds traced >tiles
within 0.999999 1.000001 'seconds of spans of stages / step' <tiles
values simulated_to_alpha_beta out | within 0.99 1.01 'simulated / alpha-beta of a pipeline'
grep -q '"RECEIVE_WAIT block 3' pipe.json || complain "$words: no stage receives from block 3"
runs 0 simulate $pipe
says '4 stages of 2 ranks (1f1b)' out
says 'the bubble alone: (P-1) / (m+P-1) = 27.3 %' out
runs 0 simulate $gpt2 --layers 2 --stage 3 --trace trace.json --trace-ranks 2-3,5
is_trace trace.json
[ "$(grep -o '"thread_name".*"tid":[0-9]*000,' trace.json | sed 's/.*://; s/000,//' | tr '\n' ' ')" = '2 3 5 ' ] ||
    complain "$words: expected the threads 2, 3 and 5"
grep -q '"tid":[014678]000[,}]' trace.json && complain "$words: expected no other ranks"
[ "$(ls -A | grep -c trace.json)" -eq 1 ] || complain "$words: a temporary file was left"
refuses 2 'cannot be opened as a directory' 0 simulate $gpt2 --trace no/such/trace.json
refuses 2 'found a device' 0 simulate $gpt2 --trace /dev/null
echo '{}' >my.machine
refuses 2 '--trace ./my.machine is a file of --machine' 0 simulate $gpt2 --machine my.machine \
    --trace ./my.machine
refuses 2 'most-messages' 0 simulate $gpt2 --most-messages 10 --trace new.json
[ -e new.json ] && complain "$words: expected no file"
# Too large: known before anything is simulated.
refuses 2 'more than 64, with' 0 simulate --model gpt2-xl --ranks 1024 --fake-nodes 64 --stage 3 $rates \
    --trace new.json --trace-ranks 0-1023
says 'give --trace-ranks with fewer than 1024 ranks' err
[ -e new.json ] && complain "$words: expected no file"

# Refused, with what to change.
refuses 2 '--network is missing' 0 simulate --model gpt2 --ranks 8
refuses 2 '--flops is missing' 0 simulate --network 1us,12.5G
refuses 2 '--ranks 8 has ranks 0 to 7' 0 simulate $gpt2 --slow 8:0.5
refuses 2 'a factor from 0.001 to 1000' 0 simulate $gpt2 --slow 1:0
refuses 2 'no finite time' 0 simulate --model gpt2 --ranks 8 --network 1us,1e-305 --flops 1T
refuses 2 'rank 1 is there twice' 0 simulate $gpt2 --slow 1:0.5,1:2
refuses 2 'MPI chooses its own messages' 0 simulate $gpt2 --collectives mpi
refuses 2 'not simulated' 0 simulate $gpt2 --device cuda
refuses 2 '--switch 0: expected NODES' 0 simulate $gpt2 --switch 0
refuses 2 '500000000' 0 simulate --model gpt2 --layers 1 --ranks 16384 --stage 3 --collectives p2p $rates
says 'hier' err
# Quickly, although 64000 ranks are roots: their collectives are equal.
owner='--ranks 64000 --fake-nodes 8192 --stage 3 --partition owner'
refuses 2 'more than --most-messages 500000000' 0 simulate --model gpt2 $owner $rates
finish

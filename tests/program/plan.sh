# zero plan: its output, its speed, and that plan and run agree.
. "$(dirname "$0")/common.sh"

# two microbatches on two ranks
two="--layers 2 --hidden 48 --heads 3 --seq 32 --global-batch 8 --micro-batch 2"

# With a bad component list MPI fails to start, so a command that succeeds has not started it.
export OMPI_MCA_pml=none
runs 0 plan $small --ranks 3
for word in 'Psi = 82752' 'bpe:512' 'one node per rank' 'model states' 'the peak is at' REDUCE; do
    says "$word" out
done
[ -s err ] && complain "$words: expected nothing on stderr"
runs 0 plan --help
for word in --ranks --network --show-schedule --micro-batch; do says "$word" out; done
runs 0 plan --models
says 'paper-1t' out
for paper in table1 table2 fig1 figure1; do
    runs 0 plan --paper $paper
    says ' 0 differ' out
    runs 0 plan --paper $paper --json
    is_json out
done
for figure in 1 2 3 4 6 7 8; do
    runs 0 plan --paper fig$figure
    cp out short
    runs 0 plan --paper figure$figure
    same short out "both names of figure $figure"
done
for paper in fig2 fig3 fig4 fig8 turing-nlg trillion; do
    runs 0 plan --paper $paper
    says 'v100-dgx2, 2026-11-29: a fit of ours' out
    narrow 100 out
    runs 0 plan --paper $paper --json
    is_json out
done
runs 0 plan --model gpt2 --ranks 32 --dtype fp16 --machine v100-dgx2
says 'machine        v100-dgx2, 2026-11-29: a fit of ours' out
runs 0 plan --machine help
says xeon-2-cores out
refuses 2 'there are a100-dgx, v100-dgx2' 0 plan --machine v200
runs 0 plan --model gpt2 --ranks 8 --stage 2 --fake-nodes 2 --dtype bf16 --tokenizer byte
says 'hier (auto' out
says 'parameters lie once per node' out
runs 0 plan $two --ranks 2 --stage all --fit 64M \
    --network 1e-6,1G --flops 1G
for word in 'seconds per step' 'layers' '--partition owner' '--reproducible'; do
    says "$word" out
done
narrow 100 out
runs 0 plan $small --ranks 2 --stage 3 --memory-limit 1M
says 'it does not fit' out
says 'micro-batch 1 --recompute' out
runs 0 plan $two --ranks 2 --stage all --memory-limit 48MiB
tr -s ' ' <out >squeezed
says 'fits the 48.00 MiB no no no no' squeezed
runs 0 plan $two --ranks 2 --memory-limit 48MiB --json
says '"memory_limit": 50331648' out
says '"fits_memory_limit": false' out

# The peaks in the chart of memory are those in the JSON.
runs 0 plan $two --ranks 2 --chart
narrow 80 out
sed -n 's/^  *bytes //p' out | tr -s ' ' '\n' >drawn
says '3 P_os+g+p' out
runs 0 plan $two --ranks 2 --stage all --json
tr -d '\n' <out | grep -o '"peak": *{ *"bytes": *[0-9]*' | grep -o '[0-9]*$' >planned
same drawn planned 'peaks of chart and JSON'
[ "$(wc -l <planned)" -ge 4 ] || complain "$words: expected four stages"
runs 0 plan $two --ranks 2 --chart --stage 3
says 'stage 3 P_os+g+p' out
for other in '--json' '--peers' '--fit 1G' '--network 1,1 --flops 1'; do
    refuses 2 '--chart with --' 0 plan --chart $other
done
refuses 2 'takes no other options' 0 plan --chart --models
refuses 2 'takes no other options' 0 plan --chart --paper table1

# Programs of all stages side by side, with the chart above them.
runs 0 plan $two --ranks 2 --chart --show-schedule
narrow 80 out
for word in '3 P_os+g+p' 'the peak' 'step, stage' '(freed)     block 0 ' 'gradients freed'; do
    says "$word" out
done
runs 0 plan $two --ranks 2 --stage all --show-schedule --json
is_json out
[ "$(grep -c '"programs"' out)" -eq 4 ] || complain "$words: expected the programs of four stages"
for stage in 1 2; do
    runs 0 plan $small --ranks 2 --stage $stage --show-schedule
    cp out stage$stage
    grep -q '^        (freed) ' out && echo $stage
done >frees
[ "$(cat frees)" = 2 ] || complain "$words: stages that free gradients: $(cat frees)"

# Bytes from rank to rank.
runs 0 plan $small --ranks 3 --stage all --peers
narrow 80 out
[ "$(grep -c '^stage [0-3]$' out)" -eq 4 ] || complain "$words: expected four stages"
runs 0 plan --ranks 64 --peers --fake-nodes 8
narrow 80 out
says 'from rank to rank' out
refuses 2 'up to 64 ranks' 0 plan --ranks 65 --peers

# Few ranks of many threads beside many ranks of few.
runs 0 plan $two --ranks 4 --fake-nodes 2 --stage 3 --threads 4 --ranks-per-node 1,4,8
narrow 100 out
says '2 nodes of 8 cores; of each node in a step:' out
[ "$(grep -Ec '^ +(1 +8 +4|2 +4 +2|4 +2 +1) .*iB' out)" -eq 3 ] ||
    complain "$words: expected three rows"
says "not possible: 8 ranks cannot share a node's 4 sequences" out
runs 0 plan $two --ranks 4 --fake-nodes 2 --stage 3 --ranks-per-node 1 --network 1us,1G --flops 1G \
    --json
is_json out
[ "$(grep -c '"step_seconds"' out)" -eq 2 ] || complain "$words: expected two times"
refuses 2 'a node has 4 cores' 0 plan --ranks 8 --fake-nodes 2 --ranks-per-node 3
refuses 2 'such as 1,2,8' 0 plan --ranks 8 --ranks-per-node 1,,2
refuses 2 '--ranks-per-node with --chart' 0 plan --ranks 8 --ranks-per-node 1 --chart
refuses 2 'it is shown for one stage' 0 plan --ranks 8 --ranks-per-node 1 --stage all
refuses 2 'threads do not stand for ranks there' 0 plan --ranks 8 --ranks-per-node 1 --tp 2

# JSON with all parts
runs 0 plan $two --ranks 2 --stage all --fit 64M \
    --network 1e-6,1G --flops 1G --json
is_json out
runs 0 plan $small --ranks 2 --stage 3 --show-schedule --json
is_json out
says '"op": "RELEASE"' out
tr -d ' \n' <out >squeezed
says '"input":{"stage":3,"type":"fp32","activations":"fp32","optimizer":"adamw","muon_scale":"rms","muon_type":"fp32","partition":"slice","n_ranks":2,' squeezed
says '"serial":false,"forward_only":false,"check_replicas":100,"check_memory":false,"check_compute":0,"offload":"off",' squeezed
says '"message":0,"prefetch":1,' squeezed
says '"offload_depth":4,"delayed_from":0,"texts":1,"partition_activations":false,"device":false,"offload_host":false,"shard_ranks":2,"node_parameters":false,"threads":1,"ipc":false,"device_messages":false,"collectives":"p2p"}' squeezed

# Messages of a size of one's own: more of them, of as many bytes.
for message in 512 1K; do
    runs 0 plan $small --ranks 3 --stage 3 --message $message --json
    is_json out
    tr -d ' \n' <out >squeezed
    says '"message":'"$(echo $message | sed 's/K/000/')"',"prefetch"' squeezed
    grep -o '"reduce":{"collectives":[0-9]*,"bytes_sent":[0-9]*' squeezed >bytes.$message
    sed 's/.*"reduce":{[^}]*"messages_sent":\([0-9]*\).*/\1/' squeezed >messages.$message
done
[ -s bytes.512 ] || complain 'no bytes of REDUCE in the JSON'
same bytes.512 bytes.1K 'bytes with messages of either size'
[ "$(cat messages.512)" -gt "$(cat messages.1K)" ] ||
    complain "messages of 512 bytes: $(cat messages.512), of 1000: $(cat messages.1K)"
runs 0 plan $small --ranks 2 --fake-nodes 1 --message 512
says 'note: --message 512 has no effect with collectives shm' err
refuses 2 'cuts messages as it likes' 0 plan $small --ranks 3 --message 60K --collectives mpi
refuses 2 '--message' 0 plan $small --ranks 3 --message 255

# With a device, where none is: two columns. The numbers are those of test_schedule_device, by hand.
xl="--model gpt2-xl --stage 3 --ranks 8 --dtype bf16 --device cuda"
runs 0 plan $xl
for word in 'on the device, own peak' 'on the host' 'the device'"'"'s library 704.00 MiB (as on an H200)' \
    'copies per step'; do
    says "$word" out
done
narrow 100 out
runs 0 plan $xl --json
is_json out
tr -d ' \n' <out >squeezed
for part in '"parameters":{"own_peak":389405312,"at_peak":389405312,"host_peak":0}' \
    '"buckets":{"own_peak":0,"at_peak":0,"host_peak":166196736}' \
    '"host":{"peak_bytes":172512064,"arena":172512256,"window":0,' \
    '"reduce_stored":389405312,"reduce_fetched":3115242496,' '"device":true'; do
    says "$part" squeezed
done
context=$(sed 's/.*"device":{"arena":\([0-9]*\),"context_bytes":[0-9]*,"needed":\([0-9]*\)}.*/\2 - \1/' squeezed)
[ $(($context)) -eq 738197504 ] || complain "$words: expected the arena and 704 MiB, got $context"
runs 0 plan $small --ranks 2 --device cuda --stage all
narrow 100 out
for word in 'arena of the device' 'host, with process'; do says "$word" out; done
runs 0 plan $small --ranks 2 --device cuda --show-schedule
says 'host: data, ' out
says 'host: workspace, ' out
runs 0 plan $small --ranks 2 --device cuda --device-memory 400M --memory-limit 1M
says 'device limit   381.47 MiB: it does not fit' out
says 'bytes of the device; * fits the' out
narrow 100 out
runs 0 plan $small --ranks 2 --device cuda --device-memory 1G --memory-limit 1G --json
says '"fits_device_memory": true' out
says '"fits_memory_limit": true' out
# --fit counts the device, its library with it.
runs 0 plan $small --ranks 2 --device cuda --fit 1G --json
tr -d ' \n' <out | grep -o '"fits":{[^}]*}' >squeezed
grep -qE '"needed":(9[0-9]{8}|10[0-9]{8})' squeezed || complain "$words: expected most of 1 GB"
refuses 2 '--fit 500000000: not even one layer fits' 0 plan $small --device cuda --fit 500M
refuses 2 'with --device' 0 plan $small --device cuda --stage 3 --offload . --offload-parameters
refuses 2 '--backend naive with --device cuda' 0 plan $small --device cuda --backend naive
refuses 2 '--device-memory without a device' 0 plan $small --device-memory 1G
refuses 2 'cpu|cuda' 0 plan --device tpu

# The program of a step in stage 3 with two layers
runs 0 plan $small --ranks 2 --stage 3 --show-schedule
sed -n '/^step$/,/^evaluate$/p' out | grep '^ *[0-9]' | cut -c 9-32 | tr -s ' ' |
    sed 's/ *$//' >program
cat >expected <<'END'
LOAD
GATHER embedding
GATHER_WAIT embedding
GATHER block 0
FORWARD embedding
RELEASE embedding
GATHER_WAIT block 0
GATHER block 1
FORWARD block 0
RELEASE block 0
GATHER_WAIT block 1
GATHER final
GATHER embedding
FORWARD block 1
RELEASE block 1
GATHER_WAIT final
GATHER_WAIT embedding
FORWARD head
GATHER block 1
BACKWARD head
RELEASE final
RELEASE embedding
REDUCE final
GATHER_WAIT block 1
GATHER block 0
BACKWARD block 1
RELEASE block 1
REDUCE_WAIT final
REDUCE block 1
NORM final
GATHER_WAIT block 0
BACKWARD block 0
RELEASE block 0
REDUCE_WAIT block 1
REDUCE block 0
NORM block 1
BACKWARD embedding
REDUCE_WAIT block 0
REDUCE embedding
NORM block 0
REDUCE_WAIT embedding
NORM embedding
LOSS
OVERFLOW
UPDATE embedding
UPDATE block 0
UPDATE block 1
UPDATE final
END
same program expected 'the program of stage 3'

# A plan of 10^12 parameters on 1024 ranks takes little time, of the processor, and memory.
limit=400000 # KiB of address space; programs with sanitizers reserve terabytes at their start
(ulimit -v $limit && exec "$zero" --version) >out 2>err || limit=unlimited
(ulimit -v $limit && ulimit -t 5 && exec "$zero" plan --model paper-1t --ranks 1024 --stage 3) \
    >out 2>err || complain 'paper-1t does not fit in 400 MB and 5 s'
says 'Psi = 1007988403200' out
unset OMPI_MCA_pml

# mistakes
refuses 2 'give --bucket 2097024 or more' 0 plan --model gpt2 --ranks 16384 --bucket 1000000
runs 0 plan --model gpt2 --ranks 16384 --bucket 2097024
runs 0 plan --model gpt2 --ranks 16384
refuses 2 'whole number from 1 to 1048576' 0 plan --ranks 0
refuses 2 'LATENCY,BANDWIDTH' 0 plan --network fast --flops 1G
refuses 2 'not even one layer fits' 0 plan --fit 1
refuses 2 'did you mean --show-schedule' 0 plan --show-schedul
refuses 2 'did you mean --micro-batch' 0 plan --micro-bach 3
refuses 2 'there are only 2 ranks' 0 plan --ranks 2 --fake-nodes 3
refuses 2 'is not a multiple of' 0 plan --ranks 5 --global-batch 6
refuses 2 'expected table1, table2, fig1, fig6 or fig7' 0 plan --paper table9
refuses 2 'there are tiny' 0 plan --model nosuch
refuses 2 'backend' 0 plan --backend nosuch

# Under a launcher the plan is printed once.
runs 1 plan $small --ranks 3
runs 2 plan $small --ranks 3
[ "$(grep -c '^model states' out)" -eq 1 ] || complain "$words: not printed once"

# The plan gives the traffic and the peak of memory that a run then measures.
numbers() { # numbers OPERATION KEY FILE
    sed -n "s/.*\"$1\": *{[^}]*\"$2\": *\([0-9]*\).*/\1/p" "$3"
}
for stage in 0 1 2 3; do
    for steps in 2 3; do
        runs 2 train $small --steps $steps --stage $stage --metrics run.jsonl
        tail -n 1 run.jsonl >run$steps.json
    done
    runs 0 plan $small --ranks 2 --fake-nodes 1 --stage $stage --json
    tr -d '\n' <out >plan.json
    for op in reduce gather control; do
        for key in bytes_sent bytes_received messages_sent; do
            one_more=$(($(numbers $op $key run3.json) - $(numbers $op $key run2.json)))
            [ "$(numbers $op $key plan.json)" = $one_more ] ||
                complain "stage $stage: $op, $key: plan and run differ"
        done
    done
    planned=$(sed -n 's/.*"peak": *{ *"bytes": *\([0-9]*\).*/\1/p' plan.json)
    measured=$(sed -n 's/.*"measured_peak_bytes": *\([0-9]*\).*/\1/p' run3.json)
    [ "$planned" = "$measured" ] ||
        complain "stage $stage: peak $measured measured, $planned planned"
done

# A machine file of this machine is one that plans take, with a disk if one was tried.
runs 0 info --machine here.machine
runs 0 plan --best --machine ./here.machine --model tiny --ranks 2
for word in 'on this-machine' 'why not the others' '--stage 1' 'settings looked at'; do says "$word" out; done
narrow 112 out
grep -q '^disk' here.machine && complain "$words: no disk was tried"
refuses 2 'it measures, and writes a file' 0 info --machine here.machine --json

# A run that does not fit in memory is refused, with advice on what would fit.
run 2 train $small --stage 0 --memory-limit 1M
exits 3
[ "$(grep -c '^zero: ' err)" -eq 1 ] || complain "$words: expected one message"
[ "$(grep -c -e '--recompute' err)" -ge 1 ] || complain "$words: expected what would fit"
says 'the peak is at' err
# More ranks do not help with a large microbatch, but smaller microbatches do.
run 0 train --model gpt2 --seq 1024 --micro-batch 64 --steps 1 --memory-limit 3GiB --data stories:1M
exits 3
says '2 ranks --micro-batch 1 --recompute' err
# However large the shape, the refusal and its table come at once: deep models, many microbatches,
# both. The limit is generous: compiling all of the table's plans would take many minutes of the
# processor.
enormous="--heads 1 --steps 1 --seq 64 --data stories:64KiB --memory-limit 4GiB"
ulimit -S -t 60
run 0 train $enormous --layers 10000 --hidden 131072 --stage 3
exits 3
says 'needs at least' err
says '>29.30 PiB' err
run 0 train $enormous --layers 10000 --hidden 64 --global-batch 65536 --micro-batch 1
exits 3
run 0 train $enormous --layers 10000 --hidden 64 --global-batch 65536 --micro-batch 65536
exits 3
ulimit -S -t unlimited
finish

#!/bin/sh
# How much of a slow wire a training step uses, and how far plan and simulation are from it. Nodes are
# network namespaces of this machine whose links are token buckets (tests/multinode/nodes.sh; needs
# root on Linux). A quarter of an hour per layout at most; nothing else may run.
#
#     sh bench/wire.sh [BUILD FOLDER [RESULT FILE]]    (build, and bench/results/DATE-wire.md)
#
# In the environment, with their defaults:
#     RATES='100mbit 1gbit'  WIDTHS='256 640'  STAGES='0 1 2 3'    (RATES: none, too)
#     LAYOUTS='1,1,1,1'      ranks of each node, equally many, four in all; such as '1,1,1,1 2,2'
#     MESSAGE=auto    --message of zero train; auto: what its trial of the links says, also for the plan
#     SECONDS_EACH=20 a case takes about that long, and 6 steps at least
#     POLL=1ms        --poll of zero simulate
#     PYTHON=python3
#
# Measured for each rate: the goodput of one TCP stream (the wire) and half a round trip (latency).
# For each width: the flops of a rank, from four runs of one rank at the same time, since four ranks
# share this machine's cores; all of such a step counts, the update as well. For each case: the median
# step, and its exposed part, in which rank 0 waited. Columns:
#     wire       bytes that a node sends to others per step / goodput
#     share      wire / (exposed + what the plan hides behind computing): 1 is a wire without a gap
#     planned, simulated    the step by zero plan and zero simulate with these numbers / measured
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../build}
result=${2:-$here/results/$(date +%F)-wire.md}
program=$(cd "$build" && pwd)/zero
nodes=$here/../tests/multinode/nodes.sh
rates=${RATES:-100mbit 1gbit} widths=${WIDTHS:-256 640} stages=${STAGES:-0 1 2 3}
layouts=${LAYOUTS:-1,1,1,1} message=${MESSAGE:-auto} seconds=${SECONDS_EACH:-20} poll=${POLL:-1ms}
python=${PYTHON:-python3}
export ZERO_NODES_OWNER=$$ OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
begun=$(date +%s)
skipped=2 # first steps: they touch memory for the first time
port=7000

sh "$nodes" possible
command -v "$python" >/dev/null || { echo "wire.sh: no $python; give PYTHON=" >&2 && exit 1; }
given=''
[ "$message" = auto ] || given="--message $message"
work=$(mktemp -d)
trap 'sh "$nodes" down wire; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
sh "$nodes" up wire 4
load=$(cut -d' ' -f1 /proc/loadavg)

say() {
    printf '%4d s  %s\n' $(($(date +%s) - begun)) "$*"
}

calculate() {
    awk "BEGIN { printf \"%.9g\", $1 }"
}

model_of() { # WIDTH
    echo "--layers 4 --hidden $1 --heads 8 --seq 16 --vocab 512 --micro-batch 1"
}

# number KEY FILE: the first number of this key in JSON, or 0 if the key is missing.
number() {
    tr -d ' \n' <"$2" | sed 's/[,{}]/\n/g' | sed -n "s/^\"$1\"://p" | head -n 1 | grep . || echo 0
}

# steps_of METRICS: the seconds of each step but the first ones.
steps_of() {
    sed -n 's/.*"step_seconds":\([^,]*\),.*/\1/p' "$1" | tail -n +$((skipped + 1))
}

median() { # of lines of numbers
    sort -g | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

# Sets wire (bytes per second) and latency (seconds).
measure_wire() {
    bytes=$(calculate "$(echo "$1" | sed 's/gbit/ * 1e9/; s/mbit/ * 1e6/; s/none/16e9/') / 8 * 2" | awk "{ printf \"%.0f\", \$1 }")
    port=$((port + 1))
    rm -f "$work/ready"
    timeout 120 sh "$nodes" in wire 0 "$python" "$here/wire_tcp.py" serve $port "$work/ready" \
        >"$work/goodput" &
    until [ -e "$work/ready" ]; do
        kill -0 $! || return 1
        sleep 0.05
    done
    latency=$(timeout 120 sh "$nodes" in wire 1 "$python" "$here/wire_tcp.py" send 10.77.0.1 $port \
        "$bytes") && wait $! || return 1
    wire=$(cat "$work/goodput")
}

# Sets flops of a rank while all four compute.
measure_flops() {
    rm -f "$work"/one.*
    pids=''
    for k in 0 1 2 3; do
        # shellcheck disable=SC2046 # words
        "$program" train $(model_of "$1") --tokenizer byte --data stories:64K --eval-every 0 \
            --sample 0 --quiet --steps 24 --metrics "$work/one.$k" >"$work/out" 2>&1 &
        pids="$pids $!"
    done
    for pid in $pids; do wait "$pid" || return 1; done
    for k in 0 1 2 3; do steps_of "$work/one.$k"; done >"$work/ones"
    # shellcheck disable=SC2046
    "$program" plan $(model_of "$1") --ranks 1 --network 1,1 --flops 1 --json >"$work/plan"
    flops=$(calculate "$(number compute_seconds "$work/plan") / $(median <"$work/ones")")
}

# Sets planned, hidden, sent: seconds of a step, seconds of its exchange behind computing, bytes of a
# node. The ranks of a node have equal shares of its wire.
plan() { # WIDTH STAGE
    # shellcheck disable=SC2046,SC2086
    "$program" plan $(model_of "$1") --ranks 4 --stage "$2" $options \
        $place --flops "$flops" --json >"$work/plan" || return 1
    tr -d ' \n' <"$work/plan" | sed 's/.*"time"://' >"$work/time"
    planned=$(number step_seconds "$work/time")
    sent=$(tr -d ' \n' <"$work/plan" | grep -o '"\(reduce\|gather\)":{[^}]*}' |
        sed 's/.*"bytes_sent_across":\([0-9]*\).*/\1/' |
        awk -v ranks="${layout%%,*}" '{ sum += $1 } END { printf "%.0f", sum * ranks }')
    hidden=$(calculate "$(number communication_seconds "$work/time") - \
        $(number exposed_seconds "$work/time")")
}

# Sets simulated, or - without zero simulate.
simulate() { # WIDTH STAGE
    simulated=-
    "$program" help simulate >/dev/null 2>&1 || return 0
    # shellcheck disable=SC2046,SC2086
    "$program" simulate $(model_of "$1") --ranks 4 --stage "$2" $options --poll "$poll" \
        $place --flops "$flops" --json >"$work/simulation" || return 0
    simulated=$(number simulated_step_seconds "$work/simulation")
}

# ledger KEY: of REDUCE and GATHER together, in the last line of the metrics.
ledger() {
    tail -n 1 "$work/m" | sed 's/.*"communication"://; s/"control".*//; s/"[a-z]*_nodes":{[^}]*}//g' |
        grep -o "\"$1\":[^,}]*" | awk -F: '{ sum += $2 } END { printf "%.15g", sum }'
}

# What rank 0 did itself, in all steps. The time it waited is not used: it has the start, too, and
# stages 1 and 2 gather once more after the last step.
own_seconds() {
    tail -n 1 "$work/m" | sed 's/.*"profile"://' | grep -o '"[A-Z_]*":{"count":[0-9]*,"seconds":[^,]*' |
        grep -v '_WAIT"\|"LOSS"\|"OVERFLOW"' | awk -F: '{ sum += $NF } END { printf "%.9g", sum }'
}

# Sets step, exposed.
run() { # WIDTH STAGE
    n=$(awk "BEGIN { n = int($seconds / $planned); print (n < 6 ? 6 : n > 60 ? 60 : n) }")
    rm -f "$work/m"
    # shellcheck disable=SC2046,SC2086
    timeout 300 sh "$nodes" run wire "$layout" -- "$program" train $(model_of "$1") --stage "$2" \
        $options --tokenizer byte --data stories:64K --eval-every 0 --sample 0 --steps "$n" \
        --metrics "$work/m" >"$work/out" 2>&1 || return 1
    step=$(steps_of "$work/m" | median)
    [ "$(ledger planned_bytes_sent)" = "$(ledger bytes_sent)" ] ||
        say 'planned and counted bytes differ'
    exposed=$(calculate "$step - $(own_seconds) / $n")
}

row() { # RATE WIDTH STAGE
    options=$given
    place="--network $latency,$(calculate "$wire / ${layout%%,*}") --fake-nodes $(echo "$layout" |
        tr , '\n' | wc -l)"
    plan "$2" "$3" || return 1
    run "$2" "$3" || { grep "^zero:" "$work/out" || tail -n 5 "$work/out"; return 1; }
    # What the trial chose.
    tried=$(sed -n '1s/.*"wire":{[^}]*"message":\([0-9]*\)}.*/\1/p' "$work/m")
    options=${tried:+--message $tried}
    options=${options:-$given}
    plan "$2" "$3" || return 1
    simulate "$2" "$3"
    awk -v layout="$layout" -v rate="$1" -v width="$2" -v stage="$3" -v step="$step" -v exposed="$exposed" \
        -v hidden="$hidden" -v wire="$wire" -v sent="$sent" -v planned="$planned" \
        -v simulated="$simulated" 'BEGIN {
        t = sent / wire
        printf "| %s | %s | %d | %d | %.1f | %.3f | %.3f | %.3f | %.2f | %.2f | %s |\n", layout,
            rate, width, stage, sent / 1e6, t, step, exposed, t / (exposed + hidden), planned / step,
            simulated == "-" ? "-" : sprintf("%.2f", simulated / step) }' >"$work/row"
    cat "$work/row" >>"$work/rows"
}

: >"$work/rows"
: >"$work/wires"
: >"$work/cores"
for width in $widths; do
    measure_flops "$width" || { cat "$work/out" && exit 1; }
    echo "$flops" >"$work/flops.$width"
    say "width $width: $(calculate "$flops / 1e9") Gflop/s of a rank, four at once"
    echo "| $width | $(calculate "int($flops / 1e7) / 100") |" >>"$work/cores"
done
for rate in $rates; do
    sh "$nodes" rate wire "$rate"
    measure_wire "$rate" || { say "$rate: no TCP stream" && exit 1; }
    say "$rate: $(calculate "$wire / 1e6") MB/s in one TCP stream, latency $(calculate "$latency * 1e6") us"
    echo "| $rate | $(calculate "int($wire / 1e4) / 100") | $(calculate "int($latency * 1e6)") |" \
        >>"$work/wires"
    for layout in $layouts; do
        for width in $widths; do
            flops=$(cat "$work/flops.$width")
            for stage in $stages; do
                if row "$rate" "$width" "$stage"; then
                    say "$(cat "$work/row")"
                else
                    say "$layout, $rate, width $width, stage $stage: failed"
                    echo "| $layout | $rate | $width | $stage | failed |" >>"$work/rows"
                fi
            done
        done
    done
done

head -n 1 "$work/one.0" >"$work/head"
{
    printf '# %s: training on a slow wire\n\n' "$(date +%F)"
    printf 'Machine: %s, %d cores, kernel %s; %s, %s. Load before: %s.\n' \
        "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" "$(uname -r)" \
        "$(sed 's/.*"mpi":"\([^"]*\)".*/\1/' "$work/head")" \
        "commit $(sed 's/.*"commit":"\([^"]*\)".*/\1/' "$work/head")" "$load"
    printf 'Nodes are network namespaces.\n\n    LAYOUTS="%s" MESSAGE=%s sh bench/wire.sh build\n\n' \
        "$layouts" "$message"
    printf '| rate | MB/s of one TCP stream | latency, us |\n|---|---|---|\n'
    cat "$work/wires"
    printf '\n| width | Gflop/s of a rank, four at once |\n|---|---|\n'
    cat "$work/cores"
    printf '\n4 layers, 16 tokens per rank and step, fp32. Seconds per step; what the columns are is said\n'
    printf 'in [bench/wire.sh](../wire.sh).\n\n'
    printf '| ranks of nodes | rate | width | stage | MB sent | wire | step | exposed | share | planned | simulated |\n'
    printf '|---|---|---|---|---|---|---|---|---|---|---|\n'
    cat "$work/rows"
} >"$result"
say "written to $result"

# Stage 3 on two nodes of two ranks each, with the options that spare the network: --shard-ranks and
# --node-parameters. The nodes are network namespaces of this machine with links of 1 Gbit/s, which carry
# 120 MB/s of payload (tests/multinode/nodes.sh; needs root on Linux).
#
#     sh bench/hybrid.sh [BUILD FOLDER [ROUNDS [OPTIONS OF zero train]]]     (build and 3 by default)
#
# In each round the variants train 11 steps each, one after another. The table has a row per variant: the
# median time of a step, over all rounds; its ratio to the first variant of the same round, the median over
# rounds; the time per step that rank 0 waited for the network; and the bytes that it sent to the other node.
# All runs of one type must end in one digest.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../build}
rounds=${2:-3}
[ $# -lt 2 ] || shift
[ $# -eq 0 ] || shift
program=$(cd "$build" && pwd)/zero
nodes=$here/../tests/multinode/nodes.sh
steps=11
export ZERO_NODES_OWNER=$$
work=$(mktemp -d)

sh "$nodes" possible
sh "$nodes" up hybrid 2 1gbit
trap 'sh "$nodes" down hybrid; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

median() {
    sort -g "$1" | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

# train NAME OPTIONS...: adds the run's step times to NAME.steps, its waits, bytes and the ratio to the
# first of the round to NAME.waits, .bytes and .ratios, and its digest to `digests`.
train() {
    name=$1
    shift
    rm -f "$work/m"
    sh "$nodes" run hybrid 2,2 -- "$program" train --layers 4 --hidden 512 --heads 8 --seq 16 \
        --vocab 8192 --micro-batch 1 --tokenizer byte --data stories:64K --eval-every 0 --sample 0 \
        --steps $steps --stage 3 --metrics "$work/m" "$@" >"$work/out" 2>&1 || {
        cat "$work/out"
        exit 1
    }
    # The first 3 steps touch memory for the first time.
    sed -n 's/.*"step_seconds":\([^,]*\),.*/\1/p' "$work/m" | tail -n +4 >"$work/steps"
    cat "$work/steps" >>"$work/$name.steps"
    step=$(median "$work/steps")
    [ "$name" != all ] || first=$step
    awk "BEGIN { print $step / $first }" >>"$work/$name.ratios"
    tail -n 1 "$work/m" >"$work/final"
    sed -n 's/.*"digest":"\([0-9a-f]*\)".*/\1/p' "$work/final" >>"$work/digests"
    sed 's/.*"profile"://' "$work/final" | grep -o '"\(REDUCE\|ALL_REDUCE\|GATHER\)_WAIT":{[^}]*}' |
        sed 's/.*"seconds":\([^,]*\),.*/\1/' |
        awk -v n=$steps '{ sum += $1 } END { print sum / n }' >>"$work/$name.waits"
    sed 's/"control".*//; s/"profile".*//' "$work/final" >"$work/ledgers"
    sed 's/.*"all_reduce"/"all_reduce"/; s/"profile".*//' "$work/final" |
        grep '^"all_reduce"' >>"$work/ledgers" || true
    grep -o '"across_nodes":{"bytes_sent":[0-9]*' "$work/ledgers" | grep -o '[0-9]*$' |
        awk -v n=$steps '{ sum += $1 } END { print sum / n }' >>"$work/$name.bytes"
}

for type in fp32 bf16; do
    : >"$work/digests"
    rm -f "$work"/*.steps "$work"/*.waits "$work"/*.bytes "$work"/*.ratios
    round=0
    while [ $round -lt "$rounds" ]; do
        train all --dtype $type "$@"
        train shard-ranks --dtype $type --shard-ranks 2 "$@"
        train node-parameters --dtype $type --node-parameters "$@"
        round=$((round + 1))
    done
    [ "$(sort -u "$work/digests" | wc -l)" -eq 1 ] || echo "the digests differ"
    printf '\n%-20s %12s %8s %12s %22s\n' "$type, $rounds rounds" 'ms per step' ratio 'ms waited' \
        'MB to the other node'
    for name in all shard-ranks node-parameters; do
        printf '%-20s %12.0f %8.2f %12.0f %22.1f\n' $name \
            "$(median "$work/$name.steps" | awk '{ print 1e3 * $1 }')" \
            "$(median "$work/$name.ratios")" \
            "$(median "$work/$name.waits" | awk '{ print 1e3 * $1 }')" \
            "$(median "$work/$name.bytes" | awk '{ print 1e-6 * $1 }')"
    done
done

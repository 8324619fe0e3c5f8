# hybrid.sh ZERO: replicas on several nodes, and parameters that nodes keep, give the bits of a run on one
# node. Ranks that shard together on one node send no parameters to another.
. "$(dirname "$0")/common.sh"
zero=$1

# trains RANKS,RANKS,... [OPTIONS OF zero train...]: sets $found to the digest.
trains() {
    ranks=$1
    shift
    rm -f metrics
    on hybrid "$ranks" -- "$zero" train $small --steps 5 "$@" --metrics "$work/metrics"
    exits 0 hybrid
    found=$(digest_of metrics)
}

# expect RANKS,RANKS,... [OPTIONS...]
expect() {
    start=$(now)
    trains "$@"
    echo "$*: $found in $(($(now) - start)) ms"
    [ "$found" = "$alone" ] || complain "$*: digest $found, on one node $alone"
}

# across OP: bytes that rank 0 has sent to other nodes, in all its steps.
across() {
    tail -n 1 metrics |
        sed "s/.*\"$1\":{//; s/\"across_nodes\":{\"bytes_sent\":\([0-9]*\).*/@\1/; s/.*@//"
}

up hybrid 4
trains 4
alone=$found
is_digest "$alone"
expect 2,2 --stage 1 --shard-ranks 2
expect 1,1,1,1 --stage 2 --shard-ranks 2
expect 2,2 --stage 3 --shard-ranks 1

for type in fp32 bf16; do
    trains 4 --dtype $type
    alone=$found
    expect 2,2 --dtype $type --stage 3
    whole=$(across gather)
    expect 2,2 --dtype $type --stage 3 --shard-ranks 2
    for op in reduce gather; do
        [ "$(across $op)" = 0 ] || complain "$words: $op sends $(across $op) bytes to other nodes"
    done
    [ "$(across all_reduce)" -gt 0 ] || complain "$words: replicas exchange nothing"
    expect 2,2 --dtype $type --stage 3 --node-parameters
    [ "$(across gather)" -lt "$whole" ] ||
        complain "$words: $(across gather) bytes gathered between nodes, $whole without"
done
finish

# train.sh ZERO: training on several nodes gives the same bits as on one node, in every stage.
. "$(dirname "$0")/common.sh"
zero=$1
collectives='p2p hier auto'

# digest RANKS,RANKS,... ALGORITHM [OPTIONS OF zero train...]: trains; sets $found to the digest.
digest() {
    ranks=$1 algorithm=$2
    shift 2
    rm -f metrics
    on train "$ranks" -- "$zero" train $small --steps 10 --collectives "$algorithm" "$@" \
        --metrics "$work/metrics"
    exits 0 train
    grep -q "^zero .* 4 ranks, ${ranks%%,*} on this node" train.out ||
        complain "$words: expected ${ranks%%,*} of 4 ranks on node 0"
    found=$(digest_of metrics)
}

expect_digest() { # expect_digest RANKS,RANKS,... ALGORITHM [OPTIONS...]
    start=$(now)
    digest "$@"
    echo "$*: $found in $(($(now) - start)) ms"
    [ "$found" = "$alone" ] || complain "$*: digest $found, on one node $alone"
}

alone_is() {
    digest 4 p2p "$@"
    alone=$found
    is_digest "$alone"
}

up train 3
alone_is
for algorithm in $collectives; do
    for ranks in 2,2 1,2,1; do
        expect_digest $ranks "$algorithm"
    done
done
# Each node stores the parameters once, and pieces of them are gathered between nodes.
for type in fp32 bf16; do
    alone_is --dtype $type
    for stage in 1 2 3; do
        expect_digest 2,2 hier --dtype $type --stage $stage
    done
    expect_digest 1,2,1 hier --dtype $type --stage 3 --prefetch 2
    expect_digest 2,2 hier --dtype $type --stage 3 --partition owner
    expect_digest 1,2,1 p2p --dtype $type --stage 3
done
finish

#!/bin/sh
# bench_collectives between nodes: network namespaces of this machine with links of 1 Gbit/s, which
# carry 120 MB/s of payload (tests/multinode/nodes.sh; needs root on Linux).
#
#     sh bench/link.sh [BUILD FOLDER [OPTIONS OF bench_collectives]]      (build by default)
#
# Without options: the table and the backward pass on 2 nodes of 2 ranks, and the overlap there and
# with 1 rank per node. With options: one run on 2 nodes of 2 ranks.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../build}
[ $# -eq 0 ] || shift
program=$(cd "$build" && pwd)/bench_collectives
nodes=$here/../tests/multinode/nodes.sh
export ZERO_NODES_OWNER=$$

sh "$nodes" possible
sh "$nodes" up bench 2 1gbit
trap 'sh "$nodes" down bench' EXIT
trap 'exit 1' INT TERM

measure() {
    ranks=$1
    shift
    printf '\n# ranks %s: bench_collectives %s\n' "$ranks" "$*"
    sh "$nodes" run bench "$ranks" -- "$program" --wire 120 "$@"
}

if [ $# -gt 0 ]; then
    measure 2,2 "$@"
    exit
fi
measure 2,2 --sizes 16MiB,64MiB --types fp32 --kinds reduce-scatter,all-gather --rounds 9
measure 1,1 --overlap --algorithms mpi,p2p,hier --rounds 9
measure 2,2 --overlap --rounds 9
measure 2,2 --backward --rounds 9

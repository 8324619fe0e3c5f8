# try.sh ZERO: one job on nodes that are made for it. Its ranks, rate and delay are arguments, and
# nothing is left of the nodes.
. "$(dirname "$0")/common.sh"
zero=$1

# try_out RANKS,RANKS,... RATE DELAY: trains; sets $code.
try_out() {
    words="try $*"
    timeout -k 5 $limit $nodes try "$@" -- "$zero" train $small --steps 4 \
        --collectives hier --metrics "$work/try.metrics" >try.out 2>&1
    code=$?
}

# median_ms: prints the median step of the last job, in ms.
median_ms() {
    sed -n 's/.*"step_seconds":\([0-9.e-]*\).*/\1/p' try.metrics | sort -g |
        awk '{ x[NR] = 1000 * $1 } END { printf "%d", x[int((NR + 1) / 2)] }'
}

try_out 1,2,1 none 0
exits 0 try
grep -q '4 ranks, 1 on this node' try.out || complain "$words: expected 1 of 4 ranks on node 0"
grep -q 'fake' try.out && complain "$words: these nodes are not fake"
fast=$(median_ms)
try_out 1,2,1 10mbit 0
exits 0 try
slow=$(median_ms)
echo "a step of $fast ms takes $slow ms with links of 10 Mbit/s"
# A node receives two thirds of 331 kB twice a step, in 353 ms. Without the rate a step takes a few ms,
# and on a busy machine a hundred.
[ "$slow" -ge 200 ] || complain "$words: a step took $slow ms, expected 200 or more"
# The links were tried, and such ones get small messages.
grep -q ' between nodes, by a trial; messages of up to 60.00 KiB, and ranks keep pace' try.out ||
    complain "$words: expected what a trial of its links says; $(grep wire try.out)"
grep -q '"wire":{[^}]*"message":61440}' try.metrics || complain "$words: no such message in the metrics"

if (unshare --net tc qdisc replace dev lo root netem delay 1ms) 2>/dev/null; then
    try_out 1,2,1 none 20ms
    exits 0 try
    [ "$(median_ms)" -ge 20 ] || complain "$words: a step took $(median_ms) ms, expected 20 or more"
else
    try_out 1,2,1 none 20ms
    exits 1 try
    grep -q 'this kernel cannot delay packets (netem)' try.out || complain "$words: $(cat try.out)"
fi
for left in /tmp/zero-nodes.try.*; do
    [ ! -O "$left" ] || kill -0 "${left##*.}" 2>/dev/null || complain "left behind: $left"
done
finish

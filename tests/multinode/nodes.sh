#!/bin/sh
# Several nodes on one machine, for tests between nodes, and to try what networks cost. Needs root,
# iproute2, util-linux and Open MPI 4. Each node has its own network and host name, by which Open
# MPI tells nodes apart. mpirun runs on one more node, the head. Ranks of one node share memory;
# nodes are connected by TCP over links that can be slow or cut:
#
#     n0  10.77.0.1 e0 --- p0 +------------+
#     n1  10.77.0.2 e0 --- p1 | bridge br0 | head  10.77.0.254
#     n2  10.77.0.3 e0 --- p2 +------------+
#
#   nodes.sh try RANKS,RANKS,... RATE|none DELAY|0 [OPTIONS OF mpirun] -- PROGRAM WORDS...
#                                        one job on nodes that are made for it and removed after it
#   nodes.sh possible [delay]            exits with 0, or says why nodes cannot be made here
#   nodes.sh up NAME N [RATE [DELAY]]    N nodes; RATE and DELAY as tc writes them: 1gbit, 50us
#   nodes.sh rate NAME RATE|none [DELAY] what each link carries in each direction
#   nodes.sh run NAME RANKS,RANKS,... [OPTIONS OF mpirun] -- PROGRAM WORDS...
#                                        that many ranks on node 0, on node 1, ...
#   nodes.sh in NAME NODE|head COMMAND...
#   nodes.sh pids NAME NODE|head COMMAND prints the processes of this name
#   nodes.sh cut NAME NODE, heal NAME NODE
#   nodes.sh left NAME                   prints what jobs have left behind: processes and files
#   nodes.sh down NAME
#
# DELAY is the time from one node to another; it needs a kernel with netem. Example:
#
#     sh tests/multinode/nodes.sh try 2,2 1gbit 0 -- $PWD/build/zero train --stage 3 --steps 20
#
# NAME belongs to the calling process, or to the one whose PID is in ZERO_NODES_OWNER, so several
# callers may use the same name. Nodes end with their owner, even if it is killed. Their files are
# in /tmp/zero-nodes.NAME.OWNER. MPIRUN replaces the mpirun in PATH.
set -eu

self=$(cd "$(dirname "$0")" && pwd)/nodes.sh
owner=${ZERO_NODES_OWNER:-$PPID}
mpirun=${MPIRUN:-mpirun}

# A node that no longer answers is given up after 10 + 3 * 5 s; the default is 8 minutes.
keepalive='--mca oob_tcp_keepalive_time 10 --mca oob_tcp_keepalive_intvl 5
    --mca oob_tcp_keepalive_probes 3'

# A connection that has data to send is not probed. It is given up after this many attempts to send
# again, which take 25 s; the kernel's 15 take as many minutes.
attempts=6

fail() {
    echo "nodes.sh: $*" >&2
    exit 1
}

# All processes on our nodes have the path of the nodes' directory in their environment.
members() {
    grep -lsxzF "ZERO_NODES=$1" /proc/[0-9]*/environ | cut -d/ -f3
}

clear_away() {
    while pids=$(members "$1") && [ -n "$pids" ]; do
        # shellcheck disable=SC2086 # one word each
        kill -9 $pids 2>/dev/null || true
        sleep 0.02
    done
    id=${1#/tmp/zero-nodes.}
    rm -rf "$1" /dev/shm/vader_segment.n*-"${id%.*}-${id##*.}".*
}

# An owner that was killed could not remove its nodes.
sweep() {
    for old in /tmp/zero-nodes.*.*; do
        if [ -O "$old" ] && ! kill -0 "${old##*.}" 2>/dev/null; then clear_away "$old"; fi
    done
}

# enter NODE|head COMMAND...: replaces this process with the command on the node.
enter() {
    pid=$(cat "$state/node.$1") || fail "there is no node $1"
    shift
    ZERO_NODES=$state exec nsenter --target "$pid" --net --uts "$@"
}

can_delay() {
    found=$(unshare --net sh -c 'tc qdisc replace dev lo root netem delay 1ms' 2>&1) ||
        fail "this kernel cannot delay packets (netem); give a delay of 0: $found"
}

possible() {
    [ "$(uname)" = Linux ] || fail "network namespaces need Linux, this is $(uname)"
    [ "$(id -u)" -eq 0 ] || fail "only root may make network namespaces, this is user $(id -u)"
    for command in ip tc unshare nsenter hostname setsid "$mpirun"; do
        command -v "$command" >/dev/null || fail "there is no command $command"
    done
    "$mpirun" --version 2>&1 | grep -q '(Open\(RTE\| MPI\)) 4\.' ||
        fail "expected mpirun of Open MPI 4, found $("$mpirun" --version 2>&1 | head -n 1)"
    found=$(unshare --net --uts sh -c 'hostname n0 && ip link add br0 type bridge &&
        ip link add p0 type veth peer name e0 && ip link set p0 master br0 up &&
        tc qdisc replace dev e0 root tbf rate 1gbit burst 256k latency 20ms' 2>&1) ||
        fail "no network namespace with bridge, veth and tbf: $found"
    [ "${1-0}" = 0 ] || can_delay
}

up() {
    if [ "${2-0}" -lt 1 ] || [ "$2" -gt 200 ]; then fail "up NAME N [RATE]: N is 1 to 200"; fi
    [ "${4-0}" = 0 ] || can_delay
    sweep
    mkdir -m 700 "$state" || fail "$1 is up already"
    mkdir "$state/tmp"
    ls -A /dev/shm >"$state/shm" 2>/dev/null || true
    ZERO_NODES=$state setsid unshare --net --uts sh "$self" keep "$1" "$2" "$owner" \
        </dev/null >"$state/log" 2>&1 &
    until [ -e "$state/ready" ]; do
        kill -0 $! 2>/dev/null || {
            cat "$state/log" >&2
            clear_away "$state"
            fail "the nodes of $1 did not come up"
        }
        sleep 0.02
    done
    [ -z "${3-}" ] || set_rate "$3" "${4-0}"
}

# The head makes the nodes, watches their owner, and removes everything after it.
keep() {
    echo $$ >"$state/node.head"
    hostname "head-$name-$owner"
    limit_attempts
    ip link set lo up
    ip link add br0 type bridge
    ip link set br0 up
    ip addr add 10.77.0.254/24 dev br0
    k=0
    while [ $k -lt "$1" ]; do
        add_node $k
        k=$((k + 1))
    done
    printf '#!/bin/sh\nexec sh "%s" agent "%s" "$@"\n' "$self" "$state" >"$state/agent"
    chmod +x "$state/agent"
    tail --pid="$owner" -f /dev/null &
    watch=$!
    members "$state" >"$state/ours"
    : >"$state/ready"
    wait $watch
    exec env -u ZERO_NODES sh "$self" sweep
}

# Of this network namespace. Where /proc may not be written, the kernel's number stays.
limit_attempts() {
    { echo $attempts >/proc/sys/net/ipv4/tcp_retries2; } 2>/dev/null || true
}

add_node() {
    # shellcheck disable=SC2016 # expanded there
    unshare --net --uts sh -c 'hostname "n$0-$2" && ip link set lo up &&
        : >"$1/up.$0" && exec tail -f /dev/null' "$1" "$state" "$name-$owner" &
    pid=$!
    echo $pid >"$state/node.$1"
    until [ -e "$state/up.$1" ]; do
        kill -0 $pid
        sleep 0.01
    done
    ip link add "p$1" type veth peer name e0 netns $pid
    ip link set "p$1" master br0 up
    nsenter --target $pid --net sh -c "echo $attempts >/proc/sys/net/ipv4/tcp_retries2" \
        2>/dev/null || true
    nsenter --target $pid --net ip addr add "10.77.0.$(($1 + 1))/24" dev e0
    nsenter --target $pid --net ip link set e0 up
}

# set_rate RATE|none [DELAY]: a node delays what it sends, so the way to another node has it once.
set_rate() {
    words="root handle 1: tbf rate $1 burst 256k latency 20ms" below="parent 1:"
    [ "$1" != none ] || words="root noqueue" below="root"
    for file in "$state"/node.[0-9]*; do
        k=${file##*.}
        # shellcheck disable=SC2086 # words
        (enter "$k" tc qdisc replace dev e0 $words)
        # shellcheck disable=SC2086
        (enter head tc qdisc replace dev "p$k" $words)
        [ "${2-0}" = 0 ] ||
            # shellcheck disable=SC2086
            (enter "$k" tc qdisc replace dev e0 $below netem delay "$2" limit 1000000)
    done
}

# try RANKS,RANKS,... RATE|none DELAY|0 WORDS...
try() {
    [ $# -ge 5 ] || fail "try RANKS,RANKS,... RATE|none DELAY|0 [OPTIONS] -- PROGRAM WORDS..."
    ranks=$1 rate=$2 delay=$3
    shift 3
    possible "$delay"
    [ ! -d "$state" ] || fail "$state is there already"
    trap 'clear_away "$state"' EXIT
    trap 'exit 1' HUP INT TERM
    up "$name" "$(echo "$ranks" | tr , '\n' | wc -l)" "$rate" "$delay"
    (run "$ranks" "$@")
}

heal() {
    (enter head ip link set "p$1" up)
    until (enter "$1" ip link show e0) | grep -q 'state UP'; do sleep 0.1; done
    (enter "$1" ip neigh flush dev e0)
    (enter head ip neigh flush dev br0)
}

run() {
    hosts='' total=0 k=0
    for n in $(echo "$1" | tr , ' '); do
        k=$((k + 1))
        [ -e "$state/node.$((k - 1))" ] || fail "run $1: there is no node $((k - 1))"
        [ "$n" -eq 0 ] || hosts="$hosts,10.77.0.$k:$n"
        total=$((total + n))
    done
    shift
    todo=$# before=1
    while [ $todo -gt 0 ]; do # all words but the first --
        if [ $before -eq 1 ] && [ "$1" = -- ]; then before=0; else set -- "$@" "$1"; fi
        shift
        todo=$((todo - 1))
    done
    export TMPDIR="$state/tmp" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    # shellcheck disable=SC2086 # words
    enter head "$mpirun" -n $total --host "${hosts#,}" --map-by :OVERSUBSCRIBE --bind-to none \
        --mca plm_rsh_agent "$state/agent" --mca oob_tcp_if_include 10.77.0.0/24 \
        --mca btl_tcp_if_include 10.77.0.0/24 $keepalive "$@"
}

# agent [-OPTION...] HOST WORDS...: mpirun calls this in place of ssh.
agent() {
    while [ "${1#-}" != "$1" ]; do shift; done
    k=$((${1##*.} - 1))
    shift
    enter $k sh -c "$*"
}

pids() {
    node=$(readlink "/proc/$(cat "$state/node.$1")/ns/net")
    for pid in $(members "$state"); do
        [ "$(readlink "/proc/$pid/ns/net")" = "$node" ] || continue
        [ "$(cat "/proc/$pid/comm")" != "$2" ] || echo "$pid"
    done 2>/dev/null
}

# Open MPI's segments in /dev/shm contain the node's name. Those of other jobs are ignored.
left() {
    members "$state" | grep -vxFf "$state/ours" | while read -r pid; do
        echo "process $pid: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
    done 2>/dev/null
    find "$state/tmp" -type f 2>/dev/null | sed 's/^/file /'
    find /dev/shm -mindepth 1 -maxdepth 1 -printf '%f\n' 2>/dev/null |
        grep -vxFf "$state/shm" | while read -r file; do
        case $file in
            vader_segment.n*"-$name-$owner".*) ;;
            vader_segment.* | zero-power-loss.*) continue ;; # of storage tests
        esac
        echo "file /dev/shm/$file"
    done
}

verb=${1-}
[ $# -gt 0 ] && shift
case $verb in
    possible | sweep)
        $verb "$@"
        exit
        ;;
    try)
        name=try owner=$$
        state=/tmp/zero-nodes.$name.$owner
        try "$@"
        exit
        ;;
    agent)
        state=$1
        shift
        agent "$@"
        ;;
    up | keep | rate | run | in | pids | cut | heal | left | down) ;;
    *)
        sed -n 's/^#   //p' "$self" >&2
        exit 2
        ;;
esac
name=${1-}
case $name in '' | *[!A-Za-z0-9]*) fail "$verb NAME: letters and digits, found '$name'" ;; esac
[ "$verb" != keep ] || owner=$3
state=/tmp/zero-nodes.$name.$owner
[ "$verb" = up ] || [ -d "$state" ] || fail "$name is not up"
[ "$verb" = up ] || shift
case $verb in
    up | keep | run | pids | heal | left) $verb "$@" ;;
    rate) set_rate "$@" ;;
    in) enter "$@" ;;
    cut) enter head ip link set "p$1" down ;;
    down) clear_away "$state" ;;
esac

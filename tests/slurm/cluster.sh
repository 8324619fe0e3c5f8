# The scripts of this folder read this file first. It makes a Slurm of its own: four slurmd and a
# slurmctld on the nodes of ../multinode/nodes.sh, and a munged. Their configuration, logs and
# sockets lie in $slurm; a Slurm of this machine is neither asked nor touched. The daemons have the
# mark of these nodes, so they end with them, even if this script is killed.
tests=$(cd "$(dirname "$0")/.." && pwd)
nodes="sh $tests/multinode/nodes.sh"
export ZERO_NODES_OWNER=$$
PATH=$PATH:/usr/sbin:/sbin
packages='munge slurmctld slurmd slurm-client'
count=4
failed=0

skip() {
    echo "skipped: $*"
    exit 77
}

reason=$($nodes possible 2>&1) || skip "$reason"
for command in munged slurmctld slurmd srun sbatch scontrol scancel squeue; do
    command -v $command >/dev/null ||
        skip "there is no command $command (Debian: apt-get install $packages)"
done

work=$(mktemp -d) && cd "$work" || exit 1
trap '$nodes down slurm; cd / && rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

complain() {
    echo "FAILED: $*"
    failed=$((failed + 1))
}

finish() {
    [ $failed -eq 0 ] || echo "$failed checks failed"
    [ $failed -eq 0 ]
    exit
}

# await SECONDS COMMAND...: repeats the command until it succeeds; fails after that time.
await() {
    until=$(($(date +%s) + $1))
    shift
    until "$@"; do
        [ "$(date +%s)" -lt $until ] || return 1
        sleep 0.2
    done
}

on() { # on NODE|head COMMAND...
    $nodes in slurm "$@"
}

# daemon NODE|head NAME WORDS...: starts it in the background. Each node has a $slurm/pmix of its own,
# where PMIx would otherwise find files of the same names.
daemon() {
    where=$1
    shift
    # shellcheck disable=SC2016 # expanded there
    on "$where" unshare --mount sh -c 'mkdir "$0/pmix.$1" && mount --make-rprivate / &&
        mount --bind "$0/pmix.$1" "$0/pmix" && shift && exec "$@"' "$slurm" "$where" "$@" \
        </dev/null >"$slurm/$1.$where.out" 2>&1 &
}

# Without config_overrides a node with fewer CPUs than it is said to have would not be used.
configure() {
    cat >"$slurm/slurm.conf" <<END
ClusterName=zero
SlurmctldHost=$(on head hostname)(10.77.0.254)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$slurm/munge
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool.%n
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd.%n.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdLogFile=$slurm/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2
ReturnToService=2
MpiDefault=none
KillWait=5
END
    k=0
    while [ $k -lt $count ]; do
        echo "NodeName=n$k NodeHostname=$(on $k hostname) NodeAddr=10.77.0.$((k + 1)) CPUs=2"
        k=$((k + 1))
    done >>"$slurm/slurm.conf"
    echo "PartitionName=all Nodes=ALL Default=YES State=UP" >>"$slurm/slurm.conf"
    # None is used; without this line it would look for version 2.
    echo "CgroupPlugin=cgroup/v1" >"$slurm/cgroup.conf"
    echo "PMIxCliTmpDirBase=$slurm/pmix" >"$slurm/mpi.conf"
}

all_idle() {
    [ "$(on head sinfo -h -o %T 2>/dev/null)" = idle ]
}

logs() {
    tail -n 20 "$slurm"/*.out "$slurm"/*.log
}

$nodes up slurm $count || exit 1
slurm=/tmp/zero-nodes.slurm.$$/slurm
export SLURM_CONF="$slurm/slurm.conf"
mkdir "$slurm" "$slurm/pmix" "$slurm/state"
configure
on head srun --mpi=list >list 2>&1 || complain "srun --mpi=list: $(cat list)"
grep -q pmix list || skip "this Slurm has no plugin for PMIx: $(tr '\n' ' ' <list)"
dd if=/dev/urandom of="$slurm/key" bs=1024 count=1 2>/dev/null
chmod 400 "$slurm/key"
daemon head munged --foreground --force --socket="$slurm/munge" --key-file="$slurm/key" \
    --pid-file="$slurm/munged.pid" --log-file="$slurm/munged.log" --seed-file="$slurm/seed"
await 60 test -S "$slurm/munge" || complain "munged did not start: $(logs)"
rm -rf "$slurm/pmix.head"
daemon head slurmctld -D
k=0
while [ $k -lt $count ]; do
    daemon $k slurmd -D -N n$k
    k=$((k + 1))
done
await 300 all_idle || {
    complain "the nodes are not idle after five minutes: $(on head sinfo; logs)"
    finish
}

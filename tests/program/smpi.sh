# The same program under SimGrid's SMPI, another MPI, in which 16 ranks are threads of one process on
# four simulated hosts: it ends with the digests that it has under this build's MPI. So neither
# depends on what an MPI does with messages that are under way, or on globals of a process.
#
# -no-privatize: ranks share one copy of the program, which has no globals but a list of what its threads
# wait for (base/waiting.h). With --tp the digest needs --cfg=smpi/send-is-detached-thresh:100000000: in
# SimGrid 3.32 a nonblocking all-reduce in place of more than 64 KiB gives wrong sums.
. "$(dirname "$0")/common.sh"
source=$(cd "$(dirname "$0")/../.." && pwd)
ranks=16

for tool in smpicc smpirun; do
    command -v $tool >/dev/null || skip "SimGrid's $tool is not installed (Debian: libsimgrid-dev)"
done

# What configure tries must run without smpirun, so its compiler pretends to be a usual one.
SMPI_PRETEND_CC=1 "${CMAKE:-cmake}" -B build -S "$source" -DCMAKE_C_COMPILER=smpicc \
    -DZERO_NATIVE="${NATIVE:-ON}" -DZERO_TESTS=OFF -DZERO_BENCH=OFF -DZERO_CUDA=OFF >log 2>&1 &&
    "${CMAKE:-cmake}" --build build --parallel 2 --target zero >log 2>&1 || {
    echo "FAILED: the program does not build with smpicc"
    grep -A 8 -iE 'error' log || tail -n 20 log
    exit 1
}

cat >platform.xml <<'END'
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="host" suffix="" radical="0-3" speed="1Gf" bw="1GBps" lat="10us" core="4"/>
</platform>
END
for host in 0 1 2 3; do
    printf "host$host\nhost$host\nhost$host\nhost$host\n"
done >hosts

# simulated SETTING words...: runs zero under SMPI. Time passes only in messages and in looks for
# them. Ranks share all variables: the program has none but a list of what its threads wait for. SETTING
# is one of SMPI's.
simulated() {
    setting=$1
    shift
    words="smpirun zero $* ($ranks ranks)"
    smpirun -np $ranks -platform platform.xml -hostfile hosts -no-privatize "--cfg=$setting" \
        --cfg=smpi/simulate-computation:no --log=root.thresh:warning build/zero "$@" >out 2>err
    code=$?
    exits 0
}

# agrees SETTING words...: the digests are equal.
agrees() {
    setting=$1
    shift
    job="train --layers 1 --hidden 16 --heads 2 --seq 8 --global-batch 16 --steps 3 --clip 1
        --data stories:300K --tokenizer byte --eval-every 0 --sample 0 --collectives p2p"
    # shellcheck disable=SC2086 # words
    runs $ranks $job "$@"
    expected=$(digest_of out)
    # shellcheck disable=SC2086 # words
    simulated "$setting" $job "$@"
    says '4 nodes;' out
    [ -n "$expected" ] && [ "$(digest_of out)" = "$expected" ] ||
        complain "$words: the digest is '$(digest_of out)', expected '$expected'"
}

usual=smpi/send-is-detached-thresh:65536
agrees $usual --stage 0
agrees $usual --stage 3
agrees $usual --stage 3 --shard-ranks 4 --dtype bf16
# Above this many bytes SMPI's nonblocking all-reduce in place gives wrong sums. With TP the digest
# has such a message; nothing else has.
agrees smpi/send-is-detached-thresh:100000000 --stage 3 --tp 2
finish

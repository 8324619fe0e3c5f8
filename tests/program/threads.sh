# Threads of a rank (--threads): any number has the digest of one, plans count their workspaces, and they
# run on cores that nobody else was given.
. "$(dirname "$0")/common.sh"
run="--layers 2 --hidden 48 --heads 3 --seq 32 --data stories:16K --tokenizer byte --steps 3
    --eval-every 2 --sample 20 --global-batch 6"

if "$zero" info --json | grep -q '"threads_in_a_rank": false'; then
    refuses 3 'this build has no OpenMP' 0 train $run --threads 2
    OMP_NUM_THREADS=3 runs 0 train $run --checkpoint ck
    refuses 3 'this build has no OpenMP' 0 generate ck --threads 2
    finish
fi

digest() { # digest RANKS OPTIONS...: of a run
    ranks=$1
    shift
    runs "$ranks" train $run "$@" >&2
    sed -n 's/^  digest *//p' out
}

# All types, stages and numbers of ranks.
for type in fp32 bf16 fp16; do
    one=$(digest 0 --dtype $type --micro-batch 2)
    [ ${#one} -eq 32 ] || complain "$type: no digest: $one"
    alone=$(digest 3 --dtype $type --micro-batch 2)
    stage=0
    for threads in 2 3 4 7; do
        again=$(digest 0 --dtype $type --micro-batch 2 --threads $threads)
        [ "$again" = "$one" ] || complain "$type, $threads threads: $again, with one $one"
        three=$(digest 3 --dtype $type --stage $stage --micro-batch 2 --threads $threads)
        [ "$three" = "$alone" ] ||
            complain "$type, stage $stage, $threads threads: $three, with one $alone"
        stage=$((stage + 1))
    done
done

# Sums in slices, dropout, and the steps that are computed twice.
for more in '--tp 2 --tp-slices 2 --hidden 64 --heads 4' \
    '--dropout 0.1 --recompute --stage 2' '--reproducible --global-batch 4'; do
    one=$(digest 2 $more --micro-batch 1)
    two=$(digest 2 $more --micro-batch 1 --threads 3)
    [ "$one" = "$two" ] || complain "$more: $two with 3 threads, $one with one"
done

# A plan has the workspaces of all threads, and a run needs what was planned.
for threads in 1 3; do
    runs 3 train $run --micro-batch 2 --stage 3 --threads $threads --metrics m$threads
    check 3 3 m$threads bits
    runs 0 plan $run --micro-batch 2 --stage 3 --ranks 3 --threads $threads --json
    workspace=$(tr -d ' \n' <out | sed 's/.*"workspace":{"own_peak":\([0-9]*\).*/\1/')
    eval "workspace_$threads=$workspace"
done
[ "$workspace_3" -gt $((workspace_1 + 2 * 2097152)) ] ||
    complain "workspaces: $workspace_1 with one thread, $workspace_3 with three"

# Texts: any number of threads, given or found, writes those of one.
runs 0 train $run --checkpoint ck
printf 'Once upon a time\nThe cat\n' >lines
for dtype in fp32 bf16; do
    runs 0 generate ck --prompts lines --tokens 40 --dtype $dtype
    mv out texts
    runs 3 generate ck --prompts lines --tokens 40 --dtype $dtype --stage 3 --threads 2
    same texts out "texts in $dtype, by 3 ranks of 2 threads"
    for threads in 3 7; do
        runs 0 generate ck --prompts lines --tokens 40 --dtype $dtype --threads $threads
        same texts out "texts in $dtype, by $threads threads"
    done
done
refuses 2 'this machine runs' 0 generate ck --threads 4096
refuses 2 'expected a whole number from 1 to 4096' 0 generate ck --threads 0

# Cores: this machine's launcher decides, or the topology of another one.
if [ "$(uname -s)" = Linux ] && taskset -c 0 true 2>/dev/null; then
    taskset -c 0 "$zero" train $run --threads 2 >out 2>err || complain "taskset failed"
    [ "$(nproc --all)" -eq 1 ] || says '; anywhere on what the launcher gave the rank: CPUs 0' out
    [ "$(nproc --all)" -eq 1 ] || says '2 threads per rank, but a rank is bound to 1 core' err
fi
# Each thread has a core, whose claim ends with the run; a core that another run has is left to it.
HWLOC_SYNTHETIC='numa:2 core:4 pu:1' "$zero" train $run --threads 3 >out 2>err
says '  threads       3 per rank, because of --threads; each on a core of its own, NUMA node 0, CPUs 0-2' out
HWLOC_SYNTHETIC='numa:2 core:4 pu:1' "$zero" train $run --threads 5 >out 2>err
says '; each on a core of its own: CPUs 0-4' out
"$zero" train $run --threads 2 >out 2>err
if [ "$(nproc)" -gt 1 ] && [ "$(nproc)" -eq "$(nproc --all)" ]; then
    grep -Eq '; (each on a core of its own: CPUs |not bound: other runs keep the cores)' out ||
        complain "2 threads: no word of their cores: $(grep threads out)"
    ! grep -q 'is bound to' err || complain "2 threads: $(cat err)"
fi
# mpirun binds one rank to one core unless it is told otherwise; then all cores are the rank's.
mpirun=${launch%% *}
if [ "$(nproc)" -gt 1 ] && $mpirun --version 2>/dev/null | grep -q 'Open MPI) 4'; then
    $mpirun -n 1 "$zero" train $run --threads 2 >out 2>err || complain "mpirun -n 1 failed"
    ! grep -q 'is bound to' err || complain "mpirun -n 1: $(cat err)"
    $mpirun -n 1 --bind-to core "$zero" train $run --threads 2 >out 2>err ||
        complain "mpirun --bind-to core failed"
    says '2 threads per rank, but a rank is bound to 1 core' err
fi
OMP_PROC_BIND=false "$zero" train $run --threads 2 >out 2>err
says "; bound by OpenMP's own variables" out
finish

# srun.sh ZERO LAUNCH...: zero under Slurm, on four nodes: the launchers that Slurm has, signals, and
# the script that users start from.
. "$(dirname "$0")/cluster.sh"
zero=$1
shift
launch=$*
small='train --layers 2 --hidden 48 --heads 3 --seq 32 --global-batch 8 --data stories:64K
    --eval-every 0 --sample 0 --stage 3'
steps=300
$(echo "$launch" | sed 's/RANKS/8/') "$zero" $small --steps $steps >out 2>&1
grep digest out
grep -E 'time  ' out
time on head srun --mpi=pmix -N4 -n8 $zero $small --steps $steps >out 2>&1
grep -E 'digest|time  ' out
export OMPI_MCA_mpi_yield_when_idle=1 
time on head srun --mpi=pmix -N4 -n8 $zero $small --steps $steps  >out 2>&1
grep -E 'digest|time  ' out
for how in ; do
time on head srun --mpi=$how -N4 -n8 $zero $small --steps $steps  >out 2>&1
echo $?; cat out; done
finish

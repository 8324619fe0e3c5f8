# ends.sh ZERO: a job that ends in any way ends as a whole and leaves nothing behind. After a crash
# that takes less than a second, and on a busy machine at most 30 s: ranks that nobody ends would wait
# for the watchdog, two minutes.
. "$(dirname "$0")/common.sh"
zero=$1
up ends 2

for ranks in 4 2,2; do
    on ends $ranks -- "$zero" train $small --steps 5
    exits 0 ends
    on ends $ranks -- "$zero" train $small --micro-batch 3
    exits 2 ends
    on ends $ranks -- "$zero" train $small --steps 500 --lr 100 --warmup 0 --clip 0 --eps 1e-30 \
        --weight-decay 100
    exits 1 ends
done

begin ends 4
since=$(now)
kill -9 "$($nodes pids ends 0 "$(basename "$zero")" | tail -n 1)"
ends ends $job "$since" 30000 "one of 4 ranks killed"

begin ends 2,2
since=$(now)
kill -9 "$($nodes pids ends 1 "$(basename "$zero")" | tail -n 1)"
ends ends $job "$since" 30000 "one of 2 x 2 ranks killed"

begin ends 2,2
since=$(now)
strike ends 0 1
ends ends $job "$since" 30000 "all of 2 x 2 ranks killed"

# Open MPI's daemons remove the files on their nodes, but no process removes those of mpirun.
begin ends 2,2
since=$(now)
kill -9 "$($nodes pids ends head "$(basename "${MPIRUN:-mpirun}")")"
ends ends $job "$since" 30000 "mpirun killed" '^file /tmp/.*/ompi\.head'
finish

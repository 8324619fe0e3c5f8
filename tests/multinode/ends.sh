# However a job ends, all of it ends and leaves nothing behind: ends.sh ZERO
# An end that nobody asked for takes at most 5 s.
. "$(dirname "$0")/common.sh"
zero=$1
up ends 2

for ranks in 4 2,2; do
    on ends $ranks -- "$zero" train $small --steps 5
    [ $code -eq 0 ] || complain "$words: exit code $code: $(cat ends.out)"
    on ends $ranks -- "$zero" train $small --micro-batch 3
    [ $code -eq 2 ] || complain "$words: exit code $code, expected 2: $(cat ends.out)"
    on ends $ranks -- "$zero" train $small --steps 500 --lr 100 --warmup 0 --clip 0 --eps 1e-30 \
        --weight-decay 100
    [ $code -eq 1 ] || complain "$words: exit code $code, expected 1: $(cat ends.out)"
done

begin ends 4
since=$(now)
kill -9 "$($nodes pids ends 0 "$(basename "$zero")" | tail -n 1)"
ends ends $job "$since" 5000 "one of 4 ranks killed"

begin ends 2,2
since=$(now)
kill -9 "$($nodes pids ends 1 "$(basename "$zero")" | tail -n 1)"
ends ends $job "$since" 5000 "one of 2 x 2 ranks killed"

begin ends 2,2
since=$(now)
strike ends 0 1
ends ends $job "$since" 5000 "all of 2 x 2 ranks killed"

# The daemons of Open MPI clear away on their nodes, but nobody does so after mpirun itself.
begin ends 2,2
since=$(now)
kill -9 "$($nodes pids ends head "$(basename "${MPIRUN:-mpirun}")")"
ends ends $job "$since" 5000 "mpirun killed" '^file /tmp/.*/ompi\.head'
finish

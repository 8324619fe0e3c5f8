# digests.sh PROGRAM LAUNCH...: prints the digests of eight runs that differ in types, stages, collectives
# and groups of ranks. A program built with another MPI, on the same machine, must print the same:
# .ci/run holds MPICH's against Open MPI's. RANKS in the launch line stands for their number.
#
#   sh tests/program/digests.sh build/zero mpirun -n RANKS --map-by :OVERSUBSCRIBE
set -eu
zero=$1
shift
launch=$*
# Open MPI refuses to run as root without these.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OPENBLAS_NUM_THREADS=1
err=$(mktemp)
trap 'rm -f "$err"' EXIT
small='--layers 2 --hidden 48 --heads 4 --seq 32 --data stories:64K --steps 6 --eval-every 0 --sample 0
    --log-every 100'

row() { # row RANKS OPTIONS...
    ranks=$1
    shift
    # shellcheck disable=SC2086,SC2046 # words
    found=$($(echo "$launch" | sed "s/RANKS/$ranks/") "$zero" train $small "$@" 2>"$err" |
        sed -n 's/^  digest *//p')
    [ ${#found} -eq 32 ] || {
        echo "digests.sh: $ranks ranks, $*: no digest: $(cat "$err")" >&2
        exit 1
    }
    echo "$found $ranks ranks, $*"
}

row 1 --global-batch 2
row 2 --global-batch 2 --stage 0 --collectives shm
row 2 --global-batch 4 --stage 1 --micro-batch 1
row 3 --global-batch 3 --stage 2 --dtype bf16 --collectives p2p
row 3 --global-batch 3 --stage 3 --dtype fp16 --partition owner
row 4 --global-batch 8 --stage 3 --reproducible --fake-nodes 2 --collectives hier
row 4 --global-batch 4 --stage 2 --tp 2 --tp-slices 4
row 4 --global-batch 4 --stage 3 --shard-ranks 2

# digests.sh PROGRAM LAUNCH...: prints the digests of runs with portable bits that differ in types,
# stages, architectures, collectives and groups of ranks. A program built with another MPI, or for another
# CPU, must print the same; .ci/run holds MPICH's, each level's of kernels and an Arm's against those of the
# first build. RANKS in the launch line stands for their number; without it only runs of one rank are made.
#
#   sh tests/program/digests.sh build/zero mpirun -n RANKS --map-by :OVERSUBSCRIBE
#   ALL=1 sh tests/program/digests.sh ...     with 32 more
set -eu
zero=$1
shift
launch=$*
# Open MPI refuses to run as root without these.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OPENBLAS_NUM_THREADS=1
err=$(mktemp)
trap 'rm -f "$err"' EXIT
small='--bits portable --layers 2 --hidden 48 --heads 4 --seq 32 --data stories:64K --steps 6 --eval-every 0 --sample 0
    --log-every 100'

row() { # row RANKS OPTIONS...
    ranks=$1
    shift
    case $ranks:$launch in 1:* | *RANKS*) ;; *) return ;; esac
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
row 1 --global-batch 2 --dtype bf16 --architecture llama --kv-heads 2
row 2 --global-batch 2 --stage 0 --collectives shm
row 2 --global-batch 4 --stage 1 --micro-batch 1
row 3 --global-batch 3 --stage 2 --dtype bf16 --collectives p2p
row 3 --global-batch 3 --stage 3 --dtype fp16 --partition owner
row 4 --global-batch 8 --stage 3 --reproducible --fake-nodes 2 --collectives hier
row 4 --global-batch 4 --stage 2 --tp 2 --tp-slices 4
row 4 --global-batch 4 --stage 3 --shard-ranks 2
[ "${ALL:-}" ] || exit 0
for type in fp32 bf16 fp16; do
    row 1 --global-batch 2 --dtype $type --threads 2
    row 1 --global-batch 2 --dtype $type --seq 33 --dropout 0.1 --recompute
    row 1 --global-batch 2 --dtype $type --architecture qwen3 --head-size 16 --kv-heads 1
    row 2 --global-batch 4 --dtype $type --stage 1 --clip 0.1
    row 2 --global-batch 2 --dtype $type --stage 2 --offload .
    row 3 --global-batch 3 --dtype $type --stage 3 --architecture mistral --kv-heads 2
    row 3 --global-batch 6 --dtype $type --stage 2 --hidden 52 --collectives p2p
    row 4 --global-batch 4 --dtype $type --stage 3 --tp 2 --tp-slices 4 --reproducible
done
for type in bf16 fp16; do
    row 1 --global-batch 2 --dtype $type --activations $type
    row 1 --global-batch 2 --dtype $type --activations $type --architecture qwen2 --kv-heads 2
    row 2 --global-batch 2 --dtype $type --activations $type --stage 3 --recompute
    row 3 --global-batch 3 --dtype $type --activations $type --stage 2 --seq 48
done

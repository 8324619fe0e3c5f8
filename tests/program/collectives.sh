# --collectives: all algorithms give equal bits, one line of the output says which was chosen and
# why, refusals give numbers, and a node may be unable to share memory.
. "$(dirname "$0")/common.sh"
small=$(echo "$small" | sed 's/--global-batch 6/--global-batch 12/')
length='--steps 5 --eval-every 0 --sample 0'

chosen() { # chosen WORDS...: the output's line about collectives begins with these
    says "  collectives   $*" out
}

runs 4 train $small $length --metrics m --collectives p2p
check 4 5 m bits
chosen 'p2p; 1 node'
for how in 'shm' 'auto' 'hier' 'hier --fake-nodes 2' 'hier --fake-nodes 3' 'auto --fake-nodes 2' \
    'auto --fake-nodes 4' 'p2p --fake-nodes 2' 'auto --check collectives' \
    'p2p --check collectives --watchdog 0' 'p2p --progress-thread 0.5' \
    'hier --fake-nodes 2 --progress-thread 1'; do
    # shellcheck disable=SC2086 # words
    runs 4 train $small $length --metrics m --collectives $how
    check 4 5 m bits_how
    same bits bits_how "--collectives $how"
done
runs 4 train $small $length
chosen 'shm (auto: all ranks on one node); 1 node'
runs 4 train $small $length --fake-nodes 2
chosen 'hier (auto: several nodes with several ranks); 2 fake nodes'
runs 3 train $small $length --fake-nodes 3 --metrics fake
says '3 fake nodes: times mean nothing' out
says '3 fake ones: the times below mean nothing' out
says 'to other fake nodes' out
says '"nodes":{"count":3,"fake":true,"note":"times mean nothing"}' fake
chosen 'p2p (auto: one rank per node); 3 fake nodes'
runs 2 train $small $length --metrics m --collectives mpi
check 2 5 m bits_mpi

refuses 2 'shm works within one node, and 4 ranks are on 2 nodes' 4 \
    train $small --collectives shm --fake-nodes 2
refuses 2 '--fake-nodes 5: there are only 2 ranks' 2 train $small --fake-nodes 5
refuses 2 'expected one of auto|p2p|mpi|shm|hier' 1 train --collectives fast

# A private mount namespace has a /dev/shm of 1 MiB. MPI's own files go elsewhere.
if unshare -m true 2>/dev/null; then
    echo 'mount -t tmpfs -o size=1m none /dev/shm && exec "$@"' >tiny.sh
    export OMPI_MCA_btl_vader_backing_directory="$PWD" # Open MPI 4
    export OMPI_MCA_btl_sm_backing_directory="$PWD"    # Open MPI 5
    export UCX_POSIX_DIR="$PWD"                        # MPICH
    launch="unshare -m sh $PWD/tiny.sh $launch"
    runs 4 train $small $length --metrics m
    check 4 5 m bits_tiny
    chosen 'p2p (auto: the node cannot share memory); 1 node'
    says 'warning: --collectives auto takes p2p: rank' err
    says 'the 4 ranks of a node cannot share' err
    refuses 3 'the 4 ranks of a node cannot share' 4 train $small $length --collectives shm
else
    echo "the part with a small /dev/shm is skipped: mount namespaces are not allowed here"
fi
finish

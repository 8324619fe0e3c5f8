# cut.sh ZERO: the link of rank 0's node, or of another, is cut.
#
# mpirun and Open MPI's daemons give each other up after 25 s of silence because nodes.sh makes them
# probe; the default is 8 minutes. The kernel does not probe while it has data to send again, which
# it gives up after 25 s as well (nodes.sh), and a connection may meet both, one after the other.
# The kernel ends some processes a few seconds after the daemons. Alone on a machine 30 s were
# measured, and on a busy one more than 40 s.
. "$(dirname "$0")/common.sh"
zero=$1

for k in 0 1; do
    up cut$k 2
    begin cut$k 2,2
    eval "job$k=$job since$k=$(now)"
    $nodes cut cut$k $k
done
ends cut0 "$job0" "$since0" 100000 "the node of rank 0 cut off"
ends cut1 "$job1" "$since1" 100000 "the other node cut off"
# mpirun says that it lost a node, and which one.
for k in 0 1; do
    grep -q 'lost communication with a remote daemon' cut$k.out ||
        complain "cut$k: no message: $(cat cut$k.out)"
    grep -q "Remote daemon:.* on node 10.77.0.$((k + 1))\$" cut$k.out ||
        complain "cut$k: expected the name of node $k: $(cat cut$k.out)"
done

# Once mended, the links carry the next job.
for k in 0 1; do
    $nodes heal cut$k $k
    on cut$k 2,2 -- "$zero" train $small --steps 2
    exits 0 cut$k
done
finish

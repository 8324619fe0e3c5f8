# A node whose link is cut, the node of rank 0 or another: cut.sh ZERO
# mpirun and the daemons of Open MPI give each other up after 25 s of silence, since nodes.sh
# lets them probe; else they wait for 8 minutes. The kernel does not probe while it has something
# to repeat: had rank 0 just said something, then its daemon, cut off, would wait as long as
# tcp_retries2 lets it, which is 15 minutes. So here the ranks are silent. What the daemons leave
# to the kernel goes a few seconds later: 30 s were measured on a busy machine, so 40 are allowed.
. "$(dirname "$0")/common.sh"
zero=$1

for k in 0 1; do
    up cut$k 2
    begin cut$k 2,2
    eval "job$k=$job since$k=$(now)"
    $nodes cut cut$k $k
done
ends cut0 "$job0" "$since0" 40000 "the node of rank 0 cut off"
ends cut1 "$job1" "$since1" 40000 "the other node cut off"
# mpirun says so, and names the node.
for k in 0 1; do
    grep -q 'lost communication with a remote daemon' cut$k.out || complain "cut$k: no message: $(cat cut$k.out)"
    grep -q "Remote daemon:.* on node 10.77.0.$((k + 1))\$" cut$k.out || complain "cut$k: names another node"
done

# Mended, the links carry the next job.
for k in 0 1; do
    $nodes heal cut$k $k
    on cut$k 2,2 -- "$zero" train $small --steps 2
    [ $code -eq 0 ] || complain "$words: exit code $code: $(cat cut$k.out)"
done
finish

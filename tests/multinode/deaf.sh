# deaf.sh ZERO: from the start the ranks' nodes do not reach each other, but mpirun reaches both. The
# watchdog ends the job while MPI makes its first connections. Each node sends what is for the
# other one to an address that nobody has.
. "$(dirname "$0")/common.sh"
zero=$1

up deaf 2
for k in 0 1; do
    $nodes in deaf $k ip neigh replace 10.77.0.$((2 - k)) lladdr 02:00:00:00:00:99 dev e0 \
        nud permanent
done
since=$(now)
on deaf 1,1 -- "$zero" train $small --steps 2 --watchdog 3
echo "$words: ended with $code after $(($(now) - since)) ms"
exits 86 deaf
grep -q 'has taken longer than the 3 s that --watchdog allows' deaf.out ||
    complain "$words: expected the watchdog's message: $(cat deaf.out)"
finish

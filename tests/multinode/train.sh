# The same training on one node and on several ends in the same bits: train.sh ZERO
. "$(dirname "$0")/common.sh"
zero=$1
collectives='p2p hier auto'

# Sets $found.
digest() { # digest RANKS,RANKS,... ALGORITHM
    rm -f metrics
    on train "$1" -- "$zero" train $small --steps 10 --collectives "$2" --metrics "$work/metrics"
    [ $code -eq 0 ] || complain "$words: exit code $code: $(cat train.out)"
    grep -q "^zero .* 4 ranks, ${1%%,*} on this node" train.out || complain "$words: other nodes"
    found=$(sed -n 's/.*"digest": *"\([0-9a-f]*\)".*/\1/p' metrics)
}

up train 3
digest 4 p2p
alone=$found
[ ${#alone} -eq 32 ] || complain "expected a digest of 32 digits, found '$alone'"
for algorithm in $collectives; do
    for ranks in 2,2 1,2,1; do
        start=$(now)
        digest $ranks "$algorithm"
        echo "$algorithm on $ranks: $found in $(($(now) - start)) ms"
        [ "$found" = "$alone" ] || complain "$algorithm on $ranks ranks: digest $found, alone $alone"
    done
done
finish

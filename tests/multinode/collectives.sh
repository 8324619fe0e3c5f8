# The tests of src/comm between nodes: collectives.sh PROGRAM...
. "$(dirname "$0")/common.sh"

up comm 4
for program; do
    for ranks in 2,2 1,2,1 1,1,1,1; do
        start=$(now)
        on comm $ranks -- "$program"
        echo "$(basename "$program") $ranks: $(($(now) - start)) ms"
        [ $code -eq 0 ] || complain "$words: exit code $code: $(cat comm.out)"
    done
done
finish

# collectives.sh PROGRAM...: runs these tests of src/comm between nodes.
. "$(dirname "$0")/common.sh"

up comm 4
for program; do
    for ranks in 2,2 1,2,1 1,1,1,1; do
        start=$(now)
        on comm $ranks -- "$program"
        echo "$(basename "$program") $ranks: $(($(now) - start)) ms"
        exits 0 comm
    done
done
finish

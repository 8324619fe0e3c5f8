# collectives.sh PROGRAM TEST...: runs these tests of src/comm between nodes.
. "$(dirname "$0")/common.sh"
program=$1
shift

up comm 4
for test; do
    for ranks in 2,2 1,2,1 1,1,1,1; do
        start=$(now)
        on comm $ranks -- "$program" "$test"
        echo "$test $ranks: $(($(now) - start)) ms"
        exits 0 comm
    done
done
finish

# zero plan for very many ranks: no list of a million steps, no default that is too small, and limits
# that are named. A plan keeps little, so address space is bounded; ctest's own limit bounds time.
. "$(dirname "$0")/common.sh"

million=1048576
limit=400000 # KiB of address space; programs with sanitizers reserve terabytes at their start
(ulimit -v $limit && exec "$zero" --version) >out 2>err || limit=unlimited

# plans words...: a plan of 10^12 parameters that fits the limit.
plans() {
    words="zero plan --model paper-1t $*"
    (ulimit -v $limit && exec "$zero" plan --model paper-1t "$@") >out 2>err ||
        complain "$words: expected a plan within $limit KiB of address space"
}

plans --ranks 65536 --fake-nodes 8192 --stage all
says 'ranks          65536 on 8192 nodes' out
plans --ranks $million --stage 2
says "the default of 1048576 is too small: this is the least that $million ranks need" out
for layout in '--fake-nodes 131072' '--fake-nodes 300000' '--fake-nodes 1' '--fake-nodes 7' \
    '--fake-nodes 131072 --partition owner' '--partition owner --collectives mpi' \
    '--fake-nodes 131072 --tp 8' '--shard-ranks 1' '--fake-nodes 131072 --shard-ranks 64'; do
    plans --ranks $million --stage 3 $layout
done
plans --ranks 1M --fake-nodes 125000
says 'ranks          1000000 on 125000 nodes' out
plans --ranks 100000 --fake-nodes 12500 --partition owner --rank 99999
plans --ranks 65536 --stage 3 --offload /tmp --fake-nodes 8192
plans --ranks 65536 --stage 3 --fit 600G --fake-nodes 8192
says 'layers, Psi = ' out

# What each rank sends is what the formula says of the padded groups.
runs 0 plan --model gpt2 --ranks $million --stage 2
says 'traffic        0 B below' out

# The default suffices as long as it can; from there on the plan says that it does not.
runs 0 plan --model gpt2 --ranks 8192
says 'up to 1048576 elements' out
! grep -q 'too small' out || complain "$words: its default suffices"
runs 0 plan --model gpt2 --ranks 8194
says 'up to 1048704 elements' out
says 'the default of 1048576 is too small: this is the least that 8194 ranks need' out
runs 0 plan --model gpt2 --ranks 16384 --shard-ranks 64
! grep -q 'too small' out || complain "$words: its default suffices"

# A bucket that is given is not replaced. Its remedy works, up to the largest exchange that there is.
refuses 2 'give --bucket 2097024 or more' 0 plan --model gpt2 --ranks 16384 --bucket 1048576
runs 0 plan --model gpt2 --ranks 16384 --bucket 2097024
refuses 2 'give --bucket 268435456 or more' 0 plan --model gpt2 --ranks $million \
    --collectives hier --dtype bf16 --bucket 268435455
runs 0 plan --model gpt2 --ranks $million --collectives hier --dtype bf16 --bucket 268435456
refuses 2 'whole number from 1 to 1048576' 0 plan --ranks 1048577
refuses 2 'whole number from 1 to 1048576' 0 plan --ranks 2M

finish

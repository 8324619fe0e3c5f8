# zero plan with tensor parallelism: shares, JOINs and their formula, and what is refused.
. "$(dirname "$0")/common.sh"
export OMPI_MCA_pml=none # a plan starts no MPI
shape="--layers 3 --hidden 48 --heads 4 --seq 32 --vocab 100"

# value KEY: the number of a member of the last JSON, the first of that name.
value() {
    sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" out | head -n 1
}

# of_join EXCHANGE KEY: a member of the JSON's "join" or "collect".
of_join() {
    tr -d '\n' <out | sed -n "s/.*\"$1\": *{[^}]*\"$2\": *\([0-9]*\).*/\1/p"
}

# equals NAME FOUND EXPECTED
equals() {
    [ "$2" = "$3" ] || complain "$words: $1 is '$2', expected $3"
}

# By messages a block moves exactly 10 b s h (T-1)/T floats with --recompute, 8 without; the paper 12
# and 8. The embedding and the head are one sum each, and the head gathers 3 floats per row.
for tp in 2 4; do
    for sums in 10 8; do
        recompute=$([ $sums -eq 8 ] || echo --recompute)
        # shellcheck disable=SC2086 # words
        runs 0 plan $shape --ranks 8 --tp $tp --collectives p2p --micro-batch 2 $recompute --json
        is_json out
        floats=$((2 * 32 * 48 * (tp - 1) / tp))
        papers=$((sums == 10 ? 12 : 8))
        equals "JOIN's blocks" "$(of_join join blocks_formula_bytes)" $((4 * 3 * sums * floats))
        equals "the paper's" "$(of_join join blocks_paper_bytes)" $((4 * 3 * papers * floats))
        moved=$((4 * ((3 * sums + 4) * floats + 3 * 2 * 32 * (tp - 1))))
        equals "JOIN's bytes" "$(of_join join bytes_sent)" $moved
        equals "JOIN's formula" "$(of_join join formula_bytes)" $moved
        equals N "$(value data_ranks)" $((8 / tp))
        equals batch "$(value global_batch)" $((16 / tp))
    done
done

# P_a: 1/T of what waits, for an all-gather of it per block; nothing moves through the node's memory.
# shellcheck disable=SC2086 # words
for way in p2p auto; do
    runs 0 plan $shape --ranks 8 --tp 4 --micro-batch 2 --recompute --partition-activations \
        --collectives $way --json
    is_json out
    added=$([ $way = auto ] || echo $((3 * 4 * 2 * 32 * 48 * 3 / 4)))
    equals "COLLECT's bytes" "$(of_join collect bytes_sent)" "${added:-0}"
    equals "what is kept" "$(of_join collect kept_bytes)" $((3 * 4 * 2 * 32 * 48 / 4))
    equals "its class" "$(tr -d '\n' <out | sed -n 's/.*"activations kept": *{ *"own_peak": *\([0-9]*\).*/\1/p')" \
        $((3 * 4 * 2 * 32 * 48 / 4))
    equals "JOIN's blocks" "$(of_join join blocks_formula_bytes)" $((10 * 3 * 4 * 2 * 32 * 48 * 3 / 4))
    runs 0 plan $shape --ranks 8 --tp 4 --micro-batch 2 --recompute --partition-activations \
        --collectives $way --network 1e-6,1G --flops 1G
    for word in '^P_a  ' '^  COLLECT  ' '1/4 of' '1/10' 'activations kept' ', COLLECTs '; do
        grep -q "$word" out || complain "$words: no '$word'"
    done
    narrow 110 out
done
says 'COLLECT moves nothing' out
runs 0 plan $shape --ranks 8 --tp 4 --stage all --recompute --partition-activations
says ", recompute, P_a" out
says 'COLLECTs, sent besides' out

# Pieces are whole floats, and 18 numbers of 16 bits are 9 of them.
refuses 2 'gives 18 numbers of bf16: --partition-activations needs a multiple of 4, 2 for each' 0 plan \
    --layers 2 --hidden 6 --heads 2 --seq 3 --micro-batch 1 --global-batch 1 --ranks 2 --tp 2 --recompute \
    --partition-activations --dtype bf16 --activations bf16 --data stories:64K
runs 0 plan --layers 2 --hidden 6 --heads 2 --seq 3 --micro-batch 1 --global-batch 1 --ranks 2 --tp 2 \
    --recompute --partition-activations --dtype bf16 --activations fp32 --data stories:64K

# In words; each TP group has a node of its own unless nodes are declared.
# shellcheck disable=SC2086 # words
runs 0 plan $shape --ranks 8 --tp 2 --recompute --network 1e-6,1G --node-network 1e-7,10G --flops 1G
for word in '8 on 4 nodes' 'one node per TP group' 'T = 2 neighbours' 'S = 2 slices' 'N = 4' \
    '10 b s h (T-1)/T floats' "the paper's 12" "TP group's" 'of these JOINs'; do
    says "$word" out
done
grep -q '^  JOIN  ' out || complain "$words: no line for JOIN"
narrow 110 out
runs 0 plan $shape --ranks 8 --tp 4 --stage all
says 'JOINs, sent besides' out
runs 0 plan $shape --ranks 8 --tp 4 --chart
runs 0 plan $shape --tp-slices 4
says 'sums in S = 4 slices' out
runs 0 plan $shape --ranks 8
grep -q 'JOIN\|tensor' out && complain "$words: tensor parallelism without --tp"

# Parts of passes, with JOINs between them.
runs 0 plan $shape --ranks 4 --tp 2 --show-schedule
awk '/^evaluate/ { exit } $2 ~ /^(FORWARD|JOIN|JOIN_WAIT)$/ && / block 0/ { printf "%s %s,", $2, $4 }' \
    out >parts
grep -q '^FORWARD 0.0,JOIN 0,JOIN_WAIT 0,FORWARD 0.1,JOIN 0,JOIN_WAIT 0,FORWARD 0.2,' parts ||
    complain "$words: parts of block 0: $(cat parts)"
runs 0 plan $shape --ranks 4 --tp 2 --show-schedule --json
is_json out
says '"part": 2' out

# The largest model of the paper's section on model parallelism comes at once: the processor's seconds
# are limited, which other work on the machine does not change.
ulimit -S -t $((10 * slow))
runs 0 plan --model paper-100b --ranks 400 --tp 16 --stage 2 --dtype bf16 --recompute
ulimit -S -t unlimited
says '400 on 25 nodes' out

# A rank's part decides what it needs, and rank 0 has the most.
# shellcheck disable=SC2086 # words
for rank in 0 3; do
    runs 0 plan $shape --ranks 4 --tp 4 --rank $rank --json
    value needed >needed$rank
done
[ "$(cat needed0)" -ge "$(cat needed3)" ] || complain "rank 3 needs more than rank 0"
for tp in 1 4; do
    runs 0 plan $shape --ranks 4 --tp $tp --stage 0 --micro-batch 1 --fit 60M --json
    tr -d '\n' <out | sed -n 's/.*"fits": *{ *"layers": *\([0-9]*\).*/\1/p' >layers$tp
done
[ "$(cat layers4)" -gt "$(cat layers1)" ] || complain "--fit: --tp 4 does not make room"
runs 0 plan --ranks 4 --tp 2 --memory-limit 60M
says '  8 ranks --micro-batch 1' out

# Refused, with the numbers.
refuses 2 '--tp 4 does not divide 6 ranks (4 x 1 + 2)' 0 plan $shape --ranks 6 --tp 4
refuses 2 'the model has 4 heads' 0 plan $shape --ranks 8 --tp 8
refuses 2 '--tp-slices 8 with --tp 2' 0 plan $shape --ranks 8 --tp 2 --tp-slices 8
refuses 2 '--tp-slices 6 with --tp 4' 0 plan $shape --ranks 8 --tp 4 --tp-slices 6
refuses 2 '--tp 4 with --device cuda' 0 plan $shape --ranks 8 --tp 4 --device cuda
refuses 2 '--partition-activations needs --recompute' 0 plan $shape --ranks 8 --tp 4 --partition-activations
refuses 2 'needs --tp 2 or more' 0 plan $shape --ranks 8 --recompute --partition-activations
refuses 2 '3 words' 0 plan --vocab 3 --ranks 4 --tp 4
refuses 2 'rank 0 is on node 0, rank 2 on node 1' 0 plan $shape --ranks 4 --tp 4 --fake-nodes 2
refuses 2 '1 x 4 (8 ranks / --tp 2) = 4' 0 plan $shape --ranks 8 --tp 2 --global-batch 6 --micro-batch 1
refuses 2 'adds in an order of its own' 0 plan $shape --ranks 4 --tp 2 --reproducible --collectives mpi
refuses 2 '--node-network without --network' 0 plan $shape --node-network 1e-6,1G --flops 1G
runs 0 plan $shape --ranks 4 --tp 4 --fake-nodes 2 --tp-across-nodes
says 'T = 4 neighbours' out
finish

# zero plan --fit batch and --ablation: the micro batch that fits trains, and the next one is refused.
. "$(dirname "$0")/common.sh"

model="--layers 2 --hidden 48 --heads 3 --seq 32 --data stories:64K --tokenizer byte"
limit=56M

# fitted OPTIONS...: the micro batch that fits, in $fits, and the next one, in $next.
fitted() {
    runs 0 plan $model --ranks 3 --fake-nodes 1 --memory-limit $limit --fit batch "$@"
    says 'tokens per step' out
    fits=$(sed -n 's/^fits .*--micro-batch \([0-9]*\) needs.*/\1/p' out)
    next=$(sed -n 's/^ *\([0-9]*\) would need .*/\1/p' out)
    [ -n "$fits" ] && [ -n "$next" ] || complain "$words: expected a number and the next"
}

# trains_and_not_more OPTIONS...: a run with it has room, and a run with the next one has not.
trains_and_not_more() {
    fitted "$@"
    train="train $model --steps 1 --eval-every 0 --sample 0 --quiet --memory-limit $limit"
    runs 3 $train --micro-batch "$fits" "$@"
    refuses 3 'are available' 3 $train --micro-batch "$next" "$@"
}

trains_and_not_more --stage 3 --dtype bf16 --recompute
[ "$next" -eq $((fits + 1)) ] || complain "$words: $next does not follow $fits"
# 3 ranks x 64 sequences: a divisor of 64, then the next one
trains_and_not_more --stage 2 --recompute --global-batch 192
[ "$next" -eq $((2 * fits)) ] || complain "$words: $next is not the divisor after $fits"

fitted --stage 2 --partition owner --micro-batch 1
says 'for rank 0 alone' out

runs 0 plan $model --ranks 3 --stage all --memory-limit $limit --fit batch
narrow 100 out
says 'the largest micro batch that fits' out
runs 0 plan $model --ranks 3 --stage 2 --memory-limit $limit --fit batch --json
is_json out
says '"fits_batch"' out
refuses 2 'no micro batch fits' 0 plan $model --ranks 3 --memory-limit 49M --fit batch

# plans KEY OPTIONS...: the first "needed" after this key of a plan, in $needed.
plans() {
    key=$1
    shift
    runs 0 plan $model --ranks 3 --stage 3 --recompute --micro-batch 4 --json "$@"
    needed=$(sed -n "/\"$key\"/,\$ s/^ *\"needed\": \([0-9]*\).*/\1/p" out | head -n 1)
}

# The depth that fits needs what its own plan says: its samples have a cache, for which a step of two
# layers has no room.
plans fits --fit 64M
fits=$needed
layers=$(sed -n '/"fits"/,$ s/^ *"layers": \([0-9]*\).*/\1/p' out)
plans memory --layers "$layers"
[ "$needed" -eq "$fits" ] || complain "$words: needs $needed, and --fit says $fits"

runs 0 plan $model --ranks 3 --stage 2 --recompute --ablation
narrow 100 out
for word in 'without --recompute' 'stage 1' 'a fused fp32 buffer, 4 Psi' 'alive at once'; do
    says "$word" out
done
grep -q 'of its own, which counts as a gap' out && complain "$words: no rank shares memory"
runs 0 plan $model --ranks 4 --fake-nodes 2 --stage 2 --ablation
says 'memory of the node peaks at a time of its own, which counts as a gap' out
runs 0 plan $model --ranks 3 --stage 2 --ablation --json
is_json out
says '"ablation"' out
for figure in fig6 fig7; do
    runs 0 plan --paper $figure
    narrow 100 out
    says 'C5' out
    runs 0 plan --paper $figure --json
    is_json out
done

finish

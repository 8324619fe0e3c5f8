# Faults of real training loops (inject.py), each in several trainers: all are found, and named rightly.
. "$(dirname "$0")/common.sh"
zero=$(dirname "$package")/zero
demand_torch
runs 1 "$python" "$here/inject.py" .
runs 3 "$python" "$here/inject.py" .
while read -r fault name; do
    for file in "$fault"@*.safetensors; do
        [ -e "$file" ] || complain "no step with $fault"
        "$zero" verify "$file" --json >out 2>err
        found=$?
        if [ "$name" = right ]; then
            [ $found -eq 0 ] || complain "$file: found wrong: $(cat err)"
            continue
        fi
        [ $found -eq 1 ] || complain "$file: exit code $found, expected 1"
        grep -q "\"name\": \"\($(echo "$name" | sed 's/,/\\|/g')\)\",\$" out && grep -q '"sentence"' out ||
            complain "$file: expected the cause $name: $(grep -A3 '"cause"' out)"
    done
done <<'END'
none right
not_divided_by_accumulation accumulation
zero_grad_in_the_loop one_microbatch
means_of_microbatches means_of_parts
head_is_detached tied_embedding
padding_counts padding
clipped_before_unscaling clip_scaled
eps_in_the_root eps_inside
counts_one_more count_late
adam_with_l2 l2
decays_everything all_decay
stale_weights stale
weights_in_bf16 masters
summed_over_ranks sum
not_reduced own_rank
rank_2_is_lost rank_missing
rank_2_reads_rank_1s_batch other_samples
means_of_ranks means_of_ranks
clipped_by_own_norm clip_by_share
norm_lacks_rank_1 norm_short,other_norm
shards_of_neighbours shards_forth
END
exit $failed

# Stages 0 to 3 train the same model, with any other options.
. "$(dirname "$0")/common.sh"
length="--steps 6 --eval-every 3 --sample 8"

# trains N NAME words...: trains on N ranks. NAME gets the metrics that do not depend on time.
trains() {
    n=$1
    name=$2
    shift 2
    runs "$n" train $small $length --metrics m "$@"
    check "$n" 6 m "$name"
}

for type in fp32 bf16 fp16; do
    trains 3 bits --dtype $type
    for options in "--stage 1" "--stage 2 --partition owner --collectives p2p" \
        "--stage 3 --prefetch 0 --overlap off --recompute" \
        "--stage 3 --prefetch 3 --persist 500 --collectives hier --fake-nodes 2 --bucket 4K"; do
        trains 3 other --dtype $type $options
        same bits other "$type $options"
    done
    mv bits bits_$type
done
differ bits_fp32 bits_bf16 "types"
differ bits_fp16 bits_bf16 "types"

# The resident memory of rank 0 is the planned memory plus at most 30 MB for the program and its
# libraries. Sanitizers would add their own.
resident_is_planned() { # resident_is_planned STAGE
    runs 3 train --layers 4 --hidden 384 --heads 6 --seq 64 --global-batch 12 --data stories:64K \
        --eval-every 0 --sample 0 --steps 2 --collectives p2p --stage "$1" --metrics m
    value() { tail -n 1 m | tr ',{}' '\n\n\n' | sed -n "s/^\"$1\"://p"; }
    awk -v planned="$(value arena_bytes)" -v resident="$(value resident_peak_bytes)" 'BEGIN {
        exit !(planned > 5e7 && resident > planned && resident < 1.05 * planned + 30e6) }' ||
        complain "$words: $(value resident_peak_bytes) bytes resident, $(value arena_bytes) planned"
}
if ! grep -q __asan_init "$zero"; then
    for stage in 0 1 2 3; do resident_is_planned $stage; done
fi

# After an update all groups are in flight at once, thousands in a deep model.
runs 2 train --layers 2100 --hidden 8 --heads 1 --seq 4 --data stories:64K --eval-every 0 \
    --sample 0 --steps 1 --stage 1

# With --reproducible the number of ranks does not matter either.
small=$(echo "$small" | sed 's/--global-batch 6/--global-batch 8 --micro-batch 1/')
trains 1 bits --reproducible --dtype bf16
for run in "2 0" "2 3" "4 1" "4 2"; do
    trains ${run% *} other --reproducible --dtype bf16 --stage ${run#* }
    same bits other "ranks and stage $run"
done

# README's sentence: "With --reproducible it is also the same on 1, 2, 4 and 8 ranks."
for batch in "" "--global-batch 32" "--global-batch 24"; do
    for n in 1 2 4 8; do
        runs $n train --layers 1 --hidden 16 --heads 2 --seq 8 --data stories:64K --eval-every 0 \
            --sample 0 --steps 3 --reproducible $batch
        digest_of out >>digests
        says "reproducible  the bits" out
    done
    [ "$(sort -u digests | wc -l) $(wc -l <digests)" = "1 4" ] ||
        complain "--reproducible $batch gives these digests: $(cat digests)"
    rm digests
done
finish

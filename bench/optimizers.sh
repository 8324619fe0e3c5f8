#!/bin/sh
# bench/optimizers.sh: what Muon and Lion are worth beside AdamW, and what they cost.
#
#     sh bench/optimizers.sh [STEPS [SEEDS]]      (120, 3)
#
# Validation losses of the tiny model on stories after equal steps, at two rates each; then GPT-2 (124 M) in
# bf16, one sequence of 256 tokens: the median step, UPDATE in it, and memory as planned and as it was.
# Needs a built tree in build.
set -eu
zero=build/zero
steps=${1:-120}
seeds=${2:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for row in 'adamw 4e-3' 'adamw 8e-3' 'muon 4e-3' 'muon 8e-3' 'lion 4e-4'; do
    # shellcheck disable=SC2086 # words
    set -- $row
    printf '| %s | %s |' "$1" "$2"
    for seed in $(seq "$seeds"); do
        "$zero" train --model tiny --data stories:256K --tokenizer byte --global-batch 8 --sample 0 \
            --eval-every "$steps" --eval-batches 8 --steps "$steps" --log-every 1000 --seed "$seed" \
            --optimizer "$1" --lr "$2" --metrics "$work/m" >"$work/out"
        printf ' %.4f |' "$(grep -o '"val_loss":[0-9.]*' "$work/m" | tail -1 | cut -d : -f 2)"
        rm "$work/m"
    done
    printf '\n'
done

for row in adamw lion muon 'muon --muon-type bf16'; do
    # shellcheck disable=SC2086 # words
    "$zero" train --model gpt2 --seq 256 --global-batch 1 --dtype bf16 --threads "$(nproc)" --steps 3 --eval-every 0 \
        --sample 0 --data stories:64K --tokenizer byte --vocab 50257 --optimizer $row >"$work/out"
    printf '| %s | %s | %s | %s |\n' "$row" "$(sed -n 's/^  step time *\([0-9.]*\) ms.*/\1 ms/p' "$work/out")" \
        "$(awk '$1 == "UPDATE" { print $3 " ms" }' "$work/out")" "$(grep -o '[0-9.]* GiB planned.*most' "$work/out")"
done

#!/bin/sh
# bench/optimizers.sh: what Muon, Lion and SGD are worth beside AdamW, and what they cost.
#
#     sh bench/optimizers.sh [STEPS [SEEDS]]      (240, 3)
#
# Validation losses of the tiny model on stories after equal steps, each optimizer at the best of three rates
# around its usual one for the first seed; then GPT-2 (124 M) in bf16: the median step, the planned and the
# measured peak, and the model states. Needs a built tree in build.
set -eu
zero=build/zero
steps=${1:-240}
seeds=${2:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
tiny="--model tiny --data stories:1M --tokenizer bpe:512 --global-batch 16 --eval-every $steps --eval-batches 16
    --sample 0 --steps $steps"

loss() { # loss SEED OPTIONS...: the last validation loss
    seed=$1
    shift
    # shellcheck disable=SC2086 # words
    "$zero" train $tiny --seed "$seed" "$@" --metrics "$work/m" >"$work/out"
    sed -n 's/.*"val_loss": *\([0-9.]*\).*/\1/p' "$work/m" | tail -1
    rm "$work/m"
}

printf '| optimizer | rate |'
for seed in $(seq "$seeds"); do printf ' seed %s |' "$seed"; done
printf '\n|---|---|'
for seed in $(seq "$seeds"); do printf -- '---|'; done
printf '\n'
for row in 'adamw 2e-3 4e-3 8e-3' 'muon 4e-3 8e-3 16e-3' 'lion 2e-4 4e-4 8e-4' 'sgd 6e-2 12e-2 24e-2'; do
    # shellcheck disable=SC2086 # words
    set -- $row
    optimizer=$1
    shift
    for rate; do echo "$(loss 1 --optimizer "$optimizer" --lr "$rate") $rate"; done | sort -g >"$work/rates"
    rate=$(head -1 "$work/rates" | cut -d ' ' -f 2)
    printf '| %s | %s |' "$optimizer" "$rate"
    for seed in $(seq "$seeds"); do printf ' %s |' "$(loss "$seed" --optimizer "$optimizer" --lr "$rate")"; done
    printf '\n'
done

printf '\n| gpt2, bf16, 1 x 256 tokens | step, ms | peak planned | measured | model states |\n|---|---|---|---|---|\n'
for optimizer in adamw muon lion sgd; do
    "$zero" train --model gpt2 --seq 256 --global-batch 1 --dtype bf16 --threads "$(nproc)" --steps 3 --eval-every 0 \
        --sample 0 --data stories:256K --tokenizer byte --vocab 50257 --optimizer $optimizer --metrics "$work/m" >"$work/out"
    printf '| %s | %s | %s |\n' "$optimizer" \
        "$(sed -n 's/^  step time *\([0-9.]*\) ms.*/\1/p' "$work/out")" \
        "$(sed -n 's/.*"peak": *{"planned": *\([0-9]*\), *"measured": *\([0-9]*\).*/\1 | \2/p' "$work/m" | tail -1)"
    rm "$work/m"
done

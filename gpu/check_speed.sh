# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # names that check.sh and its other files share
# The parts of check.sh about speed. Read by check.sh.

# speed_of MODEL LAYERS HIDDEN HEADS BATCH
speed_of() {
    options="--model $1 --dtype bf16 --seq 1024 --global-batch $5 --micro-batch $5"
    # shellcheck disable=SC2086 # words
    memory_of run_or_fail 1 "speed-$1" $options --device "$device" --steps 15 --data stories:8M \
        --tokenizer byte --vocab 50257 || return
    ours=$(step_seconds "speed-$1")
    # shellcheck disable=SC2086
    planned=$(with "$here/bin/zero" plan $options --ranks 1 --device cuda --tokenizer byte \
        --vocab 50257 --json | sed -n '/"device": {/,/}/s/.*"needed": *\([0-9]*\).*/\1/p' | sed -n 1p)
    planned=$(awk -v b="${planned:-0}" 'BEGIN { printf "%.0f", b / 1048576 }')
    echo "          $1: $ours s a step of $5 x 1024 tokens"
    if awk -v a="$taken" -v b="$planned" 'BEGIN { exit !(a <= 1.02 * b && b <= 1.02 * a) }'; then
        ok "$1: GPU memory taken $taken MiB, planned $planned MiB"
    else
        failed "$1: GPU memory taken $taken MiB, planned $planned MiB: more than 2 % apart"
    fi
    python3 "$here/torch_gpt2.py" --device cuda --compile --dtype bf16 --layers "$2" --hidden "$3" \
        --heads "$4" --seq 1024 --batch "$5" --steps 12 --warmup 5 >"$work/torch.txt" 2>&1 || {
        not_run "PyTorch, $1: $(tail -2 "$work/torch.txt" | tr '\n' ' ')"
        return
    }
    theirs=$(sed -n 's/.*"step_seconds": \([^,]*\),.*/\1/p' "$work/torch.txt")
    ratio=$(awk -v a="$theirs" -v b="$ours" 'BEGIN { printf "%.3f", a / b }')
    echo "          PyTorch: $(grep torch "$work/torch.txt" | tail -1)"
    if within 0.55 "$ratio"; then
        ok "$1, batch $5: $ratio of PyTorch's speed"
    else
        failed "$1, batch $5: $ratio of PyTorch's speed, less than 0.55"
    fi
}

speed() {
    speed_of gpt2 12 768 12 16
    speed_of gpt2-xl 48 1600 25 4
}

# judge_shares DTYPE: the least shares of the copy rate, and of cuBLAS.
judge_shares() {
    judged=$(awk '
        function need(names, share,    list, i) {
            for (i = split(names, list, ";"); i > 0; i--) least[list[i]] = share
        }
        BEGIN {
            need("adamw;round;accumulate;sum of squares", 0.85)
            need("layernorm;layernorm backward;bias, gelu;bias, gelu backward", 0.75)
            need("add branch;cross-entropy", 0.75)
            need("products of matrices", 0.97)
        }
        {
            name = substr($0, 1, 22)
            sub(/ +$/, "", name)
            if (!(name in least)) next
            seen++
            split(substr($0, 23), column)
            if (column[5] + 0 < least[name]) print name " " column[5] " < " least[name] ";"
        }
        END { if (seen < 10) print "rows are missing" }' "$work/shares.txt")
    if [ -z "$judged" ]; then ok "shares, $1"; else failed "shares, $1: $judged"; fi
}

# judge_fused DTYPE: products and what follows them, as one call beside two.
judge_fused() {
    rate=$(sed -n 's/^products of a block.* \([0-9.]*\) times the rate of two calls$/\1/p' "$work/shares.txt")
    if [ -n "$rate" ] && within 1.0 "$rate"; then
        ok "products with what follows them, $1: $rate times the rate of two calls"
    else
        failed "products with what follows them, $1: ${rate:-no} times the rate of two calls, less than 1.0"
    fi
}

shares() {
    for dtype in bf16 fp16; do
        if with mpirun -n 1 "$here/bin/bench_kernels" --device "$device" --model gpt2 --seq 1024 \
            --micro-batch 8 --global-batch 8 --dtype $dtype --rounds 5 >"$work/shares.txt" 2>&1; then
            cat "$work/shares.txt"
            judge_shares $dtype
            judge_fused $dtype
        else
            failed "bench_kernels, $dtype: $(tail -3 "$work/shares.txt" | tr '\n' ' ')"
        fi
    done
}

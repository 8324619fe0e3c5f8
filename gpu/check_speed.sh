# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # names that check.sh and its other files share
# The parts of check.sh about speed. Read by check.sh.

# shape_of MODEL LAYERS HIDDEN HEADS: sets shape, the same for PyTorch in torch_shape, and the steps of a
# timed run. Where there is no GPU all models are tiny.
shape_of() {
    steps=15
    shape="--model $1 --seq 1024 --vocab 50257 --tokenizer byte --data stories:8M --dtype bf16"
    torch_shape="--device cuda --compile --layers $2 --hidden $3 --heads $4 --seq 1024 --steps 12 --warmup 5"
    [ "$device" != cuda ] || return
    steps=4
    shape="--layers 2 --hidden 32 --heads 2 --seq 16 --tokenizer byte --data stories:16K --dtype bf16"
    torch_shape="--layers 2 --hidden 32 --heads 2 --seq 16 --vocab 256 --steps 2 --warmup 1"
}

# judge WHAT RATIO LEAST OF: the verdict on a ratio; without a GPU times have no limit.
judge() {
    least=$3
    [ "$device" = cuda ] || least=0
    if [ "$2" != nan ] && within "$least" "$2"; then
        ok "$1: $2 $4"
    else
        failed "$1: $2 $4, less than $least"
    fi
}

ratio_of() { # ratio_of A B
    awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0 && a > 0) printf "%.3f", a / b; else print "nan" }'
}

# plan_of OPTIONS...: the plan of one rank, in plan.json.
plan_of() {
    with "$here/bin/zero" plan "$@" --ranks 1 --json >"$work/plan.json" 2>"$work/plan.txt"
}

# judge_memory NAME OPTIONS...: the GPU's memory taken beside that of the plan.
judge_memory() {
    run=$1
    shift
    plan_of "$@"
    planned=$(sed -n '/"device": {/,/}/p' "$work/plan.json" |
        awk -F '[:,]' '/"needed"/ { printf "%.0f", $2 / 1048576 }')
    if [ -z "$taken" ]; then
        not_run "$run: memory taken: nvidia-smi does not tell"
    elif awk -v a="$taken" -v b="${planned:-0}" 'BEGIN { exit !(a <= 1.02 * b && b <= 1.02 * a) }'; then
        ok "$run: GPU memory taken $taken MiB, planned $planned MiB"
    else
        failed "$run: GPU memory taken $taken MiB, planned $planned MiB: more than 2 % apart"
    fi
}

# torch_step WORDS...: PyTorch's steps; sets theirs to the seconds, or says why not. Then two more, whose
# memory is taken: nvidia-smi would stop the driver in the middle of timed ones.
torch_step() {
    # shellcheck disable=SC2086 # words
    if in_time "$python" "$here/torch_gpt2.py" $torch_shape --dtype bf16 "$@" >"$work/torch.txt" 2>&1; then
        memory_of in_time "$python" "$here/torch_gpt2.py" $torch_shape --dtype bf16 "$@" \
            --steps 2 --warmup 1 >"$work/torch-memory.txt" 2>&1 || taken=
        theirs=$(sed -n 's/.*"step_seconds": \([^,]*\),.*/\1/p' "$work/torch.txt")
        say "          PyTorch $(sed -n 's/.*"torch": "\([^"]*\)".*/\1/p' "$work/torch.txt"): $theirs s a step"
    else
        not_run "PyTorch: $(last_words "$work/torch.txt")"
        return 1
    fi
}

# speed_of MODEL LAYERS HIDDEN HEADS BATCH
speed_of() {
    shape_of "$1" "$2" "$3" "$4"
    batch="--global-batch $5 --micro-batch $5"
    # shellcheck disable=SC2086 # words
    run_if_room 1 "speed-$1" $shape $batch --device "$device" --steps $steps || return
    # shellcheck disable=SC2086 # words
    memory_of run_if_room 1 "memory-$1" $shape $batch --device "$device" --steps 3 || return
    ours=$(step_seconds "speed-$1")
    our_memory=$taken
    say "          $1: $ours s a step of $5 sequences"
    judge "$1, one rank" "$(busy "speed-$1")" 0.98 "of a step without waiting for copies"
    # shellcheck disable=SC2086
    judge_memory "$1" $shape $batch --device "$device"
    torch_step --batch "$5" || return
    judge "$1, batch $5" "$(ratio_of "$theirs" "$ours")" 0.85 "of PyTorch's speed"
    if [ -z "$taken" ] || [ -z "$our_memory" ]; then
        not_run "$1: memory beside PyTorch's: nvidia-smi does not tell"
    elif [ "$our_memory" -le "$taken" ]; then
        ok "$1: memory $our_memory MiB, PyTorch's $taken MiB"
    else
        failed "$1: memory $our_memory MiB, PyTorch's $taken MiB"
    fi
}

speed() {
    most=300
    speed_of gpt2 12 768 12 16
    speed_of gpt2-xl 48 1600 25 4
}

# kernels_of DTYPE: bench_kernels with GPT-2's shapes, in shares.txt.
kernels_of() {
    set -- --dtype "$1" --rounds 5 --model gpt2 --seq 1024 --micro-batch 8 --global-batch 8
    [ "$device" = cuda ] || set -- "$1" "$2" --rounds 1 --layers 1 --hidden 32 --heads 2 --seq 16 \
        --vocab 64 --micro-batch 2 --global-batch 2
    with mpirun -n 1 "$here/bin/bench_kernels" --device "$device" "$@" >"$work/shares.txt" 2>&1 && return
    failed "bench_kernels $*: $(last_words "$work/shares.txt")"
}

attention() {
    kernels_of bf16 || return
    set -- --device cuda --batch 8 --seq 1024 --hidden 768 --heads 12
    [ "$device" = cuda ] || set -- --device cpu --batch 2 --seq 16 --hidden 32 --heads 2 --rounds 1
    in_time "$python" "$here/torch_attention.py" --dtype bf16 "$@" >"$work/torch.txt" 2>&1 || {
        not_run "PyTorch's attention: $(last_words "$work/torch.txt")"
        return
    }
    for pass in attention "attention backward"; do
        ours=$(awk -v name="$pass" 'substr($0, 1, 22) ~ "^" name " *$" { print $(NF - 6) }' "$work/shares.txt")
        theirs=$(sed -n "s/.*\"$pass\": *\([^,}]*\).*/\1/p" "$work/torch.txt")
        say "          $pass: $ours ns an element, PyTorch's $theirs"
        judge "$pass" "$(ratio_of "$theirs" "$ours")" 0.5 "of PyTorch's speed"
    done
}

# judge_shares DTYPE: the least shares of the copy rate, and of cuBLAS.
judge_shares() {
    judged=$(awk -v is_gpu="$([ "$device" = cuda ] && echo 1)" '
        function need(names, share,    list, i) {
            for (i = split(names, list, ";"); i > 0; i--) least[list[i]] = share
        }
        BEGIN {
            need("adamw;round;accumulate;sum of squares", 0.85)
            need("layernorm;layernorm backward;bias, gelu;bias, gelu backward", 0.85)
            need("add branch;cross-entropy", 0.85)
            need("products of matrices", 0.97)
        }
        {
            name = substr($0, 1, 22)
            sub(/ +$/, "", name)
            if (!(name in least)) next
            seen++
            split(substr($0, 23), column)
            if (is_gpu && column[5] + 0 < least[name]) printf "%s %s < %s; ", name, column[5], least[name]
        }
        END { if (seen < 10) print "rows are missing" }' "$work/shares.txt")
    if [ -z "$judged" ]; then ok "shares, $1"; else failed "shares, $1: $judged"; fi
}

# judge_fused DTYPE: products and what follows them, as one call beside two.
judge_fused() {
    rate=$(sed -n 's/^products of a block.* \([0-9.]*\) times the rate of two calls$/\1/p' "$work/shares.txt")
    judge "products with what follows them, $1" "${rate:-nan}" 1.0 "times the rate of two calls"
}

shares() {
    for dtype in bf16 fp16; do
        kernels_of $dtype || continue
        show "$work/shares.txt"
        judge_shares $dtype
        judge_fused $dtype
    done
}

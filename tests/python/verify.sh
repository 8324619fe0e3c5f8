# Steps of torch trainers, recorded and verified: right ones are, and each fault is found and named.
. "$(dirname "$0")/common.sh"
zero=$(dirname "$package")/zero
demand_torch

# step N words...: the file step.safetensors; N 0: without mpirun.
step() {
    n=$1
    shift
    if [ "$n" -eq 0 ]; then
        "$python" "$here/steps.py" step.safetensors "$@" >out 2>err
    else
        on "$n" "$python" "$here/steps.py" step.safetensors "$@" >out 2>err
    fi || {
        complain "no step of: $*"
        tail -n 20 err >&2
    }
}

# right N words...: it is verified.
right() {
    step "$@"
    "$zero" verify step.safetensors >out 2>err || {
        complain "found wrong: $*"
        cat out err >&2
    }
}

# wrong NAME N words...: it is not, and that is why.
wrong() {
    name=$1
    shift
    step "$@"
    "$zero" verify step.safetensors --json >out 2>err
    found=$?
    [ $found -eq 1 ] || complain "exit code $found, expected 1, of: $*"
    grep -q "\"name\": \"$name\",\$" out && grep -q '"sentence"' out || {
        complain "expected the cause $name of: $*"
        grep -A3 '"cause"' out >&2
    }
}

right 0
right 0 model=llama accumulation=4
right 3 mode=ddp uneven=1
right 3 mode=fsdp2
right 2 mode=fsdp2 model=llama dtype=bf16 accumulation=2
right 3 mode=zero1
right 0 steps=1 dtype=bf16
# Two frameworks' layouts of one step beside each other, and one that is wrong.
step 3 mode=ddp steps=1
mv step.safetensors ddp.safetensors
step 3 mode=fsdp2 steps=1
"$zero" compare ddp.safetensors step.safetensors >out 2>err || complain "compare: $(cat out err)"
says 'ddp.safetensors: torch.*differs +sharding: "ddp" . "fsdp2".* 0 different' out
step 3 mode=ddp
mv step.safetensors ddp.safetensors
step 3 mode=fsdp2 fault=eps_inside
"$zero" compare ddp.safetensors step.safetensors >out 2>err && complain "compare: $(cat out)"
says 'first +weight of wte.weight: rows' out
says 'ddp.safetensors: every tensor is right.*step.safetensors: [0-9]+ tensors wrong' out
if "$python" -c "import deepspeed" >out 2>err; then
    right 3 mode=deepspeed1 uneven=1
    right 2 mode=deepspeed2 model=llama dtype=bf16 accumulation=4
    right 2 mode=deepspeed3 accumulation=2
    right 2 mode=deepspeed3 steps=1
    wrong padding 2 mode=deepspeed2 fault=padding uneven=1
    wrong rank_missing 3 mode=deepspeed1 fault=rank_missing
    wrong rank_twice 3 mode=deepspeed3 model=llama fault=rank_twice
fi

wrong sum 3 mode=ddp fault=sum clip=0
wrong sum 3 mode=fsdp2 model=llama fault=sum clip=0
wrong accumulation 2 accumulation=3 mode=fsdp2 fault=accumulation clip=0
wrong mean_twice 3 mode=ddp fault=mean_twice clip=0
wrong one_microbatch 0 accumulation=4 fault=last_microbatch clip=0
wrong rank_missing 3 mode=fsdp2 fault=rank_missing
wrong rank_twice 3 mode=fsdp2 dtype=bf16 model=llama fault=rank_twice clip=0
wrong means_of_ranks 3 mode=ddp fault=means_of_ranks uneven=1
wrong padding 0 fault=padding uneven=1
wrong tied_head 0 fault=tied_head
wrong tied_embedding 0 fault=tied_embedding
wrong clip_scaled 0 fault=clip_scaled
wrong clip_twice 0 model=llama fault=clip_twice
wrong clip_by_share 3 mode=fsdp2 fault=clip_by_share
wrong not_clipped 0 fault=not_clipped
wrong eps_inside 0 fault=eps_inside
wrong no_bias_correction 0 fault=no_bias_correction model=llama
wrong count_early 0 fault=count_early
wrong l2 0 fault=l2
wrong all_decay 0 fault=all_decay
wrong no_decay 0 fault=no_decay
wrong stale 0 fault=stale
wrong shards_back 2 mode=fsdp2 fault=shards
wrong gradient_down 0 fault=gradient_rows
wrong masters 0 fault=masters dtype=bf16
exit $failed

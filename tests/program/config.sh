# zero config: a DeepSpeed configuration becomes a --config file, or a reason why not.
. "$(dirname "$0")/common.sh"

cat >ds.json <<'END'
{
  "train_batch_size": 12,
  "train_micro_batch_size_per_gpu": 2,
  "gradient_accumulation_steps": 2,
  "gradient_clipping": 0.5,
  "optimizer": {"type": "AdamW",
                "params": {"lr": 3e-4, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01}},
  "scheduler": {"type": "WarmupCosineLR",
                "params": {"total_num_steps": 5, "warmup_num_steps": 2, "warmup_type": "linear",
                           "cos_min_ratio": 0.1}},
  "bf16": {"enabled": true},
  "zero_optimization": {
    "stage": 3, "overlap_comm": true, "contiguous_gradients": true, "sub_group_size": 1e9,
    "reduce_bucket_size": 5e5, "stage3_prefetch_bucket_size": 5e7,
    "stage3_param_persistence_threshold": 1e4, "allgather_bucket_size": 5e8,
    "offload_optimizer": {"device": "cpu", "pin_memory": true}},
  "activation_checkpointing": {"partition_activations": true, "profile": false},
  "steps_per_print": 2,
  "wall_clock_breakdown": false
}
END
cat >expected.json <<'END'
{
  "steps": 5,
  "global-batch": 12,
  "micro-batch": 2,
  "lr": 0.0003,
  "lr-min": 3e-05,
  "warmup": 2,
  "beta1": 0.9,
  "beta2": 0.999,
  "eps": 1e-08,
  "weight-decay": 0.01,
  "clip": 0.5,
  "stage": 3,
  "bucket": 500000,
  "dtype": "bf16",
  "prefetch": 1,
  "persist": 10000,
  "overlap": "on",
  "recompute": true,
  "log-every": 2
}
END
cat >expected.notes <<'END'
zero_optimization.contiguous_gradients: not taken: zero decides that when it plans memory
zero_optimization.sub_group_size: not taken: zero updates a group at a time
zero_optimization.allgather_bucket_size: not taken: zero gathers a group at a time
zero_optimization.offload_optimizer.pin_memory: not taken: zero pins what a device copies
activation_checkpointing.profile: not taken: zero's summary has a profile
wall_clock_breakdown: not taken: zero's summary has a profile
gradient_accumulation_steps: it is 2 on 3 ranks; zero works it out from both batches and the ranks
optimizer.params.weight_decay: zero decays matrices and embeddings, as trainers of GPT-2 do; DeepSpeed decays what the script lists, biases, too, if it lists them
scheduler: zero's rates are two steps ahead in the warm-up: DeepSpeed's first two updates have rate 0
zero_optimization.stage3_prefetch_bucket_size: prefetch is 1: zero counts groups that are gathered ahead, not elements
zero_optimization.stage3_param_persistence_threshold: persist is about whole groups, such as a block, not about single tensors
zero_optimization.offload_optimizer: not taken: where the host computes, optimizer states are in its memory; with --device give --offload host; results are the same
activation_checkpointing: recompute is on: zero recomputes every block; results are the same
activation_checkpointing.partition_activations: not taken: --partition-activations divides what recompute keeps among the ranks of --tp
END

# What is printed is a --config file: it trains like the same words on the command line.
runs 0 config --from deepspeed ds.json
same expected.json out "the options"
same expected.notes err "the reasons"
is_json out
cp out run.json
shape="--layers 2 --hidden 48 --heads 3 --seq 32 --data stories:64K --eval-every 0 --sample 0"
runs 3 train $shape --config run.json
digest_of out >digest
says 'stage 3, slice' out
runs 3 train $shape --steps 5 --global-batch 12 --micro-batch 2 --lr 3e-4 --lr-min 3e-5 --warmup 2 \
    --beta2 0.999 --weight-decay 0.01 --clip 0.5 --stage 3 --dtype bf16
digest_of out >digest_words
[ "$(wc -c <digest)" = 33 ] || complain "$words: no digest"
same digest digest_words "the file and the same words"
runs 0 config --from deepspeed ds.json --ranks 3
refuses 2 'train_batch_size 12 is not' 0 config --from deepspeed ds.json --ranks 4

# The form that Hugging Face's Trainer completes.
cat >auto.json <<'END'
{"bf16": {"enabled": "auto"},
 "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "eps": "auto",
                                           "weight_decay": "auto"}},
 "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"},
 "gradient_clipping": "auto", "train_batch_size": "auto"}
END
runs 0 config --from deepspeed auto.json
printf '{\n  "stage": 2\n}\n' >expected
same expected out 'only the stage is given'
for key in optimizer.params.lr gradient_clipping train_batch_size \
    zero_optimization.reduce_bucket_size; do
    says "$key: \"auto\" is for Hugging Face's Trainer; not taken" err
done
says 'bf16: enabled is "auto": not taken; give --dtype' err

# States, parameters and activations go to a scratch file, and what is printed trains; comments, last
# commas, and a name that JSON has to quote.
mkdir -p 'a "disk"'
cat >nvme.json <<'END'
{ // DeepSpeed reads this,
  "train_batch_size": 6,  # and this
  "zero_optimization": {
    "stage": 3, /* and
    this */
    "offload_optimizer": {"device": "nvme", "nvme_path": "a \"disk\""},
    "offload_param": {"device": "nvme", "nvme_path": "a \"disk\""}, },
  "optimizer": {"type": "AdamW", "params": {"lr": 3e-4}},
  "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 5, "warmup_num_steps": 2,
                                                    "warmup_type": "linear",}},
  "activation_checkpointing": {"cpu_checkpointing": true},
  "aio": {"block_size": 262144},
}
END
cat >expected.json <<'END'
{
  "steps": 5,
  "global-batch": 6,
  "lr": 0.001,
  "lr-min": 0,
  "lr-decay": "linear",
  "warmup": 2,
  "beta1": 0.9,
  "beta2": 0.999,
  "eps": 1e-08,
  "weight-decay": 0,
  "clip": 0,
  "stage": 3,
  "recompute": true,
  "offload": "a \"disk\"",
  "offload-parameters": true,
  "offload-activations": true
}
END
runs 0 config --from deepspeed nvme.json
same expected.json out "the options of a file on a disk"
is_json out
cp out run.json
tail -n +3 nvme.json | sed '1i {,' >comma.json
refuses 2 'comma.json:1:2' 0 config --from deepspeed comma.json
finds_a_disk
if [ -n "$disk" ]; then
    runs 3 train $shape --config run.json --offload "$disk" --metrics linear.jsonl
    says ', lr 0.001 after 2 steps, down to 0 along a line;' out
    digest_of out >digest
    rates=$(sed -n 's/^{"step":.*"lr":\([^,]*\),.*/\1/p' linear.jsonl | tr '\n' ' ')
    [ "$rates" = '0.00050000000000000001 0.001 0.001 0.00050000000000000001 0.0 ' ] ||
        complain "$words: the rates are $rates"
    runs 3 train $shape --steps 5 --global-batch 6 --lr 1e-3 --lr-min 0 --lr-decay linear --warmup 2 \
        --beta2 0.999 --weight-decay 0 --clip 0
    digest_of out >digest_words
    same digest digest_words "states in a file and in memory"
fi

# Keys that change results: all are named, nothing is printed.
cat >other.json <<'END'
{"train_batch_size": 8, "sparse_attention": {"mode": "fixed"}, "steps_per_prnt": 5,
 "scheduler": {"type": "OneCycle", "params": {}}}
END
run 0 config --from deepspeed other.json
exits 2
says 'sparse_attention: refused: ' err
says 'steps_per_prnt: refused: ' err
says 'scheduler.type: refused: ' err
says 'zero: other.json: 3 keys have no counterpart and may change results' err
[ -s out ] && complain "$words: expected nothing on stdout"

# What a terminal hides is printed as an escape, which is the same JSON.
printf '{"zero_optimization":{"stage":1,"offload_optimizer":{"device":"nvme","nvme_path":"/a\342\200\256\\"b"}}}' \
    >hidden.json
runs 0 config --from deepspeed hidden.json
says '"offload": "/a\u202E\"b"' out

# Usage.
refuses 2 'needs --from deepspeed and one FILE' 0 config ds.json
refuses 2 'needs --from deepspeed and one FILE' 0 config --from deepspeed
refuses 2 'needs --from deepspeed and one FILE' 0 config --from deepspeed ds.json auto.json
refuses 2 'expected one of deepspeed' 0 config --from fsdp ds.json
refuses 2 'nothing.json' 0 config --from deepspeed nothing.json
echo '{"lr": }' >broken.json
refuses 2 'broken.json' 0 config --from deepspeed broken.json
echo '[1]' >list.json
refuses 2 'found a list' 0 config --from deepspeed list.json
echo '{"gradient_clipping": -1}' >negative.json
run 0 config --from deepspeed negative.json
exits 2
says '"clip": -1 in negative.json' err
finish

"""Run by hand: an unchanged script, Hugging Face's Trainer on a tiny GPT-2. It prints the mean loss. On CPUs
accelerate 1.15 takes DDP, whatever `fsdp` says: MULTI_CPU is not among the types that FSDP may take the place of in
AcceleratorState.__init__. With it there, FSDP2 ends with the same losses.

    ZERO_TORCH_AS=gloo mpirun -n 2 python -m zero_torch hugging_face_trainer.py FOLDER [fsdp|ddp]"""
import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

torch.manual_seed(0)
torch.set_num_threads(1)
tokens = torch.randint(0, 128, (64, 32))
data = [{"input_ids": t, "labels": t} for t in tokens]
model = GPT2LMHeadModel(GPT2Config(vocab_size=128, n_positions=32, n_embd=64, n_layer=2, n_head=2))
sharding = {"fsdp": "full_shard", "fsdp_config": {"version": 2, "transformer_layer_cls_to_wrap": "GPT2Block",
                                                  "auto_wrap_policy": "TRANSFORMER_BASED_WRAP"}}
arguments = TrainingArguments(
    sys.argv[1], max_steps=6, per_device_train_batch_size=4, use_cpu=True, report_to=[], logging_steps=1,
    save_steps=3, learning_rate=1e-3, seed=1, disable_tqdm=True, **(sharding if sys.argv[2:] != ["ddp"] else {}))
trainer = Trainer(model, arguments, train_dataset=data)
result = trainer.train()
print(f"rank {arguments.process_index} of {arguments.world_size}: loss {result.training_loss:.6f}", flush=True)

#!/usr/bin/env python3
"""Folders of transformers for each architecture, with random weights of each type: zero reads
them, and what it exports in that type, trained with a rate of 0, is the same model to
transformers. Run by hand, with one virtual environment or with several, of transformers 4 and 5;
each reads the exports that came from the folders of all:

    python3 -m venv /tmp/v5 && /tmp/v5/bin/pip install torch transformers
    python3 -m venv /tmp/v4 && /tmp/v4/bin/pip install torch transformers==4.46.3
    python3 tests/checkpoint/transformers_folders.py build/zero /tmp/v4/bin/python /tmp/v5/bin/python
"""
import json
import os
import random
import subprocess
import sys
import tempfile

TYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
PROMPT = [5, 17, 3, 60, 9]
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}
COMMON = dict(vocab_size=71, hidden_size=24, num_hidden_layers=2, num_attention_heads=6,
              num_key_value_heads=2, intermediate_size=40, max_position_embeddings=64,
              rms_norm_eps=1e-5, initializer_range=0.2, bos_token_id=1, eos_token_id=70)
NEOX = dict(vocab_size=71, hidden_size=24, num_hidden_layers=2, num_attention_heads=6,
            intermediate_size=40, max_position_embeddings=64, rotary_emb_base=5000,
            initializer_range=0.2, bos_token_id=1, eos_token_id=70)
# name: (class of the configuration, what differs, type of the weights, largest file)
FOLDERS = {
    "gpt2": ("GPT2Config", dict(vocab_size=71, n_embd=24, n_layer=2, n_head=3, n_positions=64,
                                initializer_range=0.2, bos_token_id=1, eos_token_id=70), "float32",
             "20KB"),
    "llama": ("LlamaConfig", dict(COMMON, rope_theta=5e5, rope_scaling=LLAMA3), "float32", "20KB"),
    "llama-tied": ("LlamaConfig", dict(COMMON, tie_word_embeddings=True, head_dim=8), "bfloat16",
                   "5GB"),
    "mistral": ("MistralConfig", dict(COMMON, rope_theta=1e6, sliding_window=None), "float16",
                "5GB"),
    "qwen2": ("Qwen2Config", dict(COMMON, rms_norm_eps=1e-6, tie_word_embeddings=True,
                                  eos_token_id=[70, 69]), "float32", "10KB"),
    "qwen3": ("Qwen3Config", dict(COMMON, rope_theta=1e6, head_dim=8), "float32", "5GB"),
    "neox": ("GPTNeoXConfig", dict(NEOX, rotary_pct=0.5), "float32", "15KB"),
    "neox-tied": ("GPTNeoXConfig", dict(NEOX, rotary_pct=1.0, tie_word_embeddings=True), "bfloat16",
                  "5GB"),
}


def make(place):
    import torch
    import transformers
    for name, (config, numbers, dtype, largest) in FOLDERS.items():
        if not hasattr(transformers, config):
            continue
        torch.manual_seed(len(name))
        numbers = dict(numbers)
        if transformers.__version__ >= "5" and "rope_theta" in numbers:
            numbers["rope_parameters"] = dict(numbers.pop("rope_scaling", {"rope_type": "default"}),
                                              rope_theta=numbers.pop("rope_theta"))
        if transformers.__version__ >= "5" and "rotary_pct" in numbers:
            numbers["rope_parameters"] = {"rope_type": "default", "rope_theta": numbers.pop("rotary_emb_base"),
                                          "partial_rotary_factor": numbers.pop("rotary_pct")}
        model = transformers.AutoModelForCausalLM.from_config(
            getattr(transformers, config)(**numbers)).eval().to(getattr(torch, dtype))
        for own, value in model.named_parameters():  # biases and gains that show
            if value.dim() == 1:
                value.data += 0.3 * torch.randn(value.shape).to(value.dtype)
        model.save_pretrained(f"{place}/{name}", max_shard_size=largest)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            f"{place}/{name}", torch_dtype=torch.float32).eval()
        ids = torch.tensor([PROMPT])
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=12,
                             do_sample=False, pad_token_id=0)
        torch.save({"state": model.state_dict(), "logits": model(ids).logits.detach(),
                    "greedy": out[0].tolist()}, f"{place}/{name}.pt")
        with open(f"{place}/{name}.json", "w") as file:
            json.dump(out[0].tolist(), file)


def check(place):
    """Exports in place/*-out are the models in place/*.pt."""
    import torch
    import transformers
    for out in sorted(os.listdir(place)):
        if not out.endswith("-out"):
            continue
        name = out[:-4]
        if not hasattr(transformers, FOLDERS[name][0]):
            continue
        model, info = transformers.AutoModelForCausalLM.from_pretrained(
            f"{place}/{out}", output_loading_info=True, torch_dtype=torch.float32)
        was = torch.load(f"{place}/{name}.pt")
        state = {key.replace("embed_out", "lm_head"): value for key, value in was["state"].items()}
        same = all(torch.equal(value, state[key.replace("embed_out", "lm_head")])
                   for key, value in model.state_dict().items())
        logits = (model.eval()(torch.tensor([PROMPT])).logits.detach() - was["logits"]).abs().max()
        logits /= was["logits"].abs().max()
        config = json.load(open(f"{place}/{out}/config.json"))
        began = json.load(open(f"{place}/{name}/config.json"))
        kept = all(config.get(key) == began.get(key) for key in ("bos_token_id", "eos_token_id"))
        missing = info["missing_keys"] or info["unexpected_keys"] or info["mismatched_keys"]
        good = same and not missing and float(logits) < 1e-6 and kept
        print(f"  {'ok' if good else 'WRONG':5} {out}: tensors {'equal' if same else 'DIFFER'}, "
              f"logits differ by {float(logits):.1e}, ends {'kept' if kept else 'LOST'}"
              f"{', keys ' + str(missing) if missing else ''}")


def run(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        print(f"  WRONG {' '.join(words)}: {done.stderr.decode()[-600:]}")
    return done.stdout.decode()


def main():
    zero, pythons = os.path.abspath(sys.argv[1]), sys.argv[2:] or [sys.executable]
    with tempfile.TemporaryDirectory() as top:
        with open(f"{top}/tokens", "wb") as file:
            file.write(bytes(random.Random(1).randrange(71) for _ in range(4000)))
        for python in pythons:
            place = f"{top}/{len(os.listdir(top))}"
            os.mkdir(place)
            run(python, __file__, "make", place)
            print(f"folders of {python}: {' '.join(sorted(os.listdir(place)))}")
            for name in sorted(FOLDERS):
                if not os.path.isdir(f"{place}/{name}"):
                    continue
                wanted = json.load(open(f"{place}/{name}.json"))
                ids = run(zero, "generate", f"{place}/{name}", "--temperature", "0", "--tokens", "12",
                          "--prompt-tokens", ",".join(map(str, PROMPT)))
                found = [int(word) for word in ids.replace(",", " ").split() if word.isdigit()]
                good = found in (wanted, wanted[len(PROMPT):])
                print(f"  {'ok' if good else 'WRONG':5} {name}: greedy ids {found} {'' if good else wanted}")
                run(zero, "train", "--init-from", f"{place}/{name}", "--data", f"{top}/tokens",
                    "--token-bytes", "1", "--seq", "64" if name == "gpt2" else "16", "--global-batch", "2", "--steps", "1",
                    "--lr", "0", "--lr-min", "0", "--eval-every", "0", "--sample", "0",
                    "--checkpoint", f"{place}/{name}-ck")
                run(zero, "checkpoint", "export", f"{place}/{name}-ck", "--to", f"{place}/{name}-out",
                    "--shard-bytes", "15000", "--dtype", TYPES[FOLDERS[name][2]])
            for other in pythons:
                print(f"read by {other}:")
                print(run(other, __file__, "check", place), end="")


if __name__ == "__main__":
    {"make": lambda: make(sys.argv[2]), "check": lambda: check(sys.argv[2])}.get(
        sys.argv[1], main)()

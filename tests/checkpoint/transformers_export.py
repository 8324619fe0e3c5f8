#!/usr/bin/env python3
"""Exports in Hugging Face's transformers: AutoTokenizer gives our ids and exact texts; with
PyTorch, a model of transformers is fine-tuned here, and its loss and greedy text are the same
there. Run by hand:

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install transformers torch
    cmake --build build --target zero encode_texts
    /tmp/venv/bin/python tests/checkpoint/transformers_export.py build/zero \\
        build/tests/data/encode_texts
"""
import json
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
from transformers import AutoTokenizer, PreTrainedTokenizerFast

try:
    import torch
    from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel
except ImportError:
    torch = None

GOLDEN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + "/golden/tokenizers/"
LIMIT = 1e-6
SHAPE = "--layers 2 --hidden 48 --heads 3 --seq 32 --global-batch 6 --eval-every 0 --sample 0"


def run(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr.decode()}")
    return done.stdout


def told(good, text):
    print(f"{'ok' if good else 'WRONG':5}  {text}")
    return good


# ---- ids ----

def texts():
    r = random.Random(3)
    made = ["", " ", "\n\n", "The fox saw the grapes.", "  two  blanks ", "I'm , don't . n't",
            "\u043b\u0438\u0441\u0430", "\u72d0\u72f8\u8d70\u4e86", "\U0001f98a\u200d", "a\0b",
            "e\u0301 \u00e9 \u00a0\u3000\u2028\u180e\u0085", "x" * 500, " " * 300, "1" * 200]
    parts = [" ", "  ", "\n", "\t", "\r\n", ",", " .", "'", "n't", "the", " grapes", "12", "\u00e9",
             "\u4f60", "\U0001f98a", "\u0301", "_", "<|endoftext|>", "\u00a0"]
    for _ in range(2000):
        made.append("".join(r.choice(parts + [chr(r.randrange(1, 0x3000))])
                            for _ in range(r.randint(1, 50))))
    return made


def ours(program, folder, strings):
    data = b"".join(np.int32(len(t)).tobytes() + t for t in (s.encode() for s in strings))
    out = subprocess.run([program, folder], input=data, stdout=subprocess.PIPE, check=True).stdout
    ids, lists, at = np.frombuffer(out, dtype=np.int32), [], 0
    for _ in strings:
        lists.append(ids[at + 1:at + 1 + ids[at]].tolist())
        at += 1 + ids[at]
    return lists


def check_tokenizer(zero, encode_texts, folder, what, *options):
    """A run with these options, exported; its checkpoint's own file loads, too."""
    strings = texts()
    open(f"{folder}/all", "w", newline="").write("".join(strings).replace("\0", ""))
    options = [f"{folder}/all" if o == "CHARACTERS" else o for o in options]
    if "char" in options:
        strings = [s for s in strings if "\0" not in s and s != ""]
    run(zero, "train", *SHAPE.split(), "--steps", "1", "--checkpoint", f"{folder}/ck", *options)
    run(zero, "checkpoint", "export", f"{folder}/ck", "--to", f"{folder}/out")
    tok = AutoTokenizer.from_pretrained(f"{folder}/out")
    own = PreTrainedTokenizerFast(tokenizer_file=f"{folder}/ck/step-00000001/tokenizer.json")
    wrong = lost = 0
    for text, want in zip(strings, ours(encode_texts, f"{folder}/out", strings)):
        got = tok(text, add_special_tokens=False)["input_ids"]
        wrong += got != want or own(text, add_special_tokens=False)["input_ids"] != want
        lost += tok.decode(got) != text
    return told(wrong == 0 and lost == 0,
                f"{what}: {type(tok).__name__} of {len(tok)} tokens: of {len(strings)} texts "
                f"{wrong} have other ids, and {lost} do not come back")


# ---- loss and text ----

def make_model(folder, tokenizer):
    tok = PreTrainedTokenizerFast(tokenizer_file=tokenizer, eos_token="<|endoftext|>")
    torch.manual_seed(1)
    model = GPT2LMHeadModel(GPT2Config(
        vocab_size=len(tok), n_positions=96, n_embd=96, n_layer=3, n_head=6,
        bos_token_id=tok.eos_token_id, eos_token_id=tok.eos_token_id))
    model.save_pretrained(folder)
    tok.save_pretrained(folder)


def loss_of(model, tokens, seq, samples):
    """The mean over the validation windows of src/data/README.md."""
    part, sums = tokens[len(tokens) - len(tokens) // 10:], []
    for i in range(samples):
        at = i * seq % (len(part) - seq)
        x, y = torch.tensor([part[at:at + seq]]), torch.tensor(part[at + 1:at + seq + 1])
        with torch.no_grad():
            logits = model(x).logits[0].double()
        sums.append(torch.nn.functional.cross_entropy(logits, y).item())
    return sum(sums) / len(sums)


def greedy(model, tok, prompt, n):
    model.generation_config.eos_token_id = None
    ids = tok(prompt, return_tensors="pt", add_special_tokens=False)
    out = model.generate(**ids, do_sample=False, max_new_tokens=n, pad_token_id=0)
    return tok.decode(out[0])


def check_fine_tuning(zero, folder, tokenizer):
    seq, batch, batches, prompt = 64, 6, 3, "The fox saw"
    text = "".join(f"The fox saw {i} grapes, and the grapes hung {i * i} feet too high.\n"
                   for i in range(900))
    open(f"{folder}/text", "w").write(text)
    make_model(f"{folder}/theirs", tokenizer)
    run("mpirun", "--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE", "-n", "3", zero, "train",
        "--init-from", f"{folder}/theirs", "--data", f"{folder}/text", "--seq", str(seq),
        "--global-batch", str(batch), "--steps", "30", "--lr", "1e-3", "--eval-every", "30",
        "--eval-batches", str(batches), "--sample", "0", "--stage", "2", "--metrics",
        f"{folder}/m", "--checkpoint", f"{folder}/ck")
    run(zero, "checkpoint", "export", f"{folder}/ck", "--to", f"{folder}/out")
    lines = [json.loads(line) for line in open(f"{folder}/m")]
    want = [line["val_loss"] for line in lines if "val_loss" in line][-1]
    tok = AutoTokenizer.from_pretrained(f"{folder}/out")
    model = AutoModelForCausalLM.from_pretrained(f"{folder}/out").eval()
    tokens = tok(text, add_special_tokens=False)["input_ids"]
    got = loss_of(model, tokens, seq, batch * batches)
    good = told(abs(got - want) <= LIMIT * want,
                f"fine-tuned on text with {os.path.basename(tokenizer)}: loss {want:.9f}, "
                f"transformers' {got:.9f}, apart by {abs(got - want) / want:.1e} of it")
    words = run(zero, "generate", f"{folder}/ck", "--prompt", prompt, "--tokens", "40",
                "--temperature", "0", "--raw").decode()
    theirs = greedy(model, tok, prompt, 40)
    words, theirs = words.rstrip("\n"), theirs.rstrip("\n")
    return told(words == theirs, f"greedy text: {words!r}" +
                (f", theirs {theirs!r}" if words != theirs else "")) and good


def main(zero, encode_texts):
    open_text = GOLDEN + "golden.txt"
    runs = [("our own bpe:512", ()), ("our own bpe:300", ("--tokenizer", "bpe:300")),
            ("bytes", ("--tokenizer", "byte")),
            ("characters", ("--tokenizer", "char", "--data", "CHARACTERS")),
            ("GPT-2's pattern", ("--tokenizer", GOLDEN + "gpt2.json", "--data", open_text)),
            ("GPT-2's two files", ("--tokenizer", GOLDEN + "vocab.json", "--data", open_text)),
            ("Llama-3's pattern", ("--tokenizer", GOLDEN + "llama3.json", "--data", open_text))]
    good = True
    for what, options in runs:
        with tempfile.TemporaryDirectory() as folder:
            good &= check_tokenizer(zero, encode_texts, folder, what, *options)
    if not torch:
        print("PyTorch is not there: loss and text were not compared")
    for name in ("gpt2.json", "llama3.json") if torch else ():
        with tempfile.TemporaryDirectory() as folder:
            good &= check_fine_tuning(zero, folder, GOLDEN + name)
    return 0 if good else 1


sys.exit(main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])))

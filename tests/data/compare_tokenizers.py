#!/usr/bin/env python3
"""Our tokenizer's ids against those of the Python packages `tokenizers` and `tiktoken`.

Vocabularies are trained here with GPT-2's and Llama-3's pre-tokenizers on 10 MB of mixed text that
is made here, too; then that text and 10000 hostile strings are encoded by all. Run by hand:

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install tokenizers tiktoken
    cmake --build build --target encode_texts
    /tmp/venv/bin/python tests/data/compare_tokenizers.py build/tests/data/encode_texts [merges ...]

Merges are 5000 and 50000 unless given. A code point that is new in a version of Unicode is a letter
to some programs and nothing to others: differences on such strings are counted apart.
"""
import glob
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import unicodedata

import numpy as np
import tiktoken
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers,
                        trainers)

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL = ["<|endoftext|>", "<|begin_of_text|>", "<|eot|>"]
LONGER = "<|eot|><|eot|>"  # of two that begin alike tiktoken takes any one
SCRIPTS = [(0x41, 0x5a), (0x61, 0x7a), (0xc0, 0x24f), (0x370, 0x3ff), (0x400, 0x4ff),
           (0x5d0, 0x5ea), (0x620, 0x64a), (0x904, 0x939), (0xe01, 0xe30), (0x3041, 0x30ff),
           (0x4e00, 0x9fa5), (0xac00, 0xd7a3), (0x1f300, 0x1f64f)]
SPACES = [" ", "  ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u3000", "\u2028", "\u180e",
          "\u0085", "\v", "\f", "\u200b", "    "]
MARKS = list("'\"!?.,;:()[]{}<>/\\|@#$%^&*-_=+~`") + ["'s", "'S", "'\u017f", "'LL", "'re", "\u2019",
                                                   "\u0301", "\u200d", "\ufe0f", "\u00b2"]


# ---- texts ----

def make_text(size, seed):
    """Words by a law of Zipf's kind from several scripts, numbers, code, white space."""
    r = random.Random(seed)
    words = []
    for _ in range(60000):
        low, high = r.choice(SCRIPTS[:2] * 4 + SCRIPTS)
        word = "".join(chr(r.randint(low, high)) for _ in range(r.randint(1, 9)))
        words.append("".join(c for c in word if not is_new(c)))
    out, n = [], 0
    while n < size:
        kind = r.random()
        if kind < 0.80:
            part = words[int(len(words) ** r.random()) - 1] + " "
        elif kind < 0.86:
            part = str(r.randint(0, 10 ** r.randint(1, 9)))
        elif kind < 0.93:
            part = r.choice(MARKS)
        elif kind < 0.985:
            part = r.choice(SPACES)
        elif kind < 0.99:
            part = r.choice(SPECIAL)
        else:
            part = r.choice(["def f(x):\n    return x\n", "https://a.b/c?d=e&f=1\n", "don't I'LL"])
        out.append(part)
        n += len(part.encode())
    sources = "".join(open(p, encoding="utf-8").read() for p in sorted(glob.glob("src/*/*.[ch]")))
    return "".join(out) + sources


def any_character(r):
    while True:
        c = r.choice([r.randint(0, 0x7f), r.randint(0, 0x2fff), r.randint(0, 0x10ffff)])
        if not 0xd800 <= c <= 0xdfff:
            return chr(c)


def make_hostile(n, seed):
    r = random.Random(seed)
    made = ["", " ", "a" * 100000, " " * 100000, " " * 99999 + "x", "\n" * 50000, "\r\n" * 20000,
            "ab" * 50000, "'s" * 1000, "1" * 10001, "<|endoftext|>" * 500, "<|endoftext|" * 500,
            "<" * 20000, "\u0301" * 5000, "\U0001f468\u200d" * 3000, "\u00e9" * 9999]
    pieces = SPACES + MARKS + SPECIAL + [LONGER, "a", "the", " the", "12", "\u4f60\u597d", "\u00df",
                                         "<|endo", "text|>", "\0", "\x7f", "\ufeff", "\u212a"]
    while len(made) < n:
        kind = r.randrange(4)
        if kind == 0:
            made.append("".join(any_character(r) for _ in range(r.randint(1, 40))))
        elif kind == 1:
            made.append("".join(r.choice(pieces) for _ in range(r.randint(1, 60))))
        elif kind == 2:
            made.append((any_character(r) + r.choice(pieces)) * r.randint(1, 90))
        else:
            made.append("".join(r.choice(pieces + [any_character(r)]) for _ in range(200)))
    return made[:n]


def is_new(text):
    """A code point that Unicode 13 did not have."""
    return any(unicodedata.category(c) == "Cn" for c in text)


# ---- tokenizers ----

def llama3_steps():
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def train(steps, merges, text, special):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = steps
    tok.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tok.train_from_iterator([text[i:i + 100000] for i in range(0, len(text), 100000)],
                            trainers.BpeTrainer(vocab_size=256 + merges + len(special),
                                                special_tokens=special, show_progress=False,
                                                initial_alphabet=alphabet))
    return tok


def variants(folder, merges, text):
    """Paths of tokenizers for us, and what they are to `tokenizers` and to `tiktoken`."""
    for name, steps, pattern in (("gpt2", pre_tokenizers.ByteLevel(add_prefix_space=False), GPT2),
                                 ("llama3", llama3_steps(), LLAMA3)):
        tok = train(steps, merges, text, SPECIAL)
        path = f"{folder}/{name}-{merges}.json"
        tok.save(path)
        yield path, tok, tiktoken_of(path, pattern)
        tok.model.ignore_merges = True
        tok.add_tokens([AddedToken("the end", normalized=True),
                        AddedToken("\u4f60", normalized=True)])
        tok.add_special_tokens([LONGER])
        tok.save(path := f"{folder}/{name}-{merges}-ignore.json")
        yield path, tok, None
    tok = train(pre_tokenizers.ByteLevel(add_prefix_space=False), merges, text, SPECIAL[:1])
    for vocab, pairs in (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe")):
        pair = f"{folder}/{vocab}-{merges}"
        os.mkdir(pair)
        tok.model.save(pair)
        os.rename(f"{pair}/vocab.json", f"{pair}/{vocab}")
        os.rename(f"{pair}/merges.txt", f"{pair}/{pairs}")
        yield pair, tok, None


def tiktoken_of(path, pattern):
    """The same ranks for tiktoken, which takes one rank per text: its id among the merges."""
    described = json.load(open(path))
    byte_of = {c: b for b, c in bytes_to_letters().items()}
    special = {t["content"]: t["id"] for t in described["added_tokens"]}
    ranks = {bytes(byte_of[c] for c in text): i for text, i in described["model"]["vocab"].items()
             if text not in special}
    return tiktoken.Encoding("made", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)


def bytes_to_letters():
    plain = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    others = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(256 + i) for i, b in enumerate(others)}}


# ---- the comparison ----

def ours(program, path, texts):
    data = b"".join(np.int32(len(t)).tobytes() + t for t in (t.encode() for t in texts))
    start = time.time()
    out = subprocess.run([program, path], input=data, stdout=subprocess.PIPE, check=True).stdout
    seconds = time.time() - start
    ids, lists, at = np.frombuffer(out, dtype=np.int32), [], 0
    for _ in texts:
        lists.append(ids[at + 1:at + 1 + ids[at]].tolist())
        at += 1 + ids[at]
    assert at == len(ids)
    return lists, seconds


def compare(program, path, theirs, what, texts):
    found, seconds = ours(program, path, texts)
    n_wrong = n_new = 0
    for text, got in zip(texts, found):
        want = theirs(text)
        if got == want:
            continue
        n_new += is_new(text)
        n_wrong += not is_new(text)
        if n_wrong == 1 and not is_new(text):
            k = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), -1)
            print(f"       {text[:60]!r}: token {k}: {got[k:k + 5]}, theirs {want[k:k + 5]}")
    print(f"{'ok' if n_wrong == 0 else 'WRONG':5}  {os.path.basename(path)}: {n_wrong} of "
          f"{len(texts)} texts differ from {what}, and {n_new} with unassigned characters; "
          f"{sum(map(len, found))} tokens, {seconds:.1f} s")
    return n_wrong == 0


def main(program, sizes):
    text = make_text(10_000_000, 1)
    hostile = make_hostile(10000, 2)
    good = True
    for merges in sizes:
        with tempfile.TemporaryDirectory() as folder:
            for path, tok, other in variants(folder, merges, text):
                def reference(t):
                    return tok.encode(t, add_special_tokens=False).ids
                for texts in ([text], hostile):
                    good &= compare(program, path, reference, "tokenizers'", texts)
                    if other:  # 100000 equal letters take tiktoken minutes
                        short = [t for t in texts if len(t) < 5000 or len(texts) == 1]
                        good &= compare(program, path,
                                        lambda t: other.encode(t, allowed_special="all"),
                                        "tiktoken's", short)
    return 0 if good else 1


sys.exit(main(os.path.abspath(sys.argv[1]), [int(n) for n in sys.argv[2:]] or [5000, 50000]))

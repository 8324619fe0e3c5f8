#!/usr/bin/env python3
"""Our tokenizer's ids against those of the Python packages `tokenizers` and `tiktoken`.

Vocabularies are trained here with the pre-tokenizers of GPT-2, Llama-3, Qwen and SmolLM2, and in the
forms of Llama-2 and Mistral, on 10 MB of mixed text that is made here, too; then that text and 10000
hostile strings are encoded by all, and decoded. Run by hand:

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install tokenizers tiktoken
    cmake --build build --target encode_texts
    /tmp/venv/bin/python tests/data/compare_tokenizers.py build/tests/data/encode_texts [merges ...]

Merges are 5000 and 50000 unless given. A code point that is new in a version of Unicode is a letter
to some programs and nothing to others: differences on such strings are counted apart.
"""
import glob
import itertools
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
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, trainers)

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace("{1,3}", "")
MARK = "\u2581"
SPECIAL = ["<|endoftext|>", "<|begin_of_text|>", "<|eot|>"]
LONGER = "<|eot|><|eot|>"  # of two that begin alike tiktoken takes any one
SCRIPTS = [(0x41, 0x5a), (0x61, 0x7a), (0xc0, 0x24f), (0x370, 0x3ff), (0x400, 0x4ff),
           (0x5d0, 0x5ea), (0x620, 0x64a), (0x904, 0x939), (0xe01, 0xe30), (0x3041, 0x30ff),
           (0x4e00, 0x9fa5), (0xac00, 0xd7a3), (0x1f300, 0x1f64f)]
SPACES = [" ", "  ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u3000", "\u2028", "\u180e",
          "\u0085", "\v", "\f", "\u200b", "    "]
MARKS = list("'\"!?.,;:()[]{}<>/\\|@#$%^&*-_=+~`") + ["'s", "'S", "'\u017f", "'LL", "'re", "\u2019",
                                                   "\u0301", "\u200d", "\ufe0f", "\u00b2"]
JOINED = ["e\u0301", "\u1100\u1161\u11a8", "\u0915\u093c", "\u212b", "\u0344", "a\u0323\u0302", MARK,
          MARK * 3, "\u0958", "\uf900", "q\u0307\u0323", "\U0001d15e", "\u0b92\u0bd7"]  # NFC changes


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
        elif kind < 0.92:
            part = r.choice(MARKS)
        elif kind < 0.93:
            part = r.choice(JOINED)
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
                                         "<|endo", "text|>", "\0", "\x7f", "\ufeff", "\u212a"] + JOINED
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

def steps_of(pattern):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def train(steps, merges, text, special, normalizer=None):
    tok = Tokenizer(models.BPE())
    if normalizer:
        tok.normalizer = normalizer
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
                                 ("llama3", steps_of(LLAMA3), LLAMA3)):
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


def more_variants(folder, merges, text):
    """Qwen's, SmolLM2's, and the forms of SentencePiece's."""
    digits = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                      pre_tokenizers.ByteLevel(add_prefix_space=False)])
    for name, steps, normalizer in (("qwen", steps_of(QWEN), normalizers.NFC()),
                                    ("smollm", digits, None)):
        tok = train(steps, merges, text, SPECIAL, normalizer)
        tok.add_tokens([AddedToken("\u0958", normalized=True), AddedToken("\u212b", normalized=False)])
        tok.save(path := f"{folder}/{name}-{merges}.json")
        yield path, Tokenizer.from_file(path), None
    made = train_marked(merges, text)
    for name, normalizer, steps, normalized, strips in MARKED:
        form = json.loads(json.dumps(made))
        form["normalizer"], form["pre_tokenizer"] = normalizer, steps
        for token in form["added_tokens"]:
            token["normalized"] = normalized
        form["decoder"]["decoders"] = form["decoder"]["decoders"][:3 + strips]
        json.dump(form, open(path := f"{folder}/{name}-{merges}.json", "w"))
        yield path, Tokenizer.from_file(path), None


def metaspace(scheme, split):
    return {"type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": split}


PREPEND = {"type": "Prepend", "prepend": MARK}
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
MARKED = [("llama2", {"type": "Sequence", "normalizers": [PREPEND, REPLACE]}, None, False, 1),
          ("llama2-old", {"type": "Sequence", "normalizers": [PREPEND, REPLACE]}, None, True, 1),
          ("replace", REPLACE, None, True, 0),
          ("nfc", {"type": "Sequence", "normalizers": [{"type": "NFC"}, PREPEND, REPLACE]}, None, True, 1),
          ("mistral", None, metaspace("first", False), False, 1),
          ("mistral-nfc", {"type": "NFC"}, metaspace("first", False), True, 1),
          ("always", None, metaspace("always", False), True, 1),
          ("always-split", None, metaspace("always", True), False, 1),
          ("never-split", None, metaspace("never", True), False, 0)]


def train_marked(merges, text):
    """The JSON of a vocabulary of characters, bytes for the others, and runs of blanks."""
    special = ["<unk>", "<s>", "</s>"] + SPECIAL + [f"<0x{b:02X}>" for b in range(256)]
    tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tok.pre_tokenizer = pre_tokenizers.Metaspace(MARK, prepend_scheme="always", split=True)
    tok.decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(),
                                     decoders.Strip(" ", 1, 0)])
    tok.train_from_iterator([text[i:i + 100000] for i in range(0, len(text), 100000)],
                            trainers.BpeTrainer(vocab_size=merges + 600, special_tokens=special,
                                                limit_alphabet=300, show_progress=False))
    made = json.loads(tok.to_str())
    made["added_tokens"] = made["added_tokens"][:6]
    model = made["model"]
    for n in (1, 2, 4):
        if MARK * 2 * n not in model["vocab"]:
            model["vocab"][MARK * 2 * n] = len(model["vocab"])
            model["merges"].append([MARK * n, MARK * n])
    return made


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
    lists, at = [], 0
    for _ in texts:
        n = int.from_bytes(out[at:at + 4], "little")
        ids = np.frombuffer(out, np.int32, n, at + 4).tolist()
        at += 4 + 4 * n
        n = int.from_bytes(out[at:at + 4], "little")
        lists.append((ids, out[at + 4:at + 4 + n]))
        at += 4 + n
    assert at == len(out)
    return lists, seconds


def compare(program, path, theirs, what, texts):
    found, seconds = ours(program, path, texts)
    n_wrong = n_new = 0
    for text, (got, back) in zip(texts, found):
        want, decoded = theirs(text)
        if got == want and (decoded is None or back == decoded):
            continue
        n_new += is_new(text)
        n_wrong += not is_new(text)
        if n_wrong == 1 and not is_new(text):
            k = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), -1)
            print(f"       {text[:60]!r}: token {k}: {got[k:k + 5]}, theirs {want[k:k + 5]}")
            print(f"       decoded {back[:60]!r}, theirs {(decoded or b'')[:60]!r}")
    print(f"{'ok' if n_wrong == 0 else 'WRONG':5}  {os.path.basename(path)}: {n_wrong} of "
          f"{len(texts)} texts differ from {what}, and {n_new} with unassigned characters; "
          f"{sum(len(ids) for ids, _ in found)} tokens, {seconds:.1f} s")
    return n_wrong == 0


def main(program, sizes):
    text = make_text(10_000_000, 1)
    hostile = make_hostile(10000, 2)
    good = True
    for merges in sizes:
        with tempfile.TemporaryDirectory() as folder:
            for path, tok, other in itertools.chain(more_variants(folder, merges, text),
                                                    variants(folder, merges, text)):
                def reference(t):
                    ids = tok.encode(t, add_special_tokens=False).ids
                    return ids, tok.decode(ids, skip_special_tokens=False).encode()
                for texts in ([text], hostile):
                    good &= compare(program, path, reference, "tokenizers'", texts)
                    if other:  # 100000 equal letters take tiktoken minutes
                        short = [t for t in texts if len(t) < 5000 or len(texts) == 1]
                        good &= compare(program, path,
                                        lambda t: (other.encode(t, allowed_special="all"), None),
                                        "tiktoken's", short)
    return 0 if good else 1


sys.exit(main(os.path.abspath(sys.argv[1]), [int(n) for n in sys.argv[2:]] or [5000, 50000]))

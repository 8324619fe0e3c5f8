#!/usr/bin/env python3
"""Writes tests/golden/tokenizers/: small tokenizers of Hugging Face's, and golden.txt, what they
make of texts. Run by hand, with the Python package `tokenizers`:

    /tmp/venv/bin/python tests/golden/make_tokenizers.py tests/golden/tokenizers

A line of golden.txt is a name, the text's bytes in hexadecimal, the bytes that its ids decode to
("=": the text's), and the ids.

With the package `transformers` it also writes beside.txt: what files beside a tokenizer do to the ids of
one text, which is its first line. The others are the tokenizer, tokenizer_config.json,
added_tokens.json and special_tokens_map.json ("-": none), and the ids, between tabs.
"""
import json
import os
import sys

sys.path = sys.path[1:]  # the folder beside this file is not the package
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models,  # noqa: E402
                        normalizers, pre_tokenizers, trainers)

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
MARK = "\u2581"
FABLE = ("The fox saw the grapes. The grapes hung high, and the fox jumped, and jumped again; but "
         "the grapes hung too high.\n\n'They're sour', said the fox, '12 or 120 of them.'\n"
         "Der Fuchs mu\u00dfte gehen; \u043b\u0438\u0441\u0430 \u0443\u0448\u043b\u0430; "
         "\u72d0\u72f8\u8d70\u4e86\u3002 def f(x):\n    return x\n")
TEXTS = ["", " ", "   ", "\n", "\n\n", " \n ", "a  b", "a   \n\n  b", "the grapes",
         "The FOX'S they'LL",
         "I'm, you've he'd 'tis 's'S'\u017f", "1 12 123 1234 12345", "x=1;y=2 // z\r\n\r\n\t\tend",
         "\u043b\u0438\u0441\u0430 \u0443\u0448\u043b\u0430",
         "\u72d0\u72f8\u8d70\u4e86\u3002\u72d0", "e\u0301\u0300 \u00e9",
         "\U0001f98a\U0001f347\u200d\u2642\ufe0f",
         "\u00a0\u3000x\u2028y\u180ez\u0085", "a\0b\x7f\xad",
         "<|endoftext|>", "the<|endoftext|> fox<|endoftext|><|eot|>", "<|endoftext|<|eot",
         "<|eot|><|eot|>",
         "the end of the grapes", "high" * 40, "ab" * 200, " " * 70 + "x", "aaaa" * 33, FABLE]
# What NFC and blanks before texts change.
MORE = ["e\u0301e\u0323\u0302 \u212b\u1100\u1161\u11a8 \u0958\U0001d15e", "\u0301a \u0301\n\u0301",
        MARK + "the" + MARK * 2 + " fox", "<s>the</s> fox<s> <s>", " the</s>", "the end</s>the end"]


def save(folder, name, tok, special):
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator([FABLE] * 2, trainers.BpeTrainer(
        vocab_size=330, special_tokens=special, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tok


def save_marked(folder):
    """A vocabulary of characters and bytes: as Llama-2's first tokenizer.json, and as Mistral's."""
    tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tok.pre_tokenizer = pre_tokenizers.Metaspace(MARK, prepend_scheme="always", split=True)
    tok.train_from_iterator([FABLE] * 2, trainers.BpeTrainer(
        vocab_size=350, special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)],
        show_progress=False, limit_alphabet=30))
    tok.decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(),
                                     decoders.Strip(" ", 1, 0)])
    tok.normalizer = normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])
    made = json.loads(tok.to_str())
    for text in MARK * 2, "a" + MARK + "o":  # the second merge is for a test that has a blank in its middle
        made["model"]["vocab"][text] = len(made["model"]["vocab"])
    made["model"]["merges"] = [" ".join(m) for m in made["model"]["merges"]] + [f"{MARK} {MARK}"]
    made["added_tokens"] = made["added_tokens"][:3]
    made["pre_tokenizer"] = None
    for token in made["added_tokens"]:
        token["normalized"] = token["content"] == "</s>"
    json.dump(made, open(folder + "/llama2.json", "w"), ensure_ascii=False)
    for token in made["added_tokens"]:
        token["normalized"] = False
    made["normalizer"] = None
    made["pre_tokenizer"] = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "first", "split": False}
    json.dump(made, open(folder + "/mistral.json", "w"), ensure_ascii=False)


def main(folder):
    gpt2 = Tokenizer(models.BPE())
    gpt2.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    save(folder, "gpt2", gpt2, ["<|endoftext|>"])
    gpt2.model.save(folder)
    described = json.loads(gpt2.to_str())
    described["model"]["merges"] = [" ".join(m) for m in described["model"]["merges"]]
    json.dump(described, open(folder + "/gpt2.json", "w"), ensure_ascii=False)

    llama = Tokenizer(models.BPE(ignore_merges=True))
    llama.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    save(folder, "llama3", llama, ["<|endoftext|>", "<|eot|>", "<|eot|><|eot|>"])
    llama.add_tokens([AddedToken("the end", normalized=True),
                      AddedToken(" grapes", normalized=False)])
    llama.save(folder + "/llama3.json", pretty=False)

    qwen = Tokenizer(models.BPE())
    qwen.normalizer = normalizers.NFC()
    qwen.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3.replace("{1,3}", "")), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    save(folder, "qwen", qwen, ["<|endoftext|>"])
    qwen.add_tokens([AddedToken("\u0958", normalized=True), AddedToken("\u212b", normalized=False)])
    qwen.save(folder + "/qwen.json", pretty=False)
    smollm = Tokenizer(models.BPE())
    smollm.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    save(folder, "smollm", smollm, ["<|endoftext|>"])
    smollm.save(folder + "/smollm.json", pretty=False)
    save_marked(folder)

    with open(folder + "/golden.txt", "w") as out:
        for name in ("gpt2", "vocab", "llama3", "qwen", "smollm", "llama2", "mistral"):
            name += ".json"
            tok = Tokenizer.from_file(folder + "/" + name) if name != "vocab.json" else gpt2
            for text in TEXTS + MORE * (name[0] in "qlm"):
                ids = tok.encode(text, add_special_tokens=False).ids
                back = tok.decode(ids, skip_special_tokens=False).encode()
                back = "=" if back == text.encode() else back.hex() or "-"
                print(name, text.encode().hex() or "-", back, *ids, file=out)


BESIDE = ("The fox<|user|>saw the grapes<|endoftext|> <|bot|> Grapes of <pad>he\u00e9 the<|user|><|user|>"
          "</s> <unk> the end of<|eot|>")
FAST = {"tokenizer_class": "PreTrainedTokenizerFast"}


def added(content, **flags):
    return {"content": content, "lstrip": False, "rstrip": False, "normalized": False,
            "single_word": False, "special": True} | flags


CASES = [
    ("pair", None, None, None),
    ("pair", None, {"<|bot|>": 331, "<|user|>": 330}, None),
    ("pair", None, {"<|user|>": 330, "<|user|><|user|>": 331, "user": 332, "Grapes of": 333}, None),
    ("pair", None, None, {"pad_token": "he", "sep_token": added(" fox", normalized=True)}),
    ("pair", None, {"<|user|>": 330, "<pad>": 331, "<pa": 332},
     {"pad_token": "<pad>", "additional_special_tokens": ["<|user|>"]}),
    ("pair", None, {"<pad>": 330, "of <pad": 331}, {"pad_token": "<pad>"}),
    ("pair", {"tokenizer_class": "GPT2Tokenizer", "added_tokens_decoder": {
        "331": added("<|bot|>"), "330": added("<|user|>"),
        "257": added("he", normalized=True, special=False)}},
     {"<x>": 330}, {"pad_token": "<pad>"}),
    ("pair", {"add_prefix_space": False, "add_bos_token": False, "unk_token": "<unk>",
              "bos_token": "<s>", "eos_token": "</s>", "clean_up_tokenization_spaces": True}, None, None),
    ("pair", {"bos_token": None, "eos_token": None, "unk_token": None}, None, None),
    ("gpt2", FAST, {"<|user|>": 330, "<|bot|>": 331}, None),
    ("gpt2", FAST | {"pad_token": "<pad>", "additional_special_tokens": ["<|bot|>", "<|user|>"]},
     None, None),
    ("gpt2", FAST | {"extra_special_tokens": {"image_token": "<|bot|>"}, "my_token": "<|user|>",
                     "additional_special_tokens": ["<pad>"]}, None, None),
    ("gpt2", FAST | {"extra_special_tokens": ["<|bot|>", added("</s>") | {"__type": "AddedToken"}],
                     "additional_special_tokens": ["<pad>"]}, None, None),
    ("gpt2", FAST | {"pad_token": "<|user|>"}, None, {"pad_token": "<|bot|>", "my_token": "<unk>"}),
    ("gpt2", FAST | {"added_tokens_decoder": {
        "0": added("<|endoftext|>", normalized=True, special=False),
        "330": added("<|endoftext|> <|bot|>")}}, None, None),
    ("llama3", FAST | {"pad_token": "<pad>", "eos_token": "<|eot|>"}, None, None),
    ("llama3", FAST | {"added_tokens_decoder": {
        "330": added("the end", normalized=True, special=False), "332": added("<|user|>"),
        "333": added(" the end of", special=False)}}, None, None),
]


def write_beside(folder):
    import shutil
    import tempfile
    from transformers import AutoTokenizer
    with open(folder + "/beside.txt", "w") as out:
        print(BESIDE, file=out)
        for base, *files in CASES:
            with tempfile.TemporaryDirectory() as work:
                for name in ("vocab.json", "merges.txt") if base == "pair" else (base + ".json",):
                    shutil.copy(f"{folder}/{name}",
                                f"{work}/{name if base == 'pair' else 'tokenizer.json'}")
                names = "tokenizer_config", "added_tokens", "special_tokens_map"
                for name, value in zip(names, files):
                    if value is not None:
                        json.dump(value, open(f"{work}/{name}.json", "w"))
                json.dump({"model_type": "gpt2"}, open(work + "/config.json", "w"))
                tok = AutoTokenizer.from_pretrained(work)
                ids = tok(BESIDE, add_special_tokens=False)["input_ids"]
            shown = ["-" if f is None else json.dumps(f, ensure_ascii=False) for f in files]
            print(base, *shown, " ".join(map(str, ids)), sep="\t", file=out)


os.makedirs(sys.argv[1], exist_ok=True)
main(sys.argv[1])
write_beside(sys.argv[1])

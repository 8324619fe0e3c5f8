#!/usr/bin/env python3
"""GPT-2 in Hugging Face's files, ours and PyTorch's, by an independent implementation.

Nothing of zero, transformers or safetensors is used: the files are read and written here, with
struct and json, and the forward pass is PyTorch's. Run by hand (Debian, Ubuntu: apt-get install
python3-torch); the largest difference of logits is shown relative to the largest logit.

    cmake --build build --target logits_export
    /usr/bin/python3 tests/checkpoint/hugging_face.py build/tests/checkpoint/logits_export

Directories of `zero checkpoint export` may follow; their models are compared, too.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

LIMIT = 1e-5
TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


# ---- safetensors ----

def read_tensors(path):
    data = open(path, "rb").read()
    n, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + n])
    assert header.pop("__metadata__") == {"format": "pt"}
    assert (8 + n) % 8 == 0
    tensors, end = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        assert entry["dtype"] == "F32"
        begin, at = entry["data_offsets"], end
        assert begin[0] == at, f"{name}: a hole, or an overlap"
        end = begin[1]
        part = np.frombuffer(data, dtype="<f4", offset=8 + n + begin[0],
                             count=(begin[1] - begin[0]) // 4)
        tensors[name] = torch.tensor(part.reshape(entry["shape"]).copy())
    assert 8 + n + end == len(data)
    return tensors


def bytes_of(tensor):
    integers = {2: torch.int16, 4: torch.int32}[tensor.element_size()]
    return tensor.contiguous().view(integers).numpy().tobytes()


def write_tensors(path, tensors):
    names = {dtype: name for name, dtype in TYPES.items()}
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = bytes_of(tensor) if tensor.dim() > 0 else struct.pack("<f", float(tensor))
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)


# ---- GPT-2 ----

def norm(x, p, name):
    return F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"], 1e-5)


def linear(x, p, name):  # their Conv1D: [in, out]
    return x @ p[name + ".weight"] + p[name + ".bias"]


def attention(x, p, name, heads):
    T, C = x.shape
    q, k, v = (t.view(T, heads, C // heads).transpose(0, 1)
               for t in linear(x, p, name + ".c_attn").split(C, dim=1))
    scores = q @ k.transpose(1, 2) / (C // heads) ** 0.5
    future = torch.triu(torch.ones(T, T, dtype=torch.bool), 1)
    weights = scores.masked_fill(future, float("-inf")).softmax(dim=2)
    return linear((weights @ v).transpose(0, 1).reshape(T, C), p, name + ".c_proj")


def gelu(x):
    return 0.5 * x * (1 + torch.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x ** 3)))


def logits_of(tensors, config, tokens, dtype):
    p = {name.replace("transformer.", ""): t.to(dtype) for name, t in tensors.items()}
    x = p["wte.weight"][tokens] + p["wpe.weight"][:len(tokens)]
    for layer in range(config["n_layer"]):
        h = f"h.{layer}"
        x = x + attention(norm(x, p, h + ".ln_1"), p, h + ".attn", config["n_head"])
        x = x + linear(gelu(linear(norm(x, p, h + ".ln_2"), p, h + ".mlp.c_fc")),
                       p, h + ".mlp.c_proj")
    return (norm(x, p, "ln_f") @ p["wte.weight"].T).double()


def random_model(config, dtype, prefix, masks, head):
    C, T, V = config["n_embd"], config["n_positions"], config["vocab_size"]
    torch.manual_seed(5)

    def draw(*shape, mean=0.0, std=0.02):
        return (mean + std * torch.randn(*shape)).to(dtype)

    def draw_norm(p, name):
        p[name + ".weight"], p[name + ".bias"] = draw(C, mean=1.0, std=0.1), draw(C, std=0.1)

    def draw_linear(p, name, n, m):
        p[name + ".weight"], p[name + ".bias"] = draw(n, m, std=0.1), draw(m, std=0.1)

    p = {"wte.weight": draw(V, C, std=0.5), "wpe.weight": draw(T, C, std=0.1)}
    for layer in range(config["n_layer"]):
        h = f"h.{layer}"
        draw_norm(p, h + ".ln_1")
        if masks:
            p[h + ".attn.bias"] = torch.tril(torch.ones(T, T)).view(1, 1, T, T)
            p[h + ".attn.masked_bias"] = torch.tensor(-1e4)
        draw_linear(p, h + ".attn.c_attn", C, 3 * C)
        draw_linear(p, h + ".attn.c_proj", C, C)
        draw_norm(p, h + ".ln_2")
        draw_linear(p, h + ".mlp.c_fc", C, 4 * C)
        draw_linear(p, h + ".mlp.c_proj", 4 * C, C)
    draw_norm(p, "ln_f")
    p = {prefix + name: tensor for name, tensor in p.items()}
    if head:
        p["lm_head.weight"] = p[prefix + "wte.weight"].clone()
    return p


# ---- the comparison ----

def ours(program, direction, folder, tokens, vocab):
    with tempfile.NamedTemporaryFile() as file:
        words = ",".join(str(t) for t in tokens)
        subprocess.run([program, direction, folder, words, file.name], check=True)
        return torch.tensor(np.fromfile(file.name, dtype="f4").reshape(-1, vocab)).double()


def compare(what, found, tensors, config, tokens):
    worst = []
    for dtype in (torch.float64, torch.float32):
        expected = logits_of(tensors, config, tokens, dtype)
        assert expected.shape == found.shape
        worst.append(float((found - expected).abs().max() / expected.abs().max()))
    good = max(worst) <= LIMIT
    print(f"{'ok' if good else 'WRONG':5}  {what}: {worst[0]:.1e} of the largest logit from "
          f"float64, {worst[1]:.1e} from float32 ({found.shape[0]} x {found.shape[1]} logits)")
    return good


def check_export(program, folder):
    tokens = [(7 * i * i + 3) % 211 for i in range(40)]
    path = f"{folder}/exported"
    found = ours(program, "export", path, tokens, 211)
    config = json.load(open(path + "/config.json"))
    tensors = read_tensors(path + "/model.safetensors")
    assert "lm_head.weight" not in tensors
    assert all(name.startswith("transformer.") for name in tensors)
    assert config["activation_function"] == "gelu_new" and config["vocab_size"] == 211
    return compare("exported", found, tensors, config, tokens)


def check_import(program, folder, what, dtype, prefix="", masks=False, head=False):
    config = {"model_type": "gpt2", "n_layer": 2, "n_head": 6, "n_embd": 96, "n_positions": 33,
              "n_ctx": 33, "vocab_size": 307, "activation_function": "gelu_new",
              "layer_norm_epsilon": 1e-5, "n_inner": None}
    tokens = [(5 * i * i + 11 * i) % 307 for i in range(33)]
    path = f"{folder}/{what.replace(' ', '-')}"
    tensors = random_model(config, dtype, prefix, masks, head)
    os.mkdir(path)
    write_tensors(path + "/model.safetensors", tensors)
    json.dump(config, open(path + "/config.json", "w"))
    found = ours(program, "import", path, tokens, 307)
    return compare(f"imported, {what}", found, tensors, config, tokens)


def check_directory(program, path):
    config = json.load(open(path + "/config.json"))
    tokens = [(5 * i * i + 11 * i) % config["vocab_size"]
              for i in range(min(config["n_positions"], 64))]
    found = ours(program, "import", path, tokens, config["vocab_size"])
    return compare(path, found, read_tensors(path + "/model.safetensors"), config, tokens)


def main(program, directories):
    with tempfile.TemporaryDirectory() as folder:
        good = [
            check_export(program, folder),
            check_import(program, folder, "F32 without prefix", torch.float32),
            check_import(program, folder, "F32 with masks", torch.float32, masks=True),
            check_import(program, folder, "F32 with prefix and head", torch.float32,
                         prefix="transformer.", head=True),
            check_import(program, folder, "F16 with masks", torch.float16, masks=True),
            check_import(program, folder, "BF16 with prefix", torch.bfloat16,
                         prefix="transformer."),
        ]
    good += [check_directory(program, path) for path in directories]
    print(f"PyTorch {torch.__version__}; limit {LIMIT:g}")
    return 0 if all(good) else 1


sys.exit(main(os.path.abspath(sys.argv[1]), sys.argv[2:]))

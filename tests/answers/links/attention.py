"""PyTorch's layers of attention, with the parameters under this library's names."""
import zlib

import numpy as np
import torch
from make_link_cases import records


def path(key):
    """self_attn.in_proj_weight as self_attn/in_proj/W, norm1.bias as norm1/beta."""
    link, _, name = key.replace("in_proj_", "in_proj.").replace(".", "/").rpartition("/")
    normalization = link.startswith("norm")
    return f"{link}/" + {"weight": "gamma" if normalization else "W", "bias": "beta" if normalization else "b"}[name]


def case(name, layer, shapes, call):
    rng = np.random.RandomState(zlib.crc32(name.encode()))
    for p in layer.parameters():
        p.data = torch.tensor(rng.uniform(-1, 1, p.shape).astype(np.float32))
    inputs = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    y = call(layer, *map(torch.tensor, inputs))
    gy = rng.uniform(0.5, 1.5, y.shape).astype(np.float32)
    (y * torch.tensor(gy)).sum().backward()
    for i, x in enumerate(inputs):
        records[f"{name}|x0,{i}"] = x
    records[f"{name}|y0,0"], records[f"{name}|gy0,0"] = y.detach().numpy(), gy
    for key, p in layer.named_parameters():
        records[f"{name}|W/{path(key)}"] = p.detach().numpy()
        records[f"{name}|g/{path(key)}"] = p.grad.numpy()


def attention(bias=True):
    return torch.nn.MultiheadAttention(4, 2, bias=bias, batch_first=True)


X = (2, 3, 4)
case("MultiHeadAttention", attention(), [X], lambda layer, x: layer(x, x, x)[0])
case("MultiHeadAttention nobias", attention(False), [X], lambda layer, x: layer(x, x, x)[0])
case("MultiHeadAttention causal", attention(), [X], lambda layer, x: layer(
    x, x, x, attn_mask=torch.triu(torch.ones(3, 3, dtype=bool), 1))[0])
case("MultiHeadAttention of others", attention(), [X, (2, 5, 4), (2, 5, 4)],
     lambda layer, q, k, v: layer(q, k, v)[0])
PADDED = torch.tensor([[False, False, True], [False, True, True]])
case("MultiHeadAttention of padded ones", attention(), [X],
     lambda layer, x: layer(x, x, x, key_padding_mask=PADDED)[0])


def layer(kind, **options):
    return getattr(torch.nn, f"Transformer{kind}Layer")(4, 2, 6, 0.0, batch_first=True, **options)


case("TransformerEncoderLayer", layer("Encoder"), [X], lambda layer, x: layer(x))
case("TransformerEncoderLayer gelu norm_first", layer("Encoder", activation="gelu", norm_first=True), [X],
     lambda layer, x: layer(x))
case("TransformerDecoderLayer", layer("Decoder"), [X, (2, 5, 4)], lambda layer, x, m: layer(x, m))
case("TransformerDecoderLayer norm_first causal", layer("Decoder", norm_first=True), [X, (2, 5, 4)],
     lambda layer, x, m: layer(x, m, tgt_mask=torch.triu(torch.ones(3, 3, dtype=bool), 1)))

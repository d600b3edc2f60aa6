"""Cases of rensa/functions/attention.h."""
import numpy as np
from make_function_cases import case, torch, uniform, values

torch.backends.cuda.enable_flash_sdp(False)  # on the CPU too: it has no second derivative
attention = torch.nn.functional.scaled_dot_product_attention
Q, K, V = uniform(-1, 1, (2, 3, 4)), uniform(-1, 1, (2, 5, 4)), uniform(-1, 1, (2, 5, 2))
case("attention", attention, Q, K, V, by=torch, sizes=(1,))
case("attention of matrices", attention, uniform(-1, 1, (3, 4)), uniform(-1, 1, (5, 4)), uniform(-1, 1, (5, 2)),
     by=torch)
case("attention scale=0.3", lambda q, k, v: attention(q, k, v, scale=0.3), Q, K, V, by=torch)
case("attention scale=-0.4", lambda q, k, v: attention(q, k, v, scale=-0.4), Q, K, V, by=torch)
case("attention causal", lambda q, k, v: attention(q, k, v, is_causal=True), Q, K, V, by=torch)


def grouped(q, k, v, *mask, **options):
    k, v = (torch.repeat_interleave(x, q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    return attention(q, k, v, *mask, **options)


HEADS = [uniform(-1, 1, (2, 4, 3, 2))] + [uniform(-1, 1, (2, 2, 3, 2))] * 2
case("attention of grouped heads causal", lambda q, k, v: grouped(q, k, v, is_causal=True), *HEADS, by=torch)
MASK = values([[1, 0, 1, 1, 0], [0, 1, 0, 0, 0], [1, 1, 1, 1, 1]], bool)
case("attention mask", lambda q, k, v, m: attention(q, k, v, m), Q, K, V, MASK, by=torch)
case("attention added mask", lambda q, k, v, m: attention(q, k, v, m), Q, K, V, uniform(-2, 2, (2, 3, 5)),
     by=torch, fixed=[3])
LEFT_OUT = values([[0.5, -np.inf, 1, -2, -np.inf], [-np.inf, 1, -np.inf, -np.inf, -np.inf], [1, 2, 3, 4, 5]])
case("attention added mask of infinities", lambda q, k, v, m: attention(q, k, v, m), Q, K, V, LEFT_OUT, by=torch,
     fixed=[3])
case("attention bias", lambda q, k, v, b: attention(q, k, v, b), *HEADS[:1], *HEADS[:1], *HEADS[:1],
     uniform(-1, 1, (4, 3, 3)), by=torch)


def lengths_mask(lengths, q, k):
    return (torch.arange(k.shape[-2]) < lengths[:, None])[:, None, None, :].expand(-1, 1, q.shape[-2], -1)


def alibi_mask(slopes, q, k):
    i, j = torch.arange(q.shape[-2])[:, None], torch.arange(k.shape[-2])
    return -(i - j).abs() * slopes.to(q.dtype)[:, None, None]


LENGTHS, SLOPES = values([5, 2], np.int32), values([0.5, 0.25, 0.125, 0.0625])
PADDED = [uniform(-1, 1, (2, 4, 3, 4)), uniform(-1, 1, (2, 2, 5, 4)), uniform(-1, 1, (2, 2, 5, 4))]
case("attention key_lengths", lambda q, k, v, n: grouped(q, k, v, lengths_mask(n, q, k)), *PADDED, LENGTHS, by=torch)
case("attention alibi_slopes", lambda q, k, v, s: grouped(q, k, v, alibi_mask(s, q, k)), *PADDED, SLOPES, by=torch,
     fixed=[3])


def everything(q, k, v, m, n, s):
    causal = torch.ones(q.shape[-2], k.shape[-2]).tril().bool()
    seen = m & causal & lengths_mask(n, q, k)
    return grouped(q, k, v, torch.where(seen, alibi_mask(s, q, k), -torch.inf))


SEEN = values(np.arange(3 * 5).reshape(1, 1, 3, 5) % 4 != 2, bool)
case("attention causal mask key_lengths alibi_slopes", everything, *PADDED, SEEN, LENGTHS, SLOPES, by=torch, fixed=[5])

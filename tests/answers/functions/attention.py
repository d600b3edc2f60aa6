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
case("attention causal", lambda q, k, v: attention(q, k, v, is_causal=True), Q, K, V, by=torch)
HEADS = [uniform(-1, 1, (2, 4, 3, 2))] + [uniform(-1, 1, (2, 2, 3, 2))] * 2
case("attention of grouped heads causal",
     lambda q, k, v: attention(q, *(torch.repeat_interleave(x, 2, 1) for x in (k, v)), is_causal=True),
     *HEADS, by=torch)
MASK = values([[1, 0, 1, 1, 0], [0, 1, 0, 0, 0], [1, 1, 1, 1, 1]], bool)
case("attention mask", lambda q, k, v, m: attention(q, k, v, m), Q, K, V, MASK, by=torch)
case("attention added mask", lambda q, k, v, m: attention(q, k, v, m), Q, K, V, uniform(-2, 2, (2, 3, 5)),
     by=torch, fixed=[3])

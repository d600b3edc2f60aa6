"""Cases of rensa/functions/noise.h: what is drawn is given."""
from make_function_cases import F, case, uniform, values

X = uniform(-2, 2, (3, 4))
case("gaussian eps", lambda m, v, e: F.gaussian(m, v, eps=e.array), X, X, X, fixed=[2], sizes=(1, 0))
MASK = values([[1, 0, 0, 1], [0, 1, 1, 1]])
case("simplified_dropconnect mask",
     lambda x, W, b, m: F.simplified_dropconnect(x, W, b, ratio=0.25, mask=m.array.astype(bool),
                                                 use_batchwise_mask=False),
     X, uniform(-1, 1, (2, 4)), uniform(-1, 1, (2,)), MASK, fixed=[3])
case("simplified_dropconnect mask of samples",
     lambda x, W, m: F.simplified_dropconnect(x, W, ratio=0.25, mask=m.array > 0), X, uniform(-1, 1, (2, 4)),
     uniform(-1, 1, (3, 2, 4)), fixed=[2])

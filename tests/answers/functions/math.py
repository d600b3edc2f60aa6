"""Cases of rensa/functions/math_functions.h, special_functions.h and reduction_functions.h."""
import numpy as np
from make_function_cases import F, case, torch, uniform, values

X = uniform(-2, 2, (3, 4))
POSITIVE = uniform(0.5, 2, (3, 4))
INSIDE = uniform(-0.6, 0.6, (3, 4))
AWAY = uniform(0.3, 2, (3, 4))

for name in ("square", "exp", "expm1", "sin", "cos", "sinh", "cosh", "arctan", "erf", "erfc", "erfcx", "ndtr",
             "log_ndtr", "identity"):
    case(name, getattr(F, name), X)
for name in ("sqrt", "rsqrt", "log", "log2", "log10", "log1p", "lgamma", "digamma"):
    case(name, getattr(F, name), POSITIVE)
for name in ("tan", "arcsin", "arccos", "arctanh", "erfinv"):
    case(name, getattr(F, name), INSIDE)
for name in ("erfcinv", "ndtri"):
    case(name, getattr(F, name), uniform(0.2, 0.8, (3, 4)))
case("erfinv far", F.erfinv, values([[-0.99, 0.97], [0.95, -0.9]]))
case("erfcinv far", F.erfcinv, values([[0.02, 1.95], [0.1, 1.8]]))
case("absolute", F.absolute, AWAY)
case("absolute negative", F.absolute, uniform(-2, -0.3, (3, 4)))
for n in (0, 1, 2):
    case(f"polygamma n={n}", lambda x, n=n: F.polygamma(np.full(x.shape, n, np.int32), x), POSITIVE)
case("zeta", lambda q: F.zeta(np.full(q.shape, 2.5), q), POSITIVE)
case("pow 2.5", lambda x: x ** 2.5, POSITIVE)
case("exp2", torch.exp2, X, by=torch)
case("arcsinh", torch.arcsinh, X, by=torch)
case("arccosh", torch.arccosh, uniform(1.5, 3, (3, 4)), by=torch)
for name in ("sign", "floor", "ceil", "fix"):
    case(name, getattr(F, name), uniform(0.2, 0.8, (3, 4)), orders=0)
    case(f"{name} negative", getattr(F, name), uniform(-1.8, -1.2, (3, 4)), orders=0)
case("clip", lambda x: F.clip(x, -1.0, 1.0), X)

case("add", F.add, X, X)
case("add three", F.add, X, X, X)
case("subtract", lambda a, b: a - b, X, X)
case("multiply", lambda a, b: a * b, X, X)
case("divide", lambda a, b: a / b, X, POSITIVE)
case("maximum", F.maximum, X, X)
case("minimum", F.minimum, X, X)
case("arctan2", F.arctan2, X, POSITIVE)
case("fmod", F.fmod, uniform(2.2, 2.8, (3, 4)), uniform(0.9, 1.05, (3, 4)))
case("logaddexp", torch.logaddexp, X, X, by=torch)
case("linear_interpolate", F.linear_interpolate, uniform(0, 1, (3, 4)), X, X)
case("scale", F.scale, uniform(-2, 2, (3, 4, 2)), uniform(-2, 2, (4,)), batched=[0])
case("scale axis=0", lambda x, y: F.scale(x, y, axis=0), uniform(-2, 2, (3, 4, 2)), uniform(-2, 2, (3, 4)))
case("bias", F.bias, uniform(-2, 2, (3, 4, 2)), uniform(-2, 2, (4,)), batched=[0])
case("bias axis=0", lambda x, y: F.bias(x, y, axis=0), uniform(-2, 2, (3, 4, 2)), uniform(-2, 2, (3, 4)))

Y = uniform(-2, 2, (3, 4, 2))
for name in ("sum", "prod", "average"):
    case(name, getattr(F, name), X, sizes=(1,))
    case(f"{name} axis=1", lambda x, f=getattr(F, name): f(x, axis=1), Y)
    case(f"{name} axis=-1 keepdims", lambda x, f=getattr(F, name): f(x, axis=-1, keepdims=True), Y)
for name in ("max", "min"):
    case(name, getattr(F, name), X, sizes=(1,))
    case(f"{name} axis=1", lambda x, f=getattr(F, name): f(x, axis=1), Y)
    case(f"{name} axis=(0, 2) keepdims", lambda x, f=getattr(F, name): f(x, axis=(0, 2), keepdims=True), Y)
    case(f"{name} equal", getattr(F, name), values([[1, 2, 2], [2, 1, 1]]))
case("sum axis=(0, 2)", lambda x: F.sum(x, axis=(0, 2)), Y)
case("prod axis=(0, 2)", lambda x: F.prod(x, axis=(0, 2)), Y)
case("prod zeros", lambda x: F.prod(x, axis=1), values([[0, 2, 3], [0, 0, 3], [1, 2, 3]]))
case("average weights", lambda x, w: F.average(x, axis=1, weights=w), Y, uniform(0.5, 1.5, (4,)))
case("average all weights", lambda x, w: F.average(x, weights=w), X, uniform(0.5, 1.5, (3, 4)))
case("mean axis=0", lambda x: F.mean(x, axis=0), Y)
case("argmax", F.argmax, X, orders=0, sizes=(1,))
case("argmax axis=1", lambda x: F.argmax(x, axis=1), Y, orders=0)
case("argmin", F.argmin, X, orders=0, sizes=(1,))
case("argmin axis=0", lambda x: F.argmin(x, axis=0), Y, orders=0)
case("logsumexp", F.logsumexp, X, sizes=(1,))
case("logsumexp axis=1", lambda x: F.logsumexp(x, axis=1), Y)
case("logsumexp axis=(0, 2)", lambda x: F.logsumexp(x, axis=(0, 2)), Y)
case("var axis=1", lambda x: torch.var(x, 1, correction=0), Y, by=torch)
case("var ddof=1 keepdims", lambda x: torch.var(x, (0, 2), correction=1, keepdim=True), Y, by=torch)
case("std", lambda x: torch.std(x, correction=0), X, by=torch, sizes=())
case("cumsum", F.cumsum, X, sizes=(1,))
case("cumsum axis=1", lambda x: F.cumsum(x, axis=1), Y)
case("cumprod", F.cumprod, X, sizes=(1,))
case("cumprod axis=1", lambda x: F.cumprod(x, axis=1), Y)
case("cumprod zeros", lambda x: F.cumprod(x, axis=1), values([[0, 2, 3, 1], [2, 0, 3, 0], [1, 2, 3, 4]]))
case("batch_l2_norm_squared", F.batch_l2_norm_squared, Y, sizes=(1,))
case("sum_to", lambda x: F.sum_to(x, (4, 1)), Y, sizes=())

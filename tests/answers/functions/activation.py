"""Cases of rensa/functions/activation.h."""
from make_function_cases import F, case, torch, uniform

T = torch.nn.functional
X = uniform(-3, 3, (3, 4))

for name in ("relu", "sigmoid", "tanh", "softplus", "leaky_relu", "elu", "selu", "hard_sigmoid", "clipped_relu",
             "relu6"):
    case(name, getattr(F, name), X)
case("softplus beta=2.5", lambda x: F.softplus(x, beta=2.5), X)
case("leaky_relu slope=0.1", lambda x: F.leaky_relu(x, slope=0.1), X)
case("elu alpha=1.5", lambda x: F.elu(x, alpha=1.5), X)
case("selu alpha=1.5 scale=2", lambda x: F.selu(x, alpha=1.5, scale=2), X)
case("clipped_relu z=1.5", lambda x: F.clipped_relu(x, z=1.5), X)
case("softmax", F.softmax, X)
case("softmax axis=0", lambda x: F.softmax(x, axis=0), X)
case("softmax axis=-1", lambda x: F.softmax(x, axis=-1), uniform(-3, 3, (2, 3, 4)))
case("log_softmax", F.log_softmax, X)
case("log_softmax axis=-2", lambda x: F.log_softmax(x, axis=-2), uniform(-3, 3, (2, 3, 4)))
case("crelu", F.crelu, X)
case("crelu axis=0", lambda x: F.crelu(x, axis=0), X)
case("crelu axis=-1", lambda x: F.crelu(x, axis=-1), uniform(-3, 3, (2, 3, 2)))
case("maxout", lambda x: F.maxout(x, 2), X)
case("maxout axis=2", lambda x: F.maxout(x, 3, axis=2), uniform(-3, 3, (2, 2, 6)))
case("prelu", F.prelu, uniform(-3, 3, (3, 4)), uniform(0, 1, (4,)), batched=[0])
case("prelu of channels", F.prelu, uniform(-3, 3, (2, 3, 2)), uniform(0, 1, (3,)), batched=[0])
case("prelu one", F.prelu, uniform(-3, 3, (3, 4)), uniform(0, 1, ()), batched=[0])
case("rrelu of r", lambda x, r: F.rrelu(x, r=r.array), uniform(-3, 3, (3, 4)), uniform(0.1, 0.4, (3, 4)), fixed=[1], sizes=(1, 0))
case("swish", F.swish, uniform(-3, 3, (3, 4)), uniform(0.5, 1.5, (4,)), batched=[0])
case("swish of channels", F.swish, uniform(-3, 3, (2, 3, 2)), uniform(0.5, 1.5, (3,)), batched=[0])

for name in ("gelu", "silu", "mish"):
    case(name, getattr(T, name), X, by=torch)
case("hard_swish", T.hardswish, uniform(-5, 5, (3, 4)), by=torch)
case("gelu_tanh", lambda x: T.gelu(x, approximate="tanh"), X, by=torch)
case("glu", T.glu, X, by=torch)
case("glu axis=0", lambda x: T.glu(x, 0), uniform(-3, 3, (4, 3)), by=torch)

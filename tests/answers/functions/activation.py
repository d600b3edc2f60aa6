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
for name in ("gelu", "silu"):
    case(name, getattr(T, name), X, by=torch)

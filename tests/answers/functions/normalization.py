"""Cases of rensa/functions/normalization.h."""
from make_function_cases import F, case, torch, uniform

IMAGES, CHANNELS = uniform(-2, 2, (3, 4, 2, 3)), uniform(0.5, 1.5, (4,))

# --- of batches ---
case("batch_normalization", F.batch_normalization, uniform(-2, 2, (5, 4)), CHANNELS, CHANNELS, sizes=(1,), batched=[0])
case("batch_normalization of images", F.batch_normalization, IMAGES, CHANNELS, CHANNELS)
case("batch_normalization of long rows", F.batch_normalization, uniform(-2, 2, (2, 3, 40)), uniform(0.5, 1.5, (3,)),
     uniform(-1, 1, (3,)))
case("batch_normalization eps=0.1 axis=0", lambda x, g, b: F.batch_normalization(x, g, b, eps=0.1, axis=0),
     uniform(-2, 2, (3, 2, 4)), uniform(0.5, 1.5, (2, 4)), uniform(-1, 1, (2, 4)))
case("batch_normalization of each place", F.batch_normalization, uniform(-2, 2, (4, 2, 3)), uniform(0.5, 1.5, (2, 3)),
     uniform(-1, 1, (2, 3)))
case("batch_normalization axis=0,2", lambda x, g, b: F.batch_normalization(x, g, b, axis=(0, 2)),
     uniform(-2, 2, (2, 3, 4, 2)), uniform(0.5, 1.5, (3, 2)), uniform(-1, 1, (3, 2)))
case("batch_normalization axis=1", lambda x, g, b: F.batch_normalization(x, g, b, axis=1), uniform(-2, 2, (3, 5)),
     uniform(0.5, 1.5, (3,)), uniform(-1, 1, (3,)))


def running(x, gamma, beta, mean, var, **options):
    mean, var = mean.array.copy(), var.array.copy()
    return F.batch_normalization(x, gamma, beta, running_mean=mean, running_var=var, **options), mean, var


STATISTICS = uniform(0.5, 1.5, (4,))
case("batch_normalization running", running, IMAGES, CHANNELS, CHANNELS, STATISTICS, STATISTICS, fixed=[3, 4])
case("batch_normalization running decay=0.3",
     lambda *x: running(*x, decay=0.3), uniform(-2, 2, (5, 4)), CHANNELS, CHANNELS, STATISTICS, STATISTICS, fixed=[3, 4])
case("fixed_batch_normalization", F.fixed_batch_normalization, uniform(-2, 2, (5, 4)), CHANNELS, CHANNELS, STATISTICS,
     STATISTICS, sizes=(1, 0), batched=[0])
case("fixed_batch_normalization of images eps=0.1",
     lambda *x: F.fixed_batch_normalization(*x, eps=0.1), IMAGES, CHANNELS, CHANNELS, STATISTICS, STATISTICS)
case("fixed_batch_normalization axis=0,2", lambda *x: F.fixed_batch_normalization(*x, axis=(0, 2)),
     uniform(-2, 2, (2, 3, 4, 2)), *[uniform(0.5, 1.5, (3, 2))] * 4)


def renormalization(x, gamma, beta, mean, var, rmax, dmax):
    mean, var = mean.array.copy(), var.array.copy()
    y = F.batch_renormalization(x, gamma, beta, rmax, dmax, running_mean=mean, running_var=var, update_statistics=True)
    return y, mean, var


case("batch_renormalization rmax=1 dmax=0", lambda *x: renormalization(*x, 1, 0), uniform(-2, 2, (5, 4)), CHANNELS,
     CHANNELS, STATISTICS, STATISTICS, fixed=[3, 4], orders=1)
case("batch_renormalization rmax=1.2 dmax=0.5", lambda *x: renormalization(*x, 1.2, 0.5), IMAGES, CHANNELS, CHANNELS,
     STATISTICS, STATISTICS, fixed=[3, 4], orders=1)
case("fixed_batch_renormalization", F.fixed_batch_renormalization, uniform(-2, 2, (5, 4)), CHANNELS, CHANNELS, STATISTICS,
     STATISTICS, sizes=(1,), batched=[0])

# --- of samples ---
ROWS = uniform(-2, 2, (3, 5))
FIVE = uniform(0.5, 1.5, (5,))
case("layer_normalization", F.layer_normalization, ROWS, FIVE, FIVE, sizes=(1,), batched=[0])
case("layer_normalization eps=0.1", lambda x, g, b: F.layer_normalization(x, g, b, eps=0.1), uniform(-2, 2, (4, 70)),
     uniform(0.5, 1.5, (70,)), uniform(-1, 1, (70,)))
case("layer_normalization of several axes",
     lambda x, g, b: torch.nn.functional.layer_norm(x, (2, 5), g, b), uniform(-2, 2, (2, 3, 2, 5)),
     uniform(0.5, 1.5, (2, 5)), uniform(-1, 1, (2, 5)), by=torch)


def rms_norm(x, gamma=None, eps=1e-5):
    """PyTorch's, which has it from 2.4 on."""
    axes = (-1,) if gamma is None else tuple(range(-gamma.ndim, 0))
    y = x * torch.rsqrt(torch.mean(x * x, axes, keepdim=True) + eps)
    return y if gamma is None else y * gamma


case("rms_norm", lambda x, g: rms_norm(x, g, 2.0 ** -52), ROWS, FIVE, by=torch, sizes=(1,), batched=[0])
case("rms_norm without gamma", rms_norm, uniform(-2, 2, (2, 3, 5)), by=torch)
case("rms_norm of several axes", rms_norm, uniform(-2, 2, (2, 3, 2, 5)), uniform(0.5, 1.5, (2, 5)), by=torch)
SIX = uniform(0.5, 1.5, (6,))
case("group_normalization", lambda x, g, b: F.group_normalization(x, 2, g, b), uniform(-2, 2, (2, 6, 3)), SIX, SIX,
     sizes=(1,), batched=[0])
case("group_normalization of images", lambda x, g, b: F.group_normalization(x, 3, g, b), uniform(-2, 2, (2, 6, 3, 4)),
     SIX, SIX)
case("group_normalization of instances", lambda x, g, b: F.group_normalization(x, 6, g, b, eps=0.1),
     uniform(-2, 2, (2, 6, 3, 2)), SIX, SIX)
case("group_normalization of one group", lambda x, g, b: F.group_normalization(x, 1, g, b),
     uniform(-2, 2, (3, 6, 2)), SIX, SIX)
case("normalize", F.normalize, uniform(-2, 2, (3, 4)), sizes=(1, 0))
case("normalize eps=0.5 axis=0", lambda x: F.normalize(x, eps=0.5, axis=0), uniform(-2, 2, (3, 4)))
case("normalize axis=1,2", lambda x: F.normalize(x, axis=(1, 2)), uniform(-2, 2, (2, 3, 4)))
case("local_response_normalization", F.local_response_normalization, uniform(-2, 2, (2, 7, 3, 2)), sizes=(1, 0),
     orders=1)
case("local_response_normalization n=2 k=1 alpha=0.1 beta=0.5",
     lambda x: F.local_response_normalization(x, n=2, k=1, alpha=0.1, beta=0.5), uniform(-2, 2, (3, 4, 2)), orders=1)

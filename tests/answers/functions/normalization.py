"""Cases of rensa/functions/normalization.h."""
from make_function_cases import F, case, uniform

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

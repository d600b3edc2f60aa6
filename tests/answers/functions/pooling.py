"""Cases of rensa/functions/pooling.h."""
import numpy as np

from make_function_cases import F, case, torch, uniform, values


def apart(*shape):
    """Elements that are far from each other: differences do not change which one is the greatest."""
    count = int(np.prod(shape))
    order = np.random.RandomState(count).permutation(count)
    return values((order.reshape(shape) - count / 2) * (4 / count))


X = apart(2, 3, 5, 6)
for name in ("max_pooling_2d", "average_pooling_2d"):
    pooling = getattr(F, name)
    case(name, lambda x: pooling(x, 2), X, sizes=(1,))
    case(name + " of overlapping windows", lambda x: pooling(x, 3, 2, 1), X)
    case(name + " ksize=3,2 stride=1,3 pad=2,1", lambda x: pooling(x, (3, 2), (1, 3), (2, 1)), X)
    case(name + " of windows apart", lambda x: pooling(x, 2, 3), X)
case("max_pooling_2d cover_all=False", lambda x: F.max_pooling_2d(x, 3, 2, cover_all=False), apart(2, 2, 6, 7))
case("max_pooling_2d return_indices", lambda x: F.max_pooling_2d(x, 3, 2, 1, return_indices=True), X)
for n, shape in ((1, (2, 3, 9)), (3, (2, 2, 4, 5, 4))):
    for kind in ("max", "average"):
        pooling = getattr(F, f"{kind}_pooling_{n}d")
        case(f"{kind}_pooling_{n}d", lambda x: pooling(x, 3, 2, 1), apart(*shape), sizes=(1,))
for kind in ("max", "average"):
    pooling = getattr(F, f"{kind}_pooling_nd")
    case(f"{kind}_pooling_nd", lambda x: pooling(x, (2, 3, 1, 2), (1, 2, 2, 1), (1, 1, 0, 0)), apart(2, 2, 3, 4, 2, 3),
         sizes=(1,))
case("average_pooling_nd pad_value=None", lambda x: F.average_pooling_nd(x, 3, 2, 1, pad_value=None), X, orders=1)
case("adaptive_average_pooling_2d", lambda x: torch.nn.functional.adaptive_avg_pool2d(x, (3, 4)), X, by=torch, sizes=(1,))
case("adaptive_average_pooling_2d size=1", lambda x: torch.nn.functional.adaptive_avg_pool2d(x, 1), X, by=torch)
case("adaptive_average_pooling_2d of more", lambda x: torch.nn.functional.adaptive_avg_pool2d(x, (7, 2)), X, by=torch)
case("adaptive_max_pooling_2d", lambda x: torch.nn.functional.adaptive_max_pool2d(x, (3, 4)), X, by=torch, sizes=(1,))
case("adaptive_max_pooling_2d of more", lambda x: torch.nn.functional.adaptive_max_pool2d(x, (7, 2)), X, by=torch)
U = uniform(-2, 2, (2, 3, 3, 4))
case("unpooling_1d", lambda x: F.unpooling_1d(x, 3, 2, 1), uniform(-2, 2, (2, 3, 4)), sizes=(1,))
case("unpooling_2d", lambda x: F.unpooling_2d(x, 2), U, sizes=(1,))
case("unpooling_2d of overlapping windows", lambda x: F.unpooling_2d(x, 3, 2, 1, cover_all=False), U)
case("unpooling_2d outsize=6,7", lambda x: F.unpooling_2d(x, 2, 2, outsize=(6, 7)), U)
case("unpooling_3d", lambda x: F.unpooling_3d(x, 2, 1), uniform(-2, 2, (2, 2, 2, 3, 2)), sizes=(1,))
case("unpooling_nd", lambda x: F.unpooling_nd(x, (2, 1, 2, 1), (2, 1, 1, 1)), uniform(-2, 2, (2, 2, 2, 3, 2, 2)),
     sizes=(1,))
case("upsampling_2d", lambda x, i: F.upsampling_2d(x, i.array, 2), U, values(np.arange(72).reshape(2, 3, 3, 4) % 4, np.int32),
     sizes=(1,))
case("upsampling_2d outsize=6,8", lambda x, i: F.upsampling_2d(x, i.array, 3, 2, 1, outsize=(6, 8)),
     uniform(-2, 2, (2, 2, 4, 5)), values(np.arange(80).reshape(2, 2, 4, 5) * 5 % 9, np.int32))
case("spatial_pyramid_pooling_2d", lambda x: F.spatial_pyramid_pooling_2d(x, 3, "max"), apart(2, 3, 5, 7), sizes=(1,))

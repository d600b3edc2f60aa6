"""Cases of rensa/functions/array_functions.h, indexing_functions.h, joining_functions.h and image_functions.h."""
import chainer
import numpy as np
from make_function_cases import F, case, integers, torch, uniform, values

chainer.config.type_check = False  # some take float32 alone, by the check
X = uniform(-2, 2, (3, 4))
Y = uniform(-2, 2, (2, 3, 4))

case("reshape", lambda x: F.reshape(x, (2, -1)), X, sizes=())
case("expand_dims", lambda x: F.expand_dims(x, 1), X)
case("expand_dims axis=-1", lambda x: F.expand_dims(x, -1), X)
case("squeeze", F.squeeze, uniform(-2, 2, (1, 3, 1)), sizes=())
case("squeeze axis=(0, -1)", lambda x: F.squeeze(x, (0, -1)), uniform(-2, 2, (1, 3, 1, 1)))
case("flatten", F.flatten, Y)
case("broadcast_to", lambda x: F.broadcast_to(x, (2, 3, 4)), uniform(-2, 2, (3, 1)), sizes=())
case("broadcast", F.broadcast, uniform(-2, 2, (3, 1)), uniform(-2, 2, (2, 1, 4)), sizes=())
case("transpose", F.transpose, Y)
case("transpose axes", lambda x: F.transpose(x, (1, -1, 0)), Y)
case("swapaxes", lambda x: F.swapaxes(x, 0, -1), Y)
case("moveaxis", lambda x: F.moveaxis(x, 0, 2), Y)
case("moveaxis several", lambda x: F.moveaxis(x, (0, 1), (-1, 0)), Y)
case("rollaxis", lambda x: F.rollaxis(x, 2), Y)
case("rollaxis start=2", lambda x: F.rollaxis(x, 0, 2), Y)
case("rollaxis start=-1", lambda x: F.rollaxis(x, 0, -1), Y)
case("flip", lambda x: F.flip(x, 1), Y)
case("fliplr", F.fliplr, X)
case("flipud", F.flipud, X)
case("roll", lambda x: torch.roll(x, 2), X, by=torch, sizes=(1,))
case("roll axes", lambda x: torch.roll(x, (1, -2), (0, 2)), Y, by=torch)
case("repeat", lambda x: F.repeat(x, 2), X)
case("repeat axis=1", lambda x: F.repeat(x, 3, axis=1), Y)
case("repeat counts", lambda x: F.repeat(x, (1, 0, 2), axis=1), Y)
case("tile", lambda x: F.tile(x, 2), X)
case("tile longer", lambda x: F.tile(x, (2, 1, 3)), X)
case("tile shorter", lambda x: F.tile(x, (2, 3)), Y)
case("pad", lambda x: F.pad(x, 1, "constant"), X, sizes=(1,))
case("pad widths", lambda x: F.pad(x, ((0, 2), (1, 0)), "constant", constant_values=1.5), X)
for mode in ("reflect", "replicate", "circular"):
    case(f"pad {mode}", lambda x, mode=mode: torch.nn.functional.pad(x, (1, 2), mode=mode), Y, by=torch)
case("diagonal", F.diagonal, uniform(-2, 2, (3, 4)))
case("diagonal offset", lambda x: F.diagonal(x, -1, 1, 2), Y)
case("where", lambda c, x, y: F.where(c, x, y), values([[True, False, True, True]] * 3, bool), X, X)
case("masked_fill", lambda x, m: x.masked_fill(m.to(torch.bool), -1.5), X, integers(0, 2, (3, 4)), by=torch)
case("cast", lambda x: F.cast(x, np.float64), X)
case("copy", lambda x: F.copy(x, -1), X)

# indexing
case("get_item", lambda x: x[1], X, sizes=())
case("get_item slices", lambda x: x[:, None, ::-2], X)
case("get_item ellipsis", lambda x: x[..., -1], Y)
ROWS = values([2, 0, 2], np.int32)
case("get_item rows", lambda x, i: F.get_item(x, (i.array,)), X, ROWS)
case("get_item rows and columns", lambda x, i, j: F.get_item(x, (i.array, j.array)), X, ROWS, values([1] * 3, np.int32))
case("get_item mixed", lambda x, i: F.get_item(x, (slice(None), i.array, slice(1, 3))), Y, values([1, -1], np.int32))
case("get_item mask", lambda x: F.get_item(x, (np.array([True, False, True]),)), X)
case("scatter_add", lambda a, b, i: F.scatter_add(a, (i.array,), b), X, X, values([1, 1, 0], np.int32), sizes=())
case("scatter_add slice", lambda a, b: F.scatter_add(a, (slice(None), slice(0, 2)), b), X, uniform(-2, 2, (3, 2)))
case("gather", lambda x, i: torch.gather(x, 1, i), X, integers(0, 4, (3, 5)), by=torch)
case("gather axis=0", lambda x, i: torch.gather(x, 0, i), Y, integers(0, 2, (3, 2, 4)), by=torch)
case("index_select", lambda x, i: torch.index_select(x, 1, i), Y, integers(0, 3, (5,)), by=torch, batched=[0])
case("select_item", F.select_item, X, integers(0, 4, (3,)))
case("permutate", lambda x, i: F.permutate(x, i.array), X, values([2, 0, 1], np.int32), sizes=())
case("permutate inv", lambda x, i: F.permutate(x, i.array, axis=1, inv=True), X, values([2, 0, 3, 1], np.int32))
case("topk", lambda x: tuple(torch.topk(x, 2)), X, by=torch)
case("topk least axis=0", lambda x: tuple(torch.topk(x, 2, 0, largest=False)), X, by=torch)
case("one_hot", lambda t: torch.nn.functional.one_hot(t, 4), integers(0, 4, (2, 3)), by=torch, sizes=())

# joining
case("concat", lambda *xs: F.concat(xs), X, uniform(-2, 2, (3, 2)))
case("concat axis=0", lambda *xs: F.concat(xs, axis=0), X, uniform(-2, 2, (2, 4)))
case("stack", lambda *xs: F.stack(xs), X, X)
case("stack axis=-1", lambda *xs: F.stack(xs, axis=-1), X, X)
for name in ("hstack", "vstack", "dstack"):
    case(name, lambda *xs, f=getattr(F, name): f(xs), X, X)
    case(f"{name} of vectors", lambda *xs, f=getattr(F, name): f(xs), uniform(-2, 2, (3,)), uniform(-2, 2, (3,)))
case("split_axis", lambda x: F.split_axis(x, 2, 1), X)
case("split_axis at", lambda x: F.split_axis(x, np.array([1, 3]), 1), X)
case("separate", F.separate, X, sizes=())
case("separate axis=1", lambda x: F.separate(x, axis=1), Y)
SEQUENCES = uniform(-2, 2, (3, 2)), uniform(-2, 2, (2, 2)), uniform(-2, 2, (1, 2)), uniform(-2, 2, (0, 2))
case("pad_sequence", lambda *xs: F.pad_sequence(xs), *SEQUENCES, sizes=())
case("pad_sequence length padding", lambda *xs: F.pad_sequence(xs, length=5, padding=-1), *SEQUENCES)
case("transpose_sequence", lambda *xs: F.transpose_sequence(xs), *SEQUENCES, sizes=())

# images
IMAGES = uniform(-2, 2, (2, 3, 5, 4))
THETA = uniform(-0.7, 0.7, (2, 2, 3))
for mode in ("bilinear", "nearest"):
    for align in (True, False):
        for shape in ((3, 7), (8, 2), (1, 1)):
            case(f"resize_images {mode} {align} {shape}",
                 lambda x, m=mode, a=align, s=shape: F.resize_images(x, s, mode=m, align_corners=a), IMAGES)
case("spatial_transformer_grid", lambda t: F.spatial_transformer_grid(t, (3, 4)), THETA, orders=1)
case("spatial_transformer_sampler", F.spatial_transformer_sampler, IMAGES, uniform(-0.9, 0.9, (2, 2, 3, 2)), orders=1,
     sizes=(1,))
case("spatial_transformer_sampler outside", F.spatial_transformer_sampler, IMAGES, uniform(1.1, 3, (2, 2, 3, 2)),
     orders=1)
case("depth2space", lambda x: F.depth2space(x, 2), uniform(-2, 2, (2, 8, 2, 3)))
case("space2depth", lambda x: F.space2depth(x, 2), uniform(-2, 2, (2, 2, 4, 6)))
case("im2col", lambda x: F.im2col(x, 3), IMAGES, sizes=(1,))
case("im2col options", lambda x: F.im2col(x, (3, 2), stride=(2, 1), pad=(1, 0), cover_all=True, dilate=(1, 2)),
     IMAGES)

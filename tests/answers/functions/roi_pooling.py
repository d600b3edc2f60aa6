"""Cases of rensa/functions/roi_pooling.h."""
import numpy as np

from make_function_cases import F, case, values


def apart(*shape):
    """Elements that are far from each other: differences do not change which one is the greatest."""
    count = int(np.prod(shape))
    order = np.random.RandomState(count).permutation(count)
    return values((order.reshape(shape) - count / 2) * (4 / count))


X = apart(2, 3, 6, 7)
ROIS = [[1, 2, 9, 11], [0, 0, 12, 14], [4, 5, 4.5, 6], [-3, 8, 6, 17], [8, 1, 30, 5]]
INSIDE = [[1, 2, 9, 11], [0, 0, 10, 12], [4, 5, 4.5, 6], [2, 3, 10, 12]]
IMAGES = [0, 1, 1, 0, 1]


def rois(boxes=ROIS):
    return values(boxes), values(IMAGES[:len(boxes)], np.int32)


def edges(boxes):
    return values([[i, x0, y0, x1, y1] for i, (y0, x0, y1, x1) in zip(IMAGES, boxes)])


def single(function, *options):
    """Chainer's aligned ones take float32 alone."""
    return lambda x, boxes, images: function(F.cast(x, "f"), F.cast(boxes, "f"), images, *options)


def both(name, function, *inputs, orders=1, fixed=(1, 2), **more):
    case(name, function, *inputs, orders=orders, fixed=fixed, batched=list(range(1, len(inputs))), **more)


both("roi_average_pooling_2d", lambda *a: F.roi_average_pooling_2d(*a, (2, 3), 0.5), X, *rois())
both("roi_average_pooling_2d outsize=4", lambda *a: F.roi_average_pooling_2d(*a, 4, 0.25), X, *rois())
both("roi_max_pooling_2d", lambda *a: F.roi_max_pooling_2d(*a, (2, 3), 0.5), X, *rois(INSIDE))
both("roi_max_pooling_2d of bins outside", lambda *a: F.roi_max_pooling_2d(*a, (2, 3), 0.5), X, *rois())
both("roi_average_align_2d", single(F.roi_average_align_2d, (2, 3), 0.5), X, *rois())
both("roi_average_align_2d sampling_ratio=3,2", single(F.roi_average_align_2d, 2, 0.5, (3, 2)), X, *rois())
both("roi_max_align_2d", single(F.roi_max_align_2d, (2, 3), 0.5), X, *rois(INSIDE))
both("roi_max_align_2d sampling_ratio=2", single(F.roi_max_align_2d, 2, 0.25, 2), X, *rois(INSIDE))
both("roi_pooling_2d", lambda x, r: F.roi_pooling_2d(x, r, 2, 3, 0.5), X, edges(INSIDE), orders=2, fixed=(1,))

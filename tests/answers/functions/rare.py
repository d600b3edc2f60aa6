"""Cases of functions that few networks use."""
import chainer
import numpy as np

from make_function_cases import F, case, integers, uniform, values

X = uniform(-2, 2, (2, 11, 4, 5))
case("shift", lambda x: F.shift(x), X)
case("shift ksize=3,1 dilate=2", lambda x: F.shift(x, (3, 1), 2), X)
case("shift ksize=1,5 dilate=-1", lambda x: F.shift(x, (1, 5), -1), X)

case("as_strided", lambda x: F.as_strided(x, (3, 4), (2, 1), 1), uniform(-2, 2, (3, 4)), sizes=(), orders=1)
case("as_strided of equal places", lambda x: F.as_strided(x, (2, 3, 2), (0, -1, 3), 4), uniform(-2, 2, (3, 4)), orders=1)
case("as_strided of all", lambda x: F.as_strided(x, (4, 3), (1, 4)), uniform(-2, 2, (3, 4)), orders=1)

case("deformable_convolution_2d_sampler", lambda x, o, w, b: F.deformable_convolution_2d_sampler(x, o, w, b),
     uniform(-1, 1, (2, 3, 5, 6)), uniform(0.1, 0.9, (2, 12, 4, 4)), uniform(-1, 1, (4, 3, 2, 3)), uniform(-1, 1, (4,)),
     batched=[0, 1], sizes=(1,), orders=1)
case("deformable_convolution_2d_sampler stride=2,1 pad=1,2",
     lambda x, o, w: F.deformable_convolution_2d_sampler(x, o, w, stride=(2, 1), pad=(1, 2)),
     uniform(-1, 1, (2, 2, 5, 4)), uniform(-0.9, -0.1, (2, 18, 3, 6)), uniform(-1, 1, (2, 2, 3, 3)), orders=1)

def instances(n):
    return lambda rng: rng.randint(0, 3, (n, 3, 4)).astype(np.int32)


def discriminative(x, t, *options):
    return F.discriminative_margin_based_clustering_loss(x, t.array, *options)


# Chainer's is right where there are as many samples as instances.
case("discriminative_margin_based_clustering_loss", lambda x, t: discriminative(x, t, 0.25, 0.75, 2),
     uniform(-1, 1, (2, 2, 3, 4)), instances(2), sizes=())
case("discriminative_margin_based_clustering_loss norm=2",
     lambda x, t: discriminative(x, t, 0.125, 1.0, 3, 2, 0.5, 2.0, 0.25), uniform(-1, 1, (3, 3, 3, 4)), instances(3), orders=0)

W = uniform(-1, 1, (6, 3))
case("black_out", lambda x, t, w, s: F.black_out(x, t, w, s), uniform(-1, 1, (4, 3)), integers(0, 6, 4), W,
     integers(0, 6, (4, 5)), sizes=(1,), batched=[0, 1, 3])
case("black_out reduce=no", lambda x, t, w, s: F.black_out(x, t, w, s, reduce="no"), uniform(-1, 1, (4, 3)),
     integers(0, 6, 4), W, integers(0, 6, (4, 5)))

D = uniform(-2, 2, (5, 6, 2, 3))
case("decorrelated_batch_normalization", lambda x: F.decorrelated_batch_normalization(x, groups=2), D, sizes=(), orders=1)
case("decorrelated_batch_normalization eps=0.01", lambda x: F.decorrelated_batch_normalization(x, groups=3, eps=0.01),
     uniform(-2, 2, (8, 6)), orders=1)
case("fixed_decorrelated_batch_normalization",
     lambda x, m, p: F.fixed_decorrelated_batch_normalization(x, m, p, groups=2), D, uniform(-1, 1, (2, 3)),
     uniform(-1, 1, (2, 3, 3)), batched=[0], sizes=(1,), orders=1, fixed=(1, 2))


def coo(data, row, col):
    matrix = chainer.utils.CooMatrix(data.array, row.array, col.array, (4, 5))
    matrix.data = data
    return matrix


PLACES = values([0, 3, 1, 1, 2, 3, 0], np.int32), values([4, 0, 2, 2, 1, 3, 0], np.int32)
SPARSE = uniform(-1, 1, (7,)), *PLACES
case("sparse_matmul", lambda d, r, c, x: F.sparse_matmul(coo(d, r, c), x), *SPARSE, uniform(-1, 1, (5, 3)), sizes=())
case("sparse_matmul transa transb", lambda d, r, c, x: F.sparse_matmul(coo(d, r, c), x, True, True), *SPARSE,
     uniform(-1, 1, (3, 4)))
case("sparse_matmul of a dense one first", lambda d, r, c, x: F.sparse_matmul(x, coo(d, r, c)), *SPARSE,
     uniform(-1, 1, (3, 4)))
case("sparse_matmul of a dense one first transa transb", lambda d, r, c, x: F.sparse_matmul(x, coo(d, r, c), True, True),
     *SPARSE, uniform(-1, 1, (5, 3)))
case("sparse_matmul of a batch", lambda d, r, c, x: F.sparse_matmul(coo(d, r, c), x), uniform(-1, 1, (2, 4)),
     values([[3, 0, 1, 0], [2, 2, -1, -1]], np.int32), values([[1, 1, 4, 0], [0, 3, -1, -1]], np.int32),
     uniform(-1, 1, (2, 5, 3)))

"""Cases of rensa/functions/connection.h."""
import numpy as np
from make_function_cases import F, case, integers, uniform, values

IDS = values([[2, 0, 2], [4, 1, 2]], np.int32)
W = uniform(-1, 1, (5, 3))
case("linear", F.linear, uniform(-1, 1, (4, 3)), uniform(-1, 1, (2, 3)), uniform(-1, 1, (2,)), batched=[0], sizes=(1, 0))
case("linear nobias n_batch_axes=2", lambda x, w: F.linear(x, w, n_batch_axes=2), uniform(-1, 1, (2, 3, 4)),
     uniform(-1, 1, (2, 4)))
case("linear of images", F.linear, uniform(-1, 1, (3, 2, 2)), uniform(-1, 1, (2, 4)), uniform(-1, 1, (2,)))
case("embed_id", F.embed_id, IDS, W, batched=[0], sizes=(1,))  # Chainer fails for none
case("embed_id ignore_label=2", lambda x, w: F.embed_id(x, w, ignore_label=2), IDS, W)
case("embed_id ignore_label=-1", lambda x, w: F.embed_id(x, w, ignore_label=-1),
     values([3, -1, 3, 0, -1], np.int32), W)


def bilinear(*inputs):  # Chainer's takes float32 alone
    y = F.einsum("ij,ik,jkl->il", *[F.reshape(e, (len(e), -1)) for e in inputs[:2]], inputs[2])
    if len(inputs) == 3:
        return y
    e1, e2, _, V1, V2, b = inputs
    return y + F.matmul(e1, V1) + F.matmul(e2, V2) + F.broadcast_to(b, y.shape)


E1, E2, W3 = uniform(-1, 1, (3, 2)), uniform(-1, 1, (3, 4)), uniform(-1, 1, (2, 4, 2))
case("bilinear", bilinear, E1, E2, W3, batched=[0, 1], sizes=(1,))
case("bilinear of images", bilinear, uniform(-1, 1, (3, 2, 1)), uniform(-1, 1, (3, 2, 2)), W3)
case("bilinear with linear terms", bilinear, E1, E2, W3, uniform(-1, 1, (2, 2)), uniform(-1, 1, (4, 2)),
     uniform(-1, 1, (2,)))

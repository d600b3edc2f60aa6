"""Cases of rensa/functions/convolution.h."""
from chainer.functions.connection.deconvolution_2d import Deconvolution2DFunction
from make_function_cases import F, case, uniform

# Chainer 7.8.1 calls it with variables in one place, and unpacks them.
_set_cover_all = Deconvolution2DFunction._set_cover_all
Deconvolution2DFunction._set_cover_all = lambda self, x, w: _set_cover_all(
    self, getattr(x, "shape", x), getattr(w, "shape", w))


def u(*shape):
    return uniform(-1, 1, shape)


X, W, B = u(2, 2, 4, 5), u(3, 2, 3, 2), u(3)
case("convolution_2d", F.convolution_2d, X, W, B, batched=[0])
case("convolution_2d nobias", F.convolution_2d, X, W)
case("convolution_2d stride=2 pad=1", lambda x, w, b: F.convolution_2d(x, w, b, 2, 1), X, W, B)
case("convolution_2d stride=(2, 1) pad=(0, 2)", lambda x, w, b: F.convolution_2d(x, w, b, (2, 1), (0, 2)), X, W, B)
case("convolution_2d pointwise", F.convolution_2d, X, u(3, 2, 1, 1), B, sizes=(1,), batched=[0])
case("convolution_2d whole image", F.convolution_2d, X, u(3, 2, 4, 5))
case("convolution_2d of one", F.convolution_2d, u(1, 1, 1, 1), u(1, 1, 1, 1), u(1))
case("convolution_2d pad=2 of one pixel", lambda x, w: F.convolution_2d(x, w, pad=2), u(2, 2, 1, 1), u(3, 2, 3, 3))
case("convolution_2d dilate=2", lambda x, w, b: F.convolution_2d(x, w, b, pad=2, dilate=2), X, W, B)
case("convolution_2d dilate=(1, 3) stride=2", lambda x, w: F.convolution_2d(x, w, stride=2, pad=1, dilate=(1, 3)), X, W)
case("convolution_2d cover_all", lambda x, w, b: F.convolution_2d(x, w, b, stride=(3, 4), cover_all=True), X, W, B)
case("convolution_2d groups=2", lambda x, w, b: F.convolution_2d(x, w, b, pad=1, groups=2), u(2, 4, 4, 3), u(4, 2, 3, 3),
     u(4))
case("convolution_2d groups=channels", lambda x, w, b: F.convolution_2d(x, w, b, stride=2, pad=1, groups=4),
     u(2, 4, 4, 5), u(8, 1, 3, 3), u(8))
case("convolution_2d many", lambda x, w: F.convolution_2d(x, w, pad=1), u(1, 5, 9, 10), u(2, 5, 3, 3), orders=1)
case("convolution_1d", F.convolution_1d, u(2, 3, 6), u(3, 3, 3), B, batched=[0])
case("convolution_1d stride=2 pad=1 dilate=2 groups=2",
     lambda x, w: F.convolution_1d(x, w, stride=2, pad=1, dilate=2, groups=2), u(2, 4, 8), u(2, 2, 3))
case("convolution_3d", F.convolution_3d, u(2, 2, 3, 4, 3), u(3, 2, 2, 3, 2), u(3), sizes=(1,), batched=[0])
case("convolution_3d stride=(1, 2, 1) pad=(0, 1, 1)",
     lambda x, w: F.convolution_3d(x, w, stride=(1, 2, 1), pad=(0, 1, 1)), u(1, 2, 3, 4, 3), u(3, 2, 2, 3, 3))
case("convolution_nd", F.convolution_nd, u(2, 3, 4, 4), u(2, 3, 3, 3), u(2), sizes=(1,), batched=[0])
case("convolution_nd cover_all", lambda x, w: F.convolution_nd(x, w, stride=2, cover_all=True), u(2, 2, 3, 4, 2),
     u(2, 2, 2, 2, 2))
case("dilated_convolution_2d", lambda x, w, b: F.dilated_convolution_2d(x, w, b, 2, 2, 2), X, W, B, sizes=(1,),
     batched=[0])

DX, DW, DB = u(2, 3, 3, 3), u(3, 2, 3, 2), u(2)
case("deconvolution_2d", F.deconvolution_2d, DX, DW, DB, batched=[0])
case("deconvolution_2d nobias", F.deconvolution_2d, DX, DW)
case("deconvolution_2d stride=2 pad=1", lambda x, w, b: F.deconvolution_2d(x, w, b, 2, 1), DX, DW, DB)
case("deconvolution_2d outsize", lambda x, w, b: F.deconvolution_2d(x, w, b, 2, 1, (6, 5)), DX, DW, DB)
case("deconvolution_2d smaller outsize", lambda x, w, b: F.deconvolution_2d(x, w, b, 3, 1, (6, 5)), DX, DW, DB)
case("deconvolution_2d dilate=2", lambda x, w, b: F.deconvolution_2d(x, w, b, pad=1, dilate=2), DX, DW, DB)
case("deconvolution_2d groups=2", lambda x, w, b: F.deconvolution_2d(x, w, b, stride=2, groups=2), u(2, 4, 3, 3),
     u(4, 3, 2, 2), u(6))
case("deconvolution_2d groups=channels", lambda x, w: F.deconvolution_2d(x, w, groups=3), DX, u(3, 2, 3, 2))
case("deconvolution_1d", lambda x, w, b: F.deconvolution_1d(x, w, b, stride=2), u(2, 3, 4), u(3, 2, 3), u(2),
     batched=[0])
case("deconvolution_3d", lambda x, w: F.deconvolution_3d(x, w, stride=2, pad=1), u(1, 2, 2, 3, 2), u(2, 3, 3, 2, 3),
     sizes=(0,), batched=[0])
case("deconvolution_nd", F.deconvolution_nd, DX, DW, DB, sizes=(1,), batched=[0])

case("depthwise_convolution_2d", F.depthwise_convolution_2d, X, u(2, 2, 2, 3), u(4), sizes=(1,), batched=[0])
case("depthwise_convolution_2d stride=2 pad=1", lambda x, w: F.depthwise_convolution_2d(x, w, stride=2, pad=1), X,
     u(1, 2, 3, 3))
# Chainer's gradients of these are constants: no second one.
case("local_convolution_2d", F.local_convolution_2d, u(2, 2, 4, 4), u(2, 3, 2, 2, 2, 3), u(2, 3, 2), orders=1,
     sizes=(1,), batched=[0])
case("local_convolution_2d stride=(2, 1)", lambda x, w: F.local_convolution_2d(x, w, stride=(2, 1)), u(2, 2, 5, 4),
     u(3, 2, 3, 2, 2, 2), orders=1)

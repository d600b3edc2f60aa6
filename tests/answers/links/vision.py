"""Links of images, and of sequences of labels."""
import chainer.functions as F
import chainer.links as L
import numpy as np
from make_link_cases import case, integers, uniform

X = uniform(2, 3, 7, 6)
case("Convolution1D", L.Convolution1D(3, 2, 3), [[uniform(2, 3, 5)]])
case("Convolution2D", L.Convolution2D(3, 2, 3, stride=2, pad=1), [[X]])
case("Convolution2D of any input", L.Convolution2D(None, 2, (3, 2)), [[X]])
case("Convolution2D groups", L.Convolution2D(4, 6, 3, groups=2), [[uniform(2, 4, 5, 5)]])
case("Convolution3D", L.Convolution3D(2, 2, 2), [[uniform(1, 2, 3, 4, 3)]])
case("ConvolutionND", L.ConvolutionND(2, 3, 2, 2, nobias=True), [[X]])
case("Deconvolution1D", L.Deconvolution1D(3, 2, 3), [[uniform(2, 3, 5)]])
case("Deconvolution2D", L.Deconvolution2D(3, 2, 3, stride=2, pad=1), [[uniform(2, 3, 4, 3)]])
case("Deconvolution3D", L.Deconvolution3D(2, 2, 2), [[uniform(1, 2, 3, 2, 3)]])
case("DeconvolutionND", L.DeconvolutionND(2, 3, 2, 2), [[uniform(2, 3, 4, 3)]])
case("DepthwiseConvolution2D", L.DepthwiseConvolution2D(3, 2, 3), [[X]])
case("DilatedConvolution2D", L.DilatedConvolution2D(3, 2, 3, pad=2, dilate=2), [[X]])
case("MLPConvolution2D", L.MLPConvolution2D(3, (4, 3, 2), 3, stride=2, pad=1), [[X]])
case("MLPConvolution2D of any input tanh", L.MLPConvolution2D(None, (4, 2), 3, activation=F.tanh), [[X]])
case("Inception", L.Inception(3, 2, 2, 3, 2, 1, 2), [[X]])
case("Inception of any input", L.Inception(None, 2, 2, 3, 2, 1, 2), [[X]])
case("InceptionBN", L.InceptionBN(3, 2, 2, 3, 2, 3, "avg", 2), [[X]])
case("InceptionBN stride=2", L.InceptionBN(3, 0, 2, 3, 2, 3, "max", stride=2), [[X]])
case("BatchNormalization", L.BatchNormalization(3), [[X]])
case("LayerNormalization", L.LayerNormalization(3), [[uniform(4, 3)]])
case("GroupNormalization", L.GroupNormalization(2, 4), [[uniform(2, 4, 3)]])

case("CRF1d", L.CRF1d(3), [[uniform(3, 3), uniform(2, 3), integers(0, 3, 3), integers(0, 3, 2)]],
     lambda link, a, b, s, t: link([a, b], [s.array, t.array]))
case("CRF1d transpose", L.CRF1d(3), [[uniform(2, 3), uniform(4, 3), integers(0, 3, 2), integers(0, 3, 4)]],
     lambda link, a, b, s, t: link([a, b], [s, t], transpose=True))


def argmax(link, *xs):
    score, labels = link.argmax(list(xs), transpose=True)
    return [score + 0 * F.sum(link.cost), *(F.cast(t, np.float32) for t in labels)]


case("CRF1d argmax", L.CRF1d(3), [[uniform(2, 3), uniform(4, 3)]], argmax)

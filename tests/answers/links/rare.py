"""Links that few networks use."""
import chainer.links as L
from make_link_cases import case, uniform

X = uniform(2, 3, 5, 4)
case("DeformableConvolution2D", L.DeformableConvolution2D(3, 4, 3, pad=1), [[X]])
case("DeformableConvolution2D of any input stride=2,1", L.DeformableConvolution2D(None, 2, (2, 3), (2, 1), deform_nobias=True),
     [[X]])

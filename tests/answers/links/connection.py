"""Links with weights, and losses over a few of many words."""
import chainer.links as L
import numpy as np
from make_link_cases import case, integers, uniform

X = uniform(4, 3)
case("Linear", L.Linear(3, 2), [[X]])
case("EmbedID", L.EmbedID(5, 3), [[integers(0, 5, 4, 2)]])
case("EmbedID ignore_label", L.EmbedID(5, 3, ignore_label=2), [[integers(0, 4, 6)]])
case("Bilinear", L.Bilinear(3, 2, 4), [[X, uniform(4, 2)]])
case("Bilinear nobias", L.Bilinear(3, 2, 4, nobias=True), [[X, uniform(4, 2)]])
case("Bias", L.Bias(1, (3,)), [[uniform(2, 3, 2)]])
case("Scale", L.Scale(1, (3,), bias_term=True), [[uniform(2, 3, 2)]])
case("Scale of arguments", L.Scale(0, bias_term=True, bias_shape=(2,)), [[uniform(2, 3), uniform(2)]])
case("Highway", L.Highway(3), [[X]])
case("Maxout", L.Maxout(3, 2, 4), [[X]])
case("Maxout of any input", L.Maxout(None, 2, 3), [[X]])
case("PReLU", L.PReLU((3,)), [[X]])
case("Swish", L.Swish((3,)), [[X]])
case("Swish of any input", L.Swish(None), [[X]])
case("SimplifiedDropconnect", L.SimplifiedDropconnect(3, 2, ratio=0.5), [[X]],
     lambda link, x: link(x, train=False))
TREE = ((0, (1, 4)), (2, 3))
case("BinaryHierarchicalSoftmax", L.BinaryHierarchicalSoftmax(3, TREE), [[X, integers(0, 5, 4)]])
COUNTS = {0: 8, 1: 5, 2: 6, 3: 3, 4: 1, 5: 3}
case("BinaryHierarchicalSoftmax of Huffman's tree",
     L.BinaryHierarchicalSoftmax(3, L.BinaryHierarchicalSoftmax.create_huffman_tree(COUNTS)),
     [[X, integers(0, 6, 4)]])

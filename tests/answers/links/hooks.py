"""Hooks of links: three calls, each with an update after it, and one that is not trained."""
import chainer
import chainer.functions as F
import chainer.link_hooks as H
import chainer.links as L
import numpy as np
import zlib
from make_link_cases import integers, records, uniform


def case(name, link, hook, *inputs):
    rng = np.random.RandomState(zlib.crc32(name.encode()))
    link.add_hook(hook)
    for _, p in sorted(link.namedparams()):
        p.array = rng.uniform(-1, 1, p.shape).astype(np.float32)
    if hasattr(link, "W_u"):
        link.W_u = rng.normal(size=link.W_u.shape).astype(np.float32)
        records[f"{name}|u"] = link.W_u.copy()
    for path, p in link.namedparams():
        records[f"{name}|W{path}"] = p.array.copy()
    for k in range(4):
        with chainer.using_config("train", k < 3):
            x = inputs[0](rng)
            y = link(chainer.Variable(x))  # without x's gradient, deconvolution's fails
        gy = rng.uniform(0.5, 1.5, y.shape).astype(np.float32)
        link.cleargrads()
        F.sum(y * gy).backward()
        records.update({f"{name}|x{k}": x, f"{name}|y{k}": y.array, f"{name}|gy{k}": gy})
        for path, p in link.namedparams():
            records[f"{name}|g{k}{path}"] = p.grad.copy()
            p.array -= np.float32(0.1) * p.grad
        if hasattr(link, "W_u"):
            records[f"{name}|u{k}"] = link.W_u.copy()


X = uniform(2, 3, 5, 4)
case("SpectralNormalization of Linear", L.Linear(3, 2), H.SpectralNormalization(), uniform(4, 3))
case("SpectralNormalization of EmbedID", L.EmbedID(5, 3), H.SpectralNormalization(), integers(0, 5, 4))
case("SpectralNormalization of Convolution2D", L.Convolution2D(3, 4, 3, pad=1), H.SpectralNormalization(), X)
case("SpectralNormalization of Deconvolution2D", L.Deconvolution2D(3, 2, 2), H.SpectralNormalization(), X)
case("SpectralNormalization use_gamma factor n_power_iteration", L.Convolution2D(3, 4, 2),
     H.SpectralNormalization(n_power_iteration=3, use_gamma=True, factor=2.5, eps=1e-4), X)
case("WeightStandardization of Linear", L.Linear(3, 2), H.WeightStandardization(), uniform(4, 3))
case("WeightStandardization of Convolution2D", L.Convolution2D(3, 4, 3), H.WeightStandardization(eps=1e-3), X)

// Initializers of parameters, with Chainer's names, formulas and defaults. A weight of shape
// (out, in, ...) has fan_in = in * ..., fan_out = out * ...; one of fewer than two axes has none.
#pragma once

#include "rensa/autograd/parameter.h"

namespace rensa::initializers {

/// One value everywhere.
struct Constant {
  double value = 0;
  void operator()(const Array& out) const;
};

/// N(0, scale).
struct Normal {
  double scale = 0.05;
  void operator()(const Array& out) const;
};

/// U[-scale, scale).
struct Uniform {
  double scale = 0.05;
  void operator()(const Array& out) const;
};

/// N(0, scale * sqrt(1 / fan_in)): LeCun et al., "Efficient BackProp". The links' default.
struct LeCunNormal {
  double scale = 1;
  void operator()(const Array& out) const;
};

/// U[-s, s), s = scale * sqrt(3 / fan_in).
struct LeCunUniform {
  double scale = 1;
  void operator()(const Array& out) const;
};

/// N(0, scale * sqrt(2 / (fan_in + fan_out))): Glorot and Bengio, "Understanding the difficulty of
/// training deep feedforward neural networks".
struct GlorotNormal {
  double scale = 1;
  void operator()(const Array& out) const;
};

/// U[-s, s), s = scale * sqrt(6 / (fan_in + fan_out)).
struct GlorotUniform {
  double scale = 1;
  void operator()(const Array& out) const;
};

/// N(0, scale * sqrt(2 / fan_in)): He et al., "Delving deep into rectifiers".
struct HeNormal {
  double scale = 1;
  void operator()(const Array& out) const;
};

/// U[-s, s), s = scale * sqrt(6 / fan_in).
struct HeUniform {
  double scale = 1;
  void operator()(const Array& out) const;
};

}  // namespace rensa::initializers

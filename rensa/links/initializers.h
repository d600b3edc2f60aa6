// Initializers of parameters, with Chainer's names, formulas and defaults. A weight of shape
// (out, in, ...) has fan_in = in * ..., fan_out = out * ..., a convolution's receptive field
// included; one of fewer than two axes has none. What does not fit the parameter's shape throws
// ShapeError. A `dtype` makes it that of the parameter, whatever config().dtype is.
#pragma once

#include <limits>
#include <optional>
#include <string>

#include "rensa/autograd/parameter.h"

namespace rensa::initializers {

/// One value everywhere.
struct Constant {
  double value = 0;
  std::optional<Dtype> dtype = {};  // config().dtype when left out, as of all initializers
  void operator()(const Array& out) const;
};

struct Zero : Constant {};  // 0 everywhere

/// 1 everywhere.
struct One : Constant {
  One() : Constant{1} {}
};

/// For parameters that are to be set before they are used.
struct NaN : Constant {
  NaN() : Constant{std::numeric_limits<double>::quiet_NaN()} {}
};

/// The identity matrix times `scale`, of a square parameter.
struct Identity {
  double scale = 1;
  std::optional<Dtype> dtype = {};  // as Constant's
  void operator()(const Array& out) const;
};

/// N(0, scale).
struct Normal {
  double scale = 0.05;
  std::optional<Dtype> dtype = {};  // as Constant's
  void operator()(const Array& out) const;
};

/// U[-scale, scale).
struct Uniform {
  double scale = 0.05;
  std::optional<Dtype> dtype = {};  // as Constant's
  void operator()(const Array& out) const;
};

/// N(0, scale * sqrt(1 / fan_in)): LeCun et al., "Efficient BackProp". The links' default.
struct LeCunNormal {
  double scale = 1;
  std::optional<Dtype> dtype = {};  // as Constant's
  void operator()(const Array& out) const;
};

/// U[-s, s), s = scale * sqrt(3 / fan_in).
struct LeCunUniform {
  double scale = 1;
  std::optional<Dtype> dtype = {};  // as Constant's
  void operator()(const Array& out) const;
};

/// N(0, scale * sqrt(2 / (fan_in + fan_out))): Glorot and Bengio, "Understanding the difficulty of
/// training deep feedforward neural networks".
struct GlorotNormal {
  double scale = 1;
  std::optional<Dtype> dtype = {};  // as Constant's
  void operator()(const Array& out) const;
};

/// U[-s, s), s = scale * sqrt(6 / (fan_in + fan_out)).
struct GlorotUniform {
  double scale = 1;
  std::optional<Dtype> dtype = {};  // as Constant's
  void operator()(const Array& out) const;
};

/// N(0, scale * sqrt(2 / fan)): He et al., "Delving deep into rectifiers". The fan is that of
/// `fan_option`, "fan_in" or "fan_out", else ValueError.
struct HeNormal {
  double scale = 1;
  std::string fan_option = "fan_in";
  std::optional<Dtype> dtype = {};  // as Constant's
  void operator()(const Array& out) const;
};

/// U[-s, s), s = scale * sqrt(6 / fan_in).
struct HeUniform {
  double scale = 1;
  std::optional<Dtype> dtype = {};  // as Constant's
  void operator()(const Array& out) const;
};

/// Rows (or columns, where there are fewer of them) that are orthonormal, times `scale`: the Q of a
/// QR decomposition of normal numbers, R's diagonal positive; Saxe et al., "Exact solutions to the
/// nonlinear dynamics of learning in deep linear neural networks". Axes after the first are one.
/// `mode` says which shapes are an error: "auto" none, "projection" those with more rows than
/// columns, "embedding" those with more columns, "basis" both; others are a ValueError. A parameter
/// without axes is scale or -scale; an empty one is an error.
struct Orthogonal {
  double scale = 1.1;
  std::string mode = "auto";
  std::optional<Dtype> dtype = {};  // as Constant's
  void operator()(const Array& out) const;
};

/// The weight (in, out, k, k, ...), out being in or 1, of a deconvolution that enlarges images by
/// linear interpolation, each channel on its own: Long et al., "Fully convolutional networks for
/// semantic segmentation". Its stride is to be (k + 1) / 2. `interpolation` is "linear", else
/// ValueError.
struct UpsamplingDeconvFilter {
  std::string interpolation = "linear";
  std::optional<Dtype> dtype = {};  // as Constant's
  void operator()(const Array& out) const;
};

/// The weight of a convolution that makes images smaller: the same with the sum 1.
struct DownsamplingConvFilter {
  std::string interpolation = "linear";  // "linear" alone
  std::optional<Dtype> dtype = {};       // as Constant's
  void operator()(const Array& out) const;
};

}  // namespace rensa::initializers

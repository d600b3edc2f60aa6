// Initializers of parameters.
#include "rensa/links/initializers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/array/linalg.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/array/ufuncs/signs.h"
#include "rensa/core/error.h"

namespace rensa::initializers {

namespace {

struct Fans {
  double in, out;
};

Fans fans_of(const char* name, const Array& out) {
  if (out.ndim() < 2) {
    throw ShapeError(fmt::format("{}: a parameter {} has no fan-in; it needs two axes or more",
                                 name, out.view().describe()));
  }
  double field = 1;
  for (int i = 2; i < out.ndim(); ++i) field *= static_cast<double>(out.shape()[i]);
  return {static_cast<double>(out.shape()[1]) * field, static_cast<double>(out.shape()[0]) * field};
}

// Half types are drawn in float32 and rounded.
Dtype drawn_dtype(const Array& out) { return out.dtype() == float64 ? float64 : float32; }

void fill_normal(const Array& out, double scale) {
  out.assign(xp::random::normal(0, scale, out.shape(), drawn_dtype(out), out.device()));
}

void fill_uniform(const Array& out, double scale) {
  out.assign(xp::random::uniform(-scale, scale, out.shape(), drawn_dtype(out), out.device()));
}

/// Which shapes a mode of Orthogonal allows.
struct Allowed {
  bool rows, columns;  // more of them than of the others
};

Allowed allowed_by(const std::string& mode) {
  if (mode == "auto") return {true, true};
  if (mode == "projection") return {false, true};
  if (mode == "embedding") return {true, false};
  if (mode == "basis") return {false, false};
  throw ValueError(
      fmt::format("Orthogonal: mode \"{}\", which is none of \"auto\", \"projection\", "
                  "\"embedding\", \"basis\"",
                  mode));
}

/// Linear interpolation along the axes after the first two, channel by channel.
void fill_sampling(const char* name, const Array& out, const std::string& interpolation,
                   bool upsampling) {
  if (interpolation != "linear") {
    throw ValueError(
        fmt::format("{}: interpolation \"{}\", which is not \"linear\"", name, interpolation));
  }
  bool fits = out.ndim() > 2 && (out.shape()[0] == out.shape()[1] || out.shape()[1] == 1) &&
              std::all_of(out.shape().begin() + 2, out.shape().end(),
                          [&](std::int64_t k) { return k > 0 && k == out.shape()[2]; });
  if (!fits) {
    throw ShapeError(
        fmt::format("{}: a parameter {}, which is not (in, in, k, k, ...) or (in, 1, k, k, ...)",
                    name, out.view().describe()));
  }
  std::int64_t size = out.shape()[2], factor = (size + 1) / 2;
  double center = static_cast<double>(factor) - (size % 2 == 1 ? 1 : 0.5);
  std::vector<double> line(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < line.size(); ++i) {
    line[i] = 1 - std::abs(static_cast<double>(i) - center) / static_cast<double>(factor);
  }
  Array one = xp::array(line, out.device()), filter = one;
  for (int axis = 3; axis < out.ndim(); ++axis) filter = filter.reshape({-1, 1}) * one;
  if (!upsampling) filter = filter / filter.sum();
  Shape field(std::vector<std::int64_t>(static_cast<std::size_t>(out.ndim()) - 2, size)), channels;
  Array pattern = out.shape()[1] == 1 ? xp::ones({out.shape()[0], 1}, float64, out.device())
                                      : xp::eye(out.shape()[0], float64, out.device());
  channels = pattern.shape();
  for (int axis = 2; axis < out.ndim(); ++axis) channels.push_back(1);
  out.assign(pattern.reshape(channels) * filter.reshape(field));
}

}  // namespace

void Constant::operator()(const Array& out) const { out.fill(value); }
void Normal::operator()(const Array& out) const { fill_normal(out, scale); }
void Uniform::operator()(const Array& out) const { fill_uniform(out, scale); }

void LeCunNormal::operator()(const Array& out) const {
  fill_normal(out, scale * std::sqrt(1 / fans_of("LeCunNormal", out).in));
}

void LeCunUniform::operator()(const Array& out) const {
  fill_uniform(out, scale * std::sqrt(3 / fans_of("LeCunUniform", out).in));
}

void GlorotNormal::operator()(const Array& out) const {
  Fans fans = fans_of("GlorotNormal", out);
  fill_normal(out, scale * std::sqrt(2 / (fans.in + fans.out)));
}

void GlorotUniform::operator()(const Array& out) const {
  Fans fans = fans_of("GlorotUniform", out);
  fill_uniform(out, scale * std::sqrt(6 / (fans.in + fans.out)));
}

void HeNormal::operator()(const Array& out) const {
  if (fan_option != "fan_in" && fan_option != "fan_out") {
    throw ValueError(fmt::format(
        "HeNormal: fan_option \"{}\", which is none of \"fan_in\", \"fan_out\"", fan_option));
  }
  Fans fans = fans_of("HeNormal", out);
  fill_normal(out, scale * std::sqrt(2 / (fan_option == "fan_in" ? fans.in : fans.out)));
}

void HeUniform::operator()(const Array& out) const {
  fill_uniform(out, scale * std::sqrt(6 / fans_of("HeUniform", out).in));
}

void Identity::operator()(const Array& out) const {
  if (out.ndim() != 2 || out.shape()[0] != out.shape()[1]) {
    throw ShapeError(
        fmt::format("Identity: a parameter {}, which is no square matrix", out.view().describe()));
  }
  out.assign(xp::eye(out.shape()[0], float64, out.device()) * scale);
}

void Orthogonal::operator()(const Array& out) const {
  Allowed allowed = allowed_by(mode);
  if (out.ndim() == 0) {
    return out.assign(xp::random::randint(0, 2, {}, int32, out.device()) * (2 * scale) - scale);
  }
  if (out.size() == 0) {
    throw ShapeError(
        fmt::format("Orthogonal: a parameter {}, which is empty", out.view().describe()));
  }
  std::int64_t rows = out.shape()[0], columns = out.size() / rows;
  if ((rows > columns && !allowed.rows) || (columns > rows && !allowed.columns)) {
    throw ShapeError(
        fmt::format("Orthogonal: a parameter {}, of {} rows and {} columns, in mode \"{}\"",
                    out.view().describe(), rows, columns, mode));
  }
  Array drawn = xp::random::normal(0, 1, {std::max(rows, columns), std::min(rows, columns)},
                                   float64, out.device());
  auto [q, r] = xp::linalg::qr(drawn);
  Array system = q * xp::copysign(xp::full({}, scale, float64, out.device()), r.diagonal());
  out.assign((columns > rows ? system.transpose() : system).reshape(out.shape()));
}

void UpsamplingDeconvFilter::operator()(const Array& out) const {
  fill_sampling("UpsamplingDeconvFilter", out, interpolation, true);
}

void DownsamplingConvFilter::operator()(const Array& out) const {
  fill_sampling("DownsamplingConvFilter", out, interpolation, false);
}

}  // namespace rensa::initializers

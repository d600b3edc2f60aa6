// Initializers of parameters.
#include "rensa/links/initializers.h"

#include <fmt/format.h>

#include <cmath>

#include "rensa/array/random_basics.h"
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
  fill_normal(out, scale * std::sqrt(2 / fans_of("HeNormal", out).in));
}

void HeUniform::operator()(const Array& out) const {
  fill_uniform(out, scale * std::sqrt(6 / fans_of("HeUniform", out).in));
}

}  // namespace rensa::initializers

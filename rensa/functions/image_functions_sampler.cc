// Spatial transformers: the grid, and the sampler's node.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "rensa/array/math.h"
#include "rensa/array/sorting.h"
#include "rensa/autograd/function_node.h"
#include "rensa/autograd/recomputation.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/image_functions.h"
#include "rensa/functions/math_functions.h"
#include "rensa/functions/operations/spatial_sampling/spatial_sampling.h"

namespace rensa::functions {

namespace {

using operations::SampleMode;
using operations::SpatialSampling;

/// The sampler made of functions that know their gradients: for what is to be differentiated again.
Variable composed_sampler(const Variable& x, const Variable& grid) {
  // Of images with a border of zeros, whose pixels are rows of channels.
  std::int64_t n = x.shape(0), channels = x.shape(1);
  std::int64_t height = x.shape(2) + 2, width = x.shape(3) + 2;
  Variable pixels = transpose(pad(x, {{0, 0}, {0, 0}, {1, 1}, {1, 1}}), {0, 2, 3, 1});
  pixels = reshape(pixels, {n * height * width, channels});
  auto place = [&](int coordinate, std::int64_t extent) {
    Variable at = get_item(grid, {Slice(), coordinate});
    double scale = static_cast<double>(extent - 3) / 2;
    return clip((at + 1) * scale + 1, 0, static_cast<double>(extent - 1));
  };
  Variable u = place(0, width), v = place(1, height);
  Array u0 = floor(u).array().clip(0, width - 2), v0 = floor(v).array().clip(0, height - 2);
  Array image = xp::arange(n, int64, x.device()).reshape({-1, 1, 1});
  Array corner = (image * height + v0.astype(int64)) * width + u0.astype(int64);
  Variable right = expand_dims(u - constant(u0), -1), down = expand_dims(v - constant(v0), -1);
  auto pixel = [&](std::int64_t dv, std::int64_t du) {
    return get_item(pixels, corner + (dv * width + du));
  };
  Variable above = pixel(0, 0) * (1 - right) + pixel(0, 1) * right;
  Variable below = pixel(1, 0) * (1 - right) + pixel(1, 1) * right;
  return transpose(above * (1 - down) + below * down, {0, 3, 1, 2});
}

class SamplerNode final : public FunctionNode {
 public:
  SamplerNode() : FunctionNode("spatial_transformer_sampler") {}

  Arrays forward(const Arrays& inputs) override {
    retain_inputs({0, 1});
    Sampling s(name(), inputs[0], inputs[1]);
    const Shape& places = inputs[1].shape();
    Array y = s.empty({places[0], inputs[0].shape(1), places[2], places[3]});
    return {s.run(SampleMode::values, y)};
  }
  Variables backward(const Indexes& targets, const Variables& gy) override {
    Variables in = get_retained_inputs();
    if (config().enable_backprop) {
      for (Variable& v : in) v = autograd::entrance(name(), v);
      return grad({composed_sampler(in[0], in[1])}, in, {gy[0]}, true);
    }
    Sampling s(name(), in[0].array(), in[1].array());
    s.gy = gy[0].array().ascontiguous();
    Variables gx(2);
    for (int i : targets) {
      if (i == 1) gx[1] = constant(s.run(SampleMode::grid_gradient, s.empty(in[1].shape())));
      else gx[0] = constant(s.image_gradient());
    }
    return gx;
  }

 private:
  /// The operands of the operation's modes.
  struct Sampling {
    const char* name;
    Array x, grid, gy, order, starts;

    Sampling(const char* function, const Array& images, const Array& places)
        : name(function), x(images.ascontiguous()), grid(places.ascontiguous()) {}
    Array empty(const Shape& shape) const { return xp::empty(shape, x.dtype(), x.device()); }
    Array run(SampleMode mode, const Array& out) const {
      if (out.size() == 0) return out;
      SpatialSampling op = operation(mode);
      op.out = out.operand();
      launch(op);
      return out;
    }
    Array image_gradient() {
      Array gx = empty(x.shape());
      if (gx.size() == 0) return gx;
      const Shape& shape = grid.shape();
      Array keys =
          run(SampleMode::keys, xp::empty({shape[0] * shape[2] * shape[3]}, int64, x.device()));
      order = xp::argsort(keys);
      std::int64_t count = operation(SampleMode::keys).sample_order().count();
      starts = xp::searchsorted(keys, xp::arange(count + 1, int64, x.device()), "left", order);
      return run(SampleMode::image_gradient, gx);
    }

   private:
    SpatialSampling operation(SampleMode mode) const {
      SpatialSampling op(name, mode);
      op.images = x.shape(0);
      op.channels = x.shape(1);
      op.places = grid.shape(2) * grid.shape(3);
      op.rows = static_cast<int>(x.shape(2));
      op.columns = static_cast<int>(x.shape(3));
      op.grid = grid.operand();
      if (mode == SampleMode::values || mode == SampleMode::grid_gradient) op.x = x.operand();
      if (gy.defined() && mode != SampleMode::keys) op.gy = gy.operand();
      if (mode == SampleMode::image_gradient) {
        op.order = order.operand();
        op.starts = starts.operand();
      }
      return op;
    }
  };
};

}  // namespace

Variable spatial_transformer_grid(const Variable& theta, const Shape& output_shape) {
  if (theta.ndim() != 3 || theta.shape(1) != 2 || theta.shape(2) != 3) {
    throw ShapeError(fmt::format("spatial_transformer_grid: theta {} has to be (n, 2, 3)",
                                 theta.array().view().describe()));
  }
  Shape out = output_shape;
  if (out.ndim() == 1) out = {out[0], out[0]};
  if (out.ndim() != 2) {
    throw ShapeError(
        fmt::format("spatial_transformer_grid: an output shape {} is neither one number nor a "
                    "height and a width",
                    out.str()));
  }
  auto places = [&](std::int64_t n) {  // n of them
    double step = 2 / static_cast<double>(std::max<std::int64_t>(n - 1, 1));
    double stop = (static_cast<double>(n) - 0.5) * step - 1;
    return xp::arange(-1.0, stop, step, theta.dtype(), theta.device());
  };
  Array points = xp::ones({3, out[0], out[1]}, theta.dtype(), theta.device());
  points[0].assign(places(out[1]));
  points[1].assign(places(out[0]).reshape({out[0], 1}));
  points = points.reshape({3, -1});
  return reshape(matmul(theta, constant(points)), {theta.shape(0), 2, out[0], out[1]});
}

Variable spatial_transformer_sampler(const Variable& x, const Variable& grid) {
  constexpr const char* name = "spatial_transformer_sampler";
  std::string text = fmt::format("{}: x {} and grid {}", name, x.array().view().describe(),
                                 grid.array().view().describe());
  if (x.ndim() != 4) {
    throw ShapeError(text + ": x is no batch of images (n, channels, height, width)");
  }
  if (grid.ndim() != 4 || grid.shape(1) != 2 || grid.shape(0) != x.shape(0)) {
    throw ShapeError(text + ": the grid has to be (n, 2, height, width)");
  }
  check_same_device(name, x.array(), grid.array());
  for (std::int64_t n : {x.shape(2), x.shape(3)}) {
    if (n > std::numeric_limits<int>::max() / 2) {
      throw NotImplementedError(text + ": that is too large");
    }
  }
  Dtype dtype = promote_types(x.dtype(), grid.dtype());
  if (dtype_kind(dtype) != 'f') return composed_sampler(x, grid);
  return rensa::apply<SamplerNode>({cast(x, dtype), cast(grid, dtype)})[0];
}

}  // namespace rensa::functions

// Pooling of regions of interest: the nodes, whose backward are each other.
#include "rensa/functions/roi_pooling.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "rensa/array/creation.h"
#include "rensa/array/routines.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/operations/roi_pooling/roi_pooling.h"

namespace rensa::functions {

namespace {

using operations::RoiBins;
using operations::RoiMode;

/// What both directions work with.
struct Regions {
  RoiBins bins;
  Shape out;           // rows and columns of bins
  Array rois, images;  // of the operations' dtypes, and nobody else's
  Array numbers;       // of the greatest taps; undefined: means
  Shape x;
};

/// An operation of either direction, with the operands that both have.
template <class Op> Op operation_on(const char* name, const Regions& regions) {
  Op op(name);
  op.bins = regions.bins;
  op.rois = regions.rois.operand();
  op.images = regions.images.operand();
  if (regions.numbers.defined()) op.numbers = regions.numbers.operand();
  return op;
}

class RoiSpreadNode final : public FunctionNode {
 public:
  RoiSpreadNode(const char* name, Regions regions)
      : FunctionNode(name), regions_(std::move(regions)) {}

  Arrays forward(const Arrays& inputs) override {
    Array gy = inputs[0].ascontiguous(), gx = xp::empty(regions_.x, gy.dtype(), gy.device());
    auto op = operation_on<operations::RoiPoolingSpread>(name(), regions_);
    op.gy = gy.operand();
    op.gx = gx.operand();
    if (gx.size() > 0) launch(op);
    return {gx};
  }
  Variables backward(const Indexes&, const Variables& ggx) override;

 private:
  Regions regions_;
};

class RoiPoolNode final : public FunctionNode {
 public:
  RoiPoolNode(const char* name, Regions regions)
      : FunctionNode(name), regions_(std::move(regions)) {}

  Arrays forward(const Arrays& inputs) override {
    Array x = inputs[0].ascontiguous();
    Shape shape{regions_.rois.shape(0), x.shape(1), regions_.out[0], regions_.out[1]};
    Array y = xp::empty(shape, x.dtype(), x.device());
    RoiMode mode = regions_.bins.mode;
    if (mode == RoiMode::max) regions_.numbers = xp::empty(shape, int64, x.device());
    auto op = operation_on<operations::RoiPooling>(name(), regions_);
    op.x = x.operand();
    op.y = y.operand();
    if (y.size() > 0) launch(op);
    if (mode == RoiMode::max) regions_.bins.mode = RoiMode::at;  // its derivatives
    return {y};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    return {rensa::apply<RoiSpreadNode>({gy[0]}, name(), regions_)[0]};
  }

 private:
  Regions regions_;
};

Variables RoiSpreadNode::backward(const Indexes&, const Variables& ggx) {
  return {rensa::apply<RoiPoolNode>({ggx[0]}, name(), regions_)[0]};
}

/// Rows and columns, each at least `least`.
Shape pair_of(const char* function, const char* what, const AxisList& given, std::int64_t least) {
  if (!given.given()) throw ValueError(fmt::format("{}: no {}", function, what));
  const Shape& values = given.values();
  Shape pair = values.size() == 1 ? Shape{values[0], values[0]} : values;
  bool fits = pair.size() == 2;
  for (std::int64_t v : pair) fits = fits && v >= least && v <= (1 << 20);
  if (fits) return pair;
  throw ValueError(fmt::format("{}: {} {} is neither one number nor two of at least {}", function,
                               what, values.str(), least));
}

void check(const char* function, const Variable& x, const Variable& rois, const Array& images,
           int width) {
  const char* wanted = width == 5 ? "(r, 5)" : "(r, 4) and roi_indices (r,)";
  std::string text = fmt::format("{}: x {} and rois {}", function, x.array().view().describe(),
                                 rois.array().view().describe());
  if (images.defined()) text += fmt::format(" and roi_indices {}", images.view().describe());
  bool fits = x.ndim() == 4 && rois.ndim() == 2 && rois.shape(1) == width;
  if (images.defined()) fits = fits && images.ndim() == 1 && images.shape(0) == rois.shape(0);
  if (!fits) {
    throw ShapeError(
        fmt::format("{}: x must be (n, channels, height, width), rois {}", text, wanted));
  }
  bool types = dtype_kind(x.dtype()) == 'f' && dtype_kind(rois.dtype()) == 'f';
  if (images.defined()) {
    types = types && (dtype_kind(images.dtype()) == 'i' || dtype_kind(images.dtype()) == 'u');
    check_same_device(function, x.array(), images);
  }
  if (!types) throw DtypeError(text + ": x and rois must be floating, indices integers");
  check_same_device(function, x.array(), rois.array());
}

Variable pooled(const char* function, const Variable& x, const Array& rois, const Array& images,
                const Shape& out, const RoiBins& bins) {
  if (!(bins.look.scale > 0) || !std::isfinite(bins.look.scale)) {
    throw ValueError(fmt::format("{}: a spatial_scale of {}", function, bins.look.scale));
  }
  Regions regions{
      bins, out,      rois.astype(float64).ascontiguous(), images.astype(int64).ascontiguous(),
      {},   x.shape()};
  return rensa::apply<RoiPoolNode>({x}, function, std::move(regions))[0];
}

Variable pooled(const char* function, const Variable& x, const Variable& rois,
                const Variable& roi_indices, const AxisList& outsize, const RoiBins& bins) {
  check(function, x, rois, roi_indices.array(), 4);
  return pooled(function, x, rois.array(), roi_indices.array(),
                pair_of(function, "outsize", outsize, 1), bins);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

RoiBins aligned(const char* function, RoiMode mode, double scale, const AxisList& ratio) {
  RoiBins bins{.mode = mode, .look = {.scale = scale, .aligned = true}, .of_none = -kInfinity};
  if (ratio.given()) {
    Shape samples = pair_of(function, "sampling_ratio", ratio, 0);
    for (int i = 0; i < 2; ++i) bins.samples[i] = static_cast<int>(samples[i]);
  }
  return bins;
}

}  // namespace

Variable roi_average_pooling_2d(const Variable& x, const Variable& rois,
                                const Variable& roi_indices, const AxisList& outsize,
                                double spatial_scale) {
  return pooled("roi_average_pooling_2d", x, rois, roi_indices, outsize,
                {.look = {.scale = spatial_scale}});
}

Variable roi_max_pooling_2d(const Variable& x, const Variable& rois, const Variable& roi_indices,
                            const AxisList& outsize, double spatial_scale) {
  return pooled("roi_max_pooling_2d", x, rois, roi_indices, outsize,
                {.mode = RoiMode::max, .look = {.scale = spatial_scale}, .of_none = -kInfinity});
}

Variable roi_average_align_2d(const Variable& x, const Variable& rois, const Variable& roi_indices,
                              const AxisList& outsize, double spatial_scale,
                              const AxisList& sampling_ratio) {
  constexpr const char* name = "roi_average_align_2d";
  return pooled(name, x, rois, roi_indices, outsize,
                aligned(name, RoiMode::mean, spatial_scale, sampling_ratio));
}

Variable roi_max_align_2d(const Variable& x, const Variable& rois, const Variable& roi_indices,
                          const AxisList& outsize, double spatial_scale,
                          const AxisList& sampling_ratio) {
  constexpr const char* name = "roi_max_align_2d";
  return pooled(name, x, rois, roi_indices, outsize,
                aligned(name, RoiMode::max, spatial_scale, sampling_ratio));
}

Variable roi_pooling_2d(const Variable& x, const Variable& rois, int outh, int outw,
                        double spatial_scale) {
  constexpr const char* name = "roi_pooling_2d";
  check(name, x, rois, {}, 5);
  auto column = [&](std::int64_t i) -> Array { return rois.array()[{Slice(), i}]; };
  Array edges = xp::stack({column(2), column(1), column(4), column(3)}, 1);
  return pooled(
      name, x, edges, column(0), pair_of(name, "outh and outw", {outh, outw}, 1),
      {.mode = RoiMode::max, .look = {.scale = spatial_scale, .inclusive = true}, .of_none = 0});
}

}  // namespace rensa::functions

// Functions that move values about: forward and backward.
#include "rensa/functions/array_functions.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/functions/indexing_functions.h"
#include "rensa/functions/joining_functions.h"
#include "rensa/functions/node_templates.h"
#include "rensa/functions/reduction_functions.h"

namespace rensa::functions {

namespace {

class Reshape final : public FunctionNode {
 public:
  explicit Reshape(const Shape& shape) : FunctionNode("reshape"), shape_(shape) {}
  Arrays forward(const Arrays& x) override { return {x[0].reshape(shape_)}; }
  Variables backward(const Indexes&, const Variables& gy) override {
    return {reshape(gy[0], inputs()[0]->shape)};
  }
  std::optional<FunctionAttributes> attributes() const override { return FunctionAttributes(); }

 private:
  Shape shape_;
};

class Transpose final : public FunctionNode {
 public:
  explicit Transpose(const Shape& axes) : FunctionNode("transpose"), axes_(axes) {}
  Arrays forward(const Arrays& x) override { return {x[0].transpose(axes_)}; }
  Variables backward(const Indexes&, const Variables& gy) override {
    Shape inverse = axes_;
    for (int i = 0; i < axes_.ndim(); ++i) {
      inverse[normalize_axis("transpose", axes_[i], axes_.ndim())] = i;
    }
    return {transpose(gy[0], inverse)};
  }
  std::optional<FunctionAttributes> attributes() const override {
    return FunctionAttributes{.lists = {{"axes", axes_}}};
  }

 private:
  Shape axes_;
};

class BroadcastTo final : public FunctionNode {
 public:
  explicit BroadcastTo(const Shape& shape) : FunctionNode("broadcast_to"), shape_(shape) {}
  Arrays forward(const Arrays& x) override { return {x[0].broadcast_to(shape_)}; }
  Variables backward(const Indexes&, const Variables& gy) override {
    return {sum_to(gy[0], inputs()[0]->shape)};
  }
  std::optional<FunctionAttributes> attributes() const override { return FunctionAttributes(); }

 private:
  Shape shape_;
};

class SumTo final : public FunctionNode {
 public:
  explicit SumTo(const Shape& shape) : FunctionNode("sum_to"), shape_(shape) {}
  Arrays forward(const Arrays& x) override { return {xp::sum_to(x[0], shape_)}; }
  Variables backward(const Indexes&, const Variables& gy) override {
    return {broadcast_to(gy[0], inputs()[0]->shape)};
  }

 private:
  Shape shape_;
};

class Cast final : public FunctionNode {
 public:
  explicit Cast(Dtype dtype) : FunctionNode("cast"), dtype_(dtype) {}
  Arrays forward(const Arrays& x) override { return {x[0].astype(dtype_, 'K')}; }
  Variables backward(const Indexes&, const Variables& gy) override {
    return {cast(gy[0], inputs()[0]->dtype)};
  }
  std::optional<FunctionAttributes> attributes() const override { return FunctionAttributes(); }

 private:
  Dtype dtype_;
};

class Copy final : public FunctionNode {
 public:
  explicit Copy(Device device) : FunctionNode("copy"), device_(device) {}
  Arrays forward(const Arrays& x) override { return {x[0].to(device_)}; }
  Variables backward(const Indexes&, const Variables& gy) override {
    return {copy(gy[0], inputs()[0]->device)};
  }
  std::optional<FunctionAttributes> attributes() const override { return FunctionAttributes(); }

 private:
  Device device_;
};

/// gy where the condition is `side`, zeros elsewhere. Linear, so its gradient is itself.
struct WhereGrad {
  static constexpr const char* name = "where_grad";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& gy, const KeptArray& condition, bool side) {
    const Array& truth = condition.get("where", "condition");
    Scalar zero = 0.0;
    return side ? xp::where(truth, gy, zero) : xp::where(truth, zero, gy);
  }
  static Variable backward(const Variable&, const Variable& ggx, const KeptArray& condition,
                           bool side) {
    return unary<WhereGrad>(ggx, condition, side);
  }
};

class Where final : public FunctionNode {
 public:
  explicit Where(Array condition) : FunctionNode("where"), condition_(std::move(condition)) {}
  Arrays forward(const Arrays& x) override {
    return {xp::where(condition_.get(name(), "condition"), x[0], x[1])};
  }
  Variables backward(const Indexes& targets, const Variables& gy) override {
    Variables gx;
    for (int i : targets) {
      gx.push_back(
          fit(unary<WhereGrad>(gy[0], condition_, i == 0), *inputs()[static_cast<std::size_t>(i)]));
    }
    return gx;
  }

 private:
  KeptArray condition_;
};

class Flip final : public FunctionNode {
 public:
  explicit Flip(const Axes& axis) : FunctionNode("flip"), axis_(axis) {}
  Arrays forward(const Arrays& x) override { return {xp::flip(x[0], axis_)}; }
  Variables backward(const Indexes&, const Variables& gy) override { return {flip(gy[0], axis_)}; }

 private:
  Axes axis_;
};

class Roll final : public FunctionNode {
 public:
  Roll(const Shape& shifts, const Shape& axes)
      : FunctionNode("roll"), shifts_(shifts), axes_(axes) {}
  Arrays forward(const Arrays& x) override { return {xp::roll(x[0], shifts_, axes_)}; }
  Variables backward(const Indexes&, const Variables& gy) override {
    Shape back = shifts_;
    for (std::int64_t& shift : back) shift = -shift;
    return {roll(gy[0], back, axes_)};
  }

 private:
  Shape shifts_, axes_;
};

/// Each sub-array along one axis as often.
class Repeat final : public FunctionNode {
 public:
  Repeat(std::int64_t repeats, int axis) : FunctionNode("repeat"), repeats_(repeats), axis_(axis) {}
  Arrays forward(const Arrays& x) override { return {xp::repeat(x[0], repeats_, axis_)}; }
  Variables backward(const Indexes&, const Variables& gy) override {
    const Shape& x = inputs()[0]->shape;
    Shape parts{1, x[axis_], repeats_, 1};
    for (int i = 0; i < x.ndim(); ++i) {
      if (i != axis_) parts[i < axis_ ? 0 : 3] *= x[i];
    }
    return {reshape(sum(reshape(gy[0], parts), 2), x)};
  }

 private:
  std::int64_t repeats_;
  int axis_;
};

class Tile final : public FunctionNode {
 public:
  explicit Tile(const Shape& reps) : FunctionNode("tile"), reps_(reps) {}
  Arrays forward(const Arrays& x) override { return {xp::tile(x[0], reps_)}; }
  // The copies are summed axis by axis: those of an axis lie in front of all that is behind it.
  Variables backward(const Indexes&, const Variables& gy) override {
    const Shape& shape = inputs()[0]->shape;
    Variable g = gy[0];
    Shape out = g.shape();
    int first = out.ndim() - reps_.ndim(), missing = out.ndim() - shape.ndim();
    for (int i = first; i < out.ndim(); ++i) {
      std::int64_t copies = reps_[i - first];
      if (copies == 1) continue;
      Shape parts{1, copies, i < missing ? 1 : shape[i - missing]};
      for (int k = 0; k < i; ++k) parts[0] *= k < missing ? 1 : shape[k - missing];
      for (int k = i + 1; k < out.ndim(); ++k) parts[2] *= out[k];
      g = sum(reshape(g, parts), 1);
    }
    return {reshape(g, shape)};
  }

 private:
  Shape reps_;
};

/// Widths of the borders of each axis.
std::vector<std::pair<std::int64_t, std::int64_t>> borders(const Shape& shape,
                                                           const xp::PadWidth& width) {
  auto pairs = width.pairs();
  if (pairs.size() == 1) pairs.resize(static_cast<std::size_t>(shape.ndim()), pairs[0]);
  return pairs;
}

class Pad final : public FunctionNode {
 public:
  Pad(const xp::PadWidth& width, Scalar value)
      : FunctionNode("pad"), width_(width), value_(value) {}
  Arrays forward(const Arrays& x) override {
    return {xp::pad(x[0], width_, "constant", {.constant_values = value_})};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    const Shape& x = inputs()[0]->shape;
    std::vector<BasicIndex> inside;
    auto pairs = borders(x, width_);
    for (int i = 0; i < x.ndim(); ++i) {
      std::int64_t before = pairs[static_cast<std::size_t>(i)].first;
      inside.emplace_back(Slice(before, before + x[i]));
    }
    return {get_item(gy[0], inside)};
  }

 private:
  xp::PadWidth width_;
  Scalar value_;
};

struct Corner {
  std::int64_t offset;
  int axis1, axis2;
};

class Diagonal final : public FunctionNode {
 public:
  explicit Diagonal(const Corner& corner) : FunctionNode("diagonal"), corner_(corner) {}
  Arrays forward(const Arrays& x) override {
    return {x[0].diagonal(corner_.offset, corner_.axis1, corner_.axis2)};
  }
  Variables backward(const Indexes&, const Variables& gy) override;

 private:
  Corner corner_;
};

/// The gradient of Diagonal: gy in its place, zeros around it.
class DiagonalGrad final : public FunctionNode {
 public:
  DiagonalGrad(const Corner& corner, const Shape& shape)
      : FunctionNode("diagonal_grad"), corner_(corner), shape_(shape) {}
  Arrays forward(const Arrays& gy) override {
    Array gx = xp::zeros(shape_, gy[0].dtype(), gy[0].device());
    gx.diagonal(corner_.offset, corner_.axis1, corner_.axis2).assign(gy[0]);
    return {gx};
  }
  Variables backward(const Indexes&, const Variables& ggx) override {
    return rensa::apply<Diagonal>(ggx, corner_);
  }

 private:
  Corner corner_;
  Shape shape_;
};

Variables Diagonal::backward(const Indexes&, const Variables& gy) {
  return rensa::apply<DiagonalGrad>(gy, corner_, inputs()[0]->shape);
}

/// 0, 1, ..., ndim - 1.
Shape axes_in_order(int ndim) {
  Shape axes;
  for (int i = 0; i < ndim; ++i) axes.push_back(i);
  return axes;
}

}  // namespace

Variable reshape(const Variable& x, const Shape& shape) {
  return x.shape() == shape ? x : apply<Reshape>({x}, shape)[0];
}

Variable transpose(const Variable& x, const Shape& axes) { return apply<Transpose>({x}, axes)[0]; }

Variable transpose(const Variable& x) {
  Shape axes = x.shape();
  for (int i = 0; i < axes.ndim(); ++i) axes[i] = axes.ndim() - 1 - i;
  return transpose(x, axes);
}

Variable broadcast_to(const Variable& x, const Shape& shape) {
  return x.shape() == shape ? x : apply<BroadcastTo>({x}, shape)[0];
}

Variable sum_to(const Variable& x, const Shape& shape) {
  return x.shape() == shape ? x : apply<SumTo>({x}, shape)[0];
}

Variable cast(const Variable& x, Dtype dtype) {
  return x.dtype() == dtype ? x : apply<Cast>({x}, dtype)[0];
}

Variable copy(const Variable& x, Device device) { return apply<Copy>({x}, device)[0]; }

Variable where(const Array& condition, const Variable& x, const Variable& y) {
  return apply<Where>({x, y}, condition)[0];
}

Variable where(const Variable& condition, const Variable& x, const Variable& y) {
  return where(condition.array(), x, y);
}

Variable masked_fill(const Variable& x, const Array& mask, Scalar value) {
  return where(mask, constant(xp::full({}, value, x.dtype(), x.device())), x);
}

Variable expand_dims(const Variable& x, int axis) {
  return reshape(x, xp::expand_dims(x.array(), axis).shape());
}

Variable squeeze(const Variable& x, const AxisList& axis) {
  const Array& a = x.array();
  return reshape(x, (axis.given() ? a.squeeze(axis.values()) : a.squeeze()).shape());
}

Variable flatten(const Variable& x) { return reshape(x, {x.size()}); }

Variable swapaxes(const Variable& x, int axis1, int axis2) {
  Shape axes = axes_in_order(x.ndim());
  std::swap(axes[normalize_axis("swapaxes", axis1, x.ndim())],
            axes[normalize_axis("swapaxes", axis2, x.ndim())]);
  return transpose(x, axes);
}

Variable moveaxis(const Variable& x, const Shape& source, const Shape& destination) {
  static_cast<void>(xp::moveaxis(x.array(), source, destination));  // what it throws
  std::vector<std::int64_t> from(static_cast<std::size_t>(x.ndim()), -1);
  std::vector<bool> moved(static_cast<std::size_t>(x.ndim()));
  for (int k = 0; k < source.ndim(); ++k) {
    int axis = normalize_axis("moveaxis", source[k], x.ndim());
    int place = normalize_axis("moveaxis", destination[k], x.ndim());
    from[static_cast<std::size_t>(place)] = axis;
    moved[static_cast<std::size_t>(axis)] = true;
  }
  std::size_t next = 0;
  Shape axes;
  for (std::int64_t axis : from) {
    if (axis < 0) {
      while (moved[next]) ++next;
      axis = static_cast<std::int64_t>(next++);
    }
    axes.push_back(axis);
  }
  return transpose(x, axes);
}

Variable moveaxis(const Variable& x, int source, int destination) {
  return moveaxis(x, Shape{source}, Shape{destination});
}

Variable rollaxis(const Variable& x, int axis, int start) {
  static_cast<void>(xp::rollaxis(x.array(), axis, start));  // what it throws
  int from = normalize_axis("rollaxis", axis, x.ndim());
  int before = start < 0 ? start + x.ndim() : start;
  Shape axes = axes_in_order(x.ndim());
  axes.erase(from);
  axes.insert(from < before ? before - 1 : before, from);
  return transpose(x, axes);
}

Variable flip(const Variable& x, Axes axis) { return apply<Flip>({x}, axis)[0]; }
Variable fliplr(const Variable& x) {
  static_cast<void>(xp::fliplr(x.array()));  // what it throws
  return flip(x, 1);
}
Variable flipud(const Variable& x) {
  static_cast<void>(xp::flipud(x.array()));  // what it throws
  return flip(x, 0);
}

Variable roll(const Variable& x, std::int64_t shift) {
  return reshape(roll(reshape(x, {-1}), Shape{shift}, Shape{0}), x.shape());
}
Variable roll(const Variable& x, std::int64_t shift, int axis) {
  return roll(x, Shape{shift}, Shape{axis});
}
Variable roll(const Variable& x, const Shape& shifts, const Shape& axes) {
  return apply<Roll>({x}, shifts, axes)[0];
}

Variable repeat(const Variable& x, const IntegerList& repeats, OptionalAxis axis) {
  if (!axis.given()) return repeat(flatten(x), repeats, 0);
  int along = normalize_axis("repeat", axis.axis(), x.ndim());
  const std::vector<std::int64_t>& counts = repeats.values();
  if (counts.size() == 1) return apply<Repeat>({x}, counts[0], along)[0];
  if (static_cast<std::int64_t>(counts.size()) != x.shape(along)) {
    throw ShapeError(fmt::format("repeat: {} counts for axis {} of {}: there is one, or one each",
                                 counts.size(), along, x.array().view().describe()));
  }
  Variables parts = split_axis(x, x.shape(along), along);
  for (std::size_t k = 0; k < counts.size(); ++k) {
    if (counts[k] != 1) parts[k] = apply<Repeat>({parts[k]}, counts[k], along)[0];
  }
  return concat(parts, along);
}

Variable tile(const Variable& x, const Shape& reps) { return apply<Tile>({x}, reps)[0]; }

Variable pad(const Variable& x, const xp::PadWidth& pad_width, std::string_view mode,
             Scalar constant_values) {
  if (mode == "constant") return apply<Pad>({x}, pad_width, constant_values)[0];
  if (mode != "edge" && mode != "reflect" && mode != "symmetric" && mode != "wrap") {
    throw ValueError(fmt::format(
        "pad: mode \"{}\"; there are constant, edge, reflect, symmetric and wrap", mode));
  }
  auto pairs = borders(x.shape(), pad_width);
  if (pairs.size() != static_cast<std::size_t>(x.ndim())) {
    throw ValueError(
        fmt::format("pad: {} pairs of widths for {}", pairs.size(), x.array().view().describe()));
  }
  // Where each element of an axis comes from.
  Variable y = x;
  for (int axis = 0; axis < x.ndim(); ++axis) {
    auto [before, after] = pairs[static_cast<std::size_t>(axis)];
    if (before == 0 && after == 0) continue;
    Array places = xp::arange(x.shape(axis), int64, x.device());
    y = index_select(y, axis, xp::pad(places, xp::PadWidth(before, after), mode));
  }
  return y;
}

Variable diagonal(const Variable& x, std::int64_t offset, int axis1, int axis2) {
  return apply<Diagonal>({x}, Corner{offset, axis1, axis2})[0];
}

}  // namespace rensa::functions

namespace rensa {

Variable Variable::reshape(const Shape& shape) const { return F::reshape(*this, shape); }
Variable Variable::transpose() const { return F::transpose(*this); }
Variable Variable::astype(Dtype dtype) const { return F::cast(*this, dtype); }
Variable Variable::ravel() const { return reshape({-1}); }
Variable Variable::transpose(const Shape& axes) const { return F::transpose(*this, axes); }
Variable Variable::squeeze(const AxisList& axis) const { return F::squeeze(*this, axis); }
Variable Variable::expand_dims(int axis) const { return F::expand_dims(*this, axis); }
Variable Variable::swapaxes(int a, int b) const { return F::swapaxes(*this, a, b); }
Variable Variable::repeat(const IntegerList& repeats, OptionalAxis axis) const {
  return F::repeat(*this, repeats, axis);
}
Variable Variable::diagonal(std::int64_t offset, int axis1, int axis2) const {
  return F::diagonal(*this, offset, axis1, axis2);
}
Variable Variable::broadcast_to(const Shape& shape) const { return F::broadcast_to(*this, shape); }
Variable Variable::to(Device device) const {
  return this->device() == device ? *this : F::copy(*this, device);
}

}  // namespace rensa

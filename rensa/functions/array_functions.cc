// Functions that move values about: forward and backward.
#include "rensa/functions/array_functions.h"

#include <fmt/format.h>

#include "rensa/core/error.h"
#include "rensa/functions/node_templates.h"

namespace rensa::functions {

namespace {

class Reshape final : public FunctionNode {
 public:
  explicit Reshape(const Shape& shape) : FunctionNode("reshape"), shape_(shape) {}
  Arrays forward(const Arrays& x) override { return {x[0].reshape(shape_)}; }
  Variables backward(const Indexes&, const Variables& gy) override {
    return {reshape(gy[0], inputs()[0]->shape)};
  }

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
  Arrays forward(const Arrays& x) override { return {x[0].astype(dtype_)}; }
  Variables backward(const Indexes&, const Variables& gy) override {
    return {cast(gy[0], inputs()[0]->dtype)};
  }

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

/// Which elements of a C-contiguous array a basic index selects.
struct Slab {
  Slab(const Array& a, std::initializer_list<BasicIndex> index) {
    ArrayView view = a.view();
    view.strides = contiguous_strides(view.shape, itemsize(view.dtype));
    Array selected = Array(a.storage(), view)[index];
    offset = selected.view().data - view.data;
    shape = selected.shape();
    strides = selected.strides();
  }
  /// [start, stop) along one axis of an array like `whole`.
  Slab(const VariableNode& whole, int axis, std::int64_t start, std::int64_t stop)
      : shape(whole.shape), strides(contiguous_strides(whole.shape, itemsize(whole.dtype))) {
    offset = start * strides[axis];
    shape[axis] = stop - start;
  }
  Array of(const Array& a) const {
    ArrayView view = a.view();
    view.data += offset;
    view.shape = shape;
    view.strides = strides;
    return Array(a.storage(), view);
  }
  std::int64_t offset;
  Shape shape, strides;
};

class GetItem final : public FunctionNode {
 public:
  explicit GetItem(const Slab& slab) : FunctionNode("get_item"), slab_(slab) {}
  Arrays forward(const Arrays& x) override { return {slab_.of(x[0].ascontiguous())}; }
  Variables backward(const Indexes&, const Variables& gy) override;

 private:
  Slab slab_;
};

/// The gradient of GetItem: gy in its place, zeros around it.
class GetItemGrad final : public FunctionNode {
 public:
  GetItemGrad(const Slab& slab, const Shape& shape)
      : FunctionNode("get_item_grad"), slab_(slab), shape_(shape) {}
  Arrays forward(const Arrays& gy) override {
    Array gx = xp::zeros(shape_, gy[0].dtype(), gy[0].device());
    slab_.of(gx).assign(gy[0]);
    return {gx};
  }
  Variables backward(const Indexes&, const Variables& ggx) override {
    return rensa::apply<GetItem>(ggx, slab_);
  }

 private:
  Slab slab_;
  Shape shape_;
};

Variables GetItem::backward(const Indexes&, const Variables& gy) {
  return rensa::apply<GetItemGrad>(gy, slab_, inputs()[0]->shape);
}

class Concat final : public FunctionNode {
 public:
  explicit Concat(int axis) : FunctionNode("concat"), axis_(axis) {}
  Arrays forward(const Arrays& xs) override { return {xp::concatenate(xs, axis_)}; }
  Variables backward(const Indexes& targets, const Variables& gy) override {
    const VariableNode& whole = *gy[0].node();
    int axis = normalize_axis("concat", axis_, whole.shape.ndim());
    Variables gx;
    std::int64_t start = 0;
    auto target = targets.begin();
    for (int i = 0; target != targets.end(); ++i) {
      const VariableNode& x = *inputs()[static_cast<std::size_t>(i)];
      std::int64_t stop = start + x.shape[axis];
      if (*target == i) {
        ++target;
        Slab part(whole, axis, start, stop);
        gx.push_back(cast(rensa::apply<GetItem>(gy, part)[0], x.dtype));
      }
      start = stop;
    }
    return gx;
  }

 private:
  int axis_;
};

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

Variable get_item(const Variable& x, std::initializer_list<BasicIndex> index) {
  return apply<GetItem>({x}, Slab(x.array(), index))[0];
}

Variable concat(const Variables& xs, int axis) {
  if (xs.empty()) throw ValueError("concat: no variables");
  return apply<Concat>(xs, axis)[0];
}

Variable cast(const Variable& x, Dtype dtype) {
  return x.dtype() == dtype ? x : apply<Cast>({x}, dtype)[0];
}

Variable copy(const Variable& x, Device device) { return apply<Copy>({x}, device)[0]; }

Variable where(const Array& condition, const Variable& x, const Variable& y) {
  return apply<Where>({x, y}, condition)[0];
}

}  // namespace rensa::functions

namespace rensa {

Variable Variable::reshape(const Shape& shape) const { return F::reshape(*this, shape); }
Variable Variable::transpose() const { return F::transpose(*this); }
Variable Variable::astype(Dtype dtype) const { return F::cast(*this, dtype); }
Variable Variable::ravel() const { return reshape({-1}); }
Variable Variable::squeeze() const { return reshape(array().squeeze().shape()); }
Variable Variable::squeeze(int axis) const { return reshape(array().squeeze(axis).shape()); }
Variable Variable::expand_dims(int axis) const {
  return reshape(array().expand_dims(axis).shape());
}
Variable Variable::swapaxes(int a, int b) const {
  Shape axes;
  for (int i = 0; i < ndim(); ++i) axes.push_back(i);
  std::swap(axes[normalize_axis("swapaxes", a, ndim())],
            axes[normalize_axis("swapaxes", b, ndim())]);
  return F::transpose(*this, axes);
}
Variable Variable::broadcast_to(const Shape& shape) const { return F::broadcast_to(*this, shape); }
Variable Variable::to(Device device) const {
  return this->device() == device ? *this : F::copy(*this, device);
}
Variable Variable::operator[](BasicIndex index) const { return F::get_item(*this, {index}); }
Variable Variable::operator[](std::initializer_list<BasicIndex> index) const {
  return F::get_item(*this, index);
}

}  // namespace rensa

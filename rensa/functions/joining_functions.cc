// Functions that join variables and take them apart: forward and backward.
#include "rensa/functions/joining_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "rensa/array/internal.h"
#include "rensa/autograd/autocast.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/array_functions.h"

namespace rensa::functions {

namespace {

void check_any(const char* function, const Variables& xs) {
  if (xs.empty()) throw ValueError(fmt::format("{}: no variables", function));
}

/// [start, stop) along one axis.
Variable part(const Variable& x, int axis, std::int64_t start, std::int64_t stop) {
  std::vector<BasicIndex> index(static_cast<std::size_t>(axis), BasicIndex(Slice()));
  index.emplace_back(Slice(start, stop));
  return get_item(x, index);
}

class Concat final : public FunctionNode {
 public:
  explicit Concat(int axis) : FunctionNode("concat"), axis_(axis) {}
  Arrays forward(const Arrays& xs) override { return {xp::concatenate(xs, axis_)}; }
  Variables backward(const Indexes& targets, const Variables& gy) override {
    int axis = normalize_axis("concat", axis_, gy[0].ndim());
    Variables gx;
    std::int64_t start = 0;
    auto target = targets.begin();
    for (int i = 0; target != targets.end(); ++i) {
      const VariableNode& x = *inputs()[static_cast<std::size_t>(i)];
      std::int64_t stop = start + x.shape[axis];
      if (*target == i) {
        ++target;
        gx.push_back(cast(part(gy[0], axis, start, stop), x.dtype));
      }
      start = stop;
    }
    return gx;
  }
  std::optional<FunctionAttributes> attributes() const override {
    return FunctionAttributes{.integers = {{"axis", axis_}}};
  }

 private:
  int axis_;
};

/// `given`, or zeros where no gradient has come.
Variable or_zeros(const Variable& given, const Shape& shape, const VariableNode& like) {
  if (given.defined()) return given;
  return constant(xp::zeros(shape, like.dtype, like.device));
}

class SplitAxis final : public FunctionNode {
 public:
  SplitAxis(const IntegerList& cuts, int axis)
      : FunctionNode("split_axis"), cuts_(cuts), axis_(axis) {}
  Arrays forward(const Arrays& x) override {
    Arrays parts = xp::split(x[0], cuts_, axis_);
    for (const Array& y : parts) shapes_.push_back(y.shape());
    return parts;
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    Variables parts;
    Arrays arrays;
    for (std::size_t k = 0; k < gy.size(); ++k) {
      parts.push_back(or_zeros(gy[k], shapes_[k], *inputs()[0]));
      arrays.push_back(parts[k].array());
    }
    // What has made them may have put them side by side, as attention does.
    std::optional<Array> whole;
    if (!config().enable_backprop) whole = rensa::detail::joined_in_place(arrays, axis_);
    return {whole ? constant(*whole) : concat(parts, axis_)};
  }
  std::optional<FunctionAttributes> attributes() const override {
    return FunctionAttributes{.integers = {{"axis", axis_}}};
  }

 private:
  IntegerList cuts_;
  int axis_;
  std::vector<Shape> shapes_;
};

/// The sequences in one dtype. Throws ShapeError unless all have an axis and are alike behind it.
Variables checked_sequences(const char* function, const Variables& given) {
  check_any(function, given);
  Variables xs = autograd::autocast(function, given);
  for (const Variable& x : xs) {
    Shape first = xs[0].shape(), shape = x.shape();
    bool fits = shape.ndim() > 0 && shape.ndim() == first.ndim();
    if (fits) first[0] = shape[0];
    if (fits && shape == first && x.dtype() == xs[0].dtype()) continue;
    throw ShapeError(fmt::format("{}: sequences {} and {}: they differ in length alone", function,
                                 xs[0].array().view().describe(), x.array().view().describe()));
  }
  return xs;
}

class PadSequence final : public FunctionNode {
 public:
  PadSequence(std::int64_t length, Scalar padding)
      : FunctionNode("pad_sequence"), length_(length), padding_(padding) {}
  Arrays forward(const Arrays& xs) override {
    Shape shape = xs[0].shape();
    shape[0] = length_;
    shape.insert(0, static_cast<std::int64_t>(xs.size()));
    Array y = xp::full(shape, padding_, xs[0].dtype(), xs[0].device());
    for (std::size_t k = 0; k < xs.size(); ++k) {
      y[{k, Slice(0, xs[k].shape(0))}].assign(xs[k]);
    }
    return {y};
  }
  Variables backward(const Indexes& targets, const Variables& gy) override {
    Variables gx;
    for (int i : targets) {
      std::int64_t length = inputs()[static_cast<std::size_t>(i)]->shape[0];
      gx.push_back(get_item(gy[0], {i, Slice(0, length)}));
    }
    return gx;
  }

 private:
  std::int64_t length_;
  Scalar padding_;
};

/// How many of falling `lengths` reach each place.
std::vector<std::int64_t> lengths_across(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> across(lengths.empty() ? 0 : static_cast<std::size_t>(lengths[0]));
  for (std::int64_t length : lengths) {
    for (std::int64_t t = 0; t < length; ++t) ++across[static_cast<std::size_t>(t)];
  }
  return across;
}

/// `outputs` sequences: those of no length at the end too, which no input tells of.
class TransposeSequence final : public FunctionNode {
 public:
  explicit TransposeSequence(std::size_t outputs)
      : FunctionNode("transpose_sequence"), outputs_(outputs) {}
  // All are written into one array, whose parts are the outputs.
  Arrays forward(const Arrays& xs) override {
    std::vector<std::int64_t> lengths;
    for (const Array& x : xs) lengths.push_back(x.shape(0));
    std::vector<std::int64_t> across = lengths_across(lengths);
    across.resize(outputs_);
    unit_ = xs[0].shape();
    Shape shape = unit_;
    shape[0] = static_cast<std::int64_t>(outputs_);
    shape.insert(1, static_cast<std::int64_t>(xs.size()));
    Array all = xp::empty(shape, xs[0].dtype(), xs[0].device());
    for (std::size_t k = 0; k < xs.size(); ++k) {
      if (lengths[k] > 0) all[{Slice(0, lengths[k]), k}].assign(xs[k]);
    }
    Arrays ys;
    for (std::size_t t = 0; t < outputs_; ++t) ys.push_back(all[{t, Slice(0, across[t])}]);
    across_ = across;
    return ys;
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    Variables given;
    for (std::size_t t = 0; t < gy.size(); ++t) {
      unit_[0] = across_[t];
      given.push_back(or_zeros(gy[t], unit_, *inputs()[0]));
    }
    return rensa::apply<TransposeSequence>(given, inputs().size());
  }

 private:
  std::size_t outputs_;
  Shape unit_;
  std::vector<std::int64_t> across_;
};

}  // namespace

Variable concat(const Variables& xs, int axis) {
  check_any("concat", xs);
  return apply<Concat>(xs, axis)[0];
}

Variable stack(const Variables& xs, int axis) {
  check_any("stack", xs);
  int place = normalize_axis("stack", axis, xs[0].ndim() + 1);
  Variables rows;
  for (const Variable& x : xs) {
    if (x.shape() != xs[0].shape()) {
      throw ShapeError(fmt::format("stack: {} and {} have to be of one shape",
                                   xs[0].array().view().describe(), x.array().view().describe()));
    }
    rows.push_back(expand_dims(x, place));
  }
  return concat(rows, place);
}

Variable hstack(const Variables& xs) {
  check_any("hstack", xs);
  Variables parts;
  for (const Variable& x : xs) parts.push_back(x.ndim() == 0 ? reshape(x, {1}) : x);
  return concat(parts, parts[0].ndim() == 1 ? 0 : 1);
}

Variable vstack(const Variables& xs) {
  check_any("vstack", xs);
  Variables parts;
  for (const Variable& x : xs) parts.push_back(x.ndim() < 2 ? reshape(x, {1, x.size()}) : x);
  return concat(parts, 0);
}

Variable dstack(const Variables& xs) {
  check_any("dstack", xs);
  Variables parts;
  for (const Variable& x : xs) {
    if (x.ndim() < 2) parts.push_back(reshape(x, {1, x.size(), 1}));
    else parts.push_back(x.ndim() == 2 ? expand_dims(x, 2) : x);
  }
  return concat(parts, 2);
}

Variables broadcast(const Variables& xs) {
  std::vector<Shape> shapes;
  for (const Variable& x : xs) shapes.push_back(x.shape());
  Shape shape = xp::broadcast_shapes(shapes);
  Variables ys;
  for (const Variable& x : xs) ys.push_back(broadcast_to(x, shape));
  return ys;
}

Variables split_axis(const Variable& x, const IntegerList& indices_or_sections, int axis) {
  return apply<SplitAxis>({x}, indices_or_sections, normalize_axis("split_axis", axis, x.ndim()));
}

Variables separate(const Variable& x, int axis) {
  int place = normalize_axis("separate", axis, x.ndim());
  if (x.shape(place) == 0) return {};
  Shape shape = x.shape();
  shape.erase(place);
  Variables ys;
  for (const Variable& y : split_axis(x, x.shape(place), place)) ys.push_back(reshape(y, shape));
  return ys;
}

Variable pad_sequence(const Variables& given, std::optional<std::int64_t> length, Scalar padding) {
  Variables xs = checked_sequences("pad_sequence", given);
  std::int64_t longest = 0;
  for (const Variable& x : xs) longest = std::max(longest, x.shape(0));
  if (length && *length < longest) {
    throw ShapeError(
        fmt::format("pad_sequence: a sequence of {} for a length of {}", longest, *length));
  }
  return apply<PadSequence>(xs, length.value_or(longest), padding)[0];
}

Variables transpose_sequence(const Variables& given) {
  if (given.empty()) return {};
  Variables xs = checked_sequences("transpose_sequence", given);
  for (std::size_t k = 1; k < xs.size(); ++k) {
    if (xs[k].shape(0) <= xs[k - 1].shape(0)) continue;
    throw ShapeError(
        fmt::format("transpose_sequence: a sequence of {} behind one of {}: lengths "
                    "must not rise",
                    xs[k].shape(0), xs[k - 1].shape(0)));
  }
  if (xs[0].shape(0) == 0) return {};
  return apply<TransposeSequence>(xs, static_cast<std::size_t>(xs[0].shape(0)));
}

}  // namespace rensa::functions

// Operations of a trace as expressions of functors.h, rounded between them as arrays would be.
#include "rensa/kernel/fused_source.h"

#include <fmt/format.h>

#include <tuple>
#include "rensa/core/reductions.h"
#include "rensa/core/ufunc_info.h"
#include "rensa/portable/compute_types.h"

namespace rensa::detail {

FirstReaders::FirstReaders(const std::vector<TracedValue>& values) {
  for (std::size_t v = 0; v < values.size(); ++v) {
    for (int k = 0; k < values[v].num_inputs; ++k) {
      const TracedInput& in = values[v].in[k];
      if (in.kind != TracedInput::Kind::array) continue;
      first_.try_emplace(identity(in.array), static_cast<int>(v), k);
    }
  }
}

AxisMap walk_axes(const Shape& shape) {
  AxisMap axes;
  axes.fill(-1);
  for (int i = 0; i < shape.ndim(); ++i) {
    if (shape[i] > 1) axes[static_cast<std::size_t>(i)] = i;
  }
  return axes;
}

AxisMap join_axes(const AxisMap& outer, const AxisMap& inner) {
  AxisMap axes;
  axes.fill(-1);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (outer[i] >= 0) axes[i] = inner[static_cast<std::size_t>(outer[i])];
  }
  return axes;
}

bool find_axes(const TracedInput& in, const TracedValue& value, AxisMap* axes) {
  const ArrayView& view = in.array.view;
  if (view.data != nullptr) return false;  // does not begin where the value does
  Shape strides = contiguous_strides(value.shape, itemsize(value.dtype));
  axes->fill(-1);
  for (int axis = 0; axis < view.ndim(); ++axis) {
    if (view.shape[axis] == 1 || view.strides[axis] == 0) continue;
    int found = -1;
    for (int own = 0; own < value.shape.ndim(); ++own) {
      if (value.shape[own] == view.shape[axis] && value.shape[own] > 1 &&
          strides[own] == view.strides[axis]) {
        found = own;
      }
    }
    if (found < 0) return false;
    (*axes)[static_cast<std::size_t>(axis)] = found;
  }
  for (int own = 0; own < value.shape.ndim(); ++own) {  // or only a part of it is shown
    int shown = 0;
    for (int axis : *axes) shown += axis == own;
    if (shown != (value.shape[own] > 1 ? 1 : 0)) return false;
  }
  return true;
}

std::string input_name(std::size_t k) { return fmt::format("x{}", k); }

std::string FusedSource::spell(const std::string& expression, bool block) {
  std::string text;
  for (char c : expression) {
    if (c != '@') text += c;
    else if (block) text += "[e]";
  }
  return text;
}

void FusedSource::assign(const std::string& name, const std::string& expression) {
  statements_ += fmt::format("    {} = {};\n", name, spell(expression, false));
  blocks_ +=
      fmt::format("\n#pragma GCC unroll 1\n    for (int e = 0; e < rensa_w; ++e) {}[e] = {};\n",
                  name, spell(expression, true));
}

std::string FusedSource::name_new(std::string_view type) {
  // The kernel may have two of these, one after the other.
  std::string name = fmt::format("{}{}", kind_ == ArgumentKind::kept ? 'w' : 'v', count_++);
  statements_ += fmt::format("    {} {};\n", type, name);
  blocks_ += fmt::format("    {} {}[rensa_w];\n", type, name);
  return name;
}

std::string FusedSource::define(std::string_view type, const std::string& expression) {
  std::string name = name_new(type);
  assign(name, expression);
  return name + "@";
}

std::string FusedSource::apply(std::string_view type, const std::string& function,
                               const std::string& arguments) {
  std::string name = name_new(type), plain = spell(arguments, false);
  statements_ += fmt::format("    {} = {}({});\n", name, function, plain);
  blocks_ += fmt::format("    rensa::fused::each({}, {}, {});\n", function, name, plain);
  return name + "@";
}

std::string FusedSource::array(FusedInput input) {
  input.kind = kind_;
  input.shape = shape_;
  auto identity = [](const FusedInput& i) {
    return std::tie(i.kind, i.value, i.from, i.input, i.dtype, i.offset);
  };
  for (std::size_t k = 0; k < inputs_.size(); ++k) {
    if (identity(inputs_[k]) == identity(input) && inputs_[k].strides == input.strides) {
      return input_name(k) + "@";
    }
  }
  inputs_.push_back(std::move(input));
  return input_name(inputs_.size() - 1) + "@";
}

std::string FusedSource::stored(int from, int input, const AxisMap& axes) {
  const TracedInput& in = values_[static_cast<std::size_t>(from)].in[input];
  const ArrayView& view = in.array.view;
  AxisMap inner;
  if (in.kind == TracedInput::Kind::value &&
      find_axes(in, values_[static_cast<std::size_t>(in.value)], &inner)) {
    return value(in.value, join_axes(axes, inner));
  }
  FusedInput leaf;
  leaf.dtype = view.dtype;
  leaf.strides = walked(view.strides, axes);
  if (in.kind == TracedInput::Kind::value) {
    leaf.value = in.value;
    leaf.offset = reinterpret_cast<std::intptr_t>(view.data);
  } else {
    std::tie(leaf.from, leaf.input) = readers_.of(in.array);
    if (leaf.dtype == bool_) {  // any byte but 0 is true
      leaf.dtype = uint8;
      return apply("bool", "rensa::fused::is_set{}", array(std::move(leaf)));
    }
  }
  return array(std::move(leaf));
}

Shape FusedSource::walked(const Shape& strides, const AxisMap& axes) const {
  Shape result;
  for (int t = 0; t < shape_.ndim(); ++t) {
    int own = axes[static_cast<std::size_t>(t)];
    result.push_back(own < 0 ? 0 : strides[own]);
  }
  return result;
}

std::string FusedSource::read(int from, int input, const AxisMap& axes, bool truth) {
  const TracedValue& reader = values_[static_cast<std::size_t>(from)];
  const TracedInput& in = reader.in[input];
  Dtype native = value_dtype(compute_type(reader.compute));
  if (in.kind == TracedInput::Kind::number) {
    FusedInput number;
    number.kind = ArgumentKind::number;
    number.dtype = native;
    number.from = from;
    number.input = input;
    inputs_.push_back(std::move(number));
    return input_name(inputs_.size() - 1);
  }
  std::string name = stored(from, input, axes);
  Dtype dtype = in.array.view.dtype;
  bool as_truth = truth && dtype != bool_;
  if (dtype == native && !as_truth) return name;
  return apply(
      dtype_name(native),
      fmt::format("rensa::fused::{}<{}>{{}}", as_truth ? "truth_as" : "to", dtype_name(native)),
      name);
}

std::string FusedSource::value(int v, const AxisMap& axes) {
  auto known = known_.find({v, axes});
  if (known != known_.end()) return known->second;
  const TracedValue& value = values_[static_cast<std::size_t>(v)];
  if (!in_memory_[static_cast<std::size_t>(v)]) return compute(v, axes);
  FusedInput leaf;
  leaf.value = v;
  leaf.dtype = value.dtype;
  leaf.strides = walked(contiguous_strides(value.shape, itemsize(value.dtype)), axes);
  return known_[{v, axes}] = array(std::move(leaf));
}

std::string FusedSource::compute(int v, const AxisMap& axes) {
  auto known = known_.find({v, axes});
  if (known != known_.end()) return known->second;
  const TracedValue& value = values_[static_cast<std::size_t>(v)];
  const TracedInput& first = value.in[0];
  bool moves = !value.row && value.ufunc == ufunc::copy &&
               first.kind != TracedInput::Kind::number && first.array.view.dtype == value.dtype;
  Dtype native = value_dtype(compute_type(value.compute));
  std::string arguments, name;
  if (moves) return known_[{v, axes}] = stored(v, 0, axes);  // as bytes
  for (int k = 0; k < value.num_inputs; ++k) {
    bool truth = value.compute == bool_ || (!value.row && value.ufunc == ufunc::where && k == 0);
    if (k > 0) arguments += ", ";
    arguments += read(v, k, axes, truth);
  }
  std::string function = value.row ? fmt::format("rensa::pw::output<rensa::pw::{}, {}>{{}}",
                                                 value.name(), value.output)
                                   : fmt::format("rensa::op::{}{{}}", value.name());
  name = apply(dtype_name(native), function, arguments);
  if (native != value.dtype) {
    name = apply(dtype_name(value.dtype),
                 fmt::format("rensa::fused::to<{}>{{}}", dtype_name(value.dtype)), name);
  }
  known_[{v, axes}] = name;
  return name;
}

std::string FusedSource::reduced_input(int reduction) {
  const TracedValue& value = values_[static_cast<std::size_t>(reduction)];
  return read(reduction, 0, walk_axes(shape_), value.compute == bool_);
}

void FusedSource::start_from(int v) {
  const TracedValue& value = values_[static_cast<std::size_t>(v)];
  Dtype native = value_dtype(compute_type(value.compute));
  const char* name = value.name();
  std::string result =
      define(dtype_name(native), fmt::format("rensa::red::{}::post(a@, rensa_a.count)", name));
  if (native != value.dtype) {
    result = apply(dtype_name(value.dtype),
                   fmt::format("rensa::fused::to<{}>{{}}", dtype_name(value.dtype)), result);
  }
  known_[{v, walk_axes(shape_)}] = result;
}

}  // namespace rensa::detail

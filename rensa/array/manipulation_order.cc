// Orders of elements: reading arrays in them, and arrays that lie in them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "rensa/array/internal.h"
#include "rensa/core/axes.h"
#include "rensa/core/error.h"
#include "rensa/device/storage.h"

namespace rensa {

using detail::check_defined;
using detail::new_array;

namespace {

bool is_f_contiguous(const Array& a) { return a.transpose().is_contiguous(); }

Shape reversed(const Shape& shape) {
  Shape result;
  for (int i = shape.ndim(); i-- > 0;) result.push_back(shape[i]);
  return result;
}

Shape all_axes(int ndim) {
  Shape axes;
  for (int i = 0; i < ndim; ++i) axes.push_back(i);
  return axes;
}

// The axes of `a` from the one with the longest steps in memory to the one with the shortest. One
// of extent 1 stays in front of the axis behind it: its step says nothing.
Shape axes_by_stride(const Array& a) {
  Shape axes = all_axes(a.ndim()), steps = a.strides();
  for (int i = a.ndim(); i-- > 0;) {
    steps[i] = a.shape()[i] != 1 ? std::abs(steps[i]) : i + 1 < a.ndim() ? steps[i + 1] : 0;
  }
  auto step = [&](std::int64_t axis) { return steps[static_cast<int>(axis)]; };
  std::stable_sort(axes.begin(), axes.end(),
                   [&](std::int64_t x, std::int64_t y) { return step(x) > step(y); });
  return axes;
}

// What the models say of axis x before axis y: 1 where one of them has it so, -1 where those that
// tell have it the other way, 0 where none tells.
int order_of_axes(std::span<const ArrayView> models, int x, int y) {
  int order = 0;
  for (const ArrayView& a : models) {
    std::int64_t first = std::abs(a.strides[x]), second = std::abs(a.strides[y]);
    if (first == 0 || second == 0 || a.shape[x] == 1 || a.shape[y] == 1) continue;
    if (first >= second) return 1;
    order = -1;
  }
  return order;
}

Shape inverse(const Shape& axes) {
  Shape result = axes;
  for (int i = 0; i < axes.ndim(); ++i) result[static_cast<int>(axes[i])] = i;
  return result;
}

bool lies_in(const Array& a, Order order) {
  switch (order.letter()) {
    case 'C': return a.is_contiguous();
    case 'F': return is_f_contiguous(a);
    case 'A': return a.is_contiguous() || is_f_contiguous(a);
    default: return true;
  }
}

}  // namespace

void Order::refuse() { throw ValueError("order: it has to be \"C\", \"F\", \"A\" or \"K\""); }

char Order::of(const Array& a) const {
  if (letter_ == 'C' || letter_ == 'F') return letter_;
  return is_f_contiguous(a) && !a.is_contiguous() ? 'F' : 'C';
}

IndexModeOption::IndexModeOption(const char* name)
    : IndexModeOption(std::string_view(name ? name : "")) {}

IndexModeOption::IndexModeOption(std::string_view name) {
  if (name == "raise") mode_ = IndexMode::raise;
  else if (name == "wrap") mode_ = IndexMode::wrap;
  else if (name == "clip") mode_ = IndexMode::clip;
  else {
    throw ValueError(
        fmt::format("mode: \"{}\"; it has to be \"raise\", \"wrap\" or \"clip\"", name));
  }
}

namespace detail {

MemoryOrder::MemoryOrder(const char* operation, Order order, int ndim) {
  if (order.letter() != 'C' && order.letter() != 'F') {
    throw ValueError(
        fmt::format("{}: there is no array to take the order '{}' from; say 'C' or 'F'", operation,
                    order.letter()));
  }
  if (order.letter() == 'C') return;
  for (int i = ndim; i-- > 0;) axes_.push_back(i);
}

MemoryOrder::MemoryOrder(const Array& model, Order order) {
  if (order.letter() != 'F' && model.is_contiguous()) return;
  if (order.letter() != 'K') *this = MemoryOrder("order", order.of(model), model.ndim());
  else if (axes_ = axes_by_stride(model); axes_ == all_axes(model.ndim())) axes_ = {};
}

// NumPy's insertion sort, from the fastest axis on: an axis passes those that do not tell where one
// behind them does.
MemoryOrder::MemoryOrder(std::span<const ArrayView> models) {
  int ndim = models[0].ndim();
  axes_ = all_axes(ndim);
  for (int i = ndim - 1; i-- > 0;) {
    int place = i;
    for (int k = i + 1; k < ndim; ++k) {
      int order = order_of_axes(models, static_cast<int>(axes_[i]), static_cast<int>(axes_[k]));
      if (order > 0) break;
      if (order < 0) place = k;
    }
    std::rotate(axes_.begin() + i, axes_.begin() + i + 1, axes_.begin() + place + 1);
  }
  if (axes_ == all_axes(ndim)) axes_ = {};
}

Shape MemoryOrder::permuted(const Shape& shape) const {
  if (axes_.ndim() == 0) return shape;
  Shape result;
  for (std::int64_t axis : axes_) result.push_back(shape[static_cast<int>(axis)]);
  return result;
}

Array MemoryOrder::permuted(const Array& a) const {
  return axes_.ndim() == 0 ? a : a.transpose(axes_);
}

Array MemoryOrder::restored(const Array& plain) const {
  return axes_.ndim() == 0 ? plain : plain.transpose(inverse(axes_));
}

void order_axes_by_output(std::span<ArrayView* const> views) {
  const ArrayView& out = *views[0];
  if (out.is_c_contiguous()) return;
  const Shape axes = MemoryOrder(std::span(&out, 1)).axes();
  if (axes.ndim() == 0) return;
  for (ArrayView* view : views) permute_axes(view, axes);
}

bool lies_as(const Array& a, const Array& model) {
  return MemoryOrder(model, 'K').permuted(a).is_contiguous();
}

Array dense_as(const Array& a, const Array& model) {
  MemoryOrder order(model, 'K');
  return order.restored(order.permuted(a).ascontiguous());
}

Array new_array_beside(std::span<const Array* const> operands, const Shape& shape, Dtype dtype,
                       Device device) {
  std::vector<ArrayView> models;
  for (const Array* a : operands) {
    bool whole = a->shape() == shape;
    if (whole && a->is_contiguous()) return new_array(shape, dtype, device);
    models.push_back(whole ? a->view() : broadcast_view(a->view(), shape));
  }
  MemoryOrder order(models);
  return order.restored(new_array(order.permuted(shape), dtype, device));
}

}  // namespace detail

namespace xp {

namespace {

Array converted(const char* operation, const Array& a, Order order, Dtype dtype) {
  rensa::detail::MemoryOrder memory(a, order);
  Array source = memory.permuted(a), out = new_array(source.shape(), dtype, a.device());
  rensa::detail::copy_elements(operation, source, out);
  return memory.restored(out);
}

}  // namespace

Array copy(const Array& a, Order order) {
  check_defined("copy", a);
  return converted("copy", a, order, a.dtype());
}

Array astype(const Array& a, Dtype dtype, const AstypeOptions& options) {
  check_defined("astype", a);
  rensa::detail::check_casting("astype", a.dtype(), dtype, options.casting);
  Device target = options.device.value_or(a.device());
  bool fits =
      dtype == a.dtype() && target == a.device() && (!options.order || lies_in(a, *options.order));
  if (!options.copy && fits) return a;
  return converted("astype", target == a.device() ? a : a.to(target), options.order.value_or('C'),
                   dtype);
}

Array ravel(const Array& a, Order order) {
  check_defined("ravel", a);
  return ravel(rensa::detail::MemoryOrder(a, order).permuted(a));
}

Array reshape(const Array& a, const Shape& shape, const ReshapeOptions& options) {
  check_defined("reshape", a);
  if (options.order.letter() == 'K') {
    throw ValueError("reshape: takes the order \"C\", \"F\" or \"A\", not \"K\"");
  }
  bool copies = options.copy.value_or(false);
  Array in = copies ? copy(a, options.order) : a;
  Array result = options.order.of(a) == 'F' ? in.transpose().reshape(reversed(shape)).transpose()
                                            : in.reshape(shape);
  if (!copies && options.copy && result.storage() != a.storage()) {
    throw ValueError(
        fmt::format("reshape: {} is seen as shape {} only by a copy, and copy is false",
                    a.view().describe(), shape.str()));
  }
  return result;
}

Array asfortranarray(const Array& a, std::optional<Dtype> dtype) {
  check_defined("asfortranarray", a);
  Array in = a.ndim() == 0 ? a.reshape({1}) : a;
  Dtype wanted = dtype.value_or(a.dtype());
  if (is_f_contiguous(in) && wanted == a.dtype()) return in;
  return in.astype(wanted, {.order = 'F'});
}

Array require(const Array& a, std::optional<Dtype> dtype,
              std::span<const std::string_view> requirements) {
  check_defined("require", a);
  char order = 'K';
  bool own = false, writable = false;
  for (std::string_view word : requirements) {
    if (word == "C" || word == "C_CONTIGUOUS" || word == "CONTIGUOUS")
      order = order == 'F' ? '?' : 'C';
    else if (word == "F" || word == "F_CONTIGUOUS" || word == "FORTRAN")
      order = order == 'C' ? '?' : 'F';
    else if (word == "O" || word == "OWNDATA") own = true;
    else if (word == "W" || word == "WRITEABLE") writable = true;
    else if (word != "A" && word != "ALIGNED" && word != "E" && word != "ENSUREARRAY") {
      throw ValueError(fmt::format(
          "require: \"{}\" is no requirement; they are \"C\", \"F\", \"A\", \"W\" and \"O\"",
          word));
    }
  }
  if (order == '?') throw ValueError("require: \"C\" and \"F\" exclude each other");
  Array result = a.astype(dtype.value_or(a.dtype()), false);
  if ((order == 'C' && !result.is_contiguous()) || (order == 'F' && !is_f_contiguous(result))) {
    result = result.copy(order);
  }
  bool broadcast = false;
  for (int i = 0; i < result.ndim(); ++i) {
    broadcast |= result.strides()[i] == 0 && result.shape()[i] > 1;
  }
  const StoragePtr& storage = result.storage();
  bool shared = storage->is_foreign() ||
                (result.storage() == a.storage() && result.nbytes() != storage->nbytes());
  bool fixed = broadcast || storage->is_read_only();
  return (own && shared) || (writable && fixed) ? result.copy(order) : result;
}

Array require(const Array& a, std::optional<Dtype> dtype,
              std::initializer_list<std::string_view> requirements) {
  return require(a, dtype,
                 std::span<const std::string_view>(requirements.begin(), requirements.size()));
}

}  // namespace xp

}  // namespace rensa

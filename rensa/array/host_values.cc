// Arrays of host values.
#include "rensa/array/host_values.h"

#include <fmt/format.h>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/device/tracer.h"

namespace rensa {

namespace detail {

void throw_ragged(const Shape& shape, int axis, std::int64_t got) {
  throw ValueError(fmt::format(
      "array: the lists are ragged: one at depth {} has {} items where the first one has {}", axis,
      got, shape[axis]));
}

Array new_host_array(const Shape& shape, Dtype dtype) {
  Untraced real;
  return new_array(shape, dtype, cpu());
}

namespace {

using List = std::initializer_list<NestedNumber>;

// The extents by the first of each level, as far as all are lists.
Shape extents_of(const List& list) {
  Shape shape;
  for (const List* level = &list;; level = &level->begin()->list()) {
    shape.push_back(static_cast<std::int64_t>(level->size()));
    if (level->size() == 0 || !level->begin()->is_list()) return shape;
  }
}

// Checks that the list has the extents everywhere, and finds what its numbers meet in.
void inspect(const List& list, const Shape& shape, int axis, Dtype* dtype, bool* any) {
  auto n = static_cast<std::int64_t>(list.size());
  if (n != shape[axis]) throw_ragged(shape, axis, n);
  bool last = axis + 1 == shape.ndim();
  for (const NestedNumber& item : list) {
    if (item.is_list() == last) {
      throw ValueError(fmt::format(
          "array: the lists are ragged: at depth {} there are numbers beside lists", axis + 1));
    }
    if (!last) {
      inspect(item.list(), shape, axis + 1, dtype, any);
    } else {
      *dtype = *any ? promote_types(*dtype, item.dtype()) : item.dtype();
      *any = true;
    }
  }
}

template <class T> T* write_numbers(const List& list, T* out) {
  for (const NestedNumber& item : list) {
    if (item.is_list()) out = write_numbers(item.list(), out);
    else *out++ = item.scalar().as<T>();
  }
  return out;
}

// Throws ValueError for an integer that the dtype cannot hold.
void check_integers(const Array& host, Dtype dtype) {
  char from = dtype_kind(host.dtype()), to = dtype_kind(dtype);
  if ((from != 'i' && from != 'u') || (to != 'i' && to != 'u')) return;
  if (promote_types(host.dtype(), dtype) == dtype) return;
  visit_dtype(host.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::integral<T> && !std::same_as<T, bool>) {
      const T* values = host.view().as<T>();
      for (std::int64_t i = 0; i < host.size(); ++i) check_in_range("array", values[i], dtype);
    }
  });
}

}  // namespace

}  // namespace detail

HostValues::HostValues(std::initializer_list<detail::NestedNumber> list) {
  Shape shape = detail::extents_of(list);
  Dtype dtype = float64;
  bool any = false;
  detail::inspect(list, shape, 0, &dtype, &any);
  owned_ = detail::new_host_array(shape, dtype);
  visit_dtype(dtype, [&](auto zero) {
    detail::write_numbers(list, static_cast<decltype(zero)*>(owned_.data()));
  });
}

Array HostValues::copy_to(Device device) const {
  if (!owned_.defined()) return xp::from_host(data_, shape_, dtype_, device);
  // Nobody else has it: `this` is an argument of the call that asks.
  return device.is_cpu() ? owned_
                         : xp::from_host(owned_.data(), owned_.shape(), owned_.dtype(), device);
}

Array HostValues::copy_to(Dtype dtype, Device device) const {
  Untraced real;
  Array host = copy_to(cpu());
  if (host.dtype() == dtype) return host.to(device);
  detail::check_integers(host, dtype);
  return host.astype(dtype).to(device);
}

}  // namespace rensa

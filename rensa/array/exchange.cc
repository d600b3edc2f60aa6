// Arrays over foreign memory.
#include "rensa/array/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/device/devices.h"

namespace rensa {

namespace {

void check_layout(const ArrayView& view) {
  std::int64_t count = 1;
  for (std::int64_t extent : view.shape) {
    if (extent < 0) {
      throw ShapeError(fmt::format("wrap: shape {} has a negative extent", view.shape.str()));
    }
    if (extent > 0 && __builtin_mul_overflow(count, extent, &count)) {
      throw ShapeError(
          fmt::format("wrap: shape {} has more elements than int64 counts", view.shape.str()));
    }
  }
  if (view.strides.ndim() != view.ndim()) {
    throw ShapeError(fmt::format("wrap: shape {} and strides {} differ in length", view.shape.str(),
                                 view.strides.str()));
  }
}

// Complex numbers are aligned as their parts.
std::int64_t alignment_of(Dtype dtype) {
  return itemsize(dtype) / (dtype_kind(dtype) == 'c' ? 2 : 1);
}

}  // namespace

Array detail::wrap(void* data, const Shape& shape, const Shape& strides, Dtype dtype, Device device,
                   std::shared_ptr<void> owner, bool read_only) {
  if (device.is_cuda()) check_device(device);
  ArrayView view;
  view.data = static_cast<char*>(data);
  view.dtype = dtype;
  view.device = device;
  view.shape = shape;
  view.strides = strides;
  check_layout(view);
  std::int64_t begin = 0, end = 0;
  if (view.size() > 0) {
    if (!data) throw ValueError(fmt::format("wrap: a null address for {}", view.describe()));
    std::int64_t alignment = alignment_of(dtype);
    bool aligned =
        reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(alignment) == 0;
    for (int i = 0; i < view.ndim(); ++i) {
      aligned &= view.shape[i] == 1 || view.strides[i] % alignment == 0;
    }
    if (!aligned) {
      throw ValueError(fmt::format("wrap: the elements of {} do not lie at multiples of {} bytes",
                                   view.describe(), alignment));
    }
    view.byte_range(&begin, &end, "wrap");
  }
  // The handle on the owner is the storage's context.
  auto holder = std::make_unique<std::shared_ptr<void>>(std::move(owner));
  StoragePtr storage = wrap_storage(
      view.data + begin, end - begin, device,
      [](void* context) { delete static_cast<std::shared_ptr<void>*>(context); }, holder.get(),
      read_only);
  (void)holder.release();
  return Array(std::move(storage), view);
}

Array detail::wrap(void* data, const Shape& shape, Dtype dtype, Device device,
                   std::shared_ptr<void> owner, bool read_only) {
  std::int64_t bytes = itemsize(dtype);
  for (std::int64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(extent, 1), &bytes)) {
      throw ShapeError(fmt::format("wrap: shape {} has more bytes than int64 counts", shape.str()));
    }
  }
  return wrap(data, shape, contiguous_strides(shape, itemsize(dtype)), dtype, device,
              std::move(owner), read_only);
}

namespace xp {

Array wrap(void* data, const Shape& shape, const Shape& strides, Dtype dtype, Device device,
           std::shared_ptr<void> owner) {
  return rensa::detail::wrap(data, shape, strides, dtype, device, std::move(owner), false);
}

Array wrap(void* data, const Shape& shape, Dtype dtype, Device device,
           std::shared_ptr<void> owner) {
  return rensa::detail::wrap(data, shape, dtype, device, std::move(owner), false);
}

}  // namespace xp

}  // namespace rensa

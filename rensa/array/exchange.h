// Arrays over memory of somebody else's, without a copy.
#pragma once

#include <memory>
#include <span>

#include "rensa/array/routines.h"

namespace rensa::xp {

/// An array over memory that somebody else has allocated: `data` is the address, on `device`, of
/// the first element, the strides (in bytes, of any sign) are C order's when left out. The memory
/// has to live as long as any array on it: `owner` is let go with the last of them. Memory on a GPU
/// is let go only when all that the library has queued on it is done, which waits (counted); what
/// others have queued on it before has to be ordered before the current stream's work by the
/// caller. Throws ValueError for a null or misaligned address, ShapeError.
[[nodiscard]] Array wrap(void* data, const Shape& shape, const Shape& strides, Dtype dtype,
                         Device device, std::shared_ptr<void> owner = nullptr);
[[nodiscard]] Array wrap(void* data, const Shape& shape, Dtype dtype, Device device,
                         std::shared_ptr<void> owner = nullptr);

/// asarray: there are no subclasses of arrays that it could let through.
[[nodiscard]] inline Array asanyarray(const Array& a) { return asarray(a); }
[[nodiscard]] inline Array asanyarray(const Array& a, Dtype dtype) { return asarray(a, dtype); }

/// A one-dimensional array on the CPU over the span's elements, which stay where they are.
template <class T>
requires(!std::is_const_v<T>) Array
    from_span(std::span<T> values, std::shared_ptr<void> owner = nullptr) {
  return wrap(values.data(), {static_cast<std::int64_t>(values.size())}, dtype_of<T>, cpu(),
              std::move(owner));
}

}  // namespace rensa::xp

// Arrays between host and devices: to, copyto, set, get, item and the making from host values.
#include <fmt/format.h>

#include <cstring>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/devices.h"
#include "rensa/device/launcher.h"
#include "rensa/device/tracer.h"
#include "rensa/operations/transfer/transfer.h"

namespace rensa {

using detail::check_defined;
using detail::new_array;
using detail::new_pinned_array;

namespace {

// Host values up to this size go to a GPU by way of pinned memory, which does not wait. Larger ones
// are copied from where they are: that waits, but takes no second copy of them.
constexpr std::int64_t kMaxStaged = std::int64_t{64} << 20;

// out = in between two devices, both C-contiguous.
void transfer(const char* name, const Array& in, const Array& out) {
  if (in.size() == 0) return;
  operations::Transfer op(name);
  op.in = in.operand();
  op.out = out.operand();
  launch(op);
}

// A host array over memory of the caller's.
Array wrap_host(void* data, const Shape& shape, Dtype dtype) {
  ArrayView view;
  view.data = static_cast<char*>(data);
  view.dtype = dtype;
  view.shape = shape;
  view.strides = contiguous_strides(shape, itemsize(dtype));
  auto nothing = [](void*) {};
  return Array(wrap_storage(data, view.nbytes(), cpu(), nothing, nullptr), view);
}

// What can be transferred to a GPU: contiguous, and pinned unless it is too large for that.
Array staged(const Array& host) {
  bool ready = host.storage()->is_pinned() && host.is_contiguous();
  if (ready || host.size() == 0 || host.nbytes() > kMaxStaged) return host.ascontiguous();
  Array pinned = new_pinned_array(host.shape(), host.dtype());
  detail::copy_elements("copyto", host, pinned);
  return pinned;
}

void check_transferable(const char* name, const Array& from, const Array& to) {
  check_defined(name, from);
  check_defined(name, to);
  if (from.shape() != to.shape()) {
    throw ShapeError(fmt::format("{}: {} does not have the shape of {}", name,
                                 from.view().describe(), to.view().describe()));
  }
  if (from.dtype() != to.dtype()) {
    throw DtypeError(fmt::format("{}: {} does not have the dtype of {}; cast with astype", name,
                                 from.view().describe(), to.view().describe()));
  }
  if (!from.is_contiguous() || !to.is_contiguous()) {
    throw ShapeError(fmt::format("{}: {} and {} have to be C-contiguous; use ascontiguous()", name,
                                 from.view().describe(), to.view().describe()));
  }
}

void copy_between(const char* name, const Array& from, const Array& to) {
  check_transferable(name, from, to);
  if (from.device() == to.device()) detail::copy_elements(name, from, to);
  else transfer(name, from, to);
}

void copy_between(const char* name, const Array& from, const Array& to,
                  const cuda::Stream& stream) {
  check_transferable(name, from, to);
  if (stream.device() != from.device() && stream.device() != to.device()) {
    throw DeviceError(fmt::format("{}: the stream is on {}, the operands on {} and {}", name,
                                  stream.device().str(), from.view().describe(),
                                  to.view().describe()));
  }
  cuda::StreamScope scope(stream);
  copy_between(name, from, to);
}

}  // namespace

Array detail::to(const Array& a, Device device) {
  check_defined("to", a);
  if (a.device().is_cpu()) a.storage()->use_on(nullptr);  // the host may be about to read it
  return device == a.device() ? a : copy(a, device);
}

Array detail::copy(const Array& a, Device device) {
  check_defined("copy", a);
  if (device == a.device()) return a.copy();
  Array out = new_array(a.shape(), a.dtype(), device);
  transfer("copy", a.device().is_cpu() ? staged(a) : a.ascontiguous(), out);
  return out;
}

void Array::set(const Array& source) const { copy_between("set", source, *this); }

void Array::set(const Array& source, const cuda::Stream& stream) const {
  copy_between("set", source, *this, stream);
}

Array detail::get(const Array& a) {
  check_defined("get", a);
  read_on_host("get");
  return copy(a, cpu());
}

void detail::get(const Array& a, const Array& out, const cuda::Stream& stream) {
  copy_between("get", a, out, stream);
}

void detail::copy_to_host(const Array& a, Dtype dtype, void* out) {
  check_defined("to_vector", a);
  read_on_host("to_vector");
  if (a.size() == 0) return;
  Array host = wrap_host(out, a.shape(), dtype);
  if (a.device().is_cpu()) copy_elements("to_vector", a, host);
  else transfer("to_vector", a.astype(dtype, false).ascontiguous(), host);
}

Scalar detail::item(const Array& a) {
  check_defined("item", a);
  read_on_host("item");
  if (a.size() != 1) {
    throw ShapeError(
        fmt::format("item: {} has {} elements, not one", a.view().describe(), a.size()));
  }
  return visit_dtype(a.dtype(), [&](auto zero) {
    decltype(zero) value;
    if (a.device().is_cpu()) {
      a.storage()->use_on(nullptr);
      std::memcpy(&value, a.data(), sizeof(value));
      return Scalar(value);
    }
    transfer("item", a.reshape({}), wrap_host(&value, {}, a.dtype()));
    return Scalar(value);
  });
}

Array to_pinned_memory(const Array& a) {
  check_defined("to_pinned_memory", a);
  Array out = new_pinned_array(a.shape(), a.dtype());
  copy_between("to_pinned_memory", a.ascontiguous(), out);
  return out;
}

Array xp::from_host(const void* data, const Shape& shape, Dtype dtype, Placement placement) {
  Untraced real;
  Device device = placement.device();
  Array out = new_array(shape, dtype, device);
  if (out.size() == 0) return out;
  if (device.is_cpu()) {
    std::memcpy(out.data(), data, static_cast<std::size_t>(out.nbytes()));
    return out;
  }
  transfer("array", staged(wrap_host(const_cast<void*>(data), shape, dtype)), out);
  return out;
}

}  // namespace rensa

// Handles: CUDA's bytes, and what is needed to see an array in the memory.
#include "rensa/array/ipc.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>

#include "rensa/array/exchange.h"
#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/devices.h"
#include "rensa/device/stream.h"
#include "rensa/device/tracer.h"

namespace rensa::cuda {

namespace {

constexpr std::size_t kCudaBytes = 64;
constexpr std::int64_t kMagic = 0x31637069'61736e72;  // "rnsaipc1"

/// What stands behind CUDA's bytes.
struct Layout {
  std::int64_t magic = kMagic, offset = 0, dtype = 0, ndim = 0;
  std::int64_t shape[kMaxNdim] = {}, strides[kMaxNdim] = {};
};

}  // namespace

std::string ipc_handle(const Array& a) {
  rensa::detail::check_defined("ipc_handle", a);
  refuse_in_trace("ipc_handle");
  if (a.device().is_cpu()) {
    throw DeviceError(fmt::format("ipc_handle: {} is not on a GPU; move it with .to(gpu(i))",
                                  a.view().describe()));
  }
  if (a.size() == 0) throw ValueError("ipc_handle: an array without elements has no memory");
  a.storage()->use_on(current_stream_state(a.device()));
  Layout layout;
  std::string handle = runtime::memory_ipc_handle(a.device(), a.data(), &layout.offset);
  layout.dtype = static_cast<std::int64_t>(a.dtype());
  layout.ndim = a.ndim();
  for (int axis = 0; axis < a.ndim(); ++axis) {
    layout.shape[axis] = a.shape()[axis];
    layout.strides[axis] = a.strides()[axis];
  }
  handle.append(reinterpret_cast<const char*>(&layout), sizeof(layout));
  return handle;
}

Array open_ipc_handle(const std::string& handle, Device device) {
  Layout layout;
  bool whole = handle.size() == kCudaBytes + sizeof(layout);
  if (whole) std::memcpy(&layout, handle.data() + kCudaBytes, sizeof(layout));
  if (!whole || layout.magic != kMagic || layout.ndim < 0 || layout.ndim > kMaxNdim ||
      layout.dtype < 0 || layout.dtype >= kNumDtypes) {
    throw ValueError("open_ipc_handle: these bytes are not an array's ipc_handle");
  }
  check_device(device);
  if (device.is_cpu()) throw DeviceError("open_ipc_handle: cpu is no GPU; name one with gpu(i)");
  Shape shape, strides;
  for (int axis = 0; axis < layout.ndim; ++axis) {
    shape.push_back(layout.shape[axis]);
    strides.push_back(layout.strides[axis]);
  }
  void* memory = runtime::open_memory(device, handle.substr(0, kCudaBytes));
  std::shared_ptr<void> owner(memory, [device](void* m) { runtime::close_memory(device, m); });
  return xp::wrap(static_cast<char*>(memory) + layout.offset, shape, strides,
                  static_cast<Dtype>(layout.dtype), device, std::move(owner));
}

}  // namespace rensa::cuda

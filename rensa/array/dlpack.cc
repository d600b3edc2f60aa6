// DLPack both ways.
#include "rensa/array/dlpack.h"

#include <fmt/format.h>

#include <cstddef>
#include <memory>

#include "rensa/array/exchange.h"
#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/device/stream.h"
#include "rensa/device/tracer.h"

namespace rensa {

using namespace dlpack;

// The layout that the other libraries were compiled with, on machines of 64 bits.
static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, byte_offset) == 40);
static_assert(offsetof(DLTensor, device) == 8 && offsetof(DLTensor, dtype) == 20);
static_assert(sizeof(DLManagedTensor) == 64 && offsetof(DLManagedTensor, deleter) == 56);
static_assert(sizeof(DLManagedTensorVersioned) == 80 &&
              offsetof(DLManagedTensorVersioned, dl_tensor) == 32);

namespace {

DLDataType to_dl(Dtype dtype) {
  auto bits = static_cast<std::uint8_t>(8 * itemsize(dtype));
  switch (dtype_kind(dtype)) {
    case 'b': return {kDLBool, bits, 1};
    case 'i': return {kDLInt, bits, 1};
    case 'u': return {kDLUInt, bits, 1};
    case 'c': return {kDLComplex, bits, 1};
    default: return {dtype == bfloat16 ? kDLBfloat : kDLFloat, bits, 1};
  }
}

Dtype from_dl(DLDataType type) {
  for (int d = 0; d < kNumDtypes; ++d) {
    auto dtype = static_cast<Dtype>(d);
    DLDataType candidate = to_dl(dtype);
    if (candidate.code == type.code && candidate.bits == type.bits && type.lanes == 1) return dtype;
  }
  throw DtypeError(fmt::format("from_dlpack: no dtype is of code {} with {} bits in {} lanes",
                               type.code, type.bits, type.lanes));
}

Device from_dl(DLDevice device) {
  switch (device.device_type) {
    case kDLCPU:
    case kDLCUDAHost: return cpu();
    case kDLCUDA:
    case kDLCUDAManaged:
      if (device.device_id >= 0 && device.device_id < kMaxGpus) return gpu(device.device_id);
      throw DeviceError(fmt::format("from_dlpack: there is no GPU {}", device.device_id));
  }
  throw DeviceError(
      fmt::format("from_dlpack: device type {} is neither the CPU nor a GPU by NVIDIA",
                  static_cast<int>(device.device_type)));
}

// What a tensor that was given away lives in.
template <class Managed> struct Exported {
  Array array;
  Shape shape, strides;
  Managed tensor;
};

template <class Managed> Managed* give(const Array& a, const ToDlpackOptions& options) {
  rensa::detail::check_defined("to_dlpack", a);
  auto exported = std::make_unique<Exported<Managed>>();
  exported->array = a;
  exported->shape = exported->strides = a.shape();
  for (int i = 0; i < a.ndim(); ++i) {
    std::int64_t stride = a.strides()[i];
    if (a.shape()[i] > 1 && stride % itemsize(a.dtype()) != 0) {
      throw ValueError(
          fmt::format("to_dlpack: {} has strides of {} bytes, which are no whole elements; copy() "
                      "it first",
                      a.view().describe(), stride));
    }
    exported->strides[i] = stride / itemsize(a.dtype());
  }
  Managed& managed = exported->tensor;
  managed = {};
  DLTensor& tensor = managed.dl_tensor;
  refuse_in_trace("to_dlpack");
  a.storage()->use_on(a.device().is_cpu() ? nullptr : cuda::current_stream_state(a.device()));
  tensor.data = a.data();
  bool pinned = a.device().is_cpu() && a.storage()->is_pinned();
  tensor.device = a.device().is_cuda() ? DLDevice{kDLCUDA, a.device().index}
                                       : DLDevice{pinned ? kDLCUDAHost : kDLCPU, 0};
  tensor.ndim = a.ndim();
  tensor.dtype = to_dl(a.dtype());
  tensor.shape = exported->shape.begin();
  tensor.strides = exported->strides.begin();
  if (a.device().is_cuda() && options.stream) {
    cuda::order_foreign_stream(*options.stream, cuda::current_stream(a.device()));
  }
  managed.manager_ctx = exported.get();
  managed.deleter = [](Managed* self) {
    delete static_cast<Exported<Managed>*>(self->manager_ctx);
  };
  return &exported.release()->tensor;
}

template <class Managed> Array adopt(Managed* managed, bool read_only) {
  const DLTensor& tensor = managed->dl_tensor;
  if (tensor.ndim < 0 || tensor.ndim > kMaxNdim) {
    throw ShapeError(
        fmt::format("from_dlpack: {} dimensions are not taken, at most {}", tensor.ndim, kMaxNdim));
  }
  if (tensor.ndim > 0 && !tensor.shape) {
    throw ValueError(fmt::format("from_dlpack: {} dimensions and a null shape", tensor.ndim));
  }
  auto count = static_cast<std::size_t>(tensor.ndim);
  Shape shape(std::span<const std::int64_t>(tensor.shape, count));
  Dtype dtype = from_dl(tensor.dtype);
  Device device = from_dl(tensor.device);
  char* data = tensor.data ? static_cast<char*>(tensor.data) + tensor.byte_offset : nullptr;
  // Takes the tensor over only once the array is there.
  struct Owner {
    Managed* managed = nullptr;
    ~Owner() {
      if (managed && managed->deleter) managed->deleter(managed);
    }
  };
  auto owner = std::make_shared<Owner>();
  Array array;
  if (tensor.strides) {
    Shape strides(std::span<const std::int64_t>(tensor.strides, count));
    for (std::int64_t& stride : strides) {
      if (__builtin_mul_overflow(stride, itemsize(dtype), &stride)) {
        throw ShapeError("from_dlpack: a stride overflows");
      }
    }
    array = rensa::detail::wrap(data, shape, strides, dtype, device, owner, read_only);
  } else {
    array = rensa::detail::wrap(data, shape, dtype, device, owner, read_only);
  }
  owner->managed = managed;
  return array;
}

}  // namespace

DLManagedTensorVersioned* to_dlpack(const Array& a, const ToDlpackOptions& options) {
  auto* tensor = give<DLManagedTensorVersioned>(a, options);
  tensor->version = {kMajorVersion, kMinorVersion};
  if (a.storage()->is_read_only()) tensor->flags = kReadOnly;
  return tensor;
}

DLManagedTensor* to_dlpack_unversioned(const Array& a, const ToDlpackOptions& options) {
  if (a.defined() && a.storage()->is_read_only()) {
    throw ValueError(fmt::format(
        "to_dlpack_unversioned: {} is read-only, which such a tensor cannot say; copy() "
        "it first, or use to_dlpack",
        a.view().describe()));
  }
  return give<DLManagedTensor>(a, options);
}

namespace xp {

Array from_dlpack(DLManagedTensorVersioned* tensor) {
  if (!tensor) throw ValueError("from_dlpack: a null tensor");
  if (tensor->version.major != kMajorVersion) {
    throw ValueError(fmt::format("from_dlpack: the tensor is of DLPack {}.{}, only {}.x is read",
                                 tensor->version.major, tensor->version.minor, kMajorVersion));
  }
  return adopt(tensor, (tensor->flags & kReadOnly) != 0);
}

Array from_dlpack(DLManagedTensor* tensor) {
  if (!tensor) throw ValueError("from_dlpack: a null tensor");
  return adopt(tensor, false);
}

}  // namespace xp

}  // namespace rensa

// Arrays to and from other libraries by DLPack (github.com/dmlc/dlpack), without a copy. The
// structs have the layout of its version 1: a pointer to them is the pointer that other libraries
// mean, with a reinterpret_cast where their header names the type. A Python capsule named
// "dltensor" holds a DLManagedTensor, one named "dltensor_versioned" a DLManagedTensorVersioned.
//
// Streams: DLPack has whoever takes an array say on which stream it will use it, and whoever gives
// one order its own work before that stream's. So give to_dlpack the consumer's stream; and before
// from_dlpack, ask the producer for an array that is ready on cuda::current_stream(device).
#pragma once

#include <cstdint>
#include <optional>

#include "rensa/array/routines.h"

namespace rensa {

namespace dlpack {

/// The version of DLPack's tables that follow.
inline constexpr std::uint32_t kMajorVersion = 1, kMinorVersion = 0;

/// Where memory lies, by DLPack's numbers.
enum DLDeviceType : std::int32_t { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLCUDAManaged = 13 };

/// The kind of an element, by DLPack's numbers.
enum DLDataTypeCode : std::uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6,
};

/// A device: its type and which one of these.
struct DLDevice {
  DLDeviceType device_type;  // a DLDeviceType
  std::int32_t device_id;    // from 0 on
};

/// An element's type.
struct DLDataType {
  std::uint8_t code;    // a DLDataTypeCode
  std::uint8_t bits;    // of one lane
  std::uint16_t lanes;  // elements that count as one: 1 for all dtypes of arrays
};

/// An array of whomever it comes from.
struct DLTensor {
  void* data;                 // the memory, in front of byte_offset
  DLDevice device;            // where the memory lies
  std::int32_t ndim;          // the number of axes
  DLDataType dtype;           // of the elements
  std::int64_t* shape;        // ndim extents
  std::int64_t* strides;      // in elements; null stands for C order
  std::uint64_t byte_offset;  // from `data` to the first element
};

/// What libraries exchanged before version 1.
struct DLManagedTensor {
  DLTensor dl_tensor;                      // the array
  void* manager_ctx;                       // the producer's, for the deleter
  void (*deleter)(DLManagedTensor* self);  // called by the consumer when it is done; may be null
};

/// The version by which a table was filled in.
struct DLPackVersion {
  std::uint32_t major, minor;  // a consumer refuses another `major`
};

/// Bits of DLManagedTensorVersioned::flags.
inline constexpr std::uint64_t kReadOnly = 1, kIsCopied = 2;

/// What libraries exchange since version 1: tensor, owner and how it was filled in.
struct DLManagedTensorVersioned {
  DLPackVersion version;  // of the table
  void* manager_ctx;      // the producer's, for the deleter
  /// Called by the consumer when it is done; may be null.
  void (*deleter)(DLManagedTensorVersioned* self);
  std::uint64_t flags;  // kReadOnly, kIsCopied
  DLTensor dl_tensor;   // the array
};

}  // namespace dlpack

struct ToDlpackOptions {
  /// The cudaStream_t that the consumer will use the array on, which is made to wait for what is
  /// queued on the array's current stream; nothing: the consumer orders its work itself.
  std::optional<void*> stream = {};
};
/// A tensor that shares `a`'s memory and keeps it until its deleter is called, by whoever has taken
/// it. Does not wait. Throws ValueError where a stride is no multiple of the element's size.
dlpack::DLManagedTensorVersioned* to_dlpack(const Array& a, const ToDlpackOptions& options = {});
/// The same for consumers that know no versions. Throws ValueError for read-only memory, which such
/// a tensor cannot say.
dlpack::DLManagedTensor* to_dlpack_unversioned(const Array& a, const ToDlpackOptions& options = {});

namespace xp {

/// An array on a tensor's memory; the tensor's deleter is called with its last handle (see xp::wrap
/// about GPUs). Of a read-only tensor it is read-only too: what would write it throws ValueError.
/// Ownership passes when this returns: where it throws (DtypeError, DeviceError, ValueError), the
/// tensor is still the caller's.
[[nodiscard]] Array from_dlpack(dlpack::DLManagedTensorVersioned* tensor);
[[nodiscard]] Array from_dlpack(dlpack::DLManagedTensor* tensor);

}  // namespace xp

}  // namespace rensa

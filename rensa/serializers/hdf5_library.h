// HDF5's library from C++: its lock, its identifiers as objects, its errors, its types of dtypes.
#pragma once

#define H5_USE_110_API  // of newer versions too
#include <hdf5.h>

#include <string>
#include <utility>

#include "rensa/core/dtype.h"

namespace rensa::serializers {

/// Around calls of HDF5, which is made for one thread: the others wait. HDF5 prints no errors
/// meanwhile. May be nested.
class Hdf5Scope {
 public:
  Hdf5Scope();
  ~Hdf5Scope();
  Hdf5Scope(const Hdf5Scope&) = delete;
  Hdf5Scope& operator=(const Hdf5Scope&) = delete;

 private:
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
};

/// Throws SerializationError of what HDF5 says of the call before, as the cause innermost.
[[noreturn]] void fail_in_hdf5(const std::string& where);

/// An identifier that is closed with it.
class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Hdf5Handle() = default;
  /// Throws SerializationError for an `id` that a call failed to give.
  Hdf5Handle(hid_t id, Close close, const std::string& where) : id_(id), close_(close) {
    if (id < 0) fail_in_hdf5(where);
  }
  Hdf5Handle(Hdf5Handle&& other) noexcept
      : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_), std::swap(close_, other.close_);
    return *this;
  }
  ~Hdf5Handle();
  operator hid_t() const { return id_; }

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

/// The type of an element: as h5py has it, bool an enumeration of FALSE and TRUE, complex numbers
/// compounds of r and i. Little-endian ones are those in memory.
Hdf5Handle hdf5_type(Dtype dtype, H5T_order_t order, const std::string& where);

}  // namespace rensa::serializers

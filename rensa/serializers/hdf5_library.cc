// What all calls of HDF5 share.
#include "rensa/serializers/hdf5_library.h"

#include <fmt/format.h>

#include <bit>
#include <mutex>

#include "rensa/core/error.h"

namespace rensa::serializers {

namespace {

static_assert(std::endian::native == std::endian::little, "H5T_ORDER_LE is memory's");

/// Recursive, so that an identifier may be closed with the lock or without it.
std::recursive_mutex& mutex() {
  static auto* const mutex = new std::recursive_mutex;  // for threads that outlive main
  return *mutex;
}

hid_t integer_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::int16: return H5T_STD_I16LE;
    case Dtype::int32: return H5T_STD_I32LE;
    case Dtype::int64: return H5T_STD_I64LE;
    case Dtype::uint8: return H5T_STD_U8LE;
    case Dtype::uint16: return H5T_STD_U16LE;
    case Dtype::uint32: return H5T_STD_U32LE;
    case Dtype::uint64: return H5T_STD_U64LE;
    default: return H5T_STD_I8LE;
  }
}

}  // namespace

Hdf5Scope::Hdf5Scope() {
  mutex().lock();
  H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Hdf5Scope::~Hdf5Scope() {
  H5Eset_auto2(H5E_DEFAULT, print_, print_data_);
  mutex().unlock();
}

void fail_in_hdf5(const std::string& where) {
  std::string cause;
  auto note = [](unsigned, const H5E_error2_t* error, void* data) -> herr_t {
    auto& text = *static_cast<std::string*>(data);
    if (text.empty() && error->desc) text = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, note, &cause);
  throw SerializationError(fmt::format("{}: HDF5: {}", where, cause.empty() ? "an error" : cause));
}

Hdf5Handle::~Hdf5Handle() {
  if (id_ < 0) return;
  Hdf5Scope scope;
  close_(id_);
}

Hdf5Handle hdf5_type(Dtype dtype, H5T_order_t order, const std::string& where) {
  auto check = [&](herr_t status) {
    if (status < 0) fail_in_hdf5(where);
  };
  auto copy = [&](hid_t type) {
    Hdf5Handle copied(H5Tcopy(type), H5Tclose, where);
    check(H5Tset_order(copied, order));
    return copied;
  };
  // A float of 16 bits: the sign, `exponent` bits, the rest.
  auto half = [&](std::size_t exponent) {
    std::size_t fraction = 15 - exponent;
    Hdf5Handle type = copy(H5T_IEEE_F32LE);
    check(H5Tset_fields(type, 15, fraction, exponent, 0, fraction));
    check(H5Tset_size(type, 2));
    check(H5Tset_ebias(type, (std::size_t{1} << (exponent - 1)) - 1));
    return type;
  };
  switch (dtype) {
    case Dtype::bool_: {
      Hdf5Handle base = copy(H5T_STD_I8LE);
      Hdf5Handle type(H5Tenum_create(base), H5Tclose, where);
      for (signed char value : {0, 1}) {
        check(H5Tenum_insert(type, value ? "TRUE" : "FALSE", &value));
      }
      return type;
    }
    case Dtype::float16: return half(5);
    case Dtype::bfloat16: return half(8);
    case Dtype::float32: return copy(H5T_IEEE_F32LE);
    case Dtype::float64: return copy(H5T_IEEE_F64LE);
    case Dtype::complex64:
    case Dtype::complex128: {
      bool is_double = dtype == Dtype::complex128;
      Hdf5Handle part = copy(is_double ? H5T_IEEE_F64LE : H5T_IEEE_F32LE);
      std::size_t size = is_double ? 8 : 4;
      Hdf5Handle type(H5Tcreate(H5T_COMPOUND, 2 * size), H5Tclose, where);
      check(H5Tinsert(type, "r", 0, part));
      check(H5Tinsert(type, "i", size, part));
      return type;
    }
    default: return copy(integer_type(dtype));
  }
}

}  // namespace rensa::serializers

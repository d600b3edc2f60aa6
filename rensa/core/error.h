// The typed exceptions. Every text names the operation, its operands and the way out.
#pragma once

#include <stdexcept>
#include <string>

namespace rensa {

/// What every exception of the library derives from.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Shapes, axes or sizes that do not fit.
class ShapeError : public Error {
 public:
  using Error::Error;
};
/// A dtype that an operation does not take, or a cast that would lose the kind.
class DtypeError : public Error {
 public:
  using Error::Error;
};
/// Operands on different devices, or a device that is not there.
class DeviceError : public Error {
 public:
  using Error::Error;
};
/// An index or a label out of range.
class IndexError : public Error {
 public:
  using Error::Error;
};
/// An argument outside what the call takes (a batch size of 0, a ratio above 1).
class ValueError : public Error {
 public:
  using Error::Error;
};
/// A matrix that a routine of xp::linalg cannot take: singular, not positive definite, or with
/// eigenvalues that were not found.
class LinAlgError : public ValueError {
 public:
  using ValueError::ValueError;
};
/// A failure reported by the CUDA driver or one of NVIDIA's libraries.
class CudaError : public Error {
 public:
  using Error::Error;
};
/// Something that this build, device or dtype cannot do.
class NotImplementedError : public Error {
 public:
  using Error::Error;
};
/// A file or an archive that cannot be read as what it claims to be.
class SerializationError : public Error {
 public:
  using Error::Error;
};
/// A kernel's source that does not compile; the text holds the compiler's.
class CompileError : public Error {
 public:
  using Error::Error;
};

/// A wait for a device where none may be: under cuda::ForbidSync, or while a stream is captured.
class SyncError : public Error {
 public:
  using Error::Error;
};

/// Memory that could not be had; the process and the pool stay usable.
class OutOfMemoryError : public Error {
 public:
  using Error::Error;
};

}  // namespace rensa

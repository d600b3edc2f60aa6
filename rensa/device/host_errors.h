// Errors that the host finds while a GPU works: waits for the GPU throw them.
#pragma once

#include <exception>

#include "rensa/core/device.h"

namespace rensa::cuda {

/// The next wait for `device` throws it. Of several the first one alone is kept.
void report_host_error(Device device, std::exception_ptr error);

/// As long as this lives each wait for the device throws the error: what its memory holds, or what
/// is queued makes of it, is not to be used. The next wait throws it where none has until the end.
class LastingError {
 public:
  LastingError(Device device, std::exception_ptr error);
  ~LastingError();
  LastingError(const LastingError&) = delete;
  LastingError& operator=(const LastingError&) = delete;

 private:
  friend void throw_host_error(Device device);
  Device device_;
  std::exception_ptr error_;
  bool thrown_ = false;
};

/// Throws what is to be thrown by a wait for `device`, if anything.
void throw_host_error(Device device);

}  // namespace rensa::cuda

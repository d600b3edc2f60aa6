// Copies between views of one dtype and shape, byte for byte.
#pragma once

#include <cstdint>
#include <cstring>

#include "rensa/core/array_view.h"

namespace rensa::host {

/// memcpy of 2 KiB and more, which glibc does by "rep movsb": by copy_by_vectors on the processors
/// (AMD's before Zen 5) where that takes ten times as long for runs that lie differently against a
/// cache line.
void copy_long_run(char* out, const char* in, std::int64_t nbytes);
/// memcpy by a loop over vectors.
void copy_by_vectors(char* out, const char* in, std::int64_t nbytes);

/// memcpy, in the way that suits the processor.
inline void copy_run(char* out, const char* in, std::int64_t nbytes) {
  if (nbytes < 2048) {
    std::memcpy(out, in, static_cast<std::size_t>(nbytes));
  } else {
    copy_long_run(out, in, nbytes);
  }
}

/// out = in; the two may be the same elements, not partly overlapping ones.
void copy_elements(const ArrayView& in, const ArrayView& out);

}  // namespace rensa::host

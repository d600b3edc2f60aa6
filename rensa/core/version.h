// The version of these headers, for the preprocessor, and of the library that runs. CMake reads it
// here.
#pragma once

#define RENSA_VERSION_MAJOR 0
#define RENSA_VERSION_MINOR 1
#define RENSA_VERSION_PATCH 0

/// Whether the headers are of this version or newer: #if RENSA_VERSION_AT_LEAST(0, 1, 0)
#define RENSA_VERSION_AT_LEAST(major, minor, patch) \
  (RENSA_VERSION_MAJOR > (major) ||                 \
   (RENSA_VERSION_MAJOR == (major) &&               \
    (RENSA_VERSION_MINOR > (minor) ||               \
     (RENSA_VERSION_MINOR == (minor) && RENSA_VERSION_PATCH >= (patch)))))

namespace rensa {

/// The version of the library that the program runs with, "0.1.0".
const char* version();

}  // namespace rensa

// The machine's C++ compiler: found, asked for its version, run; and what it makes, loaded.
#pragma once

#include <optional>
#include <string>

#include "rensa/operations/runtime_kernel/runtime_kernel.h"

namespace rensa::detail {

struct HostCompiler {
  std::string path;
  std::string version;  // what --version tells; else the place, size and time of its file
};

/// The first of $CXX, c++, g++ and clang++ that is a program in $PATH; none where none is.
std::optional<HostCompiler> find_host_compiler();

/// What host code depends on besides its text and the compiler: options and processor.
std::string host_target();

/// The shared library that the compiler makes of `text`, which may include the headers of kernels.
/// Throws CompileError: what the compiler says, or how it ended; no folder for its files.
std::string compile_for_host(const HostCompiler& compiler, const std::string& text,
                             const std::string& name);

/// The function `name` of the library with these bytes, which is loaded for good. Throws
/// CompileError where they are no whole library or have no such function.
operations::RuntimeKernel::HostFunction load_host_function(const std::string& library,
                                                           const std::string& name);

}  // namespace rensa::detail

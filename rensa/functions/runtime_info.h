// What a program runs with, for reports of faults: chainer.print_runtime_info.
#pragma once

#include <iosfwd>
#include <string>

namespace rensa {

/// The system, the versions of Rensa, of the compiler, of oneDNN and of HDF5, the BLAS library, the
/// CPU, the CUDA runtime and driver, the GPUs, and NVIDIA's libraries with their versions and
/// places or why they are not found: a line for each. Opens these libraries; does not wait.
std::string runtime_info();
/// Prints it, to the standard output where no other stream is given.
void print_runtime_info();
void print_runtime_info(std::ostream& out);

}  // namespace rensa

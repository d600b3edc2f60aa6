// The kernels around a captured step: one brings a replay's inputs and numbers to where the
// recording reads them, followed by others where these are many, some take its results out, and in
// a step on several GPUs some tell the others how far theirs has come, or wait for them.
// Their arguments are set anew for each replay (cudaGraphExecKernelNodeSetParams); one struct
// by value is each kernel's only argument.
#pragma once

#include "rensa/core/device.h"

namespace rensa::cuda {

inline constexpr int kMaxCaptureCopies = 16;        // of each kernel
inline constexpr int kMaxCaptureScalars = 64;       // of the first kernel
inline constexpr int kMaxMoreCaptureScalars = 480;  // of each further one

struct CaptureCopy {
  const void* src;
  void* dst;
  long long bytes;
};

// The structs have no padding: they are compared as bytes.

struct PrologueParams {
  long long num_copies;
  CaptureCopy copies[kMaxCaptureCopies];
  long long num_scalars;
  unsigned long long scalars[kMaxCaptureScalars];  // the bits of a double or a long long
  void* scalar_block;                              // where they go, 8 bytes each
};

/// Numbers that the prologue has no room for.
struct MoreScalarsParams {
  long long num_scalars;
  unsigned long long scalars[kMaxMoreCaptureScalars];
  void* scalar_block;  // where the first of them goes
};

/// Inputs that the prologue has no room for, or results.
struct CopiesParams {
  long long num_copies;
  CaptureCopy copies[kMaxCaptureCopies];
};

/// Where a step's part on another GPU, or for one, says how far it has come: a mark's number and,
/// in the same word, the launch, so that words only ever grow.
struct CaptureMark {
  unsigned long long* word;
  unsigned long long number;
};

/// What the GPUs of a step tell each other, or wait for.
struct CrossingParams {
  const unsigned long long* launch;        // the number of this launch of the step, from 1
  unsigned long long numbers_of_a_launch;  // more than a launch has marks
  int num_marks;
  CaptureMark marks[kMaxGpus];
};

/// The kernels, for cudaLaunchKernel and for kernel nodes. `tell` and `await` take CrossingParams.
const void* prologue_kernel();
const void* more_scalars_kernel();
const void* copies_kernel();
const void* tell_kernel();
const void* await_kernel();

/// The launch for `bytes` of copies in all; any other shape is right as well, only slower.
struct CaptureLaunch {
  unsigned grid, block;
};
CaptureLaunch capture_launch(long long bytes);

}  // namespace rensa::cuda

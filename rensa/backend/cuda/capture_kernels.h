// The kernels around a captured step: one brings a replay's inputs and numbers to where the
// recording reads them, followed by others where these are many, and some take its results out.
// Their arguments are set anew for each replay (cudaGraphExecKernelNodeSetParams); one struct
// by value is each kernel's only argument.
#pragma once

namespace rensa::cuda {

inline constexpr int kMaxCaptureCopies = 16;        // of each kernel
inline constexpr int kMaxCaptureScalars = 64;       // of the first kernel
inline constexpr int kMaxMoreCaptureScalars = 480;  // of each further one

struct CaptureCopy {
  const void* src;
  void* dst;
  long long bytes;
};

struct PrologueParams {
  int num_copies;
  CaptureCopy copies[kMaxCaptureCopies];
  int num_scalars;
  unsigned long long scalars[kMaxCaptureScalars];  // the bits of a double or a long long
  void* scalar_block;                              // where they go, 8 bytes each
};

/// Numbers that the prologue has no room for.
struct MoreScalarsParams {
  int num_scalars;
  unsigned long long scalars[kMaxMoreCaptureScalars];
  void* scalar_block;  // where the first of them goes
};

/// Inputs that the prologue has no room for, or results.
struct CopiesParams {
  int num_copies;
  CaptureCopy copies[kMaxCaptureCopies];
};

/// The kernels, for cudaLaunchKernel and for kernel nodes.
const void* prologue_kernel();
const void* more_scalars_kernel();
const void* copies_kernel();

/// The launch for `bytes` of copies in all; any other shape is right as well, only slower.
struct CaptureLaunch {
  unsigned grid, block;
};
CaptureLaunch capture_launch(long long bytes);

}  // namespace rensa::cuda

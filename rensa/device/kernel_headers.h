// The texts of the headers that kernels compiled at run time may include; the build writes them.
#pragma once

namespace rensa {

struct KernelHeader {
  const char* name;  // as it stands in an #include
  const char* text;
};
extern const KernelHeader kKernelHeaders[];
extern const int kNumKernelHeaders;

}  // namespace rensa

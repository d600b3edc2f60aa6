// HostScalar: a number that the host computes anew for every step (a learning rate, a bias
// correction, a random offset). Eagerly it travels in the kernel's arguments; in a recording it is
// a slot that each replay fills. Plain data, read by nvcc and NVRTC too.
#pragma once

namespace rensa {

struct HostScalar {
  union {
    double real = 0;
    long long integer;
  };
  const void* device = nullptr;  // set by a recording: where the replay's value lies
  int slot = -1;                 // the recording's slot, -1 outside of one
};

}  // namespace rensa

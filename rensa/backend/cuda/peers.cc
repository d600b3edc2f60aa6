// Peer access, set up once a pair.
#include "rensa/device/peers.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "rensa/backend/cuda/check.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/devices.h"

namespace rensa::cuda {

namespace {

/// Kernels on `from` reach the memory of `to` from now on; false where the hardware cannot.
bool enable_access(Device from, Device to) {
  int possible = 0;
  RENSA_CUDA_CALL(cudaDeviceCanAccessPeer(&possible, from.index, to.index));
  if (!possible) return false;
  runtime::set_device(from);
  cudaError_t error = cudaDeviceEnablePeerAccess(to.index, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled) {
    (void)cudaGetLastError();
  } else {
    RENSA_CUDA_CALL(error);
  }
  return true;
}

}  // namespace

bool connect_peers(Device a, Device b) {
  if (a == b) return true;
  enum State : signed char { unknown, no, yes };
  static std::mutex mutex;
  static std::array<std::array<State, kMaxGpus>, kMaxGpus> states{};
  std::lock_guard<std::mutex> hold(mutex);
  State& state = states[static_cast<std::size_t>(std::min(a.index, b.index))]
                       [static_cast<std::size_t>(std::max(a.index, b.index))];
  if (state == unknown) state = enable_access(a, b) && enable_access(b, a) ? yes : no;
  return state == yes;
}

}  // namespace rensa::cuda

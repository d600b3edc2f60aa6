// Copies between host and device and between devices. Page-locked memory is copied in the stream's
// order without a wait; other host memory goes through two page-locked pieces in turn.
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "rensa/backend/cuda/check.h"
#include "rensa/backend/cuda/copy.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_pool.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/peers.h"
#include "rensa/device/stream.h"
#include "rensa/device/stream_state.h"
#include "rensa/device/transfer_stats.h"
#include "rensa/operations/transfer/transfer.h"

namespace rensa::operations {

namespace {

using cuda::LaunchContext;

constexpr std::int64_t kPiece = std::int64_t{4} << 20;
constexpr std::int64_t kKernelBytes = std::int64_t{1} << 20;
constexpr std::int64_t kFewBytes = 16384;  // up to here a kernel brings them to the host
constexpr std::int64_t kCopyGrain = std::int64_t{256}
                                    << 10;  // bytes that are worth a thread's while

cudaStream_t stream_of(const LaunchContext& context) {
  return static_cast<cudaStream_t>(context.handle);
}

void copy_async(const LaunchContext& context, void* to, const void* from, std::int64_t nbytes) {
  RENSA_CUDA_CALL(cudaMemcpyAsync(to, from, static_cast<std::size_t>(nbytes), cudaMemcpyDefault,
                                  stream_of(context)));
}

void copy_on_host(char* to, const char* from, std::int64_t nbytes) {
  parallel_for(nbytes, kCopyGrain, [=](std::int64_t begin, std::int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
  });
}

/// A page-locked piece on the way between pageable memory and a device.
class Piece {
 public:
  Piece(const LaunchContext& context, std::int64_t nbytes)
      : context_(context), memory_(allocate_pinned(nbytes)) {
    // An exception may leave copies running: the pool then waits for them.
    memory_->use_on(context.stream);
    event_ = cuda::runtime::create_event(context.device, {.timing = false});
  }
  ~Piece() { cuda::runtime::destroy_event(event_); }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;

  char* data() const { return memory_->data(); }
  void mark_busy() {
    cuda::runtime::record_event(event_, context_.handle);
    busy_ = true;
  }
  void wait() {
    if (std::exchange(busy_, false)) cuda::runtime::synchronize_event(event_);
  }

 private:
  const LaunchContext& context_;
  StoragePtr memory_;
  void* event_;
  bool busy_ = false;
};

/// Drains nothing.
struct Nothing {
  void operator()(char*, std::int64_t, std::int64_t) const {}
};

/// Cuts `nbytes` into pieces that two page-locked buffers hold in turn: `fill` queues the copy of
/// one in, `drain` is called when it is there.
template <class Fill, class Drain>
void in_pieces(const LaunchContext& context, std::int64_t nbytes, Fill&& fill, Drain&& drain) {
  std::array<std::optional<Piece>, 2> pieces;
  std::array<std::int64_t, 2> begins{-1, -1};  // what each of them holds
  auto empty = [&](std::size_t i) {
    if (begins[i] < 0) return;
    pieces[i]->wait();
    drain(pieces[i]->data(), begins[i], std::min(kPiece, nbytes - begins[i]));
    begins[i] = -1;
  };
  std::size_t turn = 0;
  for (std::int64_t begin = 0; begin < nbytes; begin += kPiece, turn ^= 1) {
    if (!pieces[turn]) pieces[turn].emplace(context, std::min(nbytes, kPiece));
    empty(turn);
    fill(pieces[turn]->data(), begin, std::min(kPiece, nbytes - begin));
    pieces[turn]->mark_busy();
    begins[turn] = begin;
  }
  if constexpr (!std::is_same_v<Drain, Nothing&>) {
    empty(turn);
    empty(turn ^ 1);
  }
}

void upload_pageable(const LaunchContext& context, char* to, const char* from,
                     std::int64_t nbytes) {
  auto fill = [&](char* piece, std::int64_t begin, std::int64_t n) {
    copy_on_host(piece, from + begin, n);
    copy_async(context, to + begin, piece, n);
  };
  Nothing nothing;  // the last pieces may still be on their way: the pool waits for them
  in_pieces(context, nbytes, fill, nothing);
}

void download_pageable(const LaunchContext& context, char* to, const char* from,
                       std::int64_t nbytes) {
  auto fill = [&](char* piece, std::int64_t begin, std::int64_t n) {
    copy_async(context, piece, from + begin, n);
  };
  auto drain = [&](char* piece, std::int64_t begin, std::int64_t n) {
    copy_on_host(to + begin, piece, n);
  };
  in_pieces(context, nbytes, fill, drain);
}

/// Whether *flag becomes `turn` soon. Work that takes longer, or has failed, is the driver's to
/// wait for and to report.
bool arrives(unsigned* flag, unsigned turn) {
  constexpr auto kPatience = std::chrono::microseconds(200);
  std::atomic_ref<unsigned> seen(*flag);
  auto until = std::chrono::steady_clock::now() + kPatience;
  do {
    for (int i = 0; i < 100; ++i) {
      if (seen.load(std::memory_order_acquire) == turn) return true;
    }
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

// What item() comes to.
void download_few(const char* name, const LaunchContext& context, char* to, const char* from,
                  std::int64_t nbytes) {
  struct Landing {
    StoragePtr memory = allocate_pinned(kFewBytes + sizeof(unsigned));
    unsigned turn = 0;
    Landing() { *flag() = 0; }
    unsigned* flag() const { return reinterpret_cast<unsigned*>(memory->data() + kFewBytes); }
  };
  thread_local std::optional<Landing> landing;
  if (!landing) landing.emplace();
  char* data = landing->memory->data();
  cuda::copy_few_bytes(name, context, from, data, nbytes, landing->flag(), ++landing->turn);
  if (!arrives(landing->flag(), landing->turn)) cuda::runtime::synchronize_stream(context.handle);
  std::memcpy(to, data, static_cast<std::size_t>(nbytes));
}

void copy_pageable(const char* name, const LaunchContext& context, const Operand& in,
                   const Operand& out) {
  cuda::count_sync(name);
  bool upload = in.view.device.is_cpu();
  std::int64_t nbytes = out.view.nbytes();
  try {
    if (!upload && nbytes <= kFewBytes) {
      download_few(name, context, out.view.data, in.view.data, nbytes);
    } else {
      (upload ? upload_pageable : download_pageable)(context, out.view.data, in.view.data, nbytes);
    }
  } catch (const OutOfMemoryError&) {  // no page-locked memory is left: the driver has its own way
    copy_async(context, out.view.data, in.view.data, nbytes);
    cuda::runtime::synchronize_stream(context.handle);
  }
  cuda::throw_reported_error(context.device);
}

/// Between GPUs that reach each other's memory a kernel moves little sooner than a copy engine; the
/// driver copies through the host where they do not.
void copy_between_gpus(const char* name, const LaunchContext& context, const Operand& in,
                       const Operand& out) {
  bool peers = cuda::connect_peers(in.view.device, out.view.device);
  cuda::runtime::set_device(context.device);
  bool by_kernel = peers && out.view.nbytes() <= kKernelBytes && in.view.shape == out.view.shape &&
                   !in.storage->is_foreign() && !out.storage->is_foreign();
  if (by_kernel) return cuda::copy_elements(name, context, in.view, out.view);
  if (peers) return copy_async(context, out.view.data, in.view.data, out.view.nbytes());
  RENSA_CUDA_CALL(
      cudaMemcpyPeerAsync(out.view.data, out.view.device.index, in.view.data, in.view.device.index,
                          static_cast<std::size_t>(out.view.nbytes()), stream_of(context)));
}

}  // namespace

void Transfer::run_cuda(const LaunchContext& context) {
  if (out.view.nbytes() == 0) return;
  const Operand* host = in.view.device.is_cpu() ? &in : out.view.device.is_cpu() ? &out : nullptr;
  bool captured = context.handle != context.stream->handle();
  if (captured && host && in.view.device != out.view.device && !host->storage->is_pinned()) {
    throw NotImplementedError(
        fmt::format("{}: a copy from {} to {} cannot be part of a recorded step", name(),
                    in.view.describe(), out.view.describe()));
  }
  if (!captured) cuda::count_transfer(in.view.device, out.view.device, out.view.nbytes());
  if (host && !host->storage->is_pinned()) {
    (host == &in ? out : in).storage->use_on(context.stream);
    copy_pageable(name(), context, in, out);
  } else if (!host && in.view.device != out.view.device) {
    copy_between_gpus(name(), context, in, out);
  } else {
    in.storage->use_on(context.stream);
    out.storage->use_on(context.stream);
    copy_async(context, out.view.data, in.view.data, out.view.nbytes());
  }
}

}  // namespace rensa::operations

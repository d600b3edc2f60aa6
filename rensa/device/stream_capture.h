// Capture: a stream capture in progress on a thread, and what its graph will own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "rensa/device/allocators.h"
#include "rensa/device/operation.h"
#include "rensa/device/stream.h"
#include "rensa/device/stream_state.h"

namespace rensa::cuda {

/// A function that a stream calls, and the device whose next wait throws what it throws.
struct HostCall {
  std::function<void()> function;
  Device device;
  bool once;  // deletes itself
};

class Capture {
 public:
  /// Begins on `stream`. Throws ValueError where that cannot be.
  explicit Capture(std::shared_ptr<StreamState> stream);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  /// The calling thread's, or null.
  static Capture* current();
  std::uint64_t id() const { return id_; }
  StreamState* stream() const { return streams_.front().get(); }

  /// Ends it. Returns the cudaGraph_t; throws CudaError.
  void* end();
  /// The stream takes part from now on: it is about to wait for an event recorded here.
  void join(const std::shared_ptr<StreamState>& stream, void* event);
  /// What an operation runs with: scratch of the graph's own, so that launches on other streams do
  /// not meet what works there.
  LaunchContext context(StreamState* stream, std::size_t workspace_bytes);
  /// The operation's arrays, and what else it holds (a library's plan), live as long as the graph.
  void keep(Operation& operation);
  void keep(std::unique_ptr<HostCall> call) { calls_.push_back(std::move(call)); }

  // What the graph takes over.
  /// Host functions: a launch may still call them when the Graph is gone.
  void give_calls(void* graph);
  const std::vector<StoragePtr>& kept() const { return kept_; }
  MemoryPool& pool() { return *pool_; }

 private:
  struct Scratch {
    StoragePtr workspace;
    StoragePtr semaphores;
  };
  void leave() noexcept;
  Scratch& scratch_of(StreamState* stream);

  const std::uint64_t id_;
  std::shared_ptr<std::atomic<bool>> capturing_;
  std::unique_ptr<MemoryPool> pool_;
  std::vector<std::shared_ptr<StreamState>> streams_;  // the first began it
  std::map<StreamState*, Scratch> scratch_;
  std::vector<StoragePtr> kept_;
  std::unordered_set<Storage*> known_;
  std::vector<std::unique_ptr<Operation>> operations_;
  std::vector<std::unique_ptr<HostCall>> calls_;
  std::optional<AllocatorScope> allocations_;  // the thread's, while capturing
};

}  // namespace rensa::cuda

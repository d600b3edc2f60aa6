// Storage: a counted piece of memory on one device. Arrays share it; its allocator takes it back
// when the last one goes.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "rensa/core/device.h"

namespace rensa {

namespace cuda {
class StreamState;
}

class Storage {
 public:
  Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  char* data() const { return data_; }  // the first byte, on device()
  /// Bytes asked for.
  std::int64_t nbytes() const { return nbytes_; }
  Device device() const { return device_; }  // where the memory is
  /// Page-locked host memory: copies to and from it are asynchronous.
  bool is_pinned() const { return pinned_; }
  /// Somebody else's memory (wrap_storage): others may read and write it, whoever holds this.
  bool is_foreign() const { return foreign_; }
  /// Memory that no operation may write (launch() refuses): of a mapped file, or of somebody
  /// else's.
  bool is_read_only() const { return read_only_; }

  /// Notes that work on `stream` reads or writes this memory, so that it is not handed out again
  /// before that work is done. Cheap when `stream` is the one the memory was allocated on.
  void use_on(cuda::StreamState* stream) {
    if (stream != home_) use_on_other(stream);
  }
  cuda::StreamState* home_stream() const { return home_; }  // the stream it was allocated on

  /// How often operations have written here. Who keeps an array for later sees by it whether the
  /// values are still those (two threads that write at the same time may count as one).
  std::uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void count_write() { version_.store(version() + 1, std::memory_order_relaxed); }  // one more
  /// How often optimizers have changed what is here, which version() does not count.
  std::uint32_t updates() const { return updates_.load(std::memory_order_relaxed); }
  void count_update() { updates_.store(updates() + 1, std::memory_order_relaxed); }  // one more

  void retain() { refs_.fetch_add(1, std::memory_order_relaxed); }  // one more handle
  /// One handle less; the last one gives the memory back.
  void release() {
    // The only handle's owner needs no read-modify-write: nobody else can make another.
    if (refs_.load(std::memory_order_acquire) == 1 ||
        refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      destroy();
    }
  }
  /// Handles alive; meaningful to a caller that holds one of them.
  int use_count() const { return refs_.load(std::memory_order_acquire); }

 protected:
  virtual ~Storage() = default;
  /// Gives the memory and this object back to their allocator. Must not throw.
  virtual void destroy() noexcept = 0;
  virtual void use_on_other(cuda::StreamState*) {}

  char* data_ = nullptr;
  std::int64_t nbytes_ = 0;
  cuda::StreamState* home_ = nullptr;
  std::atomic<int> refs_{0};
  std::atomic<std::uint32_t> version_{0};
  std::atomic<std::uint32_t> updates_{0};
  Device device_;
  bool pinned_ = false;
  bool foreign_ = false;
  bool read_only_ = false;
};

/// A counted handle.
class StoragePtr {
 public:
  StoragePtr() = default;
  explicit StoragePtr(Storage* storage) : storage_(storage) {
    if (storage_) storage_->retain();
  }
  /// A handle that takes over one count that `storage` already has.
  static StoragePtr adopt(Storage* storage) {
    StoragePtr handle;
    handle.storage_ = storage;
    return handle;
  }
  StoragePtr(const StoragePtr& other) : StoragePtr(other.storage_) {}
  StoragePtr(StoragePtr&& other) noexcept : storage_(std::exchange(other.storage_, nullptr)) {}
  StoragePtr& operator=(StoragePtr other) noexcept {
    std::swap(storage_, other.storage_);
    return *this;
  }
  ~StoragePtr() {
    // The analyzer loses sight of members of std::pair.
    if (storage_) storage_->release();  // NOLINT(clang-analyzer-core.uninitialized.Branch)
  }
  Storage* get() const { return storage_; }  // null where there is none
  Storage* operator->() const { return storage_; }
  explicit operator bool() const { return storage_ != nullptr; }
  friend bool operator==(const StoragePtr& a, const StoragePtr& b) = default;

 private:
  Storage* storage_ = nullptr;
};

/// Memory for `nbytes` (at least 1 is had) on `device`: the heap for the CPU, the current thread's
/// allocator (the pool, unless cuda::AllocatorScope says otherwise) and current stream for a GPU.
/// Throws OutOfMemoryError, DeviceError.
StoragePtr allocate(std::int64_t nbytes, Device device);

/// Page-locked host memory from the pinned pool. Throws DeviceError without a GPU.
StoragePtr allocate_pinned(std::int64_t nbytes);

/// Memory of somebody else's: `deleter(context)` is called when the last handle goes; on a GPU once
/// the streams that used it are done, which waits (counted).
StoragePtr wrap_storage(void* data, std::int64_t nbytes, Device device, void (*deleter)(void*),
                        void* context, bool read_only = false);

}  // namespace rensa

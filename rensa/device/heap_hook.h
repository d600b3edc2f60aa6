// HeapHook: what a MemoryHook is to the pools, for the CPU's heap.
#pragma once

#include <cstdint>

namespace rensa {

/// Told of the arrays' memory on the CPU that the calling thread takes and gives back. It may not
/// make arrays itself.
class HeapHook {
 public:
  virtual ~HeapHook() = default;
  virtual void heap_malloc(const void* data, std::int64_t nbytes) = 0;  // a block was handed out
  virtual void heap_free(const void* data) = 0;                         // a block came back
  /// So much was asked of the system, ahead of heap_malloc: no block was cached.
  virtual void heap_acquired(std::int64_t /*nbytes*/) {}
};

/// The calling thread's, for a scope; those of scopes around are told too, and first.
class [[nodiscard]] HeapHookScope {
 public:
  [[nodiscard]] explicit HeapHookScope(HeapHook& hook);
  ~HeapHookScope();
  HeapHookScope(const HeapHookScope&) = delete;
  HeapHookScope& operator=(const HeapHookScope&) = delete;

 private:
  friend struct HeapHooks;
  HeapHook& hook_;
  HeapHookScope* around_;
};

}  // namespace rensa

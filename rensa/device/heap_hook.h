// HeapHook: what a MemoryHook is to the pools, for the CPU's heap.
#pragma once

#include <cstdint>

namespace rensa {

/// Told of the arrays' memory on the CPU that the calling thread takes and gives back.
class HeapHook {
 public:
  virtual ~HeapHook() = default;
  virtual void heap_malloc(const void* data, std::int64_t nbytes) = 0;
  virtual void heap_free(const void* data) = 0;
};

/// The calling thread's, for a scope; the one of the scope around is told nothing meanwhile.
class [[nodiscard]] HeapHookScope {
 public:
  [[nodiscard]] explicit HeapHookScope(HeapHook& hook);
  ~HeapHookScope();
  HeapHookScope(const HeapHookScope&) = delete;
  HeapHookScope& operator=(const HeapHookScope&) = delete;

 private:
  HeapHook* previous_;
};

}  // namespace rensa

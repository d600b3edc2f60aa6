// Memory hooks that come with the library: one that prints each call, one that says which part of
// the program holds what. CuPy's DebugPrintHook and LineProfileHook. A hook of one's own derives
// from MemoryHook (memory_pool.h); MemoryHookScope installs it for a scope of the calling thread.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>

#include "rensa/device/memory_pool.h"

namespace rensa {

/// Prints a line of JSON for each request to a pool, each request to the driver and each free.
class DebugPrintHook : public MemoryHook {
 public:
  /// To standard output, or to `out`, which must outlive the hook.
  DebugPrintHook();
  explicit DebugPrintHook(std::ostream& out) : out_(&out) {}
  void alloc_postprocess(const MemoryEvent& event) override { print("alloc", event); }
  void malloc_postprocess(const MemoryEvent& event) override { print("malloc", event); }
  void free_postprocess(const MemoryEvent& event) override { print("free", event); }

 private:
  void print(const char* what, const MemoryEvent& event);
  std::ostream* out_;
};

/// Names what the calling thread does in a scope, for LineProfileHook:
/// `auto label = memory_label("forward");`. Labels nest. Costs a push and a pop where nobody looks.
class [[nodiscard]] MemoryLabel {
 public:
  [[nodiscard]] explicit MemoryLabel(std::string name);
  ~MemoryLabel();
  MemoryLabel(const MemoryLabel&) = delete;
  MemoryLabel& operator=(const MemoryLabel&) = delete;
};
/// A MemoryLabel for the rest of the scope.
inline MemoryLabel memory_label(std::string name) { return MemoryLabel(std::move(name)); }

struct LineProfileOptions {
  bool callers = true;  // show the functions on the call stack, not only the labels
  int max_depth = 8;    // of them, the innermost
  /// Functions whose names begin so are left out.
  std::string hidden = "rensa::";
};

/// Attributes bytes to the labels and functions that asked for them. Functions are named where the
/// program exports their names (shared libraries, programs linked with -rdynamic), else shown as
/// program+0x123, which addr2line reads.
class LineProfileHook : public MemoryHook {
 public:
  explicit LineProfileHook(LineProfileOptions options = {});
  ~LineProfileHook() override;
  LineProfileHook(const LineProfileHook&) = delete;
  LineProfileHook& operator=(const LineProfileHook&) = delete;

  void alloc_postprocess(const MemoryEvent& event) override;   // counts what came from the driver
  void malloc_postprocess(const MemoryEvent& event) override;  // counts what came from the pool
  /// A tree, one line per label or function: "forward (3.00 MiB, 4.00 MiB)": bytes asked of the
  /// pool, bytes that the pool asked of the driver for it.
  std::string report() const;
  void reset();  // forgets what was counted

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rensa

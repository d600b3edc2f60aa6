// Hooks of functions that come with the library, under Chainer's names: times, memory, inputs, and
// names for profilers.
//
//   function_hooks::TimerHook timer;
//   {
//     FunctionHookScope scope(timer);
//     loss = model(x, t);
//     loss.backward();
//   }
//   timer.print_report();
//
// A function's backward stands under its name with ", backward" behind it. What a function applies
// (matmul in the backward of linear) stands there itself too, and is part of its user's numbers;
// totals count it once. A captured step runs eagerly in the scope (function_hook.h).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rensa/autograd/function_hook.h"
#include "rensa/device/call_times.h"
#include "rensa/device/heap_hook.h"
#include "rensa/device/memory_pool.h"
#include "rensa/device/profiler.h"
#include "rensa/device/timeline.h"

namespace rensa::function_hooks {

/// How long functions take: on the CPU by the clock, on a GPU by events on its current stream. On a
/// GPU nothing waits until it is read; then what is not done yet is waited for. Where the host
/// queues work more slowly than the GPU does it, the GPU's time has gaps in it.
class TimerHook final : public FunctionHook {
 public:
  /// Each call, in the order in which they ended.
  const std::vector<TimedCall>& call_history() { return times_.history(); }
  /// Seconds of all functions.
  double total_time() { return times_.total(); }
  /// Seconds and numbers of calls by name.
  std::map<std::string, CallSummary> summary();
  /// The summary as a table, the longest time first. `unit` is "sec", "ms", "us", "ns", "auto" (one
  /// that fits all) or "auto_foreach"; ValueError for another.
  std::string str(std::string_view unit = "auto") { return times_.str("FunctionName", unit); }
  /// Prints it, to the standard output where no other stream is given.
  void print_report(std::string_view unit = "auto");
  void print_report(std::string_view unit, std::ostream& out);

  void forward_preprocess(const FunctionNode& function, const Variables& inputs) override;
  void forward_postprocess(const FunctionNode& function, const Variables& inputs) override;
  void backward_preprocess(const FunctionNode& function, const Variables& grad_outputs) override;
  void backward_postprocess(const FunctionNode& function, const Variables& grad_outputs) override;

 private:
  CallTimes times_;
};

/// One call, and the bytes that it asked for: `used_bytes` of the pools (on the CPU, of the heap's
/// blocks), `acquired_bytes` of the driver (of the system) because there was no free block for it.
/// What it gives back again is not taken off: MemoryReport has what is held at a peak.
struct MemoryCall {
  std::string name;  // the function's
  std::int64_t used_bytes = 0, acquired_bytes = 0;
  int depth = 0;  // calls that it is within
};
/// All calls of one name.
struct MemorySummary {
  std::int64_t used_bytes = 0, acquired_bytes = 0, occurrence = 0;  // bytes, and how many calls
};

/// How much memory functions ask for, on all devices together. Nothing waits.
class MemoryProfileHook final : public FunctionHook, private MemoryHook, private HeapHook {
 public:
  /// Every call so far, in the order in which they ended.
  const std::vector<MemoryCall>& call_history() const { return calls_; }
  std::int64_t total_used_bytes() const { return total_.used_bytes; }          // of all calls
  std::int64_t total_acquired_bytes() const { return total_.acquired_bytes; }  // of all calls
  std::map<std::string, MemorySummary> summary() const;  // by the functions' names
  /// The summary as a table, who used the most first. `unit` is "B", "KB", "MB", "GB" (powers of
  /// 1024), "auto" (one that fits all) or "auto_foreach"; ValueError for another.
  std::string str(std::string_view unit = "auto") const;
  /// Prints it, to the standard output where no other stream is given.
  void print_report(std::string_view unit = "auto") const;
  void print_report(std::string_view unit, std::ostream& out) const;

  void added() override;
  void deleted() override;
  void forward_preprocess(const FunctionNode& function, const Variables& inputs) override;
  void forward_postprocess(const FunctionNode& function, const Variables& inputs) override;
  void backward_preprocess(const FunctionNode& function, const Variables& grad_outputs) override;
  void backward_postprocess(const FunctionNode& function, const Variables& grad_outputs) override;

 private:
  void malloc_postprocess(const MemoryEvent& event) override;
  void alloc_postprocess(const MemoryEvent& event) override;
  void heap_malloc(const void* data, std::int64_t nbytes) override;
  void heap_free(const void* /*data*/) override {}
  void heap_acquired(std::int64_t nbytes) override;
  void end(std::string name);

  struct Listening {
    explicit Listening(MemoryProfileHook& hook) : of_pools(hook), of_heap(hook) {}
    MemoryHookScope of_pools;
    HeapHookScope of_heap;
  };
  std::optional<Listening> listening_;
  MemorySummary so_far_, total_;
  std::vector<MemorySummary> running_;  // what there was as they began
  std::vector<MemoryCall> calls_;
};
/// Chainer's name.
using CupyMemoryProfileHook = MemoryProfileHook;

/// Prints each function, with its inputs or the gradients of its outputs: shape, dtype, device,
/// mean and standard deviation of each. Waits for the device at each of them; `statistics = false`
/// leaves those out and does not wait.
class PrintHook final : public FunctionHook {
 public:
  /// To the standard output, or to `out`, which must outlive the hook.
  explicit PrintHook(bool statistics = true);
  explicit PrintHook(std::ostream& out, bool statistics = true)
      : out_(&out), statistics_(statistics) {}

  void forward_preprocess(const FunctionNode& function, const Variables& inputs) override;
  void backward_preprocess(const FunctionNode& function, const Variables& grad_outputs) override;

 private:
  void print(const char* title, const Variables& variables);
  std::ostream* out_;
  bool statistics_;
};

/// Names functions for those who look at the program from outside: a range of NVTX for NVIDIA's
/// profilers (device/profiler.h), and a range in a timeline that is being recorded
/// (device/timeline.h), around what the host does for each function. Chainer's also starts and
/// stops the profiler; that is cuda::Profile here.
class CUDAProfileHook final : public FunctionHook {
 public:
  void forward_preprocess(const FunctionNode& function, const Variables& inputs) override;
  void forward_postprocess(const FunctionNode& function, const Variables& inputs) override;
  void backward_preprocess(const FunctionNode& function, const Variables& grad_outputs) override;
  void backward_postprocess(const FunctionNode& function, const Variables& grad_outputs) override;

 private:
  struct Ranges {
    explicit Ranges(const std::string& name) : of_nvtx(name), of_timeline(name) {}
    cuda::TimeRange of_nvtx;
    timeline::Range of_timeline;
  };
  std::vector<std::unique_ptr<Ranges>> open_;
};

}  // namespace rensa::function_hooks

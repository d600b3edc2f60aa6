// Operation: a typed description of one piece of work: what, with which attributes, on which
// operands. The Launcher runs it or hands it to a recorder; descriptions can be copied, compared by
// type, given other operands and run again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rensa/core/array_view.h"
#include "rensa/device/host_scalar.h"
#include "rensa/device/storage.h"

namespace rensa {

/// An array as an operation holds it: the view, and whose memory it is. Whoever made the operation
/// keeps the storage alive while it runs; a recorder takes a handle of its own.
struct Operand {
  ArrayView view;
  Storage* storage = nullptr;
  /// That nothing before this operation in a graph writes what it reads there: a kernel may read it
  /// before wait_for_previous().
  bool settled = false;
  bool present() const { return storage != nullptr; }  // whether there is an array
};

/// What an operation shows its operands to.
class OperandVisitor {
 public:
  virtual ~OperandVisitor() = default;
  virtual void read(Operand& operand) = 0;   // the operation reads it
  virtual void write(Operand& operand) = 0;  // fully or partly overwritten, perhaps read as well
  /// A parameter that its optimizer writes to: graphs that were made before may still be used.
  virtual void update(Operand& operand) { write(operand); }
  virtual void scalar(HostScalar&) {}  // a number that replays ask anew
};

namespace cuda {
/// What a CUDA backend runs an operation with.
struct LaunchContext {
  Device device;                // whose stream it is
  StreamState* stream;          // where the work is queued
  void* handle;                 // cudaStream_t
  void* workspace;              // scratch of Operation::workspace_bytes(), for this call alone
  std::size_t workspace_bytes;  // of `workspace`
  unsigned int* semaphores;     // kSemaphores counters, zero on entry and left zero
  void* error_word;             // device pointer to the device's ErrorWord
};
inline constexpr int kSemaphores = 1024;  // of a LaunchContext
}  // namespace cuda

class Operation {
 public:
  /// `name` is NumPy's or Chainer's: it stands in errors, NVTX ranges and timelines.
  explicit Operation(const char* name) : name_(name) {}
  virtual ~Operation() = default;

  const char* name() const { return name_; }
  // A kind derives these three from one list of its fields: device/kind.h.
  /// Every operand in a fixed order, absent ones left out; then every HostScalar.
  virtual void visit(OperandVisitor& visitor) = 0;
  /// Appends, by their bits, the numbers that decide what it does beside its name, its operands and
  /// its HostScalars, and which operands are present: operations that are equal in all of these do
  /// the same.
  virtual void numbers(std::vector<std::int64_t>& bits) = 0;
  /// A copy, for a recording; its operands are the same.
  virtual std::unique_ptr<Operation> clone() const = 0;

  /// Runs to the end on the calling thread and the CPU pool.
  virtual void run_cpu() = 0;
  /// Queues the work on `context.stream`; makes no allocation and no wait.
  virtual void run_cuda(const cuda::LaunchContext& context) = 0;
  /// Scratch that run_cuda wants.
  virtual std::size_t workspace_bytes() const { return 0; }
  /// Whether its operands may lie on several devices: it runs on the last one's, or on the first
  /// one's towards the host.
  virtual bool is_between_devices() const { return false; }

 private:
  const char* name_;
};

}  // namespace rensa

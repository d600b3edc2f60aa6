// Trace: the operations of a function, as fuse() sees them: a graph of values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/core/reductions.h"
#include "rensa/device/tracer.h"
#include "rensa/operations/pointwise/pointwise.h"

namespace rensa::detail {

/// What an operation of a trace reads.
struct TracedInput {
  enum class Kind : unsigned char { number, array, value };
  Kind kind = Kind::number;
  Scalar number;
  Operand array;  // broadcast to the operation's shape; data of a value's view is an offset
  int value = -1;
};

/// The inputs of an operation, by their numbers.
class TracedInputs {
 public:
  void resize(int n) { list_.resize(static_cast<std::size_t>(n)); }
  TracedInput& operator[](int k) { return list_[static_cast<std::size_t>(k)]; }
  const TracedInput& operator[](int k) const { return list_[static_cast<std::size_t>(k)]; }

 private:
  std::vector<TracedInput> list_;
};

/// One value: what an operation makes, C-contiguous. An operation that makes several is several
/// values with the same inputs.
struct TracedValue {
  bool reduction = false;
  // What makes it: reduce_by where it is a reduction, else output number `output` of the pointwise
  // row, else the ufunc.
  Ufunc ufunc;
  Reduction reduce_by;
  const PointwiseRow* row = nullptr;
  int output = 0;
  unsigned axes = 0;  // of a reduction: its input has this value's shape but for these
  Dtype compute = Dtype::float32, dtype = Dtype::float32;
  Shape shape;
  Device device;
  int num_inputs = 0;
  TracedInputs in;
  /// What makes it, for names of kernels.
  const char* name() const;
};

/// An operation that makes every element of its outputs of one element of each input.
struct PerElement {
  std::span<const operations::ElementwiseInput> in;
  std::span<const Operand> out;
  /// Output k as a value; its inputs are numbered and still to be set.
  TracedValue value(int k) const;

  Dtype compute;
  Ufunc ufunc;              // where there is no row
  const PointwiseRow* row;  // null: the ufunc
};
/// `operation` seen so, as long as it lives; none where it is of another kind.
std::optional<PerElement> per_element(const Operation& operation);

class Trace final : public Tracer {
 public:
  explicit Trace(Recorder* outer) : outer_(outer) {
    values_.reserve(16);
    kept_.reserve(32);
  }

  void operation(Operation& operation) override;
  void effect(std::function<void()> effect, double number, EffectTarget target) override;
  int scalar(std::function<HostScalar()> source) override;
  void output(const ArrayView& view, Storage* storage,
              std::function<void(StoragePtr, const ArrayView&)> use) override;
  void binding(std::function<const Storage*()> current) override;
  void watch(std::function<std::vector<std::string>()> numbers) override;
  void state(const std::shared_ptr<StateBody>& state, bool reads) override;
  [[noreturn]] void cannot_record(const char* reason) override { refuse(reason); }
  StoragePtr allocate(std::int64_t nbytes, Device device) override;
  [[noreturn]] void refuse(const char* what) override;
  Recorder* outer() const override { return outer_; }

  /// The function has run: whoever still holds one of its arrays has nothing that can be read.
  void end();

  /// Whether the array stands for a value of this trace.
  bool is_symbolic(const Array& a) const { return bases_.count(a.storage().get()) != 0; }
  /// The value that a symbolic array, or view of one, shows; -1: none was written.
  int value_of(const Array& a) const;
  /// Bytes from the value's first element to the view's.
  std::int64_t offset_of(const Array& a) const;

  const std::vector<TracedValue>& values() const { return values_; }
  /// Everything that a plan depends on: equal for traces that differ in addresses and numbers only.
  std::string key(const std::vector<int>& outputs) const;

 private:
  class SymbolicStorage;
  void per_element_operation(const char* name, const PerElement& op);
  TracedInput input_of(const char* name, const Operand& operand) const;
  void define(const char* name, const Operand& out, TracedValue value);

  Recorder* outer_;
  std::vector<TracedValue> values_;
  std::unordered_map<const Storage*, int> bases_;  // symbolic memory, by its present value or -1
  std::vector<StoragePtr> kept_;                   // what operations touch stays
  std::vector<SymbolicStorage*> symbolic_;         // of kept_, until the end
  std::uintptr_t next_address_ = std::uintptr_t{1} << 60;  // no machine has memory there
};

}  // namespace rensa::detail

// How an operation is noted, and how two notes of a step differ.
#include "rensa/graph/outline.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "rensa/device/compare_operations.h"
#include "rensa/device/operations.h"
#include "rensa/device/pointwise_operations.h"
#include "rensa/device/random_operations.h"
#include "rensa/device/runtime_kernel.h"
#include "rensa/device/signal_operations.h"
#include "rensa/device/sort_operations.h"
#include "rensa/device/triangle_operations.h"

namespace rensa {

namespace {

using Numbers = std::vector<std::int64_t>;

/// Operands in order, and the numbers that replays do not ask for anew.
struct Operands final : OperandVisitor {
  struct Seen {
    Operand* operand;
    bool write, counts;  // counts: as a write that launch() counted
  };
  void read(Operand& operand) override { seen.push_back({&operand, false, false}); }
  void write(Operand& operand) override { seen.push_back({&operand, true, true}); }
  void update(Operand& operand) override { seen.push_back({&operand, true, false}); }
  void scalar(HostScalar& scalar) override {
    numbers.push_back(scalar.slot < 0 ? scalar.integer : -1);
  }
  std::vector<Seen> seen;
  Numbers numbers;
};

void put(Numbers& numbers, std::int64_t value) { numbers.push_back(value); }
void put(Numbers& numbers, double value) { numbers.push_back(std::bit_cast<std::int64_t>(value)); }
void put(Numbers& numbers, const Scalar& value) {
  put(numbers, std::int64_t{value.kind()});
  if (value.is_integral()) put(numbers, value.integer());
  else put(numbers, value.real()), put(numbers, value.imag());
}
void put(Numbers& numbers, const ElementwiseInput& input) {
  if (!input.array.present()) put(numbers, input.scalar);
}
void put(Numbers& numbers, const Closeness& closeness) {
  put(numbers, closeness.rtol), put(numbers, closeness.atol);
}

// The numbers of each kind of operation that has some beside its operands, as far as a program may
// make them other ones from call to call.
void put(Numbers& numbers, const Elementwise& op) {
  for (int k = 0; k < op.num_inputs; ++k) put(numbers, op.in[k]);
}
void put(Numbers& numbers, const Pointwise& op) {
  for (const ElementwiseInput& input : op.in) put(numbers, input);
}
void put(Numbers& numbers, const Reduce& op) { put(numbers, std::int64_t{op.axes}); }
void put(Numbers& numbers, const Matmul& op) { put(numbers, op.alpha); }
void put(Numbers& numbers, const Arange& op) { put(numbers, op.start), put(numbers, op.step); }
void put(Numbers& numbers, const Random& op) {
  put(numbers, op.a), put(numbers, op.b);
  put(numbers, std::int64_t{op.low}), put(numbers, static_cast<std::int64_t>(op.span));
}
void put(Numbers& numbers, const Variates& op) {
  for (const ElementwiseInput& parameter : op.parameters) put(numbers, parameter);
}
void put(Numbers& numbers, const Dropout& op) { put(numbers, op.ratio); }
void put(Numbers& numbers, const SoftmaxCrossEntropy& op) {
  put(numbers, std::int64_t{op.normalize}), put(numbers, std::int64_t{op.ignore_label});
}
void put(Numbers& numbers, const Accuracy& op) {
  put(numbers, std::int64_t{op.has_ignore_label}), put(numbers, std::int64_t{op.ignore_label});
}
void put(Numbers& numbers, const Triangle& op) { put(numbers, op.k); }
void put(Numbers& numbers, const TriangleIndices& op) { put(numbers, op.k); }
void put(Numbers& numbers, const IsClose& op) { put(numbers, op.closeness); }
void put(Numbers& numbers, const AllClose& op) { put(numbers, op.closeness); }
void put(Numbers& numbers, const Sort& op) { put(numbers, std::int64_t{op.kth}); }
void put(Numbers& numbers, const Correlate& op) { put(numbers, op.offset); }
void put(Numbers& numbers, const Interpolate& op) {
  put(numbers, op.before), put(numbers, op.after);
}
/// What a kernel of the user's gets by value, and what it is launched with.
void put(Numbers& numbers, const RuntimeKernel& op) {
  const void* code = op.function ? op.function : std::bit_cast<const void*>(op.host_function);
  put(numbers, std::bit_cast<std::int64_t>(code));
  numbers.insert(numbers.end(), {op.grid.x, op.grid.y, op.grid.z, op.block.x, op.block.y,
                                 op.block.z, op.size, op.second_size});
  for (std::size_t k = 0; k < op.arguments.size(); ++k) {
    std::vector<std::byte> bytes = op.arguments[k].bytes;
    auto clear = [&](std::size_t offset, std::size_t count) {
      for (std::size_t i = offset; i < std::min(offset + count, bytes.size()); ++i) bytes[i] = {};
    };
    for (const auto& pointer : op.arguments[k].pointers) clear(pointer.offset, sizeof(void*));
    if (k == 0 && op.scratch_bytes > 0) clear(op.scratch_offset, 2 * sizeof(void*));
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    put(numbers, static_cast<std::int64_t>(std::hash<std::string_view>()(text)));
  }
}

template <class Kind> bool put_if(Numbers& numbers, const Operation& operation) {
  const auto* op = dynamic_cast<const Kind*>(&operation);
  if (op) put(numbers, *op);
  return op != nullptr;
}

void put_numbers_of(Numbers& numbers, const Operation& operation) {
  auto put_first_of = [&]<class... Kinds>(std::type_identity<std::tuple<Kinds...>>) {
    (void)(put_if<Kinds>(numbers, operation) || ...);
  };
  put_first_of(std::type_identity<
               std::tuple<Elementwise, Pointwise, Reduce, Matmul, Arange, Random, Variates, Dropout,
                          SoftmaxCrossEntropy, Accuracy, Triangle, TriangleIndices, IsClose,
                          AllClose, Sort, Correlate, Interpolate, RuntimeKernel>>());
}

std::string described(const Shape& shape, Dtype dtype) {
  return fmt::format("{} {}", dtype_name(dtype), shape.str());
}

}  // namespace

void Outline::add_stand_in(const Storage* storage) {
  places_.insert_or_assign(storage, Place{Place::Kind::stand_in, stand_ins_++});
}

Outline::Place Outline::new_place(Storage* storage, int writes) {
  bool is_new = writes > 0 && storage->version() == static_cast<std::uint32_t>(writes);
  std::vector<Storage*>& list = is_new ? made_ : found_;
  Place place = is_new ? Place{Place::Kind::made, made_.size()}
                       : Place{Place::Kind::found, reinterpret_cast<std::uintptr_t>(storage)};
  list.push_back(storage);
  places_.emplace(storage, place);
  return place;
}

void Outline::add(Operation& operation) {
  Operands operands;
  operation.visit(operands);
  Step step{operation.name(), {}, std::move(operands.numbers)};
  step.uses.reserve(operands.seen.size());
  for (const Operands::Seen& seen : operands.seen) {
    const ArrayView& view = seen.operand->view;
    Storage* storage = seen.operand->storage;
    if (view.size() == 0) continue;  // nothing is read or written
    Use use{seen.write, {}, view.data - storage->data(), view.dtype, view.shape, view.strides};
    auto known = places_.find(storage);
    if (storage->is_foreign()) {  // each run may wrap the memory anew
      use.place = {Place::Kind::foreign, reinterpret_cast<std::uintptr_t>(view.data)};
      use.offset = 0;
    } else if (known != places_.end()) {
      use.place = known->second;
    } else {
      auto writes = std::ranges::count_if(operands.seen, [&](const Operands::Seen& other) {
        return other.counts && other.operand->storage == storage;
      });
      use.place = new_place(storage, static_cast<int>(writes));
    }
    step.uses.push_back(std::move(use));
  }
  put_numbers_of(step.numbers, operation);
  steps_.push_back(std::move(step));
}

bool Outline::made(const Storage* storage) const {
  auto known = places_.find(storage);
  return known != places_.end() && known->second.kind == Place::Kind::made;
}

std::string Outline::difference(const Outline& later) const {
  for (std::size_t i = 0; i < std::min(steps_.size(), later.steps_.size()); ++i) {
    const Step &a = steps_[i], &b = later.steps_[i];
    std::string where = fmt::format("operation {} ({})", i, b.name);
    if (std::string_view(a.name) != b.name || a.uses.size() != b.uses.size()) {
      return fmt::format("{} was {} before", where, a.name);
    }
    for (std::size_t k = 0; k < a.uses.size(); ++k) {
      const Use &x = a.uses[k], &y = b.uses[k];
      if (x == y) continue;
      const char* verb = y.write ? "writes" : "reads";
      if (x.dtype != y.dtype || !(x.shape == y.shape)) {
        return fmt::format("{} {} {}, and {} before", where, verb, described(y.shape, y.dtype),
                           described(x.shape, x.dtype));
      }
      if (x.place == y.place) {
        return fmt::format("{} {} other elements of {} than before", where, verb,
                           described(y.shape, y.dtype));
      }
      return fmt::format(
          "{} {} another array {} than before: one that the step, or who calls it, "
          "replaces. A State is replayed (autograd/state.h), and so is an array that is written "
          "in place",
          where, verb, described(y.shape, y.dtype));
    }
    if (a.numbers != b.numbers) {
      return fmt::format("{} has other numbers than before", where);
    }
  }
  if (steps_.size() == later.steps_.size()) {
    return actions_ == later.actions_ ? ""
                                      : "what it does on the host (counts, gradients that it sets, "
                                        "reports, random numbers) is not what it was before";
  }
  return fmt::format("it has {} operations, and had {} before", later.steps_.size(), steps_.size());
}

}  // namespace rensa

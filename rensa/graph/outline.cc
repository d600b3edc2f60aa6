// How an operation is noted, and how two notes of a step differ.
#include "rensa/graph/outline.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace rensa {

namespace {

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
  std::vector<std::int64_t> numbers;
};

std::string described(const Shape& shape, Dtype dtype) {
  return fmt::format("{} {}", dtype_name(dtype), shape.str());
}

}  // namespace

void Outline::add_stand_in(const Storage* storage) {
  places_.insert_or_assign(storage, Place{Place::Kind::stand_in, stand_ins_++});
}

Outline::Place Outline::new_place(Storage* storage, int writes) {
  bool is_new = writes > 0 && storage->version() == static_cast<std::uint32_t>(writes);
  Place place = is_new ? Place{Place::Kind::made, num_made_++}
                       : Place{Place::Kind::found, reinterpret_cast<std::uintptr_t>(storage)};
  if (is_new) made_.insert(storage);
  else found_.push_back(storage);
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
  operation.numbers(step.numbers);
  steps_.push_back(std::move(step));
}

void Outline::forget(Storage* storage) {
  if (made_.erase(storage) != 0) places_.erase(storage);
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

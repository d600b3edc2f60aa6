// KindOf: what a kind of operation derives from. A kind lists its fields once; what shows its
// operands, tells its numbers and copies it follows from that list.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "rensa/core/scalar.h"
#include "rensa/device/operation.h"

namespace rensa {

/// Shows a kind's operands and host numbers to an OperandVisitor: what Operation::visit does with
/// the kind's list of fields.
class OperandFields {
 public:
  explicit OperandFields(OperandVisitor& visitor) : visitor_(visitor) {}
  template <class... Operands> void read(Operands&... operands) {
    (show([this](Operand& o) { visitor_.read(o); }, operands), ...);
  }
  template <class... Operands> void write(Operands&... operands) {
    (show([this](Operand& o) { visitor_.write(o); }, operands), ...);
  }
  template <class... Operands> void update(Operands&... operands) {
    (show([this](Operand& o) { visitor_.update(o); }, operands), ...);
  }
  template <class... Scalars> void scalar(Scalars&... scalars) { (visitor_.scalar(scalars), ...); }
  template <class... Numbers> void number(const Numbers&...) {}

 private:
  template <class F> static void show(const F& f, Operand& operand) {
    if (operand.present()) f(operand);
  }
  OperandVisitor& visitor_;
};

/// Notes a kind's numbers, and which of its operands there are (the others are numbers, or
/// nothing): what Operation::numbers does with the same list.
class NumberFields {
 public:
  explicit NumberFields(std::vector<std::int64_t>& bits) : bits_(bits) {}
  template <class... Operands> void read(const Operands&... operands) {
    (put(operands.present()), ...);
  }
  template <class... Operands> void write(const Operands&... operands) { read(operands...); }
  template <class... Operands> void update(const Operands&... operands) { read(operands...); }
  template <class... Scalars> void scalar(const Scalars&...) {}
  template <class... Numbers> void number(const Numbers&... numbers) { (put(numbers), ...); }

 private:
  template <class T> void put(T value) {
    if constexpr (std::is_floating_point_v<T>) {
      bits_.push_back(std::bit_cast<std::int64_t>(static_cast<double>(value)));
    } else if constexpr (std::is_pointer_v<T>) {
      bits_.push_back(reinterpret_cast<std::intptr_t>(value));
    } else {
      bits_.push_back(static_cast<std::int64_t>(value));
    }
  }
  void put(const Scalar& value) {
    put(value.kind());
    if (value.is_integral()) put(value.integer());
    else put(value.real()), put(value.imag());
  }
  std::vector<std::int64_t>& bits_;
};

/// A kind of operation is a struct of namespace rensa::operations in a folder of its own
/// (operations/<subject>/), with one list of its fields:
///
///   struct Triangle final : KindOf<Triangle> {
///     ...
///     template <class V> void fields(V& v) { v.read(in), v.write(out), v.number(lower, k); }
///
/// read, write and update take operands, those it reads first, since errors name operands in this
/// order; absent ones are passed over. scalar takes HostScalars, and number what else decides what
/// the operation does: integers, floats, enums, Scalars, addresses.
template <class Kind> class KindOf : public Operation {
 public:
  using Operation::Operation;
  void visit(OperandVisitor& visitor) override {
    OperandFields fields(visitor);
    static_cast<Kind&>(*this).fields(fields);
  }
  void numbers(std::vector<std::int64_t>& bits) override {
    NumberFields fields(bits);
    static_cast<Kind&>(*this).fields(fields);
  }
  std::unique_ptr<Operation> clone() const override {
    return std::make_unique<Kind>(static_cast<const Kind&>(*this));
  }
};

}  // namespace rensa

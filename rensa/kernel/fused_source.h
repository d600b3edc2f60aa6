// The text of a fused kernel, written value by value.
#pragma once

#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rensa/kernel/fused_plan.h"

namespace rensa::detail {

/// Which axis of a value each axis of a kernel walks; -1: none, the value is the same along it.
using AxisMap = std::array<int, kMaxNdim>;
AxisMap walk_axes(const Shape& shape);  // its own, but for those of one element
/// What `outer` walks by `inner`'s axes.
AxisMap join_axes(const AxisMap& outer, const AxisMap& inner);

/// Finds which axis of `value` each axis of an operation walks by its input `in`, a view of the
/// value. False where a view is no such choice of axes: the value then has to be in memory.
bool find_axes(const TracedInput& in, const TracedValue& value, AxisMap* axes);

/// For each array that the operations of a trace read, the first that does, and as which input: one
/// array is one input of a kernel, whoever reads it.
class FirstReaders {
 public:
  explicit FirstReaders(const std::vector<TracedValue>& values);
  std::pair<int, int> of(const Operand& array) const { return first_.at(identity(array)); }

 private:
  using Identity = std::tuple<const Storage*, const char*, Dtype>;
  static Identity identity(const Operand& array) {
    return {array.storage, array.view.data, array.view.dtype};
  }
  std::map<Identity, std::pair<int, int>> first_;
};

/// Statements that compute values of a trace at the elements of `shape`.
class FusedSource {
 public:
  /// Values with `in_memory` are read from it. `inputs` are those of the whole kernel; arrays read
  /// here are of `kind`.
  FusedSource(const std::vector<TracedValue>& values, const FirstReaders& readers,
              const std::vector<bool>& in_memory, ArgumentKind kind, const Shape& shape,
              std::vector<FusedInput>& inputs)
      : values_(values),
        readers_(readers),
        in_memory_(in_memory),
        kind_(kind),
        shape_(shape),
        inputs_(inputs) {}

  /// The name of a value's element, after the statements that make it.
  std::string value(int v, const AxisMap& axes);
  /// Makes the operation's value even where it is otherwise read from memory.
  std::string compute(int v, const AxisMap& axes);
  /// What the reduction's map takes: its input, as a value of its compute type.
  std::string reduced_input(int reduction);
  /// Makes the value of the reduction `v` from its accumulator `a`, for the statements that follow.
  void start_from(int v);
  /// name = expression, in which '@' stands behind what is one value per element.
  void assign(const std::string& name, const std::string& expression);

  const std::string& statements() const { return statements_; }  // of an element
  const std::string& blocks() const { return blocks_; }          // of kHostBlock elements
  /// `expression` for an element, or element e of a block.
  static std::string spell(const std::string& expression, bool block);

 private:
  std::string name_new(std::string_view type);
  std::string define(std::string_view type, const std::string& expression);
  std::string apply(std::string_view type, const std::string& function,
                    const std::string& arguments);
  std::string stored(int from, int input, const AxisMap& axes);
  std::string read(int from, int input, const AxisMap& axes, bool truth);
  Shape walked(const Shape& strides, const AxisMap& axes) const;
  std::string array(FusedInput input);

  const std::vector<TracedValue>& values_;
  const FirstReaders& readers_;
  const std::vector<bool>& in_memory_;
  ArgumentKind kind_;
  const Shape& shape_;
  std::vector<FusedInput>& inputs_;
  std::map<std::pair<int, AxisMap>, std::string> known_;
  std::string statements_, blocks_;
  int count_ = 0;
};

/// The name by which a kernel's text knows its k-th input.
std::string input_name(std::size_t k);

}  // namespace rensa::detail

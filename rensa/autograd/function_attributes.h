// FunctionAttributes: what a function was made with besides its inputs.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "rensa/array/array.h"

namespace rensa {

/// The settings of a function by their names: "stride", "axis". What the shapes and dtypes of
/// inputs and outputs say already is left out. FunctionNode::attributes() gives them to what writes
/// a graph down, as serializers::export_onnx.
struct FunctionAttributes {
  std::map<std::string, std::int64_t> integers = {};  // 0 and 1 for a flag
  std::map<std::string, double> numbers = {};         // floating settings: "slope", "eps"
  std::map<std::string, Shape> lists = {};            // lists of integers: "axes", "pads"
  std::map<std::string, Array> arrays = {};           // not among the inputs: they have no gradient
};

}  // namespace rensa

// The part of an ONNX file's model that is written and read here, and its bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "rensa/array/array.h"

namespace rensa::serializers {

/// The versions of ONNX's operators that are written and read.
constexpr std::int64_t kFirstOpset = 17, kLastOpset = 21;

/// An extent, or the name of one that is known when the model runs.
using OnnxExtent = std::variant<std::int64_t, std::string>;

/// An input or an output of the whole.
struct OnnxValue {
  std::string name;
  Dtype dtype = Dtype::float32;
  std::vector<OnnxExtent> shape = {};
};

using OnnxAttribute =
    std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, Array>;

struct OnnxNode {
  std::string op, name;
  std::vector<std::string> inputs, outputs;  // an empty name: an input that is left out
  std::map<std::string, OnnxAttribute> attributes = {};
};

struct OnnxGraph {
  std::int64_t opset = kFirstOpset;
  std::vector<OnnxValue> inputs = {}, outputs = {};
  std::vector<std::pair<std::string, Array>> initializers = {};  // on the CPU, in C order
  std::vector<OnnxNode> nodes = {};
};

/// ONNX's number of a dtype. Throws DtypeError, beginning with `what`, for one it has not.
std::int64_t onnx_dtype(const std::string& what, Dtype dtype);
/// Throws SerializationError for a number that arrays have no dtype for.
Dtype dtype_of_onnx(std::string_view file, std::int64_t number);

/// The bytes of a file. Throws DtypeError; ValueError for more than the 2 GiB that a message has.
std::string encode_onnx(const OnnxGraph& graph);
/// Throws SerializationError naming `file` for what is damaged (all sizes are held against the
/// bytes that are there), has another opset, or other kinds of values than those above.
OnnxGraph decode_onnx(std::string_view bytes, std::string_view file);

}  // namespace rensa::serializers

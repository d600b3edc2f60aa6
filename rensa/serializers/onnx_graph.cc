// ONNX's messages: fields and their numbers are those of onnx.proto.
#include "rensa/serializers/onnx_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <span>

#include "rensa/array/creation.h"
#include "rensa/array/npy.h"
#include "rensa/core/error.h"
#include "rensa/serializers/protobuf.h"

namespace rensa::serializers {

namespace {

constexpr std::int64_t kIrVersion = 8;  // of the file format; that of opset 17

constexpr std::array<std::pair<std::int64_t, Dtype>, 13> kDtypes = {{{1, Dtype::float32},
                                                                     {2, Dtype::uint8},
                                                                     {3, Dtype::int8},
                                                                     {4, Dtype::uint16},
                                                                     {5, Dtype::int16},
                                                                     {6, Dtype::int32},
                                                                     {7, Dtype::int64},
                                                                     {9, Dtype::bool_},
                                                                     {10, Dtype::float16},
                                                                     {11, Dtype::float64},
                                                                     {12, Dtype::uint32},
                                                                     {13, Dtype::uint64},
                                                                     {16, Dtype::bfloat16}}};

// AttributeProto's types.
constexpr std::int64_t kFloat = 1, kInt = 2, kString = 3, kTensor = 4, kInts = 7;

[[noreturn]] void fail(std::string_view file, const std::string& what) {
  throw SerializationError(fmt::format("{}: {}", file, what));
}

// --- Writing ---

ProtobufWriter tensor(const std::string& name, const Array& array) {
  ProtobufWriter w;
  for (std::int64_t extent : array.shape()) w.integer(1, extent);
  w.integer(2, onnx_dtype(fmt::format("export_onnx: \"{}\"", name), array.dtype()));
  if (!name.empty()) w.bytes(8, name);
  w.bytes(9, bytes_of(array));
  return w;
}

ProtobufWriter attribute(const std::string& name, const OnnxAttribute& value) {
  ProtobufWriter w;
  w.bytes(1, name);
  if (const auto* i = std::get_if<std::int64_t>(&value)) {
    w.integer(3, *i), w.integer(20, kInt);
  } else if (const auto* f = std::get_if<float>(&value)) {
    w.real(2, *f), w.integer(20, kFloat);
  } else if (const auto* s = std::get_if<std::string>(&value)) {
    w.bytes(4, *s), w.integer(20, kString);
  } else if (const auto* array = std::get_if<Array>(&value)) {
    w.message(5, tensor("", *array)), w.integer(20, kTensor);
  } else {
    for (std::int64_t i : std::get<std::vector<std::int64_t>>(value)) w.integer(8, i);
    w.integer(20, kInts);
  }
  return w;
}

ProtobufWriter node(const OnnxNode& node) {
  ProtobufWriter w;
  for (const std::string& name : node.inputs) w.bytes(1, name);
  for (const std::string& name : node.outputs) w.bytes(2, name);
  w.bytes(3, node.name);
  w.bytes(4, node.op);
  for (const auto& [name, value] : node.attributes) w.message(5, attribute(name, value));
  return w;
}

ProtobufWriter value_info(const OnnxValue& value) {
  ProtobufWriter shape, tensor_type, type, w;
  for (const OnnxExtent& extent : value.shape) {
    ProtobufWriter dim;
    if (const auto* number = std::get_if<std::int64_t>(&extent)) dim.integer(1, *number);
    else dim.bytes(2, std::get<std::string>(extent));
    shape.message(1, dim);
  }
  tensor_type.integer(1, onnx_dtype(fmt::format("export_onnx: \"{}\"", value.name), value.dtype));
  tensor_type.message(2, shape);
  type.message(1, tensor_type);
  w.bytes(1, value.name);
  w.message(2, type);
  return w;
}

// --- Reading ---

/// Calls take(field) for each field of a message.
template <class Take> void each_field(std::string_view message, std::string_view file, Take take) {
  ProtobufReader reader(message, file);
  ProtobufField field;
  while (reader.next(field)) take(field);
}

std::string text(const ProtobufField& field) { return std::string(field.bytes()); }

/// The shape of extents that a file has; the elements' bytes are `available`.
Shape checked_shape(std::string_view file, const std::string& name,
                    const std::vector<std::int64_t>& dims, Dtype dtype, std::size_t available) {
  if (dims.size() > static_cast<std::size_t>(kMaxNdim)) {
    fail(file, fmt::format("tensor \"{}\" has {} axes; arrays have at most {}", name, dims.size(),
                           kMaxNdim));
  }
  Shape shape;
  std::int64_t bytes = itemsize(dtype), nonzero = bytes;
  for (std::int64_t extent : dims) {
    if (extent < 0 ||
        __builtin_mul_overflow(nonzero, std::max<std::int64_t>(extent, 1), &nonzero)) {
      fail(file, fmt::format("tensor \"{}\" has an extent of {}", name, extent));
    }
    bytes *= extent;  // no more than `nonzero`
    shape.push_back(extent);
  }
  if (static_cast<std::uint64_t>(bytes) != available) {
    fail(file, fmt::format("tensor \"{}\": {} {} has {} bytes, not {}", name, dtype_name(dtype),
                           shape.str(), bytes, available));
  }
  return shape;
}

std::pair<std::string, Array> read_tensor(std::string_view message, std::string_view file) {
  std::string name;
  std::vector<std::int64_t> dims;
  std::int64_t type = 0;
  std::optional<std::string_view> raw;
  bool elsewhere = false;
  each_field(message, file, [&](const ProtobufField& f) {
    switch (f.number()) {
      case 1: f.each_integer([&](std::int64_t extent) { dims.push_back(extent); }); break;
      case 2: type = f.integer(); break;
      case 8: name = text(f); break;
      case 9: raw = f.bytes(); break;
      case 4:
      case 5:
      case 6:
      case 7:
      case 10:
      case 11:
      case 13: elsewhere = true; break;
      case 14: elsewhere = elsewhere || f.integer() != 0; break;
      default: break;
    }
  });
  if (elsewhere) {
    fail(file, fmt::format("tensor \"{}\" has its elements elsewhere than in raw_data, which is "
                           "all that is read",
                           name));
  }
  Dtype dtype = dtype_of_onnx(file, type);
  std::string_view bytes = raw.value_or(std::string_view());
  Shape shape = checked_shape(file, name, dims, dtype, bytes.size());
  if (dtype == Dtype::bool_ && std::ranges::any_of(bytes, [](char c) { return c & ~1; })) {
    fail(file, fmt::format("tensor \"{}\": a bool is neither 0 nor 1", name));
  }
  Array array = xp::empty(shape, dtype, cpu());
  if (!bytes.empty()) std::memcpy(array.data(), bytes.data(), bytes.size());
  return {name, array};
}

std::pair<std::string, OnnxAttribute> read_attribute(std::string_view message,
                                                     std::string_view file) {
  std::string name, s;
  std::int64_t type = 0, i = 0;
  float f = 0;
  std::vector<std::int64_t> ints;
  std::optional<Array> array;
  each_field(message, file, [&](const ProtobufField& field) {
    switch (field.number()) {
      case 1: name = text(field); break;
      case 2: f = field.real(); break;
      case 3: i = field.integer(); break;
      case 4: s = text(field); break;
      case 5: array = read_tensor(field.bytes(), file).second; break;
      case 8: field.each_integer([&](std::int64_t number) { ints.push_back(number); }); break;
      case 20: type = field.integer(); break;
      default: break;
    }
  });
  switch (type) {
    case kInt: return {name, i};
    case kFloat: return {name, f};
    case kString: return {name, s};
    case kInts: return {name, ints};
    case kTensor:
      if (array) return {name, *array};
      [[fallthrough]];
    default: fail(file, fmt::format("attribute \"{}\" is of type {}, unknown here", name, type));
  }
}

OnnxNode read_node(std::string_view message, std::string_view file) {
  OnnxNode node;
  std::string domain;
  each_field(message, file, [&](const ProtobufField& f) {
    switch (f.number()) {
      case 1: node.inputs.push_back(text(f)); break;
      case 2: node.outputs.push_back(text(f)); break;
      case 3: node.name = text(f); break;
      case 4: node.op = text(f); break;
      case 5: node.attributes.insert(read_attribute(f.bytes(), file)); break;
      case 7: domain = text(f); break;
      default: break;
    }
  });
  if (!domain.empty() && domain != "ai.onnx") node.op = domain + "." + node.op;
  return node;
}

OnnxValue read_value(std::string_view message, std::string_view file) {
  OnnxValue value;
  std::int64_t type = 0;
  auto dim = [&](const ProtobufField& dims) {
    if (dims.number() != 1) return;
    OnnxExtent extent = std::string();
    each_field(dims.bytes(), file, [&](const ProtobufField& f) {
      if (f.number() == 1) extent = f.integer();
      if (f.number() == 2) extent = text(f);
    });
    value.shape.push_back(extent);
  };
  auto tensor_type = [&](const ProtobufField& f) {
    if (f.number() == 1) type = f.integer();
    if (f.number() == 2) each_field(f.bytes(), file, dim);
  };
  each_field(message, file, [&](const ProtobufField& f) {
    if (f.number() == 1) value.name = text(f);
    if (f.number() != 2) return;
    each_field(f.bytes(), file, [&](const ProtobufField& kind) {
      if (kind.number() == 1) each_field(kind.bytes(), file, tensor_type);
    });
  });
  value.dtype = dtype_of_onnx(file, type);
  return value;
}

void read_graph(std::string_view message, std::string_view file, OnnxGraph& graph) {
  each_field(message, file, [&](const ProtobufField& f) {
    switch (f.number()) {
      case 1: graph.nodes.push_back(read_node(f.bytes(), file)); break;
      case 5: graph.initializers.push_back(read_tensor(f.bytes(), file)); break;
      case 11: graph.inputs.push_back(read_value(f.bytes(), file)); break;
      case 12: graph.outputs.push_back(read_value(f.bytes(), file)); break;
      case 15: fail(file, "it has sparse initializers, which are not read");
      default: break;
    }
  });
}

/// The version of ONNX's own operators.
std::int64_t opset_of(std::string_view message, std::string_view file) {
  std::string domain;
  std::int64_t version = 0;
  each_field(message, file, [&](const ProtobufField& f) {
    if (f.number() == 1) domain = text(f);
    if (f.number() == 2) version = f.integer();
  });
  return domain.empty() || domain == "ai.onnx" ? version : 0;
}

}  // namespace

std::int64_t onnx_dtype(const std::string& what, Dtype dtype) {
  auto known = std::ranges::find(kDtypes, dtype, [](const auto& pair) { return pair.second; });
  if (known != kDtypes.end()) return known->first;
  throw DtypeError(fmt::format("{} is {}, which is not written", what, dtype_name(dtype)));
}

Dtype dtype_of_onnx(std::string_view file, std::int64_t number) {
  auto known = std::ranges::find(kDtypes, number, [](const auto& pair) { return pair.first; });
  if (known != kDtypes.end()) return known->second;
  fail(file, fmt::format("arrays have no dtype for ONNX's number {}", number));
}

std::string encode_onnx(const OnnxGraph& graph) {
  ProtobufWriter g, opset, model;
  for (const OnnxNode& n : graph.nodes) g.message(1, node(n));
  g.bytes(2, "rensa");
  for (const auto& [name, array] : graph.initializers) g.message(5, tensor(name, array));
  for (const OnnxValue& value : graph.inputs) g.message(11, value_info(value));
  for (const OnnxValue& value : graph.outputs) g.message(12, value_info(value));
  opset.bytes(1, ""), opset.integer(2, graph.opset);
  model.integer(1, kIrVersion);
  model.bytes(2, "rensa");
  model.message(7, g);
  model.message(8, opset);
  if (model.text().size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw ValueError(
        fmt::format("export_onnx: the model has {} bytes; a file of this format has less than 2 "
                    "GiB: export it in float16, or in parts",
                    model.text().size()));
  }
  return model.text();
}

OnnxGraph decode_onnx(std::string_view bytes, std::string_view file) {
  OnnxGraph graph;
  graph.opset = 0;
  bool has_graph = false;
  each_field(bytes, file, [&](const ProtobufField& f) {
    if (f.number() == 8) graph.opset = std::max(graph.opset, opset_of(f.bytes(), file));
    if (f.number() != 7) return;
    if (std::exchange(has_graph, true)) fail(file, "it has two graphs");
    read_graph(f.bytes(), file, graph);
  });
  if (!has_graph) fail(file, "it has no graph; is it an ONNX file?");
  if (graph.opset < kFirstOpset || graph.opset > kLastOpset) {
    fail(file, fmt::format("it has opset {}; those from {} to {} are read", graph.opset,
                           kFirstOpset, kLastOpset));
  }
  return graph;
}

}  // namespace rensa::serializers

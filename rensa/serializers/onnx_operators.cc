// What the functions are in ONNX: onnx_emitters() has a row for each.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "rensa/array/creation.h"
#include "rensa/array/routines.h"
#include "rensa/serializers/onnx_exporter.h"

namespace rensa::serializers {

namespace {

using Ints = std::vector<std::int64_t>;

Ints ints(const Shape& shape) { return {shape.begin(), shape.end()}; }

/// A function that is one operator without settings.
void one_operator(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  std::vector<std::string> inputs;
  for (std::size_t i = 0; i < s.inputs.size(); ++i) inputs.push_back(e.in(s, i));
  e.result(s, e.node(op, std::move(inputs)));
}

/// Arithmetic of two operands, or of one and a number.
void arithmetic(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  std::string x = e.in(s), y;
  bool number_first = false;
  if (auto number = a.numbers.find("number"); number != a.numbers.end()) {
    y = e.number(number->second, s.x().dtype());
    number_first = a.integers.at("number_first") != 0;
  } else {
    y = e.in(s, 1);
    if (s.x(0).dtype() != s.x(1).dtype()) e.refuse(s, "its operands have two dtypes");
  }
  e.result(s, e.node(op, number_first ? std::vector{y, x} : std::vector{x, y}));
}

/// A function of an axis.
void along(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  std::vector<std::string> inputs;
  for (std::size_t i = 0; i < s.inputs.size(); ++i) inputs.push_back(e.in(s, i));
  e.result(s, e.node(op, std::move(inputs), {{"axis", a.integers.at("axis")}}));
}

void linear(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  std::vector<std::string> inputs{e.in(s, 0), e.in(s, 1)};
  if (s.inputs.size() == 3) inputs.push_back(e.in(s, 2));
  e.result(s, e.node("Gemm", inputs, {{"transB", std::int64_t{1}}}));
}

std::string transposed(OnnxExporter& e, const std::string& x, int ndim) {
  Ints axes;
  for (int i = 0; i < ndim; ++i) axes.push_back(i);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return e.node("Transpose", {x}, {{"perm", axes}});
}

void matmul(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  std::string x = e.in(s, 0), y = e.in(s, 1);
  if (a.integers.at("transa")) x = transposed(e, x, s.x(0).ndim());
  if (a.integers.at("transb")) y = transposed(e, y, s.x(1).ndim());
  e.result(s, e.node("MatMul", {x, y}));
}

void convolution(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  Ints kernel, pads = ints(a.lists.at("pad"));
  for (int i = 2; i < s.x(1).ndim(); ++i) kernel.push_back(s.x(1).shape(i));
  pads.insert(pads.end(), a.lists.at("pad").begin(), a.lists.at("pad").end());
  std::vector<std::string> inputs{e.in(s, 0), e.in(s, 1)};
  if (s.inputs.size() == 3) inputs.push_back(e.in(s, 2));
  e.result(s, e.node("Conv", inputs,
                     {{"kernel_shape", {kernel}},
                      {"strides", ints(a.lists.at("stride"))},
                      {"pads", {pads}},
                      {"dilations", ints(a.lists.at("dilate"))},
                      {"group", a.integers.at("groups")}}));
}

/// Windows that reach beyond the padding, as cover_all has them, get as much more of it behind.
Ints pads_of(const OnnxStep& s, const FunctionAttributes& a) {
  const Shape &ksize = a.lists.at("ksize"), &stride = a.lists.at("stride"),
              &pad = a.lists.at("pad");
  Ints pads = ints(pad);
  for (int i = 0; i < ksize.ndim(); ++i) {
    std::int64_t reach = (s.y().shape(2 + i) - 1) * stride[i] + ksize[i];
    pads.push_back(std::max(pad[i], reach - s.x().shape(2 + i) - pad[i]));
  }
  return pads;
}

void max_pooling(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  e.result(s, e.node("MaxPool", {e.in(s)},
                     {{"kernel_shape", ints(a.lists.at("ksize"))},
                      {"strides", ints(a.lists.at("stride"))},
                      {"pads", pads_of(s, a)}}));
}

void average_pooling(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  e.result(s, e.node("AveragePool", {e.in(s)},
                     {{"kernel_shape", ints(a.lists.at("ksize"))},
                      {"strides", ints(a.lists.at("stride"))},
                      {"pads", pads_of(s, a)},
                      {"count_include_pad", a.integers.at("count_include_pad")}}));
}

void batch_normalization(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  Shape channels;  // all axes but the one of channels
  for (int i = 0; i < s.x().ndim(); ++i) {
    if (i != 1) channels.push_back(i);
  }
  if (a.lists.at("reduced") != channels) e.refuse(s, "ONNX normalizes along axis 1 alone");
  std::vector<std::string> inputs;
  for (std::size_t i = 0; i < s.inputs.size(); ++i) inputs.push_back(e.in(s, i));
  auto eps = static_cast<float>(a.numbers.at("eps"));
  e.result(s, e.node("BatchNormalization", inputs, {{"epsilon", eps}}));
}

void layer_normalization(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  auto eps = static_cast<float>(a.numbers.at("eps"));
  std::int64_t axis = -s.x(1).ndim();
  e.result(s, e.node("LayerNormalization", {e.in(s, 0), e.in(s, 1), e.in(s, 2)},
                     {{"axis", {axis}}, {"epsilon", eps}}));
}

void local_response_normalization(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  std::int64_t size = 2 * a.integers.at("half") + 1;
  auto number = [&numbers = a.numbers](const char* name) {
    return static_cast<float>(numbers.at(name));
  };
  e.result(s, e.node("LRN", {e.in(s)},
                     {{"size", {size}},
                      {"bias", number("k")},
                      {"alpha", number("alpha") * static_cast<float>(size)},  // of the mean
                      {"beta", number("beta")}}));
}

void reshape(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  std::string x = e.in(s);
  e.result(s, e.node("Reshape", {x, e.constant(ints(s.y().shape()))}));
}

void expand(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  std::string x = e.in(s);
  e.result(s, e.node("Expand", {x, e.constant(ints(s.y().shape()))}));
}

void transpose(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  Ints axes = ints(a.lists.at("axes"));
  for (std::int64_t& axis : axes) axis += axis < 0 ? s.x().ndim() : 0;
  e.result(s, e.node("Transpose", {e.in(s)}, {{"perm", axes}}));
}

void cast(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  std::int64_t to = onnx_dtype("export_onnx: cast", s.y().dtype());
  e.result(s, e.node("Cast", {e.in(s)}, {{"to", to}}));
}

void split(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  std::int64_t axis = a.integers.at("axis");
  Ints sizes;
  for (const Array& y : s.outputs) sizes.push_back(y.shape(static_cast<int>(axis)));
  std::string x = e.in(s), list = e.constant(sizes);
  OnnxNode made{"Split", list + "_split", {x, list}, {}, {{"axis", axis}}};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    made.outputs.push_back(fmt::format("{}_{}", made.name, i));
    e.result(s, made.outputs[i], i);
  }
  e.nodes(made);
}

void get_item(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  const Shape &starts = a.lists.at("starts"), &steps = a.lists.at("steps");
  Ints ends, axes;
  for (int i = 0; i < starts.ndim(); ++i) {
    std::int64_t end = starts[i] + s.y().shape(i) * steps[i];
    // Before the first element: a negative end would count from the back.
    ends.push_back(end < 0 ? std::numeric_limits<std::int64_t>::min() : end);
    axes.push_back(i);
  }
  std::string x = e.in(s);
  e.result(s, e.node("Slice", {x, e.constant(ints(starts)), e.constant(ends), e.constant(axes),
                               e.constant(ints(steps))}));
}

void embed_id(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  std::string W = e.in(s), indices = e.array(a.arrays.at("indices"));
  Dtype dtype = a.arrays.at("indices").dtype();
  if (dtype != int32 && dtype != int64) {
    indices = e.node("Cast", {indices}, {{"to", onnx_dtype("export_onnx: indices", int64)}});
  }
  e.result(s, e.node("Gather", {W, indices}, {{"axis", std::int64_t{0}}}));
}

/// Query (batch, heads, L, E), key (batch, heads, S, E), value (batch, heads, S, V).
void attention(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  if (!a.arrays.empty()) e.refuse(s, "only causal attention, and that to all keys, is exported");
  if (s.x(0).shape(1) != s.x(1).shape(1)) e.refuse(s, "several queries share a key's head");
  Dtype dtype = s.x().dtype();
  std::string q = e.node("Mul", {e.in(s, 0), e.number(a.numbers.at("scale"), dtype)});
  std::string scores = e.node("MatMul", {q, transposed(e, e.in(s, 1), 4)});
  if (a.integers.at("causal")) {
    Array later = xp::tri(s.x(0).shape(2), s.x(1).shape(2), 0, bool_, cpu());
    double none = -std::numeric_limits<double>::infinity();
    Array zero = xp::zeros({}, dtype, cpu()), least = xp::full({}, none, dtype, cpu());
    scores = e.node("Add", {scores, e.constant(xp::where(later, zero, least))});
  }
  std::string weights = e.node("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
  e.result(s, e.node("MatMul", {weights, e.in(s, 2)}));
}

void square(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  std::string x = e.in(s);
  e.result(s, e.node("Mul", {x, x}));
}

void silu(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  std::string x = e.in(s);
  e.result(s, e.node("Mul", {x, e.node("Sigmoid", {x})}));
}

/// 0.5 x (1 + f), where f is given.
void half_gelu(OnnxExporter& e, const OnnxStep& s, const std::string& x, const std::string& f) {
  Dtype dtype = s.x().dtype();
  std::string half = e.node("Mul", {x, e.number(0.5, dtype)});
  e.result(s, e.node("Mul", {half, e.node("Add", {f, e.number(1, dtype)})}));
}

void gelu(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  std::string x = e.in(s), root = e.number(std::sqrt(0.5), s.x().dtype());
  half_gelu(e, s, x, e.node("Erf", {e.node("Mul", {x, root})}));
}

void gelu_tanh(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  Dtype dtype = s.x().dtype();
  std::string x = e.in(s), squared = e.node("Mul", {x, x});
  std::string factor = e.node("Mul", {squared, e.number(0.044715, dtype)});
  factor = e.node("Add", {factor, e.number(1, dtype)});
  std::string inner = e.node(
      "Mul", {e.node("Mul", {x, factor}), e.number(std::sqrt(2 / 3.14159265358979323846), dtype)});
  half_gelu(e, s, x, e.node("Tanh", {inner}));
}

void with_alpha(const OnnxEmission& given) {
  auto& [e, s, a, op] = given;
  auto alpha = static_cast<float>(a.numbers.at("number0"));
  e.result(s, e.node(op, {e.in(s)}, {{"alpha", alpha}}));
}

}  // namespace

const std::map<std::string, OnnxEmitter>& onnx_emitters() {
  static const std::map<std::string, OnnxEmitter> all = {
      {"add", {arithmetic, "Add"}},
      {"subtract", {arithmetic, "Sub"}},
      {"multiply", {arithmetic, "Mul"}},
      {"divide", {arithmetic, "Div"}},
      {"pow", {arithmetic, "Pow"}},
      {"maximum", {arithmetic, "Max"}},
      {"minimum", {arithmetic, "Min"}},
      {"negative", {one_operator, "Neg"}},
      {"exp", {one_operator, "Exp"}},
      {"log", {one_operator, "Log"}},
      {"sqrt", {one_operator, "Sqrt"}},
      {"absolute", {one_operator, "Abs"}},
      {"sin", {one_operator, "Sin"}},
      {"cos", {one_operator, "Cos"}},
      {"erf", {one_operator, "Erf"}},
      {"square", {square}},
      {"relu", {one_operator, "Relu"}},
      {"sigmoid", {one_operator, "Sigmoid"}},
      {"tanh", {one_operator, "Tanh"}},
      {"leaky_relu", {with_alpha, "LeakyRelu"}},
      {"elu", {with_alpha, "Elu"}},
      {"silu", {silu}},
      {"gelu", {gelu}},
      {"gelu_tanh", {gelu_tanh}},
      {"softmax", {along, "Softmax"}},
      {"log_softmax", {along, "LogSoftmax"}},
      {"concat", {along, "Concat"}},
      {"split_axis", {split}},
      {"reshape", {reshape}},
      {"transpose", {transpose}},
      {"broadcast_to", {expand}},
      {"cast", {cast}},
      {"copy", {one_operator, "Identity"}},
      {"get_item", {get_item}},
      {"embed_id", {embed_id}},
      {"linear", {linear}},
      {"matmul", {matmul}},
      {"scaled_dot_product_attention", {attention}},
      {"convolution_1d", {convolution}},
      {"convolution_2d", {convolution}},
      {"convolution_3d", {convolution}},
      {"convolution_nd", {convolution}},
      {"max_pooling_1d", {max_pooling}},
      {"max_pooling_2d", {max_pooling}},
      {"max_pooling_3d", {max_pooling}},
      {"max_pooling_nd", {max_pooling}},
      {"average_pooling_1d", {average_pooling}},
      {"average_pooling_2d", {average_pooling}},
      {"average_pooling_3d", {average_pooling}},
      {"average_pooling_nd", {average_pooling}},
      {"fixed_batch_normalization", {batch_normalization}},
      {"layer_normalization", {layer_normalization}},
      {"local_response_normalization", {local_response_normalization}},
  };
  return all;
}

}  // namespace rensa::serializers

// Import of ONNX: each node becomes a call of the functions that it stands for, by the row of its
// operator in builders(). What a node says is checked when the file is read.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "rensa/array/creation.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/functions/functions.h"
#include "rensa/serializers/onnx.h"
#include "rensa/serializers/onnx_graph.h"

namespace rensa::serializers {

namespace {

using Ints = std::vector<std::int64_t>;
/// What a node computes of its inputs; one that is left out is undefined.
using Call = std::function<Variables(const Variables&)>;

Shape shape_of(const Ints& list) { return Shape(std::span<const std::int64_t>(list)); }

/// A node as it is read: its attributes, each of which has to be asked for.
class NodeReader {
 public:
  NodeReader(const std::string& file, const OnnxNode& node,
             const std::map<std::string, Array>& constants)
      : file_(file), node_(node), constants_(constants) {}

  const std::string& op() const { return node_.op; }
  std::size_t inputs() const { return node_.inputs.size(); }
  std::size_t outputs() const { return node_.outputs.size(); }

  void expect_inputs(std::size_t least, std::size_t most) const {
    if (inputs() < least || inputs() > most) {
      fail(fmt::format("{} inputs, of which there are {} to {}", inputs(), least, most));
    }
    for (std::size_t i = 0; i < least; ++i) {
      if (node_.inputs[i].empty()) fail(fmt::format("input {} is left out", i));
    }
  }
  template <class T> T attribute(const std::string& name, const T& otherwise) {
    auto found = node_.attributes.find(name);
    if (found == node_.attributes.end()) return otherwise;
    asked_.insert(name);
    if (const T* value = std::get_if<T>(&found->second)) return *value;
    fail(fmt::format("attribute \"{}\" is of another type", name));
  }
  std::int64_t integer(const std::string& name, std::int64_t otherwise) {
    return attribute<std::int64_t>(name, otherwise);
  }
  int axis(std::int64_t otherwise) {
    std::int64_t axis = integer("axis", otherwise);
    if (axis < -kMaxNdim || axis >= kMaxNdim) fail(fmt::format("an axis {}", axis));
    return static_cast<int>(axis);
  }
  double real(const std::string& name, float otherwise) {
    return static_cast<double>(attribute<float>(name, otherwise));
  }
  /// A list of numbers for axes.
  Shape list(const std::string& name, const Ints& otherwise) {
    Ints list = attribute<Ints>(name, otherwise);
    if (list.size() > static_cast<std::size_t>(kMaxNdim)) fail(name + " is too long");
    return shape_of(list);
  }
  /// The values of an input that has to be a constant, such as a shape.
  Ints constant_list(std::size_t i) const {
    auto found = constants_.find(node_.inputs.at(i));
    if (found == constants_.end()) {
      refuse(fmt::format("input {} is computed; it is read where it is a constant", i));
    }
    const Array& array = found->second;
    if (array.dtype() != int64 || array.ndim() != 1 || array.size() > kMaxNdim) {
      fail(fmt::format("input {} is {}, no list of int64", i, array.view().describe()));
    }
    return array.to_vector<std::int64_t>();
  }
  /// Throws where the node has settings that were not asked for.
  void finish() const {
    for (const auto& [name, value] : node_.attributes) {
      if (!asked_.contains(name)) refuse(fmt::format("attribute \"{}\" is not read", name));
    }
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw SerializationError(describe(what));
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw NotImplementedError(describe(what));
  }
  Dtype dtype(std::int64_t number) const { return dtype_of_onnx(file_, number); }

 private:
  std::string describe(const std::string& what) const {
    return fmt::format("{}: node \"{}\" ({}): {}", file_, node_.name, node_.op, what);
  }

  const std::string& file_;
  const OnnxNode& node_;
  const std::map<std::string, Array>& constants_;
  std::set<std::string> asked_;
};

using Builder = Call (*)(NodeReader&);

// --- Operators ---

using Unary = Variable (*)(const Variable&);
using Binary = Variable (*)(const Variable&, const Variable&);

template <Unary function> Call unary(NodeReader& node) {
  node.expect_inputs(1, 1);
  return [](const Variables& x) { return Variables{function(x[0])}; };
}

template <Binary function> Call binary(NodeReader& node) {
  node.expect_inputs(2, 2);
  return [](const Variables& x) { return Variables{function(x[0], x[1])}; };
}

template <Variable (*function)(const Variable&, int)> Call along(NodeReader& node) {
  node.expect_inputs(1, 1);
  return [axis = node.axis(-1)](const Variables& x) { return Variables{function(x[0], axis)}; };
}

template <Variable (*function)(const Variable&, double)>
Call with_alpha(NodeReader& node, float otherwise) {
  node.expect_inputs(1, 1);
  double alpha = node.real("alpha", otherwise);
  return [alpha](const Variables& x) { return Variables{function(x[0], alpha)}; };
}

Call build_pow(NodeReader& node) {
  node.expect_inputs(2, 2);
  return [](const Variables& x) {
    if (x[1].size() != 1) {
      throw NotImplementedError("load_onnx: Pow with an exponent that is not one number");
    }
    return Variables{F::pow(x[0], x[1].array().astype(float64).reshape({}).item<double>())};
  };
}

Call build_gemm(NodeReader& node) {
  node.expect_inputs(2, 3);
  bool plain = node.real("alpha", 1) == 1 && node.real("beta", 1) == 1;
  if (!plain || node.integer("transA", 0) != 0 || node.integer("transB", 0) != 1) {
    node.refuse("it is read with alpha and beta 1, transA 0 and transB 1");
  }
  return [](const Variables& x) {
    return Variables{F::linear(x[0], x[1], x.size() > 2 ? x[2] : Variable())};
  };
}

/// The same padding on both sides: the first half of pads; none where the sides differ.
std::optional<Shape> even_pads(const Shape& pads, int axes) {
  Shape even;
  for (int i = 0; i < axes; ++i) {
    if (pads[i] != pads[i + axes]) return std::nullopt;
    even.push_back(pads[i]);
  }
  return even;
}

/// Lists that have one number for each spatial axis; pads two.
void check_lengths(const NodeReader& node, const Shape& kernel, const Shape& strides,
                   const Shape& pads) {
  if (kernel.ndim() > 0 && strides.ndim() == kernel.ndim() && pads.ndim() == 2 * kernel.ndim()) {
    return;
  }
  node.fail(fmt::format("kernel_shape {}, strides {} and pads {} do not fit", kernel.str(),
                        strides.str(), pads.str()));
}

Call build_conv(NodeReader& node) {
  node.expect_inputs(2, 3);
  Shape kernel = node.list("kernel_shape", {});
  auto n = static_cast<std::size_t>(kernel.ndim());
  Shape strides = node.list("strides", Ints(n, 1)), dilations = node.list("dilations", Ints(n, 1));
  Shape pads = node.list("pads", Ints(2 * n, 0));
  check_lengths(node, kernel, strides, pads);
  std::optional<Shape> pad = even_pads(pads, kernel.ndim());
  if (!pad) node.refuse("pads that differ at both ends");
  if (dilations.ndim() != kernel.ndim()) node.fail("dilations do not fit");
  F::ConvolutionOptions options{
      .stride = strides, .pad = *pad, .dilate = dilations, .groups = node.integer("group", 1)};
  return [options](const Variables& x) {
    return Variables{F::convolution_nd(x[0], x[1], x.size() > 2 ? x[2] : Variable(), options)};
  };
}

/// Settings of pooling. Padding that differs at both ends is added to x.
struct Windows {
  Shape kernel, strides, pads;

  explicit Windows(NodeReader& node) {
    node.expect_inputs(1, 1);
    kernel = node.list("kernel_shape", {});
    strides = node.list("strides", Ints(static_cast<std::size_t>(kernel.ndim()), 1));
    pads = node.list("pads", Ints(2 * static_cast<std::size_t>(kernel.ndim()), 0));
    check_lengths(node, kernel, strides, pads);
    for (std::int64_t pad : pads) {
      if (pad < 0 || pad > std::numeric_limits<int>::max() / 4) node.fail("pads out of range");
    }
  }
  /// x with the padding around it that goes beyond `inside`.
  Variable padded(const Variable& x, const Shape& inside, double value) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> widths(2, {0, 0});
    for (int i = 0; i < kernel.ndim(); ++i) {
      widths.emplace_back(pads[i] - inside[i], pads[i + kernel.ndim()] - inside[i]);
    }
    return F::pad(x, widths, "constant", value);
  }
};

Call build_max_pool(NodeReader& node) {
  Windows w(node);
  std::optional<Shape> pad = even_pads(w.pads, w.kernel.ndim());
  return [w, pad](const Variables& x) {
    if (x[0].ndim() != w.kernel.ndim() + 2)
      throw ShapeError("MaxPool: kernel_shape does not fit x");
    if (pad) return Variables{F::max_pooling_nd(x[0], w.kernel, w.strides, *pad, false)};
    Shape none = Shape::filled(w.kernel.ndim(), 0);
    Variable wide = w.padded(x[0], none, -std::numeric_limits<double>::infinity());
    return Variables{F::max_pooling_nd(wide, w.kernel, w.strides, none, false)};
  };
}

Call build_average_pool(NodeReader& node) {
  Windows w(node);
  std::optional<Shape> pad = even_pads(w.pads, w.kernel.ndim());
  if (!pad) node.refuse("pads that differ at both ends");
  std::optional<double> value;
  if (node.integer("count_include_pad", 0)) value = 0.0;
  return [w, pad, value](const Variables& x) {
    return Variables{F::average_pooling_nd(x[0], w.kernel, w.strides, *pad, value)};
  };
}

Call build_batch_normalization(NodeReader& node) {
  node.expect_inputs(5, 5);
  double eps = node.real("epsilon", 1e-5f);
  return [eps](const Variables& x) {
    return Variables{F::fixed_batch_normalization(x[0], x[1], x[2], x[3], x[4], eps)};
  };
}

Call build_layer_normalization(NodeReader& node) {
  node.expect_inputs(3, 3);
  double eps = node.real("epsilon", 1e-5f);
  int axis = node.axis(-1);
  return [eps, axis](const Variables& x) {
    if (axis != -x[1].ndim() && axis + x[1].ndim() != x[0].ndim()) {
      throw ShapeError(
          fmt::format("LayerNormalization: axis {} and scale {}", axis, x[1].shape().str()));
    }
    return Variables{F::layer_normalization(x[0], x[1], x[2], eps)};
  };
}

Call build_lrn(NodeReader& node) {
  node.expect_inputs(1, 1);
  std::int64_t size = node.integer("size", 1);
  if (size < 1 || size % 2 == 0) node.refuse("a size that is not odd");
  double bias = node.real("bias", 1), beta = node.real("beta", 0.75f);
  double alpha = node.real("alpha", 1e-4f) / static_cast<double>(size);  // that of a mean
  return [=](const Variables& x) {
    return Variables{F::local_response_normalization(x[0], size, bias, alpha, beta)};
  };
}

Call build_reshape(NodeReader& node) {
  node.expect_inputs(2, 2);
  Shape shape = shape_of(node.constant_list(1));
  return [shape](const Variables& x) { return Variables{x[0].reshape(shape)}; };
}

Call build_expand(NodeReader& node) {
  node.expect_inputs(2, 2);
  Shape shape = shape_of(node.constant_list(1));
  return [shape](const Variables& x) { return Variables{F::broadcast_to(x[0], shape)}; };
}

Call build_transpose(NodeReader& node) {
  node.expect_inputs(1, 1);
  Shape axes = node.list("perm", {});
  return [axes](const Variables& x) { return Variables{F::transpose(x[0], axes)}; };
}

Call build_concat(NodeReader& node) {
  node.expect_inputs(1, std::numeric_limits<std::size_t>::max());
  return [axis = node.axis(0)](const Variables& x) { return Variables{F::concat(x, axis)}; };
}

Call build_split(NodeReader& node) {
  node.expect_inputs(2, 2);
  Ints sizes = node.constant_list(1), cuts;
  std::int64_t at = 0;
  for (std::int64_t size : sizes) {
    if (size < 0 || __builtin_add_overflow(at, size, &at)) node.fail("sizes out of range");
    cuts.push_back(at);
  }
  if (sizes.empty() || sizes.size() != node.outputs()) node.fail("sizes and outputs do not fit");
  cuts.pop_back();
  return [cuts, all = at, axis = node.axis(0)](const Variables& x) {
    if (x[0].array().shape(axis) != all) {
      throw ShapeError(
          fmt::format("Split: sizes of {} along axis {} of {}", all, axis, x[0].shape().str()));
    }
    if (cuts.empty()) return Variables{x[0]};
    return F::split_axis(x[0], cuts, axis);
  };
}

/// What export_onnx writes: all axes in order.
Call build_slice(NodeReader& node) {
  node.expect_inputs(5, 5);
  Ints starts = node.constant_list(1), ends = node.constant_list(2), axes = node.constant_list(3),
       steps = node.constant_list(4);
  bool fits =
      ends.size() == starts.size() && axes.size() == starts.size() && steps.size() == starts.size();
  for (std::size_t i = 0; fits && i < axes.size(); ++i) {
    fits = axes[i] == static_cast<std::int64_t>(i) && steps[i] != 0;
  }
  if (!fits) node.refuse("it is read with a start, an end and a step for each axis in order");
  std::vector<BasicIndex> index;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    bool to_begin = ends[i] == std::numeric_limits<std::int64_t>::min();
    if (to_begin) index.emplace_back(Slice(starts[i], none, steps[i]));
    else index.emplace_back(Slice(starts[i], ends[i], steps[i]));
  }
  return [index](const Variables& x) { return Variables{F::get_item(x[0], index)}; };
}

Call build_gather(NodeReader& node) {
  node.expect_inputs(2, 2);
  if (node.integer("axis", 0) != 0) node.refuse("it is read along axis 0");
  return [](const Variables& x) { return Variables{F::embed_id(x[1], x[0])}; };
}

Call build_cast(NodeReader& node) {
  node.expect_inputs(1, 1);
  Dtype dtype = node.dtype(node.integer("to", 0));
  return [dtype](const Variables& x) {
    if (dtype_kind(dtype) == 'f' && dtype_kind(x[0].dtype()) == 'f') {
      return Variables{F::cast(x[0], dtype)};
    }
    return Variables{Variable(x[0].array().astype(dtype), false)};
  };
}

Variable max_of(const Variable& a, const Variable& b) { return F::maximum(a, b); }
Variable min_of(const Variable& a, const Variable& b) { return F::minimum(a, b); }
Variable same(const Variable& x) { return x; }
Variable leaky(const Variable& x, double alpha) { return F::leaky_relu(x, alpha); }
Variable elu(const Variable& x, double alpha) { return F::elu(x, alpha); }

const std::map<std::string, Builder>& builders() {
  static const std::map<std::string, Builder> all = {
      {"Add", binary<operators::add>},
      {"Sub", binary<operators::subtract>},
      {"Mul", binary<operators::multiply>},
      {"Div", binary<operators::divide>},
      {"Max", binary<max_of>},
      {"Min", binary<min_of>},
      {"Pow", build_pow},
      {"Neg", unary<F::negative>},
      {"Exp", unary<F::exp>},
      {"Log", unary<F::log>},
      {"Sqrt", unary<F::sqrt>},
      {"Abs", unary<F::absolute>},
      {"Sin", unary<F::sin>},
      {"Cos", unary<F::cos>},
      {"Erf", unary<F::erf>},
      {"Relu", unary<F::relu>},
      {"Sigmoid", unary<F::sigmoid>},
      {"Tanh", unary<F::tanh>},
      {"Identity", unary<same>},
      {"LeakyRelu", [](NodeReader& node) { return with_alpha<leaky>(node, 0.01f); }},
      {"Elu", [](NodeReader& node) { return with_alpha<elu>(node, 1); }},
      {"Softmax", along<F::softmax>},
      {"LogSoftmax", along<F::log_softmax>},
      {"Gemm", build_gemm},
      {"MatMul",
       [](NodeReader& node) -> Call {
         node.expect_inputs(2, 2);
         return [](const Variables& x) { return Variables{F::matmul(x[0], x[1])}; };
       }},
      {"Conv", build_conv},
      {"MaxPool", build_max_pool},
      {"AveragePool", build_average_pool},
      {"BatchNormalization", build_batch_normalization},
      {"LayerNormalization", build_layer_normalization},
      {"LRN", build_lrn},
      {"Reshape", build_reshape},
      {"Expand", build_expand},
      {"Transpose", build_transpose},
      {"Concat", build_concat},
      {"Split", build_split},
      {"Slice", build_slice},
      {"Gather", build_gather},
      {"Cast", build_cast},
  };
  return all;
}

}  // namespace

/// What a model computes: calls in the order of the file.
struct OnnxProgram {
  struct Named {
    std::string name;
    std::vector<std::string> inputs, outputs;
    Call call;
  };
  std::vector<OnnxValue> inputs;
  std::vector<Named> calls;
  std::map<std::string, Array> constants;
};

namespace {

/// Every name is given once, and before it is read.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(const std::string& file, const OnnxGraph& graph)
      : file_(file), graph_(graph) {}

  OnnxProgram build() {
    OnnxProgram program;
    for (const OnnxValue& value : graph_.inputs) give(value.name);
    for (const auto& [name, array] : graph_.initializers) give(name);
    program.inputs = graph_.inputs;
    for (const OnnxNode& node : graph_.nodes) add(node, program);
    for (const OnnxValue& value : graph_.outputs) take(value.name, "the model's outputs");
    return program;
  }

 private:
  void add(const OnnxNode& node, OnnxProgram& program) {
    NodeReader reader(file_, node, program.constants);
    for (const std::string& name : node.inputs) {
      if (!name.empty()) take(name, node.name);
    }
    if (node.outputs.empty()) reader.fail("it has no outputs");
    for (const std::string& name : node.outputs) give(name);
    if (node.op == "Constant") {
      if (node.outputs.size() != 1) reader.fail("it has several outputs");
      Array value = reader.attribute<Array>("value", Array());
      if (!value.defined()) reader.refuse("it is read with the attribute \"value\"");
      reader.finish();
      program.constants[node.outputs[0]] = value;
      return;
    }
    auto builder = builders().find(node.op);
    if (builder == builders().end()) reader.refuse("this operator is not read");
    if (node.op != "Split" && node.outputs.size() != 1) reader.refuse("it has several outputs");
    Call call = builder->second(reader);
    reader.finish();
    program.calls.push_back({node.name, node.inputs, node.outputs, std::move(call)});
  }

  void give(const std::string& name) {
    if (name.empty() || !given_.insert(name).second) {
      throw SerializationError(
          fmt::format("{}: two values have the name \"{}\", or one has none", file_, name));
    }
  }
  void take(const std::string& name, const std::string& by) const {
    if (given_.contains(name)) return;
    throw SerializationError(
        fmt::format("{}: \"{}\", which \"{}\" reads, is not there before it", file_, name, by));
  }

  const std::string& file_;
  const OnnxGraph& graph_;
  std::set<std::string> given_;
};

void check_input(const OnnxValue& wanted, const Variable& x) {
  if (x.dtype() != wanted.dtype) {
    throw DtypeError(fmt::format("OnnxModel: \"{}\" is {}, and has to be {}", wanted.name,
                                 x.array().view().describe(), dtype_name(wanted.dtype)));
  }
  bool fits = static_cast<std::size_t>(x.ndim()) == wanted.shape.size();
  for (int i = 0; fits && i < x.ndim(); ++i) {
    const auto* extent = std::get_if<std::int64_t>(&wanted.shape[static_cast<std::size_t>(i)]);
    fits = !extent || *extent == x.shape(i);
  }
  if (fits) return;
  std::string text;
  for (const OnnxExtent& extent : wanted.shape) {
    const auto* number = std::get_if<std::int64_t>(&extent);
    text += (text.empty() ? "" : ", ") +
            (number ? std::to_string(*number) : std::get<std::string>(extent));
  }
  throw ShapeError(fmt::format("OnnxModel: \"{}\" is {}, and has to be ({})", wanted.name,
                               x.array().view().describe(), text));
}

/// Initializers that are statistics, which no gradient belongs to.
std::set<std::string> statistics_of(const OnnxGraph& graph) {
  std::set<std::string> names;
  for (const OnnxNode& node : graph.nodes) {
    if (node.op != "BatchNormalization") continue;
    for (std::size_t i = 3; i < node.inputs.size(); ++i) names.insert(node.inputs[i]);
  }
  return names;
}

}  // namespace

void OnnxModel::members(Visitor& v) {
  for (auto& [name, parameter] : parameters_) v(name, parameter);
  for (auto& [name, array] : persistents_) v(name, array);
}

Variables OnnxModel::operator()(const Variables& inputs) const {
  if (!program_ || inputs.size() != input_names_.size()) {
    throw ValueError(fmt::format("OnnxModel: {} inputs, of which the model has {}", inputs.size(),
                                 input_names_.size()));
  }
  std::map<std::string, Variable> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_input(program_->inputs[i], inputs[i]);
    values[input_names_[i]] = inputs[i];
  }
  for (const auto& [name, parameter] : parameters_) values[name] = parameter;
  for (const auto& [name, array] : persistents_) values[name] = Variable(array, false);
  Device device = inputs.empty() ? cpu() : inputs[0].device();
  for (const auto& [name, array] : program_->constants) {
    values[name] = Variable(array.to(device), false);
  }
  for (const OnnxProgram::Named& call : program_->calls) {
    Variables x;
    for (const std::string& name : call.inputs) {
      x.push_back(name.empty() ? Variable() : values.at(name));
    }
    Variables y = call.call(x);
    for (std::size_t i = 0; i < call.outputs.size(); ++i) values[call.outputs[i]] = y.at(i);
  }
  Variables outputs;
  for (const std::string& name : output_names_) outputs.push_back(values.at(name));
  return outputs;
}

Variable OnnxModel::operator()(const Variable& input) const {
  if (output_names_.size() != 1) {
    throw ValueError(fmt::format("OnnxModel: it has {} outputs; call it with a list of Variables",
                                 output_names_.size()));
  }
  return (*this)(Variables{input})[0];
}

OnnxModel load_onnx(const std::string& path) {
  return parse_onnx(detail::read_whole_file(path), path);
}

OnnxModel parse_onnx(std::string_view bytes, const std::string& name_of_file) {
  OnnxGraph graph = decode_onnx(bytes, name_of_file);
  OnnxModel model;
  model.program_ = std::make_shared<OnnxProgram>(ProgramBuilder(name_of_file, graph).build());
  for (const OnnxValue& value : graph.inputs) model.input_names_.push_back(value.name);
  for (const OnnxValue& value : graph.outputs) model.output_names_.push_back(value.name);
  std::set<std::string> statistics = statistics_of(graph);
  for (const auto& [name, array] : graph.initializers) {
    if (dtype_kind(array.dtype()) != 'f' || statistics.contains(name)) {
      model.persistents_.emplace(name, Persistent(array));
      continue;
    }
    Parameter parameter{Initializer(array)};
    parameter.body()->name = name;
    parameter.to(cpu());
    parameter.initialize(array.shape());
    model.parameters_.emplace(name, std::move(parameter));
  }
  return model;
}

}  // namespace rensa::serializers

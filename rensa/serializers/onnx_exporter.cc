// The nodes of a graph, and the names of values.
#include "rensa/serializers/onnx_exporter.h"

#include <fmt/format.h>

#include <optional>

#include "rensa/core/error.h"

namespace rensa::serializers {

OnnxGraph OnnxExporter::graph() {
  graph_.opset = options_.opset;
  for (std::size_t i = 0; i < trace_.inputs.size(); ++i) {
    graph_.inputs.push_back(value(options_.input_names[i], trace_.inputs[i].array()));
    names_[trace_.inputs[i].node().get()] = options_.input_names[i];
  }
  for (const OnnxStep& step : trace_.steps) emit(step);
  for (std::size_t i = 0; i < trace_.outputs.size(); ++i) {
    const Variable& y = trace_.outputs[i];
    graph_.outputs.push_back(value(options_.output_names[i], y.array()));
    graph_.nodes.push_back({"Identity",
                            "output" + std::to_string(i),
                            {name_of(*y.node(), y.array())},
                            {options_.output_names[i]}});
  }
  check_inputs_used();
  return std::move(graph_);
}

std::string OnnxExporter::node(const std::string& op, std::vector<std::string> inputs,
                               std::map<std::string, OnnxAttribute> attributes) {
  std::string name = fmt::format("{}_{}", place_, part_++);
  graph_.nodes.push_back({op, name, std::move(inputs), {name}, std::move(attributes)});
  return name;
}

void OnnxExporter::refuse(const OnnxStep& step, const std::string& why) const {
  throw NotImplementedError(fmt::format(
      "export_onnx: function {} of the model, \"{}\", {}: {}", step_, step.function->name(),
      last_.empty() ? "in front of all parameters" : "behind \"" + last_ + "\"", why));
}

void OnnxExporter::emit(const OnnxStep& step) {
  ++step_, part_ = 0;
  place_ = fmt::format("{}_{}", step.function->name(), step_);
  auto emitter = onnx_emitters().find(step.function->name());
  std::optional<FunctionAttributes> attributes;
  if (emitter != onnx_emitters().end()) attributes = step.function->attributes();
  if (!attributes) refuse(step, "it is not exported; compute the same by others");
  emitter->second.emit({*this, step, *attributes, emitter->second.op});
}

OnnxValue OnnxExporter::value(const std::string& name, const Array& array) const {
  OnnxValue made{name, array.dtype()};
  for (std::int64_t extent : array.shape()) made.shape.emplace_back(extent);
  return made;
}

std::string OnnxExporter::name_of(const VariableNode& node, const Array& array) {
  auto known = names_.find(&node);
  if (known != names_.end()) {
    used_.insert(known->second);
    return known->second;
  }
  return leaf(array);
}

std::string OnnxExporter::leaf(const Array& array) {
  auto same = [&](const Array& other) {
    return other.size() > 0 && other.data() == array.data() && other.shape() == array.shape() &&
           other.dtype() == array.dtype() && other.strides() == array.strides();
  };
  for (std::size_t i = 0; i < trace_.inputs.size(); ++i) {
    if (!same(trace_.inputs[i].array())) continue;
    used_.insert(options_.input_names[i]);
    return options_.input_names[i];
  }
  for (const auto& [name, given] : named_) {
    if (!same(given)) continue;
    if (used_.insert(name).second) {
      graph_.initializers.emplace_back(name, given.to(cpu()).ascontiguous());
    }
    return last_ = name;
  }
  return constant(array);
}

void OnnxExporter::check_inputs_used() const {
  for (const std::string& name : options_.input_names) {
    if (used_.contains(name)) continue;
    throw NotImplementedError(fmt::format(
        "export_onnx: no exported function takes input \"{}\": the model leaves it out, or takes "
        "its values without a function that has a gradient",
        name));
  }
}

}  // namespace rensa::serializers

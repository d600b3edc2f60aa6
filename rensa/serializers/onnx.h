// ONNX files: models that other programs run, as onnxruntime, and what was written so read again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rensa/links/link.h"

namespace rensa::serializers {

struct ExportOnnxOptions {
  std::int64_t opset = 17;                     // to 21
  std::vector<std::string> input_names = {};   // "input0", "input1", ... when left out
  std::vector<std::string> output_names = {};  // "output0", ...
  /// The first axis of all inputs may have any extent when the model runs; else the shapes are
  /// those of the examples.
  bool dynamic_batch = false;
};

/// What is exported: Variables in, Variables out.
using OnnxFunction = std::function<Variables(const Variables&)>;

/// Writes `model` as ONNX, for inference: it is called with `inputs`, config().train off, and the
/// functions that it applies become ONNX's operators. Its parameters and persistents become
/// initializers by their names, "conv1.W" of "/conv1/W". A second call, with other
/// values, shows what depends on them in ways that no function tells; of integers it has those of
/// the example in reverse order, which have to be others. The file
/// appears whole or not at all. Waits for the device. Throws NotImplementedError, naming the
/// function and its place, for one that has no counterpart, and for what was computed from inputs
/// without a function; ValueError for another opset, names that do not fit, and models of 2 GiB or
/// more; DtypeError, SerializationError, and what the model throws.
void export_onnx(const std::string& path, const Link& model, const Variables& inputs,
                 const ExportOnnxOptions& options = {});
/// The same of a function, which computes with the parameters of `members`.
void export_onnx(const std::string& path, const OnnxFunction& function, const Members& members,
                 const Variables& inputs, const ExportOnnxOptions& options = {});

/// A model of a file. Its parameters have the names of the file's initializers.
class OnnxModel : public Chain<OnnxModel> {
 public:
  void members(Visitor& v) override;
  /// The outputs, in the order of output_names(). Throws ValueError for another number of inputs,
  /// DtypeError for other dtypes, ShapeError for what does not have the file's shapes.
  Variables operator()(const Variables& inputs) const;
  /// Of a model of one input and one output. Throws ValueError for another.
  Variable operator()(const Variable& input) const;

  /// In the order of operator()'s inputs.
  const std::vector<std::string>& input_names() const { return input_names_; }
  /// In the order of operator()'s outputs.
  const std::vector<std::string>& output_names() const { return output_names_; }
  /// By the names of the file's initializers.
  const std::map<std::string, Parameter>& parameters() const { return parameters_; }

 private:
  friend OnnxModel parse_onnx(std::string_view bytes, const std::string& name);
  std::vector<std::string> input_names_, output_names_;
  std::map<std::string, Parameter> parameters_;        // floating initializers
  std::map<std::string, Persistent> persistents_;      // those that no gradient belongs to
  std::shared_ptr<const struct OnnxProgram> program_;  // what copies share: it does not change
};

/// A model of the operators that export_onnx writes, on the CPU. Throws SerializationError, with
/// the file's name, for one that is damaged or of another opset; NotImplementedError, naming the
/// node, for operators and settings that are not read.
OnnxModel load_onnx(const std::string& path);
/// The same of a file's bytes; `name` is what errors call it.
OnnxModel parse_onnx(std::string_view bytes, const std::string& name);

}  // namespace rensa::serializers

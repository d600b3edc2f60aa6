// A call of a ReductionKernel: dtypes, shapes, outputs.
#include "rensa/kernel/reduction_kernel.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/kernel/reduction_launch.h"
#include "rensa/kernel/source_parts.h"

namespace rensa {

using detail::ArgumentKind;
using detail::KernelArguments;
using detail::KernelOperand;

struct ReductionKernel::Impl {
  detail::ReductionText text;  // its reduce_type empty: the first output's
  const char* kept_name = nullptr;
  mutable detail::CompiledKernels compiled;

  struct Call {
    KernelArguments arguments;
    std::vector<KernelOperand> operands;
    std::vector<Array> outputs;  // as the caller gets them
    Shape shape;                 // that is reduced
    unsigned axes = 0;
    detail::ReductionText text;
  };
  Call prepare(const std::vector<KernelInput>& inputs, const ReductionOptions& options) const;
  Shape find_shape(const KernelArguments& a, const ReductionOptions& options) const;
  void make_outputs(Call& call, const ReductionOptions& options) const;

  const detail::KernelSignature& signature() const { return text.signature; }
  const std::string& name() const { return text.signature.name; }
};

Shape ReductionKernel::Impl::find_shape(const KernelArguments& a,
                                        const ReductionOptions& options) const {
  std::optional<Shape> shape;
  for (std::size_t k = 0; k < signature().inputs.size(); ++k) {
    const Array& array = a.arrays[k];
    if (!array.defined() || signature().parameter(k).raw) continue;
    shape = shape ? broadcast_shapes(name().c_str(), *shape, array.shape()) : array.shape();
  }
  if (shape.has_value() == (options.size >= 0)) {
    throw ValueError(
        shape ? fmt::format("{}: size={} was given and arrays that broadcast say {}; give one of "
                            "the two",
                            name(), options.size, shape->str())
              : fmt::format("{}: nothing says how many elements there are; give size, or an array "
                            "that broadcasts",
                            name()));
  }
  return shape ? *shape : Shape{options.size};
}

void ReductionKernel::Impl::make_outputs(Call& call, const ReductionOptions& options) const {
  Shape kept = call.shape, plain;  // with the reduced axes at extent 1, and without them
  for (int axis = 0; axis < call.shape.ndim(); ++axis) {
    if (call.axes >> axis & 1) kept[axis] = 1;
    else plain.push_back(call.shape[axis]);
  }
  const Shape& wanted = options.keepdims ? kept : plain;
  std::size_t inputs = signature().inputs.size();
  KernelArguments& a = call.arguments;
  for (std::size_t k = inputs; k < signature().size(); ++k) {
    Array& out = a.arrays[k];
    if (!out.defined()) {
      out = detail::new_array(wanted, a.dtypes[k], a.device);
    } else if (out.shape() != wanted) {
      throw ShapeError(fmt::format("{}: the output {} has shape {}, the result {}", name(),
                                   signature().parameter(k).name, out.shape().str(), wanted.str()));
    } else {
      detail::check_writable(name().c_str(), out);
    }
    call.outputs.push_back(out);
    // The kernel sees the reduced axes too, with stride 0.
    Shape strides;
    for (int axis = 0, own = 0; axis < call.shape.ndim(); ++axis) {
      bool reduced = call.axes >> axis & 1;
      strides.push_back(reduced ? 0 : out.strides()[own]);
      if (!reduced || options.keepdims) ++own;
    }
    out = detail::new_view(out, 0, kept, strides);
  }
  for (std::size_t k = 0; k < inputs; ++k) {
    if (!a.arrays[k].defined() || !options.out.defined()) continue;
    if (a.arrays[k].storage() == options.out.storage()) a.arrays[k] = a.arrays[k].copy();
  }
}

ReductionKernel::Impl::Call ReductionKernel::Impl::prepare(const std::vector<KernelInput>& inputs,
                                                           const ReductionOptions& options) const {
  if (inputs.size() != signature().inputs.size()) {
    throw ValueError(fmt::format("{}: takes {} inputs, got {}", name(), signature().inputs.size(),
                                 inputs.size()));
  }
  Call call;
  call.text = text;
  KernelArguments& a = call.arguments;
  if (options.out.defined()) {
    if (signature().outputs.size() != 1) {
      throw ValueError(fmt::format("{}: out is for a kernel with one output, it has {}", name(),
                                   signature().outputs.size()));
    }
    std::vector<KernelInput> given = inputs;
    given.emplace_back(options.out);
    a = signature().bind(given);
  } else {
    a = signature().bind(inputs);
  }
  call.shape = find_shape(a, options);
  call.axes = options.axis.mask(name().c_str(), call.shape.ndim());
  make_outputs(call, options);
  if (text.identity.empty() && call.outputs[0].size() != 0 && call.shape.total() == 0) {
    throw ValueError(fmt::format(
        "{}: {} is empty along a reduced axis, and the kernel has no identity to give for nothing",
        name(), call.shape.str()));
  }
  for (std::size_t k = 0; k < signature().size(); ++k) {
    KernelOperand operand;
    operand.dtype = a.dtypes[k];
    operand.number = a.numbers[k];
    operand.written = !signature().is_input(k);
    operand.kind = !a.arrays[k].defined()         ? ArgumentKind::number
                   : signature().parameter(k).raw ? ArgumentKind::raw
                   : operand.written              ? ArgumentKind::kept
                                                  : ArgumentKind::element;
    if (a.arrays[k].defined()) operand.array = a.arrays[k].operand();
    call.operands.push_back(operand);
  }
  if (call.text.reduce_type.empty()) {
    Dtype first = a.dtypes[signature().inputs.size()];
    call.text.reduce_type = dtype_name(first == float16 || first == bfloat16 ? float32 : first);
  } else if (call.text.reduce_type.size() == 1) {
    for (std::size_t k = 0; k < signature().size(); ++k) {  // a letter: its size is then known
      if (signature().parameter(k).type == text.reduce_type) {
        call.text.reduce_type = dtype_name(a.dtypes[k]);
      }
    }
  }
  return call;
}

ReductionKernel::ReductionKernel(const std::string& in_params, const std::string& out_params,
                                 const std::string& map, const std::string& reduce,
                                 const std::string& post, const std::string& identity,
                                 const std::string& name)
    : ReductionKernel(in_params, out_params, map, reduce, post, identity, name, Options{}) {}

ReductionKernel::ReductionKernel(const std::string& in_params, const std::string& out_params,
                                 const std::string& map, const std::string& reduce,
                                 const std::string& post, const std::string& identity,
                                 const std::string& name, Options options) {
  auto impl = std::make_shared<Impl>();
  detail::ReductionText& text = impl->text;
  text.signature = {name, detail::parse_parameters(name, in_params),
                    detail::parse_parameters(name, out_params)};
  text.signature.check({"i", "a", "b", "_J", "_j", "_ind", "_in_ind", "_out_ind", "acc", "index",
                        "position", "column"});
  for (const detail::KernelParameter& output : text.signature.outputs) {
    if (!output.raw) continue;
    throw ValueError(fmt::format("{}: the output {} is raw; a reduction gives one element each",
                                 name, output.name));
  }
  text.map = map;
  text.reduce = reduce;
  text.post = post;
  text.identity = identity;
  text.reduce_type = std::move(options.reduce_type);
  text.options = std::move(options.options);
  text.preamble = std::move(options.preamble);
  for (const char* position : {"i", "_J", "_j"}) {
    text.ordered |= detail::has_word(map, position) || detail::has_word(post, position);
  }
  impl->kept_name = operations::keep_name(name);
  impl_ = std::move(impl);
}

std::vector<Array> ReductionKernel::call(const std::vector<KernelInput>& inputs,
                                         const ReductionOptions& options) const {
  Impl::Call call = impl_->prepare(inputs, options);
  if (call.outputs[0].size() != 0) {
    detail::launch_reduction(call.text, impl_->compiled, impl_->kept_name, call.operands,
                             call.shape, call.axes, call.arguments.device);
  }
  return std::move(call.outputs);
}

void ReductionKernel::compile(const std::vector<KernelInput>& inputs,
                              const ReductionOptions& options) const {
  Impl::Call call = impl_->prepare(inputs, options);
  if (call.outputs[0].size() == 0) return;  // nor does such a call need a kernel
  detail::make_reduction(call.text, impl_->compiled, impl_->kept_name, call.operands, call.shape,
                         call.axes, call.arguments.device);
}

std::string ReductionKernel::source(const std::vector<KernelInput>& inputs,
                                    const ReductionOptions& options) const {
  Impl::Call call = impl_->prepare(inputs, options);
  auto plan = detail::plan_reduction(call.text, call.operands, call.shape, call.axes, false);
  return detail::reduction_source(call.text, plan.layout);
}

const std::string& ReductionKernel::name() const { return impl_->text.signature.name; }

Array ReductionKernel::operator()(const KernelInput& a, const ReductionOptions& options) const {
  return call({a}, options).front();
}
Array ReductionKernel::operator()(const KernelInput& a, const KernelInput& b,
                                  const ReductionOptions& options) const {
  return call({a, b}, options).front();
}
Array ReductionKernel::operator()(const KernelInput& a, const KernelInput& b, const KernelInput& c,
                                  const ReductionOptions& options) const {
  return call({a, b, c}, options).front();
}

}  // namespace rensa

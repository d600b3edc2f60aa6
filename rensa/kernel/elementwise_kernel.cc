// A call of an ElementwiseKernel: dtypes, shapes, outputs.
#include "rensa/kernel/elementwise_kernel.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/kernel/elementwise_launch.h"

namespace rensa {

using detail::ArgumentKind;
using detail::KernelArguments;
using detail::KernelOperand;

struct ElementwiseKernel::Impl {
  detail::ElementwiseText text;
  const char* kept_name = nullptr;
  std::vector<bool> assigned;  // of the outputs: surely_assigned
  mutable detail::CompiledKernels compiled;

  /// One call: its arguments, and what the kernel is launched with.
  struct Call {
    KernelArguments arguments;
    std::vector<KernelOperand> operands;
    Shape shape;
  };
  Call prepare(const std::vector<KernelInput>& given, const CallOptions& options) const;
  Shape find_shape(const KernelArguments& a, const CallOptions& options) const;
  void make_outputs(Call& call) const;
  void part_overlaps(Call& call) const;

  const detail::KernelSignature& signature() const { return text.signature; }
  const std::string& name() const { return text.signature.name; }
  bool is_input(std::size_t k) const { return signature().is_input(k); }
  bool is_raw(std::size_t k) const { return signature().parameter(k).raw; }
};

Shape ElementwiseKernel::Impl::find_shape(const KernelArguments& a,
                                          const CallOptions& options) const {
  std::optional<Shape> shape;
  for (std::size_t k = 0; k < signature().inputs.size(); ++k) {
    const Array& array = a.arrays[k];
    if (!array.defined() || is_raw(k)) continue;
    shape = shape ? broadcast_shapes(name().c_str(), *shape, array.shape()) : array.shape();
  }
  if (options.size >= 0) {
    if (shape) {
      throw ValueError(
          fmt::format("{}: size={} was given and arrays that broadcast say {}; give one of the two",
                      name(), options.size, shape->str()));
    }
    shape = Shape{options.size};
  }
  for (std::size_t k = signature().inputs.size(); k < signature().size(); ++k) {
    const Array& array = a.arrays[k];
    if (!array.defined() || is_raw(k)) continue;
    if (!shape) shape = array.shape();
    if (array.shape() != *shape) {
      throw ShapeError(fmt::format("{}: the output {} has shape {}, the inputs broadcast to {}",
                                   name(), signature().parameter(k).name, array.shape().str(),
                                   shape->str()));
    }
  }
  if (!shape) {
    throw ValueError(fmt::format(
        "{}: nothing says how many elements there are; give size, or an array that broadcasts",
        name()));
  }
  return *shape;
}

void ElementwiseKernel::Impl::make_outputs(Call& call) const {
  std::size_t inputs = signature().inputs.size();
  for (std::size_t k = inputs; k < signature().size(); ++k) {
    Array& out = call.arguments.arrays[k];
    call.operands[k].written = true;
    call.operands[k].loaded = out.defined() && !assigned[k - inputs];
    if (out.defined()) {
      detail::check_writable(name().c_str(), out);
    } else if (is_raw(k)) {
      throw ValueError(fmt::format("{}: the output {} is raw, so it has to be given", name(),
                                   signature().parameter(k).name));
    } else {
      out = detail::new_array(call.shape, call.arguments.dtypes[k], call.arguments.device);
    }
  }
}

// An input that shares memory with an output, and not element by element, is read from a copy.
void ElementwiseKernel::Impl::part_overlaps(Call& call) const {
  std::vector<Array>& arrays = call.arguments.arrays;
  for (std::size_t k = 0; k < signature().inputs.size(); ++k) {
    if (!arrays[k].defined() || is_raw(k)) continue;
    ArrayView input = broadcast_view(arrays[k].view(), call.shape);
    for (std::size_t out = signature().inputs.size(); out < arrays.size(); ++out) {
      if (is_raw(out) || !detail::partly_overlap(input, arrays[out].view())) continue;
      arrays[k] = arrays[k].copy();
      break;
    }
  }
}

ElementwiseKernel::Impl::Call ElementwiseKernel::Impl::prepare(
    const std::vector<KernelInput>& given, const CallOptions& options) const {
  Call call;
  call.arguments = signature().bind(given);
  const KernelArguments& a = call.arguments;
  call.shape = find_shape(a, options);
  call.operands.resize(signature().size());
  make_outputs(call);
  part_overlaps(call);
  for (std::size_t k = 0; k < call.operands.size(); ++k) {
    KernelOperand& operand = call.operands[k];
    operand.dtype = a.dtypes[k];
    operand.number = a.numbers[k];
    operand.kind = !a.arrays[k].defined() ? ArgumentKind::number
                   : is_raw(k)            ? ArgumentKind::raw
                                          : ArgumentKind::element;
    if (a.arrays[k].defined()) operand.array = a.arrays[k].operand();
  }
  return call;
}

ElementwiseKernel::ElementwiseKernel(const std::string& in_params, const std::string& out_params,
                                     const std::string& operation, const std::string& name)
    : ElementwiseKernel(in_params, out_params, operation, name, Options{}) {}

ElementwiseKernel::ElementwiseKernel(const std::string& in_params, const std::string& out_params,
                                     const std::string& operation, const std::string& name,
                                     Options options) {
  auto impl = std::make_shared<Impl>();
  impl->text.signature = {name, detail::parse_parameters(name, in_params),
                          detail::parse_parameters(name, out_params)};
  impl->text.signature.check({"i", "n", "_ind"});
  impl->text.operation = operation;
  impl->text.preamble = std::move(options.preamble);
  impl->text.loop_prep = std::move(options.loop_prep);
  impl->text.after_loop = std::move(options.after_loop);
  impl->text.options = std::move(options.options);
  impl->kept_name = operations::keep_name(name);
  for (const detail::KernelParameter& output : impl->text.signature.outputs) {
    impl->assigned.push_back(detail::surely_assigned(operation, output.name));
  }
  impl_ = std::move(impl);
}

std::vector<Array> ElementwiseKernel::call(const std::vector<KernelInput>& arguments,
                                           CallOptions options) const {
  Impl::Call call = impl_->prepare(arguments, options);
  if (call.shape.total() != 0) {
    detail::launch_elementwise(impl_->text, impl_->compiled, impl_->kept_name, call.operands,
                               call.shape, call.arguments.device);
  }
  std::vector<Array>& arrays = call.arguments.arrays;
  arrays.erase(arrays.begin(),
               arrays.begin() + static_cast<std::ptrdiff_t>(impl_->signature().inputs.size()));
  return std::move(arrays);
}

void ElementwiseKernel::compile(const std::vector<KernelInput>& arguments,
                                CallOptions options) const {
  Impl::Call call = impl_->prepare(arguments, options);
  if (call.shape.total() == 0) return;  // nor does such a call need a kernel
  detail::make_elementwise(impl_->text, impl_->compiled, impl_->kept_name, call.operands,
                           call.shape, call.arguments.device);
}

std::string ElementwiseKernel::source(const std::vector<KernelInput>& arguments,
                                      CallOptions options) const {
  Impl::Call call = impl_->prepare(arguments, options);
  std::vector<ArrayView> views;
  Shape extents;
  auto layout = detail::find_layout(call.operands, call.shape, false, &views, &extents);
  return detail::elementwise_source(impl_->text, layout);
}

const std::string& ElementwiseKernel::name() const { return impl_->text.signature.name; }

}  // namespace rensa

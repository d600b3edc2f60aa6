// Kernels of the user's own: ElementwiseKernel, ReductionKernel, RawKernel, RawModule, fuse.
#include <cctype>
#include <complex>
#include <string>
#include <vector>

#include "bind.h"
#include "rensa/core/error.h"
#include "rensa/kernel/elementwise_kernel.h"
#include "rensa/kernel/fuse.h"
#include "rensa/kernel/raw_kernel.h"
#include "rensa/kernel/reduction_kernel.h"

namespace rensa::python {

namespace {

KernelInput number_of(const Scalar& value, Dtype dtype) {
  switch (dtype) {
    case Dtype::bool_: return value.as<bool>();
    case Dtype::int8: return value.as<std::int8_t>();
    case Dtype::int16: return value.as<std::int16_t>();
    case Dtype::int32: return value.as<std::int32_t>();
    case Dtype::int64: return value.as<std::int64_t>();
    case Dtype::uint8: return value.as<std::uint8_t>();
    case Dtype::uint16: return value.as<std::uint16_t>();
    case Dtype::uint32: return value.as<std::uint32_t>();
    case Dtype::uint64: return value.as<std::uint64_t>();
    case Dtype::float16: return half_t(value.as<float>());
    case Dtype::bfloat16: return bfloat16_t(value.as<float>());
    case Dtype::float32: return value.as<float>();
    case Dtype::float64: return value.as<double>();
    case Dtype::complex64:
      return KernelInput(std::complex<float>(value.as<std::complex<double>>()));
    case Dtype::complex128: break;
  }
  return KernelInput(value.as<std::complex<double>>());
}

/// An array; a number of Python's, of its own width (CuPy's: 64 bits); a scalar of NumPy's, of its
/// dtype.
KernelInput kernel_input_of(nb::handle object) {
  Array array;
  if (nb::try_cast(object, array)) return array;
  if (auto number = scalar_of(object)) return number_of(*number, number->default_dtype());
  array = array_of(object);
  if (array.ndim() == 0) return number_of(array.item_scalar(), array.dtype());
  return array;
}

std::vector<KernelInput> kernel_inputs_of(nb::handle arguments) {
  std::vector<KernelInput> inputs;
  for (nb::handle argument : nb::borrow<nb::sequence>(arguments))
    inputs.push_back(kernel_input_of(argument));
  return inputs;
}

nb::object one_or_tuple(const std::vector<Array>& arrays) {
  if (arrays.size() == 1) return nb::cast(arrays[0]);
  return tuple_of(arrays);
}

/// A kernel's name is one of C++'s. Throws ValueError.
const std::string& checked_name(const std::string& name) {
  bool fits = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0]));
  for (char c : name) fits = fits && (std::isalnum(static_cast<unsigned char>(c)) || c == '_');
  if (!fits) throw ValueError("a kernel's name is an identifier, not \"" + name + "\"");
  return name;
}

void bind_elementwise(nb::module_& m) {
  nb::class_<ElementwiseKernel>(m, "ElementwiseKernel",
                                "A kernel of one's own over the elements of arrays.")
      .def(
          "__init__",
          [](ElementwiseKernel* self, const std::string& in_params, const std::string& out_params,
             const std::string& operation, const std::string& name, const std::string& preamble,
             const std::string& loop_prep, const std::string& after_loop,
             const std::vector<std::string>& options) {
            new (self) ElementwiseKernel(in_params, out_params, operation, checked_name(name),
                                         {preamble, loop_prep, after_loop, options});
          },
          nb::arg("in_params"), nb::arg("out_params"), nb::arg("operation"),
          nb::arg("name") = "kernel", nb::arg("preamble") = "", nb::kw_only(),
          nb::arg("loop_prep") = "", nb::arg("after_loop") = "",
          nb::arg("options") = std::vector<std::string>())
      .def(
          "__call__",
          [](const ElementwiseKernel& kernel, const nb::args& args,
             std::optional<std::int64_t> size) {
            std::vector<KernelInput> inputs = kernel_inputs_of(args);
            return one_or_tuple(
                unlocked([&] { return kernel.call(inputs, {.size = size.value_or(-1)}); }));
          },
          nb::arg("args"), nb::kw_only(), nb::arg("size") = nb::none(),
          "The outputs: the arguments are the inputs, and after them perhaps the outputs to write.")
      .def_prop_ro("name", &ElementwiseKernel::name);
}

void bind_reduction(nb::module_& m) {
  nb::class_<ReductionKernel>(m, "ReductionKernel", "A reduction of one's own over axes of arrays.")
      .def(
          "__init__",
          [](ReductionKernel* self, const std::string& in_params, const std::string& out_params,
             const std::string& map_expr, const std::string& reduce_expr,
             const std::string& post_map_expr, nb::handle identity, const std::string& name,
             std::optional<std::string> reduce_type, const std::string& preamble,
             const std::vector<std::string>& options) {
            new (self) ReductionKernel(in_params, out_params, map_expr, reduce_expr, post_map_expr,
                                       nb::cast<std::string>(nb::str(identity)), checked_name(name),
                                       {reduce_type.value_or(""), options, preamble});
          },
          nb::arg("in_params"), nb::arg("out_params"), nb::arg("map_expr"), nb::arg("reduce_expr"),
          nb::arg("post_map_expr"), nb::arg("identity"), nb::arg("name") = "reduction",
          nb::arg("reduce_type") = nb::none(), nb::arg("preamble") = "",
          nb::arg("options") = std::vector<std::string>())
      .def(
          "__call__",
          [](const ReductionKernel& kernel, const nb::args& args, nb::handle out, nb::handle axis,
             bool keepdims) {
            std::vector<KernelInput> inputs = kernel_inputs_of(args);
            ReductionOptions options{.axis = axes_of(axis), .keepdims = keepdims};
            if (!out.is_none()) options.out = nb::cast<Array>(out);
            return one_or_tuple(unlocked([&] { return kernel.call(inputs, options); }));
          },
          nb::arg("args"), nb::kw_only(), nb::arg("out") = nb::none(), nb::arg("axis") = nb::none(),
          nb::arg("keepdims") = false)
      .def_prop_ro("name", &ReductionKernel::name);
}

Dim3 dim_of(nb::handle object) {
  Shape shape = shape_of_object(object);
  unsigned extents[3] = {1, 1, 1};
  if (shape.size() > 3) throw ValueError("a grid and a block have three axes at most");
  for (int i = 0; i < shape.size(); ++i) extents[i] = static_cast<unsigned>(shape[i]);
  return Dim3(extents[0], extents[1], extents[2]);
}

void launch(const RawKernel& kernel, nb::handle grid, nb::handle block, nb::handle args,
            unsigned shared_mem) {
  Dim3 blocks = dim_of(grid), threads = dim_of(block);
  std::vector<KernelInput> inputs = kernel_inputs_of(args);
  unlocked([&] { kernel.launch(blocks, threads, inputs, shared_mem); });
}

void bind_raw(nb::module_& m) {
  nb::class_<RawKernel>(m, "RawKernel", "A kernel in CUDA C++.")
      .def(
          "__init__",
          [](RawKernel* self, const std::string& code, const std::string& name,
             const std::vector<std::string>& options, bool enable_cooperative_groups) {
            new (self) RawKernel(code, name, {options, {}, enable_cooperative_groups});
          },
          nb::arg("code"), nb::arg("name"), nb::arg("options") = std::vector<std::string>(),
          nb::kw_only(), nb::arg("enable_cooperative_groups") = false)
      .def("__call__", &launch, nb::arg("grid"), nb::arg("block"), nb::arg("args"), nb::kw_only(),
           nb::arg("shared_mem") = 0, "Queues a launch.")
      .def_prop_ro("name", [](const RawKernel& k) { return std::string(k.name()); });
  nb::class_<RawModule>(m, "RawModule", "Kernels in CUDA C++, compiled at the first use.")
      .def(
          "__init__",
          [](RawModule* self, std::optional<std::string> code, std::optional<std::string> path,
             const std::vector<std::string>& options,
             const std::vector<std::string>& name_expressions) {
            if (code.has_value() == path.has_value())
              throw ValueError("RawModule: either code or path");
            RawModule::Options given{options, name_expressions};
            if (code) new (self) RawModule(*code, given);
            else new (self) RawModule(RawModule::from_file(*path, given));
          },
          nb::kw_only(), nb::arg("code") = nb::none(), nb::arg("path") = nb::none(),
          nb::arg("options") = std::vector<std::string>(),
          nb::arg("name_expressions") = std::vector<std::string>())
      .def("get_function", &RawModule::get_function, nb::arg("name"));
}

/// rensa.fuse's: what a function of Python's does to arrays, in as few kernels as there can be.
class FusedFunction {
 public:
  nb::object call(nb::handle self, const nb::args& args) const {
    nb::object function = self.attr("function");
    if (detail::is_tracing()) return function(*args);
    detail::FusedCall fused(*state_);
    nb::object result = function(*args);
    std::vector<Array*> arrays;
    collect(result, arrays);
    unlocked([&] { fused.finish(arrays); });
    return result;
  }
  int kernels() const { return detail::kernels_of(*state_); }

 private:
  static void collect(nb::handle result, std::vector<Array*>& arrays) {
    if (nb::isinstance<Array>(result)) {
      arrays.push_back(nb::inst_ptr<Array>(result));
    } else if (PyTuple_Check(result.ptr()) ||
               PyList_Check(result.ptr())) {  // else no array of ours
      for (nb::handle one : nb::borrow<nb::sequence>(result)) collect(one, arrays);
    }
  }
  std::shared_ptr<detail::FusedState> state_ = detail::make_fused_state();
};

}  // namespace

void bind_kernels(nb::module_& m) {
  bind_elementwise(m);
  bind_reduction(m);
  bind_raw(m);
  nb::class_<FusedFunction>(m, "fuse", nb::dynamic_attr(),
                            "A function of arrays whose operations are one kernel: a decorator.")
      .def(
          "__init__",
          [](nb::handle_t<FusedFunction> self, nb::object function) {
            new (nb::inst_ptr<FusedFunction>(self)) FusedFunction();
            nb::inst_mark_ready(self);
            self.attr("function") = function;
          },
          nb::arg("function"))
      .def("__call__",
           [](nb::handle_t<FusedFunction> self, const nb::args& args) {
             return nb::cast<const FusedFunction&>(self).call(self, args);
           })
      .def_prop_ro("kernels", &FusedFunction::kernels,
                   "How many kernels the latest call launched.");
}

}  // namespace rensa::python

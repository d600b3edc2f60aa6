// A call of an ElementwiseKernel: dtypes and shapes, the layout, the compiled function, the launch.
#include "rensa/kernel/elementwise_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/launcher.h"
#include "rensa/kernel/compiler.h"
#include "rensa/kernel/elementwise_source.h"

namespace rensa {

namespace {

using detail::ArgumentLayout;
using detail::ElementwiseLayout;
using detail::KernelParameter;

constexpr int kBlock = 256;
constexpr std::int64_t kMostBlocks = 132 * 32;  // beyond, a thread takes several elements

/// One call's arguments, checked: what each is, and the arrays as the loop sees them.
struct Prepared {
  ElementwiseLayout layout;
  std::vector<Array> arrays;     // undefined for numbers
  std::vector<ArrayView> views;  // broadcast to the loop's shape and collapsed; raw ones as given
  std::vector<Scalar> numbers;
  Shape shape, extents;  // of the call, and of the loop
  Device device;
};

constexpr int kMostWidth = 8;

/// How many elements a thread takes at once: 16 bytes of the widest, where all arrays are aligned
/// to their share.
int pack_width(const std::vector<ArrayView*>& views) {
  std::int64_t widest = 2;
  for (const ArrayView* view : views) widest = std::max(widest, itemsize(view->dtype));
  std::int64_t width = std::min<std::int64_t>(16 / widest, kMostWidth);
  for (const ArrayView* view : views) {
    auto bytes = static_cast<std::uintptr_t>(width * itemsize(view->dtype));
    if (reinterpret_cast<std::uintptr_t>(view->data) % bytes != 0) return 1;
  }
  return static_cast<int>(width);
}

/// The bytes of elementwise_source's struct.
class ArgumentWriter {
 public:
  explicit ArgumentWriter(KernelArgument& argument) : argument_(argument) {}
  void pointer(const Array& array, bool written) {
    argument_.pointers.push_back({argument_.bytes.size(), written, array.operand()});
    put(std::int64_t{0});
  }
  void integers(const Shape& values) {
    for (std::int64_t value : values) put(value);
  }
  template <class T> void put(const T& value) {
    std::size_t at = argument_.bytes.size();
    argument_.bytes.resize(at + sizeof(T));
    std::memcpy(argument_.bytes.data() + at, &value, sizeof(T));
  }
  void number(Scalar value, Dtype dtype) {
    align();
    visit_dtype(dtype, [&](auto zero) { put(value.as<decltype(zero)>()); });
  }
  void align() { argument_.bytes.resize((argument_.bytes.size() + 15) / 16 * 16); }

 private:
  KernelArgument& argument_;
};

}  // namespace

struct ElementwiseKernel::Impl {
  struct Compiled {
    std::shared_ptr<const cuda::GpuModule> module;
    const void* function = nullptr;
    RuntimeKernel::HostFunction host = nullptr;
  };

  detail::ElementwiseText text;
  const char* kept_name = nullptr;
  std::vector<bool> assigned;  // of the outputs: surely_assigned
  mutable std::mutex mutex;
  mutable std::map<std::pair<std::string, int>, Compiled> compiled;  // by layout and GPU, -1: host

  const KernelParameter& parameter(std::size_t k) const {
    return k < text.inputs.size() ? text.inputs[k] : text.outputs[k - text.inputs.size()];
  }
  bool is_input(std::size_t k) const { return k < text.inputs.size(); }

  Prepared prepare(const std::vector<KernelInput>& given, const CallOptions& options) const;
  void find_device(Prepared& p) const;
  std::map<std::string, Dtype> find_dtypes(const Prepared& p,
                                           const std::vector<KernelInput>& given) const;
  void find_shape(Prepared& p, const CallOptions& options) const;
  void make_outputs(Prepared& p) const;
  void part_overlaps(Prepared& p) const;
  void find_layout(Prepared& p) const;
  KernelArgument pack(const Prepared& p) const;
  Compiled compile(const Prepared& p) const;
  [[noreturn]] void fail_dtype(std::size_t k, Dtype wanted, Dtype got) const {
    throw DtypeError(fmt::format("{}: {} is {}, the parameter \"{} {}\" wants {}", text.name,
                                 parameter(k).name, dtype_name(got), parameter(k).type,
                                 parameter(k).name, dtype_name(wanted)));
  }
};

// The device of the arrays, which is one; the current one where there are none.
void ElementwiseKernel::Impl::find_device(Prepared& p) const {
  const Array* first = nullptr;
  for (const Array& array : p.arrays) {
    if (!array.defined()) continue;
    if (first) check_same_device(text.name.c_str(), *first, array);
    first = &array;
  }
  p.device = first ? first->device() : ThreadState::current().device;
}

// What each letter stands for.
std::map<std::string, Dtype> ElementwiseKernel::Impl::find_dtypes(
    const Prepared& p, const std::vector<KernelInput>& given) const {
  std::map<std::string, Dtype> dtypes;
  for (std::size_t k = 0; k < p.arrays.size(); ++k) {
    if (!p.arrays[k].defined()) continue;
    Dtype dtype = p.arrays[k].dtype();
    Dtype wanted = parameter(k).dtype ? *parameter(k).dtype
                                      : dtypes.try_emplace(parameter(k).type, dtype).first->second;
    if (dtype != wanted) fail_dtype(k, wanted, dtype);
  }
  for (std::size_t k = 0; k < text.inputs.size(); ++k) {
    if (p.arrays[k].defined() || parameter(k).dtype) continue;
    dtypes.try_emplace(parameter(k).type, given[k].scalar().default_dtype());
  }
  for (std::size_t k = text.inputs.size(); k < p.arrays.size(); ++k) {
    if (!parameter(k).dtype && !dtypes.count(parameter(k).type)) {
      throw DtypeError(
          fmt::format("{}: nothing says what {} of the output \"{} {}\" is; give the output array",
                      text.name, parameter(k).type, parameter(k).type, parameter(k).name));
    }
  }
  return dtypes;
}

void ElementwiseKernel::Impl::find_shape(Prepared& p, const CallOptions& options) const {
  std::optional<Shape> shape;
  for (std::size_t k = 0; k < p.arrays.size(); ++k) {
    if (!p.arrays[k].defined() || parameter(k).raw) continue;
    if (is_input(k)) {
      shape = shape ? broadcast_shapes(text.name.c_str(), *shape, p.arrays[k].shape())
                    : p.arrays[k].shape();
    }
  }
  if (options.size >= 0) {
    if (shape) {
      throw ValueError(
          fmt::format("{}: size={} was given and arrays that broadcast say {}; give one of the two",
                      text.name, options.size, shape->str()));
    }
    shape = Shape{options.size};
  }
  for (std::size_t k = text.inputs.size(); k < p.arrays.size(); ++k) {
    if (!p.arrays[k].defined() || parameter(k).raw) continue;
    if (!shape) shape = p.arrays[k].shape();
    if (p.arrays[k].shape() != *shape) {
      throw ShapeError(fmt::format("{}: the output {} has shape {}, the inputs broadcast to {}",
                                   text.name, parameter(k).name, p.arrays[k].shape().str(),
                                   shape->str()));
    }
  }
  if (!shape) {
    throw ValueError(fmt::format(
        "{}: nothing says how many elements there are; give size, or an array that broadcasts",
        text.name));
  }
  p.shape = *shape;
}

void ElementwiseKernel::Impl::make_outputs(Prepared& p) const {
  for (std::size_t k = text.inputs.size(); k < p.arrays.size(); ++k) {
    p.layout.arguments[k].loaded = p.arrays[k].defined() && !assigned[k - text.inputs.size()];
    if (p.arrays[k].defined()) {
      detail::check_writable(text.name.c_str(), p.arrays[k]);
    } else if (parameter(k).raw) {
      throw ValueError(fmt::format("{}: the output {} is raw, so it has to be given", text.name,
                                   parameter(k).name));
    } else {
      p.arrays[k] = detail::new_array(p.shape, p.layout.arguments[k].dtype, p.device);
    }
  }
}

// An input that shares memory with an output, and not element by element, is read from a copy.
void ElementwiseKernel::Impl::part_overlaps(Prepared& p) const {
  for (std::size_t k = 0; k < text.inputs.size(); ++k) {
    if (!p.arrays[k].defined() || parameter(k).raw) continue;
    ArrayView input = broadcast_view(p.arrays[k].view(), p.shape);
    for (std::size_t out = text.inputs.size(); out < p.arrays.size(); ++out) {
      if (parameter(out).raw || !detail::partly_overlap(input, p.arrays[out].view())) continue;
      p.arrays[k] = p.arrays[k].copy();
      break;
    }
  }
}

// The loop's axes, merged where all arrays allow it.
void ElementwiseKernel::Impl::find_layout(Prepared& p) const {
  std::vector<ArrayView*> loop;
  p.views.resize(p.arrays.size());
  for (std::size_t k = 0; k < p.arrays.size(); ++k) {
    ArgumentLayout& argument = p.layout.arguments[k];
    if (!p.arrays[k].defined()) {
      argument.kind = ArgumentLayout::Kind::number;
      continue;
    }
    p.views[k] = p.arrays[k].view();
    if (parameter(k).raw) {
      argument.kind = ArgumentLayout::Kind::raw;
      argument.contiguous = p.views[k].is_c_contiguous();
      argument.ndim = std::max(p.views[k].ndim(), 1);
    } else {
      p.views[k] = broadcast_view(p.views[k], p.shape);
      loop.push_back(&p.views[k]);
    }
  }
  if (!loop.empty()) collapse_axes(loop.data(), static_cast<int>(loop.size()));
  p.extents = loop.empty() ? Shape{p.shape.total()} : loop[0]->shape;
  p.layout.straight = p.extents.ndim() <= 1;
  for (ArrayView* view : loop) {
    p.layout.straight &= view->shape.empty() || view->strides[0] == itemsize(view->dtype);
  }
  if (p.extents.empty()) {  // one element
    p.extents = Shape{p.shape.total()};
    for (ArrayView* view : loop) view->strides = Shape{0};
  }
  p.layout.ndim = p.extents.ndim();
  if (p.layout.straight) p.layout.width = pack_width(loop);
  // A thread's index goes beyond the size by at most the whole grid.
  p.layout.small = p.shape.total() <
                   std::numeric_limits<std::int32_t>::max() - kMostBlocks * kBlock * kMostWidth;
}

Prepared ElementwiseKernel::Impl::prepare(const std::vector<KernelInput>& given,
                                          const CallOptions& options) const {
  std::size_t inputs = text.inputs.size(), all = inputs + text.outputs.size();
  if (given.size() != inputs && given.size() != all) {
    throw ValueError(fmt::format("{}: takes {} arguments, or {} with the outputs, got {}",
                                 text.name, inputs, all, given.size()));
  }
  Prepared p;
  p.arrays.resize(all);
  p.numbers.resize(all);
  p.layout.arguments.resize(all);
  p.layout.num_inputs = static_cast<int>(inputs);
  for (std::size_t k = 0; k < given.size(); ++k) {
    if (given[k].is_array()) {
      detail::check_defined(text.name.c_str(), given[k].array());
      p.arrays[k] = given[k].array();
    } else if (k >= inputs || parameter(k).raw || !given[k].is_number()) {
      throw ValueError(fmt::format("{}: {} has to be an array{}", text.name, parameter(k).name,
                                   k >= inputs || parameter(k).raw ? "" : " or a number"));
    }
    p.numbers[k] = given[k].scalar();
  }
  find_device(p);
  auto dtypes = find_dtypes(p, given);
  for (std::size_t k = 0; k < all; ++k) {
    p.layout.arguments[k].dtype =
        parameter(k).dtype ? *parameter(k).dtype : dtypes.at(parameter(k).type);
  }
  find_shape(p, options);
  make_outputs(p);
  part_overlaps(p);
  find_layout(p);
  return p;
}

KernelArgument ElementwiseKernel::Impl::pack(const Prepared& p) const {
  KernelArgument argument;
  ArgumentWriter writer(argument);
  for (std::size_t k = 0; k < p.arrays.size(); ++k) {
    const ArgumentLayout& layout = p.layout.arguments[k];
    if (layout.kind == ArgumentLayout::Kind::number) continue;
    writer.pointer(p.arrays[k], !is_input(k));
    if (layout.kind == ArgumentLayout::Kind::element && !p.layout.straight) {
      writer.integers(p.views[k].strides);
    }
    if (layout.kind == ArgumentLayout::Kind::raw && !layout.contiguous) {
      writer.integers(p.views[k].shape);
      writer.integers(p.views[k].strides);
    }
  }
  writer.integers(p.extents);
  writer.put(p.shape.total());
  for (std::size_t k = 0; k < p.arrays.size(); ++k) {
    if (p.layout.arguments[k].kind != ArgumentLayout::Kind::number) continue;
    writer.number(p.numbers[k], p.layout.arguments[k].dtype);
  }
  writer.align();
  return argument;
}

ElementwiseKernel::Impl::Compiled ElementwiseKernel::Impl::compile(const Prepared& p) const {
  int gpu = p.device.is_cpu() ? -1 : p.device.index;
  auto key = std::make_pair(p.layout.key(), gpu);
  std::lock_guard<std::mutex> hold(mutex);
  auto it = compiled.find(key);
  if (it != compiled.end()) return it->second;
  std::string source = detail::elementwise_source(text, p.layout);
  Compiled made;
  if (p.layout.host) {
    made.host = detail::host_function(source, text.name);
  } else {
    made.module = detail::gpu_module({source, text.name, {"-fmad=false"}, {}}, p.device);
    made.function = made.module->function(text.name);
  }
  compiled.emplace(key, made);
  return made;
}

ElementwiseKernel::ElementwiseKernel(const std::string& in_params, const std::string& out_params,
                                     const std::string& operation, const std::string& name)
    : ElementwiseKernel(in_params, out_params, operation, name, Options{}) {}

ElementwiseKernel::ElementwiseKernel(const std::string& in_params, const std::string& out_params,
                                     const std::string& operation, const std::string& name,
                                     Options options) {
  auto impl = std::make_shared<Impl>();
  impl->text = {detail::parse_parameters(name, in_params),
                detail::parse_parameters(name, out_params),
                operation,
                name,
                std::move(options.preamble),
                std::move(options.loop_prep),
                std::move(options.after_loop)};
  impl->kept_name = keep_name(name);
  if (impl->text.outputs.empty()) {
    throw ValueError(name + ": a kernel needs an output parameter");
  }
  for (const KernelParameter& output : impl->text.outputs) {
    impl->assigned.push_back(detail::surely_assigned(operation, output.name));
  }
  for (const KernelParameter& input : impl->text.inputs) {
    for (const KernelParameter& output : impl->text.outputs) {
      if (input.name == output.name) {
        throw ValueError(fmt::format("{}: two parameters are called {}", name, input.name));
      }
    }
  }
  impl_ = std::move(impl);
}

std::vector<Array> ElementwiseKernel::call(const std::vector<KernelInput>& arguments,
                                           CallOptions options) const {
  Prepared p = impl_->prepare(arguments, options);
  std::vector<Array> outputs(p.arrays.begin() + p.layout.num_inputs, p.arrays.end());
  if (p.shape.total() == 0) return outputs;
  p.layout.host = p.device.is_cpu();
  if (p.layout.host) p.layout.width = 1;  // the compiler finds the processor's own vectors
  Impl::Compiled compiled = impl_->compile(p);
  RuntimeKernel kernel(impl_->kept_name);
  kernel.module = compiled.module;
  kernel.function = compiled.function;
  kernel.host_function = compiled.host;
  kernel.size = p.shape.total();
  kernel.block.x = kBlock;
  std::int64_t block = std::int64_t{kBlock} * p.layout.width;
  kernel.grid.x = static_cast<unsigned>(std::min((kernel.size + block - 1) / block, kMostBlocks));
  kernel.arguments.push_back(impl_->pack(p));
  launch(kernel);
  return outputs;
}

std::string ElementwiseKernel::source(const std::vector<KernelInput>& arguments,
                                      CallOptions options) const {
  Prepared p = impl_->prepare(arguments, options);
  return detail::elementwise_source(impl_->text, p.layout);
}

const std::string& ElementwiseKernel::name() const { return impl_->text.name; }

}  // namespace rensa

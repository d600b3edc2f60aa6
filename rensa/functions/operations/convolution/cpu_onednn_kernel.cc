// oneDNN's kernels for pieces of convolutions.
#include "rensa/functions/operations/convolution/cpu_onednn_kernel.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rensa/functions/operations/convolution/cpu_onednn.h"

namespace rensa::host {

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch);
}

const dnnl::engine& onednn_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

namespace {

using dnnl::memory;
using operations::Convolution;
using operations::ConvolutionDirection;
using Dims = memory::dims;

/// How many threads OpenMP takes for what the calling thread asks of it; null where the process has
/// none.
struct OpenMp {
  int (*get)() = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  void (*set)(int) = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
};
const OpenMp& open_mp() {
  static const OpenMp calls;
  return calls;
}

memory::data_type type_of(Dtype dtype) {
  return dtype == bfloat16 ? memory::data_type::bf16 : memory::data_type::f32;
}

/// What oneDNN is told of a convolution besides its operands.
struct Description {
  Description(const Convolution& op, const ConvolutionGeometry& g) {
    for (int i = 0; i < g.axes; ++i) {
      std::int64_t reach = (op.w.view.shape[2 + i] - 1) * op.dilate[i] + 1;
      std::int64_t end = (g.out[i] - 1) * op.stride[i] + reach - op.pad[i];  // of what is read
      stride.push_back(op.stride[i]);
      dilate.push_back(op.dilate[i] - 1);
      pad_begin.push_back(op.pad[i]);
      pad_end.push_back(std::max<std::int64_t>(end - g.in[i], 0));
      fits &= g.in[i] - end < op.stride[i];
    }
  }
  Dims stride, dilate, pad_begin, pad_end;
  bool has_bias = false;
  memory::desc bias;  // of y
  bool fits = true;   // whether y has as many pixels as oneDNN would make of x
};

/// A primitive's description, empty where oneDNN has none. `hint` is what a gradient is of.
template <class P, class... Hint>
typename P::primitive_desc describe(const Description& d, const memory::desc& x,
                                    const memory::desc& w, const memory::desc& y,
                                    const Hint&... hint) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  auto make = [&](const auto&... what) -> typename P::primitive_desc {
#if DNNL_VERSION_MAJOR >= 3
    return {onednn_engine(), what..., d.stride,   d.dilate, d.pad_begin,
            d.pad_end,       hint..., attributes, true};
#else
    typename P::desc convolution(what..., d.stride, d.dilate, d.pad_begin, d.pad_end);
    return {convolution, attributes, onednn_engine(), hint..., true};
#endif
  };
  constexpr auto direct = dnnl::algorithm::convolution_direct;
  if constexpr (sizeof...(Hint) != 0) return make(direct, x, w, y);
  else if (d.has_bias) return make(dnnl::prop_kind::forward_training, direct, x, w, d.bias, y);
  else return make(dnnl::prop_kind::forward_training, direct, x, w, y);
}

Dims c_strides(const Dims& shape) {
  Dims strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0; step *= shape[i]) strides[i] = step;
  return strides;
}

/// Which of x, w and y a direction makes.
int made_by(ConvolutionDirection direction) {
  switch (direction) {
    case ConvolutionDirection::input_gradient: return 0;
    case ConvolutionDirection::weight_gradient: return 1;
    case ConvolutionDirection::forward: break;
  }
  return 2;
}

/// The layout asked for: with the channels last where the operand lies so, else the kernel's own.
memory::desc wish(const ArrayView& view, const Part& part) {
  memory::data_type type = type_of(view.dtype);
  if (lie_of(view) != Lie::channels_last)
    return memory::desc(part.shape, type, memory::format_tag::any);
  Dims strides(part.shape.size());
  std::int64_t step = 1;
  auto next = [&](std::size_t axis) { strides[axis] = step, step *= part.shape[axis]; };
  next(1);
  for (std::size_t i = part.shape.size(); i-- > 2;) next(i);
  next(0);
  return memory::desc(part.shape, type, strides);
}

/// The kernels made so far, by what they were made for.
class Kernels {
 public:
  std::shared_ptr<const OneDnnKernel> get(const Convolution& op, const ConvolutionGeometry& g,
                                          const Parts& parts) {
    std::vector<std::int64_t> key{static_cast<std::int64_t>(op.direction),
                                  static_cast<std::int64_t>(op.x.view.dtype), op.bias.present()};
    for (const Dims* dims : {&parts.x.shape, &parts.x.strides, &parts.w.shape, &parts.w.strides,
                             &parts.y.shape, &parts.y.strides}) {
      key.insert(key.end(), dims->begin(), dims->end());
    }
    for (const Shape* numbers : {&op.stride, &op.pad, &op.dilate})
      key.insert(key.end(), numbers->begin(), numbers->end());
    {
      std::lock_guard lock(mutex_);
      if (auto known = kernels_.find(key); known != kernels_.end()) {
        known->second.used = ++time_;
        return known->second.kernel;
      }
    }
    // Others go on while this one is compiled. Of two threads that do so one kernel is kept.
    auto kernel = std::make_shared<const OneDnnKernel>(op, g, parts);
    std::lock_guard lock(mutex_);
    if (kernels_.size() >= kMost) {
      kernels_.erase(std::min_element(
          kernels_.begin(), kernels_.end(),
          [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
    }
    return kernels_.try_emplace(key, Entry{std::move(kernel), ++time_}).first->second.kernel;
  }

 private:
  struct Entry {
    std::shared_ptr<const OneDnnKernel> kernel;
    std::int64_t used;  // the last time
  };
  static constexpr std::size_t kMost = 4096;
  std::mutex mutex_;
  std::int64_t time_ = 0;
  std::map<std::vector<std::int64_t>, Entry> kernels_;
};

}  // namespace

Lie lie_of(const ArrayView& view) {
  if (view.is_c_contiguous()) return Lie::c_order;
  std::int64_t reached = itemsize(view.dtype);
  auto next = [&](int axis) {
    bool fits = view.shape[axis] == 1 || view.strides[axis] == reached;
    reached *= view.shape[axis];
    return fits;
  };
  bool fits = next(1);
  for (int i = view.ndim(); i-- > 2;) fits &= next(i);
  return fits && next(0) ? Lie::channels_last : Lie::otherwise;
}

OneDnnThread::OneDnnThread() {
  if (open_mp().set) threads_before_ = open_mp().get(), open_mp().set(1);
}
OneDnnThread::~OneDnnThread() {
  if (open_mp().set) open_mp().set(threads_before_);
}

char* OneDnnThread::take(const OneDnnForm& form, char* lies, char* block) {
  if (!form.copied) return lies;
  memory from(form.lies, onednn_engine(), lies), to(form.wanted, onednn_engine(), block);
  form.copy.execute(stream_, from, to);
  return block;
}

void OneDnnThread::give(const OneDnnForm& form, char* lies, char* block) {
  if (!form.copied) return;
  memory from(form.wanted, onednn_engine(), block), to(form.lies, onednn_engine(), lies);
  form.copy.execute(stream_, from, to);
}

OneDnnKernel::OneDnnKernel(const Convolution& op, const ConvolutionGeometry& g, const Parts& parts)
    : direction_(op.direction), is_half_(op.x.view.dtype == bfloat16) {
  bool makes_weights = direction_ == ConvolutionDirection::weight_gradient;
  memory::data_type type = type_of(op.x.view.dtype);
  // Weights' gradients are summed in float32, in C order.
  memory::data_type type_of_w = makes_weights ? memory::data_type::f32 : type;
  x.lies = memory::desc(parts.x.shape, type, parts.x.strides);
  y.lies = memory::desc(parts.y.shape, type, parts.y.strides);
  w.lies = memory::desc(parts.w.shape, type_of_w,
                        makes_weights ? c_strides(parts.w.shape) : parts.w.strides);
  Description d(op, g);
  if (!d.fits) return;
  if (direction_ == ConvolutionDirection::forward && op.bias.present()) {
    has_bias_ = d.has_bias = true;
    bias_ = d.bias =
        memory::desc({parts.y.shape[1]}, memory::data_type::f32, memory::format_tag::a);
  }
  auto any_weights = [&](memory::data_type t) {
    return memory::desc(parts.w.shape, t, memory::format_tag::any);
  };
  memory::desc wx = wish(op.x.view, parts.x), wy = wish(op.y.view, parts.y);
  auto forward = describe<dnnl::convolution_forward>(d, wx, any_weights(type), wy);
  if (!forward) return;
  memory::desc ww = any_weights(type_of_w);
  switch (direction_) {
    case ConvolutionDirection::forward:
      settle<dnnl::convolution_forward>(forward, {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST});
      break;
    case ConvolutionDirection::input_gradient:
      settle<dnnl::convolution_backward_data>(
          describe<dnnl::convolution_backward_data>(d, wx, ww, wy, forward),
          {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST});
      break;
    case ConvolutionDirection::weight_gradient:
      settle<dnnl::convolution_backward_weights>(
          describe<dnnl::convolution_backward_weights>(d, wx, ww, wy, forward),
          {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST});
      break;
  }
}

void OneDnnKernel::run(OneDnnThread& thread, char* px, char* pw, char* py, const float* bias,
                       char* scratch) const {
  if (clears_scratch_) std::memset(scratch, 0, scratch_bytes());
  std::unordered_map<int, memory> arguments{
      {arguments_[0], memory(x.wanted, onednn_engine(), px)},
      {arguments_[1], memory(w.wanted, onednn_engine(), pw)},
      {arguments_[2], memory(y.wanted, onednn_engine(), py)},
      {DNNL_ARG_SCRATCHPAD, memory(scratch_, onednn_engine(), scratch)}};
  if (has_bias_) {
    arguments.emplace(DNNL_ARG_BIAS, memory(bias_, onednn_engine(), const_cast<float*>(bias)));
  }
  run_.execute(thread.stream(), arguments);
}

template <class P>
void OneDnnKernel::settle(const typename P::primitive_desc& description,
                          const std::array<int, 3>& arguments) {
  if (!description) return;
  std::string_view name = description.impl_info_str();
  if (name.find("ref:") != name.npos || name.find("gemm:") != name.npos) return;
  arguments_ = arguments;
  dnnl::primitive_attr attributes;  // copies run on several threads at a time: none needs memory
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  for (int i = 0; OneDnnForm * form : {&x, &w, &y}) {
    bool made = i == made_by(direction_);
    form->wanted =
        description.query_md(dnnl::query::exec_arg_md, arguments[static_cast<std::size_t>(i++)]);
    form->copied = form->wanted != form->lies;
    if (!form->copied) continue;
    const memory::desc& from = made ? form->wanted : form->lies;
    const memory::desc& to = made ? form->lies : form->wanted;
    dnnl::reorder::primitive_desc copy(onednn_engine(), from, onednn_engine(), to, attributes,
                                       true);
    if (!copy || copy.scratchpad_desc().get_size() != 0) return;
    form->copy = dnnl::reorder(copy);
  }
  scratch_ = description.scratchpad_desc();
  // oneDNN 2.6 sums bfloat16's gradients of weights in memory that it does not always clear.
  clears_scratch_ = direction_ == ConvolutionDirection::weight_gradient && is_half_;
  run_ = P(description);
}

std::shared_ptr<const OneDnnKernel> OneDnnKernel::of(const Convolution& op,
                                                     const ConvolutionGeometry& g,
                                                     const Parts& parts) {
  static Kernels made;
  return made.get(op, g, parts);
}

}  // namespace rensa::host

// Elementwise operations on the CPU: walks arrays of any dtype and stride and hands contiguous
// values to the kernels.
#include "rensa/operations/elementwise/cpu_elementwise.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "rensa/backend/cpu/copy.h"
#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/elementwise/elementwise.h"

namespace rensa::host {

namespace {

// Rows of at least this many elements are worked on one by one, so that those which lie in memory
// as the kernels want them are not copied.
constexpr std::int64_t kLongRow = 256;

// Elements that are worth waking a thread for.
std::int64_t grain_of(Ufunc ufunc) {
  DtypeRule rule = ufunc_info(ufunc).rule;
  bool costly = rule == DtypeRule::floating || rule == DtypeRule::exponent ||
                rule == DtypeRule::analytic || rule == DtypeRule::doubles || ufunc == ufunc::power;
  return costly ? 8 << 10 : 32 << 10;
}

struct Walk {
  ElementwiseKernel kernel;  // null where values are stored as they are read
  int num_inputs;
  const Reader* in;
  const Writer* out;
  std::int64_t row;    // extent of the last common axis
  std::int64_t chunk;  // most elements at a time

  void run(std::int64_t begin, std::int64_t end) const {
    Scratch scratch[4];
    const void* values[3];
    unsigned repeated = 0;
    for (int k = 0; k < num_inputs; ++k) {
      if (!in[k].is_constant()) continue;
      values[k] = in[k].read(0, std::min(kRepeats, end - begin), scratch[k]);
      repeated |= 1u << k;
    }
    while (begin < end) {
      std::int64_t n = std::min(chunk, end - begin);
      if (row >= kLongRow) n = std::min(n, row - begin % row);
      for (int k = 0; k < num_inputs; ++k) {
        if (!in[k].is_constant()) values[k] = in[k].read(begin, n, scratch[k]);
      }
      const void* result = values[0];
      if (kernel) {
        void* target = out->target(begin, n, scratch[3]);
        kernel(n, values, target, repeated);
        result = target;
      }
      out->write(begin, n, result);
      begin += n;
    }
  }
};

// A walk over long rows of matrices that lie in memory as the kernel reads them. An input may have
// one element for all of a row: the kernel gets a buffer of copies of it.
struct RowWalk {
  ElementwiseKernel kernel = nullptr;
  int num_inputs = 0;
  unsigned repeated = 0;
  std::int64_t size = 1;  // bytes of a value
  ArrayView out, in[3];

  // Takes the operands; false where they do not lie so. An input that is read as a truth value does
  // not.
  bool prepare(ElementwiseKernel of, ComputeType type, const ArrayView& output,
               const ArrayView* inputs, const Reader* readers, int n) {
    kernel = of;
    num_inputs = n;
    size = itemsize(value_dtype(type));
    auto in_place = [&](const ArrayView& view) {
      return view.dtype == value_dtype(type) && view.ndim() == 2 && view.strides[1] == size;
    };
    if (!in_place(output) || output.shape[1] < kLongRow) return false;
    out = output;
    for (int k = 0; k < n; ++k) {
      in[k] = inputs[k];
      bool once = in[k].strides[1] == 0 && in[k].dtype == value_dtype(type);
      if (once) repeated |= 1u << k;
      if (readers[k].is_truth() || !(once || in_place(in[k]))) return false;
    }
    return true;
  }

  void run(std::int64_t begin, std::int64_t end) const {
    alignas(64) char filled[3][kRepeats * kMaxValueSize];
    const void* values[3];
    for (std::int64_t row = begin; row < end; ++row) {
      for (int k = 0; k < num_inputs; ++k) {
        values[k] = in[k].data + row * in[k].strides[0];
        if ((repeated >> k & 1) == 0) continue;
        bool again = row == begin || in[k].strides[0] != 0;  // one number stays for all rows
        if (again) kernels().fill(std::min(kRepeats, out.shape[1]), values[k], size, filled[k]);
        values[k] = filled[k];
      }
      kernel(out.shape[1], values, out.data + row * out.strides[0], repeated);
    }
  }
};

// A walk over elements as they are stored; of operands that are one number, over copies of it.
struct StoredWalk {
  static constexpr std::int64_t kFilled = 4096;  // bytes

  ElementwiseKernel kernel = nullptr;
  int num_inputs = 0;
  std::int64_t size = 1;  // bytes of an element
  char* out = nullptr;
  const char* in[3] = {};
  bool is_filled[3] = {};
  alignas(64) char filled[3][kFilled];

  bool fill(int k, std::int64_t n, long long number) {
    if (size == 1) {
      std::memset(filled[k], number != 0, static_cast<std::size_t>(std::min(n, kFilled)));
    } else if (number == static_cast<std::int32_t>(number)) {
      auto* values = reinterpret_cast<std::int32_t*>(filled[k]);
      std::fill_n(values, std::min(n, kFilled / size), static_cast<std::int32_t>(number));
    } else {
      return false;
    }
    in[k] = filled[k];
    return is_filled[k] = true;
  }

  // Whether the operands are such: side by side in memory and of the dtype that is computed in.
  bool prepare(Ufunc ufunc, Dtype compute, const ArrayView& output, const ArrayView* inputs,
               int n) {
    kernel = kernels().over_stored(ufunc, compute);
    size = itemsize(compute);
    if (!kernel || output.dtype != compute || output.ndim() != 1 || output.strides[0] != size) {
      return false;
    }
    out = output.data;
    num_inputs = n;
    for (int k = 0; k < n; ++k) {
      in[k] = inputs[k].data;
      if (inputs[k].strides[0] == 0) {
        char kind = dtype_kind(inputs[k].dtype);
        if (kind == 'f' || kind == 'c') return false;  // 0.5 is true, and no integer
        long long number;
        kernels().load_of(inputs[k].dtype, ComputeType::i64)(1, in[k], 0, &number);
        if (!fill(k, output.size(), number)) return false;
      } else if (inputs[k].dtype != compute || inputs[k].strides[0] != size) {
        return false;
      }
    }
    return true;
  }

  void run(std::int64_t begin, std::int64_t end) const {
    bool all_stored = std::none_of(is_filled, is_filled + 3, [](bool is) { return is; });
    std::int64_t chunk = all_stored ? end - begin : kFilled / size;
    for (; begin < end; begin += chunk) {
      const void* values[3];
      for (int k = 0; k < num_inputs; ++k) values[k] = is_filled[k] ? in[k] : in[k] + begin * size;
      kernel(std::min(chunk, end - begin), values, out + begin * size, 0);
    }
  }
};

/// Calls the kernel of few elements that lie as it reads and writes them, or are one number: to
/// find that out for operands of any strides and dtypes takes longer than they do. False where they
/// lie otherwise.
bool run_few(Ufunc ufunc, Dtype compute, const Input* inputs, int num_inputs,
             const ArrayView& out) {
  ComputeType type = compute_type(compute);
  std::int64_t n = out.size();
  bool plain = ufunc != ufunc::where && compute != bool_ && compute == value_dtype(type);
  if (!plain || n > kRepeats || out.dtype != compute || !out.is_c_contiguous()) return false;
  alignas(kMaxValueSize) char filled[3][kRepeats * kMaxValueSize];
  const void* values[3];
  unsigned repeated = 0;
  for (int k = 0; k < num_inputs; ++k) {
    if (const ArrayView* in = inputs[k].view) {
      if (in->dtype != compute || in->shape != out.shape || in->strides != out.strides)
        return false;
      values[k] = in->data;
      continue;
    }
    alignas(kMaxValueSize) char number[kMaxValueSize];
    make_value(inputs[k].scalar, compute, type, number);
    kernels().fill(n, number, itemsize(compute), filled[k]);
    values[k] = filled[k], repeated |= 1u << k;
  }
  kernels().of(ufunc, type)(n, values, out.data, repeated);
  return true;
}

}  // namespace

void make_value(const Scalar& scalar, Dtype compute, ComputeType type, void* value) {
  auto put = [value](auto v) { std::memcpy(value, &v, sizeof(v)); };
  switch (type) {
    case ComputeType::i64:
      return put(compute == bool_ ? scalar.as<bool>() : scalar.as<long long>());
    case ComputeType::u64: return put(scalar.as<unsigned long long>());
    case ComputeType::f32: return put(scalar.as<float>());
    case ComputeType::f64: return put(scalar.as<double>());
    case ComputeType::c64: return put(scalar.as<std::complex<float>>());
    case ComputeType::c128: return put(scalar.as<std::complex<double>>());
  }
}

void run_elementwise(Ufunc ufunc, Dtype compute, const Input* inputs, int num_inputs,
                     const ArrayView& output) {
  if (output.size() == 0) return;
  bool same_dtype = inputs[0].view && inputs[0].view->dtype == output.dtype;
  if (ufunc == ufunc::copy && same_dtype) return copy_elements(*inputs[0].view, output);
  if (run_few(ufunc, compute, inputs, num_inputs, output)) return;

  ComputeType type = compute_type(compute);
  alignas(kMaxValueSize) char numbers[3][kMaxValueSize];
  ArrayView out = output, in[3];
  ArrayView* views[4] = {&out};
  for (int k = 0; k < num_inputs; ++k) {
    if (inputs[k].view) {
      in[k] = *inputs[k].view;
    } else {
      make_value(inputs[k].scalar, compute, type, numbers[k]);
      in[k] = {numbers[k], value_dtype(type), out.device, out.shape, Shape::filled(out.ndim(), 0)};
    }
    views[k + 1] = &in[k];
  }
  normalize_axes(views, num_inputs + 1);

  StoredWalk stored;
  if (stored.prepare(ufunc, compute, out, in, num_inputs)) {
    return parallel_for(out.size(), long_pieces(out.size(), grain_of(ufunc) * 8 / stored.size),
                        [&](std::int64_t begin, std::int64_t end) { stored.run(begin, end); });
  }

  auto reader_of = [&](int k) {
    if (k >= num_inputs) return Reader();
    bool truth = compute == bool_ || (ufunc == ufunc::where && k == 0);
    return Reader(in[k], type, truth && inputs[k].view);
  };
  Reader readers[3] = {reader_of(0), reader_of(1), reader_of(2)};
  ElementwiseKernel kernel = kernels().of(ufunc, type);
  RowWalk rows;
  if (rows.prepare(kernel, type, out, in, readers, num_inputs)) {
    std::int64_t grain = std::max<std::int64_t>(1, grain_of(ufunc) / out.shape[1]);
    return parallel_for(out.shape[0], long_pieces(out.shape[0], grain),
                        [&](std::int64_t begin, std::int64_t end) { rows.run(begin, end); });
  }

  Writer writer(out, type);
  // Values that go from one dtype to another are only read and written, unless they are written as
  // they lie in memory: then a kernel puts them there. (It also repeats what is one number.)
  bool is_conversion =
      ufunc == ufunc::copy && out.dtype != value_dtype(type) && !readers[0].is_constant();
  // Where nothing goes through a buffer there is no need of pieces.
  bool direct = is_conversion || writer.is_direct();
  for (int k = 0; k < num_inputs; ++k) direct &= readers[k].is_direct() || readers[k].is_constant();
  std::int64_t n = out.size();
  Walk walk = {is_conversion ? nullptr : kernel,
               num_inputs,
               readers,
               &writer,
               out.ndim() > 0 ? out.shape[out.ndim() - 1] : 1,
               direct ? n : kChunk};
  parallel_for(n, long_pieces(n, grain_of(ufunc)),
               [&walk](std::int64_t begin, std::int64_t end) { walk.run(begin, end); });
}

}  // namespace rensa::host

namespace rensa::operations {

void Elementwise::run_cpu() {
  host::Input inputs[3];
  for (int k = 0; k < num_inputs; ++k) {
    if (in[k].array.present()) inputs[k].view = &in[k].array.view;
    else inputs[k].scalar = in[k].scalar;
  }
  host::run_elementwise(ufunc, compute, inputs, num_inputs, out.view);
}

}  // namespace rensa::operations

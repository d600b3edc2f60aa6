// Normalizations on the CPU.
#include <algorithm>
#include <cmath>
#include <vector>

#include "rensa/backend/cpu/kernel_sources.h"
#include "rensa/backend/cpu/kernels.h"
#include "rensa/backend/cpu/row_kernels.h"
#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/functions/operations/normalization/normalization.h"
#include "rensa/operations/elementwise/cpu_elementwise.h"
#include "rensa/operations/reduce/cpu_kernels.h"
#include "rensa/operations/reduce/cpu_moments.h"
#include "rensa/portable/element_types.h"
#include "rensa/portable/launch_plan.h"
#include "rensa/portable/reduce_parts.h"

namespace rensa::host {

namespace {

using operations::Moments;
using operations::NormalizationSums;
using operations::Normalize;

constexpr std::int64_t kGrain = 16 << 10;  // elements that are worth waking a thread for

/// All elements of `operand`, which is C-contiguous, as values; of one that is absent `value`.
template <class V> std::vector<V> values_of(const Operand& operand, std::int64_t n, V value) {
  std::vector<V> values(static_cast<std::size_t>(n), value);
  if (operand.present()) {
    Dtype dtype = operand.view.dtype;
    kernels().load_of(dtype, compute_type_of<V>)(n, operand.view.data, itemsize(dtype),
                                                 values.data());
  }
  return values;
}

/// Rounds values, at most kChunk of them, as an array of the dtype would hold them.
template <class V> void round_values(Dtype dtype, std::int64_t n, V* values) {
  constexpr ComputeType kType = compute_type_of<V>;
  if (dtype == value_dtype(kType)) return;
  char stored[kChunk * sizeof(V)];
  std::int64_t size = itemsize(dtype);
  kernels().store_of(dtype, kType)(n, values, stored, size);
  kernels().load_of(dtype, kType)(n, stored, size, values);
}

/// gz = gy where relu's input h, which is rounded here, was positive, else 0.
template <class V> void relu_gradient(Dtype dtype, std::int64_t n, V* h, const V* gy, V* gz) {
  round_values(dtype, n, h);
  for (std::int64_t k = 0; k < n; ++k) gz[k] = V(0) < h[k] ? gy[k] : V(0);
}

// --- mean and variance ---

template <class V> void update_running(const Operand& running, std::int64_t i, V found, V decay) {
  if (!running.present()) return;
  Dtype dtype = running.view.dtype;
  char* place = running.view.data + i * itemsize(dtype);
  V value;
  kernels().load_of(dtype, compute_type_of<V>)(1, place, 0, &value);
  value = value * decay + found * (V(1) - decay);
  kernels().store_of(dtype, compute_type_of<V>)(1, &value, place, 0);
}

template <class V> void moments(const Moments& op) {
  // The sums of squares go where inv_std will be.
  SplitAxes split(op.x.view, op.axes, op.inv_std.view, false);
  run_moments(reduction::deviations, compute_type_of<V>, split, op.mean.view.data);
  std::int64_t outputs = op.mean.view.size();
  V count = V(static_cast<double>(op.x.view.size() / outputs));
  for (std::int64_t i = 0; i < outputs; ++i) {
    V var = op.inv_std.view.as<V>()[i] / count;
    op.inv_std.view.as<V>()[i] = V(1) / std::sqrt(var + V(op.eps));
    update_running(op.running_mean, i, op.mean.view.as<V>()[i], V(op.decay));
    update_running(op.running_var, i, var * V(op.adjust), V(op.decay));
  }
}

// --- two sums at once ---

template <class V> struct Sums { V gy, gyx; };

template <class V> class SumsRunner {
 public:
  explicit SumsRunner(const NormalizationSums& op)
      : op_(op),
        s_(op.x.view, op.axes, op.sum_gy.view, op.by_row),
        load_(kernels().load_of(op.x.view.dtype, kType)),
        from_x_to_gy_(op.gy.view.data - op.x.view.data) {
    if (!op.relu) return;
    std::int64_t outputs = op.sum_gy.view.size();
    scales_ = values_of<V>(op.gamma, outputs, V(1));
    for (std::int64_t i = 0; i < outputs; ++i) scales_[static_cast<std::size_t>(i)] *= inv_std(i);
    betas_ = values_of<V>(op.beta, outputs, V(0));
  }

  void run() const {
    bool together = s_.reduced.ndim() > 0 && reduces_columns(s_.kept_in, s_.reduced);
    together ? run_tiles() : run_outputs();
  }

 private:
  static constexpr ComputeType kType = compute_type_of<V>;

  V mean(std::int64_t i) const { return op_.mean.present() ? op_.mean.view.as<V>()[i] : V(0); }
  V inv_std(std::int64_t i) const { return op_.inv_std.view.as<V>()[i]; }
  // Of what relu was applied to.
  V scale(std::int64_t i) const { return scales_[static_cast<std::size_t>(i)]; }
  V beta(std::int64_t i) const { return betas_[static_cast<std::size_t>(i)]; }

  /// What number an output has: its sums lie one after the other.
  std::int64_t number(std::int64_t output) const {
    return offset_of(s_.kept_out, output) / static_cast<std::int64_t>(sizeof(V));
  }

  void finish(std::int64_t number, Sums<V> sums) const {
    op_.sum_gy.view.as<V>()[number] = sums.gy;
    op_.sum_gyx.view.as<V>()[number] =
        op_.by_row ? sums.gyx : sums.gyx * inv_std(number / op_.group);
  }

  void run_outputs() const {
    std::int64_t n = s_.reduced.size(), outputs = s_.kept_in.size();
    std::int64_t parts = plan_outputs(outputs, n).parts;
    std::vector<Sums<V>> partials(static_cast<std::size_t>(outputs * parts));
    std::int64_t grain = std::max<std::int64_t>(1, kReducePart / std::max<std::int64_t>(n, 1));
    parallel_for(outputs * parts, grain, [&](std::int64_t begin, std::int64_t end) {
      Reader x(s_.reduced, kType), gy(s_.reduced, kType);
      Scratch scratch_x, scratch_gy;
      for (std::int64_t i = begin; i < end; ++i) {
        x.move_to(s_.reduced.data + offset_of(s_.kept_in, i / parts));
        gy.move_to(s_.reduced.data + offset_of(s_.kept_in, i / parts) + from_x_to_gy_);
        V middle = op_.by_row ? V(0) : mean(number(i / parts) / op_.group);
        std::int64_t last = std::min<std::int64_t>(n, (i % parts + 1) * kReducePart);
        std::vector<V> sums, products;
        for (std::int64_t at = i % parts * kReducePart; at < last; at += kChunk) {
          std::int64_t count = std::min(kChunk, last - at);
          const V* a = static_cast<const V*>(x.read(at, count, scratch_x));
          const V* g = static_cast<const V*>(gy.read(at, count, scratch_gy));
          V product[kChunk], masked[kChunk];
          if (op_.relu) {
            mask(number(i / parts), count, a, g, masked);
            g = masked;
          }
          for (std::int64_t k = 0; k < count; ++k) {
            product[k] = op_.by_row ? g[k] * ((a[k] - mean(at + k)) * inv_std(at + k))
                                    : g[k] * (a[k] - middle);
          }
          sums.emplace_back(), products.emplace_back();
          reduce_kernels().of(reduction::sum, kType).leaf(count, g, &sums.back());
          reduce_kernels().of(reduction::sum, kType).leaf(count, product, &products.back());
        }
        partials[static_cast<std::size_t>(i)] = {joined(sums), joined(products)};
      }
    });
    for (std::int64_t i = 0; i < outputs; ++i) {
      Sums<V> sums = {V(0), V(0)};
      for (std::int64_t k = 0; k < parts; ++k) {
        sums = sum_of(sums, partials[static_cast<std::size_t>(i * parts + k)]);
      }
      finish(number(i), sums);
    }
  }

  /// gz = gy where relu's input was positive, of elements of one output.
  void mask(std::int64_t output, std::int64_t n, const V* x, const V* gy, V* gz) const {
    V middle = mean(output), slope = scale(output), offset = beta(output), h[kChunk];
    for (std::int64_t k = 0; k < n; ++k) h[k] = slope * (x[k] - middle) + offset;
    relu_gradient(op_.x.view.dtype, n, h, gy, gz);
  }

  static V joined(std::vector<V>& values) {
    join_pairwise(static_cast<long long>(values.size()), [&](long long others, long long from) {
      V* first = values.data();
      for (long long i = 0; i < others; ++i) first[i] += first[from + i];
    });
    return values.empty() ? V(0) : values[0];
  }
  static Sums<V> sum_of(Sums<V> a, Sums<V> b) { return {a.gy + b.gy, a.gyx + b.gyx}; }

  // Outputs that lie together, a tile of them at a time: blocks of rows are added up one by one,
  // and then joined.
  void run_tiles() const {
    int last = s_.kept_in.ndim() - 1;
    std::int64_t width = s_.kept_in.shape[last];
    std::int64_t outer = s_.kept_in.size() / std::max<std::int64_t>(width, 1);
    ReduceParts plan = plan_tiles(outer, width, s_.reduced.size());
    std::vector<Sums<V>> partials(static_cast<std::size_t>(plan.items * plan.tile_width));
    auto first_of = [&](std::int64_t tile) {
      return tile / plan.tiles_x * width + tile % plan.tiles_x * kReduceColumns;
    };
    auto columns_of = [&](std::int64_t tile) {
      return std::min<std::int64_t>(kReduceColumns, width - tile % plan.tiles_x * kReduceColumns);
    };
    parallel_for(plan.items, plan.grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        std::int64_t tile = i / plan.parts, row = i % plan.parts * plan.part_rows;
        add_rows(first_of(tile), columns_of(tile), row,
                 std::min<std::int64_t>(plan.count, row + plan.part_rows),
                 partials.data() + i * plan.tile_width);
      }
    });
    for (std::int64_t tile = 0; tile < plan.tiles; ++tile) {
      for (std::int64_t j = 0; j < columns_of(tile); ++j) {
        Sums<V> sums = {V(0), V(0)};
        for (std::int64_t k = 0; k < plan.parts; ++k) {
          sums = sum_of(
              sums,
              partials[static_cast<std::size_t>((tile * plan.parts + k) * plan.tile_width + j)]);
        }
        finish(number(first_of(tile) + j), sums);
      }
    }
  }

  // Rows [begin, end) of the outputs from number `first` on.
  void add_rows(std::int64_t first, std::int64_t columns, std::int64_t begin, std::int64_t end,
                Sums<V>* totals) const {
    std::int64_t stride = s_.kept_in.strides[s_.kept_in.ndim() - 1];
    const char* data = s_.kept_in.data + offset_of(s_.kept_in, first);
    bool as_stored = op_.x.view.dtype == value_dtype(kType) &&
                     op_.gy.view.dtype == op_.x.view.dtype && stride == std::int64_t{sizeof(V)};
    V means[kReduceColumns], loaded_x[kReduceColumns], loaded_gy[kReduceColumns];
    V scales[kReduceColumns], betas[kReduceColumns], h[kReduceColumns];
    for (std::int64_t j = 0; j < columns && !op_.by_row; ++j) {
      std::int64_t output = number(first + j);
      means[j] = mean(output / op_.group);
      if (op_.relu) scales[j] = scale(output), betas[j] = beta(output);
    }
    for (std::int64_t block = begin; block < end; block += kReduceRows) {
      V sums[kReduceColumns] = {}, products[kReduceColumns] = {};
      for (std::int64_t row = block; row < std::min<std::int64_t>(end, block + kReduceRows);
           ++row) {
        const char* place = data + offset_of(s_.reduced, row);
        const V *x = loaded_x, *gy = loaded_gy;
        if (as_stored) {
          x = reinterpret_cast<const V*>(place);
          gy = reinterpret_cast<const V*>(place + from_x_to_gy_);
        } else {
          load_(columns, place, stride, loaded_x);
          load_(columns, place + from_x_to_gy_, stride, loaded_gy);
        }
        if (op_.relu) {
          for (std::int64_t j = 0; j < columns; ++j)
            h[j] = scales[j] * (x[j] - means[j]) + betas[j];
          relu_gradient(op_.x.view.dtype, columns, h, gy, loaded_gy);
          gy = loaded_gy;
        }
        if (op_.by_row) {
          row_kernels<V>().add_normalized(columns, x, gy, mean(row), inv_std(row), sums, products);
        } else {
          for (std::int64_t j = 0; j < columns; ++j) {
            sums[j] += gy[j];
            products[j] += gy[j] * (x[j] - means[j]);
          }
        }
      }
      for (std::int64_t j = 0; j < columns; ++j) {
        totals[j] = sum_of(totals[j], {sums[j], products[j]});
      }
    }
  }

  const NormalizationSums& op_;
  SplitAxes s_;
  LoadKernel load_;
  std::ptrdiff_t from_x_to_gy_;
  std::vector<V> scales_, betas_;
};

/// gz, and then the sums of it.
template <class V> void run_after_relu(const NormalizationSums& op) {
  auto flat = [](const Operand& operand) {  // all lie alike
    ArrayView view = operand.view;
    view.shape = Shape{view.size()};
    view.strides = Shape{itemsize(view.dtype)};
    return view;
  };
  ArrayView gy = flat(op.gy), addend = flat(op.addend), y = flat(op.y), gz = flat(op.gz);
  const ArrayView& sum = op.addend.present() ? gz : gy;
  Input addition[] = {gy, addend}, gradient[] = {sum, y};
  if (op.addend.present()) run_elementwise(ufunc::add, gz.dtype, addition, 2, gz);
  run_elementwise(ufunc::relu_grad, gz.dtype, gradient, 2, gz);
  NormalizationSums rest(op);
  rest.gy = op.gz;
  SumsRunner<V>(rest).run();
}

template <class V> void normalization_sums(const NormalizationSums& op) {
  op.y.present() ? run_after_relu<V>(op) : SumsRunner<V>(op).run();
}

// --- what is normalized ---

/// out[i] = a * gy[i] + b * (x[i] - mean) + c in each channel. With relu's gradient, gy[i] counts
/// where a * (x[i] - mean) + beta is positive.
template <class V> class NormalizeRunner {
 public:
  explicit NormalizeRunner(const Normalize& op) : op_(op) {
    std::int64_t statistics = op.inv_std.view.size(), channels = op.channels;
    bool groups = op.group > 0;
    auto mean = values_of<V>(op.mean, statistics, V(0));
    auto inv_std = values_of<V>(op.inv_std, statistics, V(1));
    if (op.of_variance) {
      for (V& value : inv_std) value = V(1) / std::sqrt(value + V(op.eps));
    }
    auto gamma = values_of<V>(op.gamma, channels, V(1));
    auto beta = values_of<V>(op.beta, channels, V(0));
    auto sum_gy = values_of<V>(op.sum_gy, statistics, V(0));
    auto sum_gyx = values_of<V>(op.sum_gyx, statistics, V(0));
    V share = V(1.0 / op.count);  // as on a GPU
    std::int64_t rows = groups ? op.samples * channels : channels;
    for (std::vector<V>* values : {&mean_, &a_, &b_, &c_, &beta_}) {
      values->resize(static_cast<std::size_t>(rows));
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      auto k = static_cast<std::size_t>(i);
      auto s = static_cast<std::size_t>(groups ? i / op.group : i);
      auto c = static_cast<std::size_t>(i % channels);
      V scale = inv_std[s] * gamma[c];
      mean_[k] = mean[s], b_[k] = scale, c_[k] = beta_[k] = beta[c];
      if (!op.gy.present()) continue;
      V weight = (groups ? inv_std[s] : scale) * share;
      a_[k] = scale, b_[k] = -weight * inv_std[s] * sum_gyx[s], c_[k] = -weight * sum_gy[s];
    }
  }

  void run() const { op_.channels_last ? run_last() : run_rows(); }

 private:
  // The channel of a sample is a row.
  void run_rows() const {
    std::int64_t n = op_.samples * op_.channels, inner = op_.inner;
    std::int64_t grain = std::max<std::int64_t>(1, kGrain / inner);
    parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
      Room room;
      for (std::int64_t i = begin; i < end; ++i) {
        auto number = static_cast<std::size_t>(op_.group > 0 ? i : i % op_.channels);
        const V mean = mean_[number], a = a_[number], b = b_[number], c = c_[number],
                beta = beta_[number];
        for (std::int64_t at = 0; at < inner; at += kChunk) {
          each_of_piece(
              i * inner + at, std::min(kChunk, inner - at), room,
              [=](std::int64_t, V x, V gy) { return a * gy + (b * (x - mean) + c); },
              [=](std::int64_t, V x) { return b * (x - mean) + c; },
              [=](std::int64_t, V x) { return a * (x - mean) + beta; });
        }
      }
    });
  }

  // The channels of a place are a row.
  void run_last() const {
    std::int64_t channels = op_.channels, inner = op_.inner;
    std::int64_t grain = std::max<std::int64_t>(1, kGrain / channels);
    parallel_for(op_.samples * inner, grain, [&](std::int64_t begin, std::int64_t end) {
      Room room;
      for (std::int64_t i = begin; i < end; ++i) {
        std::int64_t first = op_.group > 0 ? i / inner * channels : 0;
        for (std::int64_t at = 0; at < channels; at += kChunk) {
          const V *mean = mean_.data() + first + at, *a = a_.data() + first + at,
                  *b = b_.data() + first + at, *c = c_.data() + first + at,
                  *beta = beta_.data() + first + at;
          each_of_piece(
              i * channels + at, std::min(kChunk, channels - at), room,
              [=](std::int64_t k, V x, V gy) { return a[k] * gy + (b[k] * (x - mean[k]) + c[k]); },
              [=](std::int64_t k, V x) { return b[k] * (x - mean[k]) + c[k]; },
              [=](std::int64_t k, V x) { return a[k] * (x - mean[k]) + beta[k]; });
        }
      }
    });
  }

  /// For a piece of elements of other dtypes.
  struct Room {
    V x[kChunk], gy[kChunk], h[kChunk];
  };
  /// out = with_gy(k, x, gy), or without(k, x), for the n elements from number `at` on; before_relu
  /// is what relu was applied to.
  template <class WithGy, class Without, class BeforeRelu>
  RENSA_FN void each_of_piece(std::int64_t at, std::int64_t n, Room& room, const WithGy& with_gy,
                              const Without& without, const BeforeRelu& before_relu) const {
    const V *x = read(op_.x, at, n, room.x), *gy = nullptr;
    if (op_.gy.present()) gy = read(op_.gy, at, n, room.gy);
    if (gy && op_.relu) {
      for (std::int64_t k = 0; k < n; ++k) room.h[k] = before_relu(k, x[k]);
      relu_gradient(op_.x.view.dtype, n, room.h, gy, room.gy);
      gy = room.gy;
    }
    bool as_stored = op_.out.view.dtype == value_dtype(compute_type_of<V>);
    V* out = as_stored ? op_.out.view.as<V>() + at : room.x;
    if (gy) {
      RENSA_IVDEP
      for (std::int64_t k = 0; k < n; ++k) out[k] = with_gy(k, x[k], gy[k]);
    } else {
      RENSA_IVDEP
      for (std::int64_t k = 0; k < n; ++k) out[k] = without(k, x[k]);
      if (op_.residual.present()) {
        round_values(op_.out.view.dtype, n, out);
        const V* residual = read(op_.residual, at, n, room.gy);
        RENSA_IVDEP
        for (std::int64_t k = 0; k < n; ++k) out[k] += residual[k];
      }
      if (op_.relu) {
        RENSA_IVDEP
        for (std::int64_t k = 0; k < n; ++k) out[k] = out[k] <= V(0) ? V(0) : out[k];
      }
    }
    if (!as_stored) store(at, n, out);
  }

  /// Elements as values: where they are, or in `room`.
  const V* read(const Operand& operand, std::int64_t at, std::int64_t n, V* room) const {
    if (operand.view.dtype == value_dtype(compute_type_of<V>)) return operand.view.as<V>() + at;
    load(operand, at, n, room);
    return room;
  }
  void load(const Operand& operand, std::int64_t at, std::int64_t n, V* to) const {
    Dtype dtype = operand.view.dtype;
    kernels().load_of(dtype, compute_type_of<V>)(n, operand.view.data + at * itemsize(dtype),
                                                 itemsize(dtype), to);
  }
  void store(std::int64_t at, std::int64_t n, const V* from) const {
    Dtype dtype = op_.out.view.dtype;
    kernels().store_of(dtype, compute_type_of<V>)(n, from, op_.out.view.data + at * itemsize(dtype),
                                                  itemsize(dtype));
  }

  const Normalize& op_;
  std::vector<V> mean_, a_, b_, c_, beta_;  // of each channel, with groups of each sample's
};

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void Moments::run_cpu() {
  if (x.view.size() == 0) return;
  mean.view.dtype == float64 ? host::moments<double>(*this) : host::moments<float>(*this);
}

void NormalizationSums::run_cpu() {
  if (sum_gy.view.size() == 0) return;
  sum_gy.view.dtype == float64 ? host::normalization_sums<double>(*this)
                               : host::normalization_sums<float>(*this);
}

void Normalize::run_cpu() {
  if (out.view.size() == 0) return;
  inv_std.view.dtype == float64 ? host::NormalizeRunner<double>(*this).run()
                                : host::NormalizeRunner<float>(*this).run();
}

}  // namespace rensa::operations

// Local response normalization on the CPU.
#include "rensa/functions/operations/local_response/local_response.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

namespace {

constexpr std::int64_t kPlaces = 64;  // that are computed together

// All channels of up to kPlaces places, one row of places for each channel.
template <class V> class Response {
 public:
  explicit Response(const operations::LocalResponse& op)
      : op_(op), size_(itemsize(op.x.view.dtype)) {}

  // Places are neighbours in memory, or, where each is alone there, one in each outer index.
  void compute(std::int64_t outer, std::int64_t first, std::int64_t n) {
    n_ = n;
    base_ = (outer * op_.channels * op_.inner + first) * size_;
    std::size_t count = static_cast<std::size_t>(op_.channels * n);
    load(op_.x.view, x_);
    scale_.assign(count, V(0));
    add_windows(x_, x_, scale_);
    for (V& s : scale_) s = static_cast<V>(op_.k) + static_cast<V>(op_.alpha) * s;
    exponent_.assign(count, static_cast<V>(-op_.beta));
    power_.resize(count);
    const void* in[] = {scale_.data(), exponent_.data()};
    kernels().of(ufunc::power, kType)(static_cast<std::int64_t>(count), in, power_.data(), 0);
    if (!op_.gy.present()) {
      for (std::size_t i = 0; i < count; ++i) x_[i] *= power_[i];
      return store(x_);
    }
    load(op_.gy.view, gy_);
    sums_.assign(count, V(0));
    for (std::size_t i = 0; i < count; ++i) gy_[i] *= power_[i];
    for (std::size_t i = 0; i < count; ++i) scale_[i] = x_[i] / scale_[i];
    add_windows(gy_, scale_, sums_);
    V factor = V(-2) * static_cast<V>(op_.alpha) * static_cast<V>(op_.beta);
    for (std::size_t i = 0; i < count; ++i) gy_[i] += factor * (x_[i] * sums_[i]);
    store(gy_);
  }

 private:
  static constexpr ComputeType kType = compute_type_of<V>;

  std::int64_t step() const { return (op_.inner == 1 ? op_.channels : 1) * size_; }
  char* row(const ArrayView& view, std::int64_t channel) const {
    return view.data + base_ + channel * op_.inner * size_;
  }
  void load(const ArrayView& view, std::vector<V>& values) const {
    values.resize(static_cast<std::size_t>(op_.channels * n_));
    for (std::int64_t c = 0; c < op_.channels; ++c) {
      kernels().load_of(view.dtype, kType)(n_, row(view, c), step(), values.data() + c * n_);
    }
  }
  void store(const std::vector<V>& values) const {
    const ArrayView& view = op_.out.view;
    for (std::int64_t c = 0; c < op_.channels; ++c) {
      kernels().store_of(view.dtype, kType)(n_, values.data() + c * n_, row(view, c), step());
    }
  }
  // sums of each channel += a * b of those within `half` of it.
  void add_windows(const std::vector<V>& a, const std::vector<V>& b, std::vector<V>& sums) const {
    for (std::int64_t c = 0; c < op_.channels; ++c) {
      std::int64_t end = std::min(c + op_.half + 1, op_.channels);
      V* sum = sums.data() + c * n_;
      for (std::int64_t from = std::max<std::int64_t>(c - op_.half, 0); from < end; ++from) {
        const V *left = a.data() + from * n_, *right = b.data() + from * n_;
        for (std::int64_t i = 0; i < n_; ++i) sum[i] += left[i] * right[i];
      }
    }
  }

  const operations::LocalResponse& op_;
  std::int64_t size_, n_ = 0, base_ = 0;
  std::vector<V> x_, gy_, scale_, exponent_, power_, sums_;
};

template <class V> void respond(const operations::LocalResponse& op) {
  bool alone = op.inner == 1;
  std::int64_t length = alone ? op.outer : op.inner, each = (length + kPlaces - 1) / kPlaces;
  parallel_for((alone ? 1 : op.outer) * each, 1, [&](std::int64_t begin, std::int64_t end) {
    Response<V> response(op);
    for (; begin < end; ++begin) {
      std::int64_t first = begin % each * kPlaces, n = std::min(kPlaces, length - first);
      if (alone) response.compute(first, 0, n);
      else response.compute(begin / each, first, n);
    }
  });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void LocalResponse::run_cpu() {
  x.view.dtype == float64 ? host::respond<double>(*this) : host::respond<float>(*this);
}

}  // namespace rensa::operations

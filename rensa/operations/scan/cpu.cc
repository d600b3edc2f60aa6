// Running sums and products on the CPU. A long row is cut into chunks at fixed places: the total of
// each, then each from what came before it, so that results do not depend on the threads.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <cmath>

#include "rensa/core/scan_functors.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/scan/scan.h"

namespace rensa::host {

namespace {

constexpr std::int64_t kChunk = 64 << 10;  // elements of a row that one thread scans
constexpr std::int64_t kGrain = 16 << 10;  // elements that are worth waking a thread for
constexpr std::int64_t kColumns = 512;     // columns that one thread takes

template <class V, class F> class Scanner {
 public:
  Scanner(const operations::Scan& op)
      : in_(op.in.view.as<V>()), out_(op.out.view.as<V>()), shape_(op.in.view.shape) {}

  void run() const {
    if (inner() > 1) return scan_columns();
    if (n() > kChunk) {
      for (std::int64_t row = 0; row < outer(); ++row) scan_long(row * n());
      return;
    }
    parallel_for(outer(), std::max<std::int64_t>(1, kGrain / n()), [&](auto begin, auto end) {
      for (std::int64_t row = begin; row < end; ++row)
        scan(row * n(), n(), F::template identity<V>());
    });
  }

 private:
  std::int64_t outer() const { return shape_[0]; }
  std::int64_t n() const { return shape_[1]; }
  std::int64_t inner() const { return shape_[2]; }

  void scan(std::int64_t at, std::int64_t count, V running) const {
    for (std::int64_t i = at; i < at + count; ++i) out_[i] = running = F()(running, in_[i]);
  }

  V total(std::int64_t at, std::int64_t count) const {
    V four[4];  // chains that do not wait for one another
    std::fill_n(four, 4, F::template identity<V>());
    std::int64_t i = at;
    for (; i + 4 <= at + count; i += 4) {
      for (int k = 0; k < 4; ++k) four[k] = F()(four[k], in_[i + k]);
    }
    for (; i < at + count; ++i) four[0] = F()(four[0], in_[i]);
    return F()(F()(four[0], four[1]), F()(four[2], four[3]));
  }

  void scan_long(std::int64_t at) const {
    std::int64_t chunks = (n() + kChunk - 1) / kChunk;
    auto size = [&](std::int64_t c) { return std::min(kChunk, n() - c * kChunk); };
    std::vector<V> before(static_cast<std::size_t>(chunks));
    parallel_for(chunks, 1, [&](auto begin, auto end) {
      for (std::int64_t c = begin; c < end; ++c) {
        before[static_cast<std::size_t>(c)] = total(at + c * kChunk, size(c));
      }
    });
    V running = F::template identity<V>();
    for (V& value : before) {
      V next = F()(running, value);
      value = running;
      running = next;
    }
    parallel_for(chunks, 1, [&](auto begin, auto end) {
      for (std::int64_t c = begin; c < end; ++c) {
        scan(at + c * kChunk, size(c), before[static_cast<std::size_t>(c)]);
      }
    });
  }

  // Whole rows of columns are added to the row before.
  void scan_columns() const {
    std::int64_t tiles = (inner() + kColumns - 1) / kColumns;
    std::int64_t grain = std::max<std::int64_t>(1, kGrain / (n() * std::min(inner(), kColumns)));
    parallel_for(outer() * tiles, grain, [&](auto begin, auto end) {
      for (std::int64_t item = begin; item < end; ++item) {
        std::int64_t first = item % tiles * kColumns, last = std::min(inner(), first + kColumns);
        std::int64_t at = item / tiles * n() * inner();
        std::copy(in_ + at + first, in_ + at + last, out_ + at + first);
        for (std::int64_t row = 1; row < n(); ++row) {
          const V* above = out_ + at + (row - 1) * inner();
          const V* source = in_ + at + row * inner();
          V* target = out_ + at + row * inner();
          for (std::int64_t i = first; i < last; ++i) target[i] = F()(above[i], source[i]);
        }
      }
    });
  }

  const V* in_;
  V* out_;
  Shape shape_;
};

template <class V> void scan(const operations::Scan& op) {
  op.product ? Scanner<V, RunningProduct>(op).run() : Scanner<V, RunningSum>(op).run();
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void Scan::run_cpu() {
  if (in.view.size() == 0) return;
  switch (in.view.dtype) {
    case Dtype::float32: return host::scan<float>(*this);
    case Dtype::float64: return host::scan<double>(*this);
    case Dtype::complex64: return host::scan<complex_t<float>>(*this);
    case Dtype::complex128: return host::scan<complex_t<double>>(*this);
    default: return host::scan<unsigned long long>(*this);
  }
}

}  // namespace rensa::operations

// Random variates on the CPU: one sampler call per element.
#include <algorithm>
#include <cmath>

#include "rensa/backend/cpu/strided.h"
#include "rensa/core/samplers.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/variates/variates.h"

namespace rensa::host {

namespace {

using operations::Variates;

constexpr std::int64_t kGrain = 2 * kChunk;

// A parameter's values in chunks of the output: one number, or an array's elements.
class Parameter {
 public:
  Parameter() = default;
  explicit Parameter(const operations::ElementwiseInput& input) : number_(input.scalar.real()) {
    if (!input.array.present()) return;
    is_array_ = true;
    reader_ = Reader(input.array.view, ComputeType::f64);
  }
  // The elements [begin, begin + n), or null where there is just the number.
  const double* read(std::int64_t begin, std::int64_t n, Scratch& scratch) const {
    if (!is_array_) return nullptr;
    return static_cast<const double*>(reader_.read(begin, n, scratch));
  }
  double number() const { return number_; }

 private:
  bool is_array_ = false;
  double number_ = 0;
  Reader reader_;
};

// Calls f(begin, n, values) for chunks of the output and stores the values that it makes.
template <class F> void store_chunks(const Variates& op, const F& f) {
  const ArrayView& out = op.out.view;
  StoreKernel store = kernels().store_of(out.dtype, ComputeType::f64);
  std::int64_t size = itemsize(out.dtype);
  parallel_for(out.size(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    double values[kChunk];
    for (; begin < end; begin += kChunk) {
      std::int64_t n = std::min(kChunk, end - begin);
      f(begin, n, values);
      store(n, values, out.data + begin * size, size);
    }
  });
}

VariateStream stream_of(const Variates& op, std::int64_t i) {
  return VariateStream(static_cast<unsigned long long>(op.seed.integer),
                       static_cast<unsigned long long>(op.offset.integer + i));
}

// Of one n and p whose distribution function can be tabled; false where it is not so.
bool fill_binomial(const Variates& op) {
  draw::BinomialTable table;
  if (op.distribution != Distribution::binomial || op.parameters[0].array.present() ||
      op.parameters[1].array.present() ||
      !table.fill(op.parameters[0].scalar.real(), op.parameters[1].scalar.real())) {
    return false;
  }
  store_chunks(op, [&](std::int64_t begin, std::int64_t n, double* values) {
    for (std::int64_t i = 0; i < n; ++i) {
      VariateStream stream = stream_of(op, begin + i);
      values[i] = table.draw(stream, table.upto);
    }
  });
  return true;
}

template <Distribution D> void fill_variates(const Variates& op) {
  Parameter parameters[3];
  for (int k = 0; k < 3; ++k) parameters[k] = Parameter(op.parameters[k]);
  const auto* table = op.table.view.as<const double>();
  std::int64_t table_size = table ? op.table.view.size() : 0;
  store_chunks(op, [&](std::int64_t begin, std::int64_t n, double* values) {
    Scratch scratch[3];
    const double* arrays[3];
    for (int k = 0; k < 3; ++k) arrays[k] = parameters[k].read(begin, n, scratch[k]);
    auto value = [&](int k, std::int64_t i) {
      return arrays[k] ? arrays[k][i] : parameters[k].number();
    };
    for (std::int64_t i = 0; i < n; ++i) {
      VariateStream stream = stream_of(op, begin + i);
      values[i] = draw_variate<D>(stream, value(0, i), value(1, i), value(2, i), table, table_size);
    }
  });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void Variates::run_cpu() {
  if (host::fill_binomial(*this)) return;
  switch (distribution) {
#define RENSA_DISTRIBUTION(name, expression) \
  case Distribution::name:                   \
    return host::fill_variates<Distribution::name>(*this);
#include "rensa/core/distributions.def"
#undef RENSA_DISTRIBUTION
  }
}

}  // namespace rensa::operations

// Histograms on the CPU. Each of a fixed number of parts of the elements is counted by itself; the
// parts are added in their order, so that sums of weights do not depend on the threads.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "rensa/backend/cpu/strided.h"
#include "rensa/core/histogram_bins.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/histogram/histogram.h"

namespace rensa::host {

namespace {

using operations::Histogram;

constexpr std::int64_t kPart = 64 << 10;  // elements worth a part of their own
constexpr std::int64_t kMaxParts = 32;

// Counts the values of elements [begin, end), which are their bins.
void count_values(const Histogram& op, std::int64_t begin, std::int64_t end, std::int64_t* counts) {
  constexpr std::int64_t kFewBins = 512;
  constexpr int kTables = 4;
  auto bins = static_cast<std::uint64_t>(op.counts.view.size());
  bool is_unsigned = dtype_kind(op.in.view.dtype) == 'u';
  Reader reader(op.in.view, is_unsigned ? ComputeType::u64 : ComputeType::i64);
  // Values that follow each other often fall into one bin: in tables of their own they do not wait
  // for each other. What falls outside goes to a bin after the last.
  bool few = op.counts.view.size() <= kFewBins && end - begin >= kTables * kFewBins;
  std::int64_t tables[kTables][kFewBins + 1];
  if (few) std::fill_n(&tables[0][0], kTables * (kFewBins + 1), 0);
  Scratch scratch;
  for (std::int64_t at = begin; at < end; at += kChunk) {
    std::int64_t n = std::min(kChunk, end - at), i = 0;
    const auto* values = static_cast<const std::uint64_t*>(reader.read(at, n, scratch));
    for (; few && i + kTables <= n; i += kTables) {
      for (int t = 0; t < kTables; ++t) ++tables[t][std::min(values[i + t], bins)];
    }
    for (; i < n; ++i) {
      if (values[i] < bins) ++counts[values[i]];
    }
  }
  for (std::uint64_t bin = 0; few && bin < bins; ++bin) {
    for (const auto& table : tables) counts[bin] += table[bin];
  }
}

// Counts, or adds up the weights of, elements [begin, end).
template <class W>
void count_part(const Histogram& op, std::int64_t begin, std::int64_t end, W* counts) {
  bool by_edges = op.edges.present();
  if constexpr (std::is_same_v<W, std::int64_t>) {
    if (!by_edges) return count_values(op, begin, end, counts);
  }
  std::int64_t bins = op.counts.view.size();
  HistogramBins of_value = {by_edges ? op.edges.view.as<double>() : nullptr, bins, op.uniform};
  const W* weights = op.weights.present() ? op.weights.view.as<W>() : nullptr;
  bool is_unsigned = dtype_kind(op.in.view.dtype) == 'u';
  Reader reader(op.in.view, by_edges      ? ComputeType::f64
                            : is_unsigned ? ComputeType::u64
                                          : ComputeType::i64);
  Scratch scratch;
  for (std::int64_t at = begin; at < end; at += kChunk) {
    std::int64_t n = std::min(kChunk, end - at);
    const void* values = reader.read(at, n, scratch);
    for (std::int64_t i = 0; i < n; ++i) {
      std::int64_t bin = by_edges ? of_value(static_cast<const double*>(values)[i])
                                  : static_cast<const std::int64_t*>(values)[i];
      if (bin < 0 || bin >= bins) continue;
      counts[bin] += weights ? weights[at + i] : W(1);
    }
  }
}

template <class W> void count(const Histogram& op) {
  std::int64_t n = op.in.view.size(), bins = op.counts.view.size();
  W* counts = op.counts.view.as<W>();
  std::fill_n(counts, bins, W(0));
  // Parts whose counts are fewer than their elements.
  std::int64_t parts = std::min({kMaxParts, n / kPart, n / (4 * bins) + 1});
  if (parts <= 1) return count_part(op, 0, n, counts);
  std::int64_t size = (n + parts - 1) / parts;
  std::vector<W> partial(static_cast<std::size_t>(parts * bins));
  parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) {
      count_part(op, part * size, std::min(n, (part + 1) * size),
                 &partial[static_cast<std::size_t>(part * bins)]);
    }
  });
  for (std::int64_t part = 0; part < parts; ++part) {
    const W* from = &partial[static_cast<std::size_t>(part * bins)];
    for (std::int64_t bin = 0; bin < bins; ++bin) counts[bin] += from[bin];
  }
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void Histogram::run_cpu() {
  if (counts.view.size() == 0) return;
  switch (counts.view.dtype) {
    case Dtype::complex128: return host::count<std::complex<double>>(*this);
    case Dtype::float64: return host::count<double>(*this);
    default: return host::count<std::int64_t>(*this);
  }
}

}  // namespace rensa::operations

// deviations, what follows from them, and nanmean on the CPU. Values are taken in blocks that fit
// the first-level cache, whose sums the vectorized reductions make; blocks are joined pairwise,
// those of deviations as Chan, Golub and LeVeque do. Of outputs that lie together a tile is carried
// at a time, row after row.
#include "rensa/operations/reduce/cpu_moments.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "rensa/backend/cpu/kernel_sources.h"
#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/reduce/cpu_kernels.h"
#include "rensa/portable/element_types.h"
#include "rensa/portable/launch_plan.h"

namespace rensa::host {

namespace {

constexpr std::int64_t kRows = 64;  // rows of a tile that are one block

// What has been found of an output so far; `n` values of it have been counted.
template <class V> struct Moments {
  V sum = V(0);      // deviations: the mean
  V squares = V(0);  // deviations: of the distances to the mean
  std::int64_t n = 0;
};

template <class V, bool kDeviations> Moments<V> join(const Moments<V>& a, const Moments<V>& b) {
  if (!kDeviations) return {a.sum + b.sum, V(0), a.n + b.n};
  if (b.n == 0) return a;
  if (a.n == 0) return b;
  V share = V(static_cast<double>(b.n) / static_cast<double>(a.n + b.n)), apart = b.sum - a.sum;
  return {a.sum + apart * share,
          a.squares + b.squares + apart * apart * V(static_cast<double>(a.n)) * share, a.n + b.n};
}

template <class V, bool kDeviations> Moments<V> joined(std::vector<Moments<V>>& blocks) {
  join_pairwise(static_cast<long long>(blocks.size()), [&](long long others, long long from) {
    Moments<V>* first = blocks.data();
    for (long long i = 0; i < others; ++i) {
      first[i] = join<V, kDeviations>(first[i], first[from + i]);
    }
  });
  return blocks[0];
}

template <class V, bool kDeviations> class Runner {
 public:
  Runner(Reduction reduction, ComputeType type, const SplitAxes& split, char* means)
      : reduction_(reduction),
        type_(type),
        s_(split),
        means_(means),
        store_(kernels().store_of(split.kept_out.dtype, type)) {}

  void run() const {
    bool together = s_.reduced.ndim() > 0 && reduces_columns(s_.kept_in, s_.reduced);
    together ? run_tiles() : run_outputs();
  }

 private:
  // --- each output by itself ---
  Moments<V> block_of(std::int64_t n, const V* x) const {
    Moments<V> block;
    if constexpr (kDeviations) {
      V far[kChunk];
      reduce_kernels().of(reduction::sum, type_).leaf(n, x, &block.sum);
      V mean = block.sum / V(static_cast<double>(n));
      for (std::int64_t i = 0; i < n; ++i) far[i] = x[i] - mean;
      reduce_kernels().of(reduction::sum_of_squares, type_).leaf(n, far, &block.squares);
      return {mean, block.squares, n};
    } else {
      reduce_kernels().of(reduction::nansum, type_).leaf(n, x, &block.sum);
      for (std::int64_t i = 0; i < n; ++i) block.n += x[i] == x[i];
      return block;
    }
  }

  void run_outputs() const {
    std::int64_t n = s_.reduced.size(), outputs = s_.kept_in.size();
    std::int64_t parts = plan_outputs(outputs, n).parts;
    std::vector<Moments<V>> partials(static_cast<std::size_t>(outputs * parts));
    std::int64_t grain = std::max<std::int64_t>(1, kReducePart / std::max<std::int64_t>(n, 1));
    parallel_for(outputs * parts, grain, [&](std::int64_t begin, std::int64_t end) {
      Reader reader(s_.reduced, type_);
      Scratch scratch;
      std::vector<Moments<V>> blocks;
      for (std::int64_t i = begin; i < end; ++i) {
        reader.move_to(s_.reduced.data + offset_of(s_.kept_in, i / parts));
        std::int64_t last = std::min<std::int64_t>(n, (i % parts + 1) * kReducePart);
        blocks.assign(1, {});
        for (std::int64_t at = i % parts * kReducePart; at < last; at += kChunk) {
          std::int64_t count = std::min(kChunk, last - at);
          blocks.push_back(block_of(count, static_cast<const V*>(reader.read(at, count, scratch))));
        }
        partials[static_cast<std::size_t>(i)] = joined<V, kDeviations>(blocks);
      }
    });
    for (std::int64_t i = 0; i < outputs; ++i) {
      auto first = partials.begin() + i * parts;
      std::vector<Moments<V>> of_output(first, first + parts);
      finish(i, joined<V, kDeviations>(of_output));
    }
  }

  // --- outputs that lie together ---
  struct Tile {
    V sums[kReduceColumns], squares[kReduceColumns];
    std::int64_t counts[kReduceColumns];
  };

  void run_tiles() const {
    int last = s_.kept_in.ndim() - 1;
    std::int64_t width = s_.kept_in.shape[last], tiles = ceil_div(width, kReduceColumns);
    std::int64_t outer = s_.kept_in.size() / std::max<std::int64_t>(width, 1);
    std::int64_t n = s_.reduced.size(), room = std::min<std::int64_t>(width, kReduceColumns);
    std::int64_t part = round_up(kReducePart / room, kRows);  // rows
    std::int64_t parts = std::max<std::int64_t>(1, ceil_div(n, part));
    std::vector<Moments<V>> partials(static_cast<std::size_t>(outer * tiles * parts * room));
    auto first_of = [&](std::int64_t i) { return i / tiles * width + i % tiles * kReduceColumns; };
    auto columns_of = [&](std::int64_t i) {
      return std::min<std::int64_t>(kReduceColumns, width - i % tiles * kReduceColumns);
    };
    parallel_for(outer * tiles * parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        std::int64_t row = i % parts * part;
        add_rows(first_of(i / parts), columns_of(i / parts), row, std::min(n, row + part),
                 partials.data() + i * room);
      }
    });
    for (std::int64_t i = 0; i < outer * tiles; ++i) {
      for (std::int64_t j = 0; j < columns_of(i); ++j) {
        std::vector<Moments<V>> of_output;
        for (std::int64_t k = 0; k < parts; ++k) {
          of_output.push_back(partials[static_cast<std::size_t>((i * parts + k) * room + j)]);
        }
        finish(first_of(i) + j, joined<V, kDeviations>(of_output));
      }
    }
  }

  // Rows [begin, end) of the outputs from number `first` on, kRows at a time.
  void add_rows(std::int64_t first, std::int64_t columns, std::int64_t begin, std::int64_t end,
                Moments<V>* totals) const {
    std::int64_t stride = s_.kept_in.strides[s_.kept_in.ndim() - 1];
    const char* data = s_.kept_in.data + offset_of(s_.kept_in, first);
    LoadKernel load = kernels().load_of(s_.kept_in.dtype, type_);
    // Rows of values as they are stored are read where they lie.
    bool as_stored = s_.kept_in.dtype == value_dtype(type_) && stride == std::int64_t{sizeof(V)};
    std::vector<V> values(static_cast<std::size_t>(as_stored ? 0 : kRows * columns));
    const V* places[kRows];
    auto tile = std::make_unique<Tile>();
    for (std::int64_t row = begin; row < end; row += kRows) {
      std::int64_t rows = std::min(kRows, end - row);
      for (std::int64_t r = 0; r < rows; ++r) {
        const char* place = data + offset_of(s_.reduced, row + r);
        V* loaded = values.data() + r * columns;
        if (!as_stored) load(columns, place, stride, loaded);
        places[r] = as_stored ? reinterpret_cast<const V*>(place) : loaded;
      }
      add_block(rows, columns, places, *tile);
      for (std::int64_t j = 0; j < columns; ++j) {
        totals[j] =
            join<V, kDeviations>(totals[j], {tile->sums[j], tile->squares[j], tile->counts[j]});
      }
    }
  }

  static void add_block(std::int64_t rows, std::int64_t columns, const V* const* places,
                        Tile& tile) {
    std::fill_n(tile.sums, columns, V(0));
    std::fill_n(tile.squares, columns, V(0));
    std::fill_n(tile.counts, columns, kDeviations ? rows : 0);
    V *sums = tile.sums, *squares = tile.squares;
    for (std::int64_t r = 0; r < rows; ++r) {
      const V* x = places[r];
      RENSA_IVDEP
      for (std::int64_t j = 0; j < columns; ++j) {
        if (kDeviations) {
          sums[j] = sums[j] + x[j];
        } else {
          sums[j] = sums[j] + (x[j] == x[j] ? x[j] : V(0));
          tile.counts[j] += x[j] == x[j];
        }
      }
    }
    if (!kDeviations) return;
    for (std::int64_t j = 0; j < columns; ++j) {
      sums[j] = sums[j] / V(static_cast<double>(rows));
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      const V* x = places[r];
      RENSA_IVDEP
      for (std::int64_t j = 0; j < columns; ++j) {
        V far = x[j] - sums[j];
        squares[j] = squares[j] + far * far;
      }
    }
  }

  void finish(std::int64_t output, const Moments<V>& m) const {
    V count = V(static_cast<double>(m.n)), result = kDeviations ? m.squares : m.sum / count;
    if constexpr (kDeviations) {
      if (reduction_ != reduction::deviations) result /= count;
      if (reduction_ == reduction::standard_deviation) result = std::sqrt(result);
    }
    std::int64_t offset = offset_of(s_.kept_out, output);
    store_(1, &result, s_.kept_out.data + offset, 0);
    if (means_) store_(1, &m.sum, means_ + offset, 0);
  }

  Reduction reduction_;
  ComputeType type_;
  const SplitAxes& s_;
  char* means_;
  StoreKernel store_;
};

}  // namespace

void run_moments(Reduction reduction, ComputeType type, const SplitAxes& split, char* means) {
  visit_compute_type(type, [&](auto v) {
    using V = decltype(v);
    if constexpr (rule_takes(ReductionRule::deviations, compute_type_of<V>)) {
      if (reduction != reduction::nanmean) {
        return Runner<V, true>(reduction, type, split, means).run();
      }
    }
    if constexpr (rule_takes(ReductionRule::nan_mean, compute_type_of<V>)) {
      Runner<V, false>(reduction, type, split, nullptr).run();
    }
  });
}

}  // namespace rensa::host

// Products in the project's own code, after Goto and van de Geijn, "Anatomy of high-performance
// matrix multiplication" (2008): c is computed tile by tile with its sums in registers, from a few
// rows of one operand, read where they are, and a panel of columns of the other, packed so that a
// tile reads it in order. Which operand is packed is chosen by what it costs.
#include "rensa/operations/matmul/cpu_gemm.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "rensa/backend/cpu/strided.h"
#include "rensa/core/integers.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/elementwise/cpu_elementwise.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

namespace {

constexpr std::int64_t kMaxDepth = 1024;  // of k at a time
// Of packed columns: they stay in a core's cache.
constexpr std::int64_t kPackedBytes = 512 << 10;
constexpr std::int64_t kParallelWork = 200'000;  // multiplications worth a second thread
constexpr std::int64_t kMaxTileBytes = 14 * 2 * 64;

// Memory that a thread keeps from product to product.
class Workspace {
 public:
  void* get(std::int64_t nbytes) {
    if (nbytes > nbytes_) {
      data_.reset();
      nbytes_ = 0;
      data_.reset(::operator new(static_cast<std::size_t>(nbytes), std::align_val_t(64)));
      nbytes_ = nbytes;
    }
    return data_.get();
  }

 private:
  struct Free {
    void operator()(void* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  std::unique_ptr<void, Free> data_;
  std::int64_t nbytes_ = 0;
};

template <class V> const GemmKernels<V>& gemm_kernels() {
  static const auto both = [] {
    std::pair<GemmKernels<float>, GemmKernels<double>> k;
    RENSA_IN_SET(best_instruction_set(), get_gemm_kernels)(k.first, k.second);
    return k;
  }();
  if constexpr (std::is_same_v<V, float>) return both.first;
  else return both.second;
}

// Strides here count elements.
template <class V> struct Strided {
  V* data;
  std::int64_t row, column;
  Strided transposed() const { return {data, column, row}; }
  Strided at(std::int64_t i, std::int64_t j) const {
    return {data + i * row + j * column, row, column};
  }
};

// to[0, count) = from[0, count), mostly as many as a panel has columns.
template <class V> void copy_values(const V* from, std::int64_t count, V* to) {
  constexpr std::int64_t kFull = 32;
  if (count == kFull) {
    std::memcpy(to, from, kFull * sizeof(V));
  } else {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(V));
  }
}

// to[i][j] = from[j][i], four by four.
template <class V>
void transpose_4x4(const V* from, std::int64_t from_stride, V* to, std::int64_t to_stride) {
  typedef V Four __attribute__((vector_size(4 * sizeof(V)), aligned(sizeof(V)), may_alias));
  auto row = [&](int j) { return reinterpret_cast<const Four*>(from + j * from_stride); };
  Four a = *row(0), b = *row(1), c = *row(2), d = *row(3);
  Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
       cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  Four ef = __builtin_shufflevector(a, b, 2, 6, 3, 7),
       gh = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  auto put = [&](int i, const Four& v) { *reinterpret_cast<Four*>(to + i * to_stride) = v; };
  put(0, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
  put(1, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
  put(2, __builtin_shufflevector(ef, gh, 0, 1, 4, 5));
  put(3, __builtin_shufflevector(ef, gh, 2, 3, 6, 7));
}

// Packs columns [0, count) of q, k rows deep, into a panel of `width` columns.
template <class V>
void pack_columns(const Strided<V>& q, std::int64_t k, std::int64_t count, std::int64_t width,
                  V* panel) {
  std::int64_t j = 0;
  for (; q.row == 1 && j + 4 <= count; j += 4) {
    const V* columns = q.data + j * q.column;
    std::int64_t p = 0;
    for (; p + 4 <= k; p += 4) {
      transpose_4x4(columns + p, q.column, panel + p * width + j, width);
    }
    for (; p < k; ++p) {
      for (int i = 0; i < 4; ++i) panel[p * width + j + i] = columns[p + i * q.column];
    }
  }
  for (; j < width; ++j) {
    for (std::int64_t p = 0; p < k; ++p) {
      panel[p * width + j] = j < count ? q.data[p * q.row + j * q.column] : V(0);
    }
  }
}

// Packs columns [0, count) of q, k rows deep: panels of `panel` columns, one behind the other, the
// last one filled up with zeros to a multiple of `lanes`.
template <class V>
void pack(const Strided<V>& q, std::int64_t k, std::int64_t count, std::int64_t panel,
          std::int64_t lanes, V* packed) {
  // Rows in runs as long as they come, columns in bands that the cache holds.
  std::int64_t band = q.column == 1 ? 1 : 64;
  for (std::int64_t p = 0; p < k; p += band) {
    std::int64_t rows = std::min(band, k - p);
    for (std::int64_t first = 0; first < count; first += panel) {
      std::int64_t columns = std::min(panel, count - first);
      std::int64_t width = ceil_div(columns, lanes) * lanes;
      Strided<V> part = q.at(p, first);
      V* to = packed + first * k + p * width;
      if (q.column == 1) {
        copy_values(part.data, columns, to);
        std::fill(to + columns, to + width, V(0));
      } else {
        pack_columns(part, rows, columns, width, to);
      }
    }
  }
}

template <class V> class Product {
 public:
  // c = p @ q: p is read in place, q is packed unless that costs more than it saves.
  Product(std::int64_t m, std::int64_t n, std::int64_t k, const Strided<V>& p, const Strided<V>& q,
          const Strided<V>& c)
      : kernels_(gemm_kernels<V>()), m_(m), n_(n), k_(k), p_(p), q_(q), c_(c) {
    row_blocks_ = ceil_div(m, kernels_.rows);
    // Rows that lie a multiple of this apart compete for the same places in the cache; and each
    // step from column to column needs a page of its own.
    constexpr std::int64_t kConflict = 4096;
    bool conflict = p.row * static_cast<std::int64_t>(sizeof(V)) % kConflict == 0;
    copies_p_ = p.column == 1 ? conflict && n > panel_width() : n > 4 * panel_width();
    // A few last columns would leave most of a vector empty.
    std::int64_t rest = n % lanes();
    if (p.column == 1 && q.row == 1 && rest <= kernels_.kDotColumns && k >= lanes()) dotted_ = rest;
    n_ -= dotted_;
  }

  // In vector multiplications; the rest by measure.
  double cost() const {
    auto work = static_cast<double>(m_) * static_cast<double>(ceil_div(n_, kernels_.lanes)) *
                static_cast<double>(k_);
    work += 0.3 * static_cast<double>(m_ * dotted_ * k_) / kernels_.kDotColumns;
    double packing = static_cast<double>(k_ * n_) * (q_.column == 1 ? (packs() ? 0.6 : 0.1) : 2.5);
    double storing = static_cast<double>(m_ * (n_ + dotted_)) * (c_.column == 1 ? 0.1 : 2.0);
    return work + packing + storing;
  }

  void run() const {
    bool parallel = m_ * (n_ + dotted_) * k_ >= kParallelWork;
    std::int64_t threads = parallel ? get_num_threads() : 1;
    std::int64_t panels = ceil_div(n_, panel_width());
    // By columns each thread packs for itself, and reads all of p; by rows they share what is
    // packed and each reads its part of p: better where p is the larger one, if not by much.
    constexpr std::int64_t kManyColumns = 1024, kManyRows = 512;
    bool by_columns = panels >= 2 * threads && (n_ > m_ || n_ > kManyColumns || m_ > kManyRows);
    if (!by_columns && packs()) return run_by_rows(panels, threads);
    run_by_columns(panels, threads);
    parallel_for(row_blocks_, threads == 1 ? row_blocks_ : 1,
                 [&](std::int64_t begin, std::int64_t end) { run_dots(begin, end); });
  }

 private:
  std::int64_t lanes() const { return kernels_.lanes; }
  std::int64_t panel_width() const { return 2 * lanes(); }
  bool packs() const { return q_.column != 1 || row_blocks_ > 2; }
  // The most steps of k, of equal slabs, that `columns` packed columns leave room for.
  std::int64_t depth_for(std::int64_t columns) const {
    constexpr std::int64_t kLeast = 256;
    std::int64_t most = kPackedBytes / static_cast<std::int64_t>(sizeof(V)) / columns;
    return ceil_div(k_, ceil_div(k_, std::clamp(most, kLeast, kMaxDepth)));
  }
  V* packing_memory(std::int64_t columns, std::int64_t depth) const {
    thread_local Workspace workspace;
    // The analyzer ends a thread_local's life with the block.
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDelete)
    return static_cast<V*>(workspace.get(columns * depth * static_cast<std::int64_t>(sizeof(V))));
  }

  // Groups of panels are shared out.
  void run_by_columns(std::int64_t panels, std::int64_t threads) const {
    constexpr std::int64_t kMostPanels = 16;
    std::int64_t groups = std::min(panels, std::max(2 * threads, ceil_div(panels, kMostPanels)));
    if (threads == 1) groups = ceil_div(panels, kMostPanels);
    parallel_for(groups, threads == 1 ? groups : 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t group = begin; group < end; ++group) {
        std::int64_t first = panels * group / groups * panel_width();
        std::int64_t last = std::min(n_, panels * (group + 1) / groups * panel_width());
        std::int64_t columns = last - first, depth = depth_for(padded(columns));
        V* packed = packs() ? packing_memory(padded(columns), depth) : nullptr;
        for (std::int64_t p = 0; p < k_; p += depth) {
          std::int64_t steps = std::min(depth, k_ - p);
          if (packed) pack(q_.at(p, first), steps, columns, panel_width(), lanes(), packed);
          for (std::int64_t block = 0; block < row_blocks_; ++block) {
            run_block(block, {first, columns, p, steps, packed, p + steps < k_});
          }
        }
      }
    });
  }

  // All threads use one packed copy of q; blocks of rows are shared out.
  void run_by_rows(std::int64_t panels, std::int64_t threads) const {
    std::int64_t depth = depth_for(std::max(padded(n_), lanes()));
    V* packed = packing_memory(padded(n_), depth);
    for (std::int64_t p = 0; p < k_; p += depth) {
      std::int64_t steps = std::min(depth, k_ - p);
      parallel_for(panels, threads == 1 ? panels : 1, [&](std::int64_t begin, std::int64_t end) {
        std::int64_t first = begin * panel_width();
        pack(q_.at(p, first), steps, std::min(end * panel_width(), n_) - first, panel_width(),
             lanes(), packed + first * steps);
      });
      std::int64_t grain = threads == 1 ? row_blocks_ : ceil_div(row_blocks_, 4 * threads);
      parallel_for(row_blocks_, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t block = begin; block < end; ++block) {
          run_block(block, {0, n_, p, steps, packed, false});
          if (p + steps == k_) run_dots(block, block + 1);  // p's rows are at hand
        }
      });
    }
  }

  // The last columns of some blocks of rows, over all of k.
  void run_dots(std::int64_t block, std::int64_t last_block) const {
    if (dotted_ == 0) return;
    constexpr int kRows = GemmKernels<V>::kDotRows, kColumns = GemmKernels<V>::kDotColumns;
    std::int64_t end = m_ * last_block / row_blocks_;
    for (std::int64_t row = m_ * block / row_blocks_; row < end; row += kRows) {
      int rows = static_cast<int>(std::min<std::int64_t>(kRows, end - row));
      V results[kRows * kColumns];
      kernels_.dots(k_, p_.at(row, 0).data, p_.row, rows, q_.at(0, n_).data, q_.column,
                    static_cast<int>(dotted_), results);
      for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < dotted_; ++j) *c_.at(row + i, n_ + j).data = results[i * kColumns + j];
      }
    }
  }

  // A whole number of vectors.
  std::int64_t padded(std::int64_t count) const {
    return ceil_div(count, kernels_.lanes) * kernels_.lanes;
  }

  // Some steps of k for some columns of q, packed or (null) where they are.
  struct Slab {
    std::int64_t column, columns, step, steps;
    const V* packed;
    bool more_steps;  // of the same columns follow
  };

  void run_block(std::int64_t block, const Slab& slab) const {
    std::int64_t row = m_ * block / row_blocks_, count = m_ * (block + 1) / row_blocks_ - row;
    Strided<V> rows = p_.at(row, slab.step);
    if (copies_p_) rows = copy_rows(rows, count, m_ - row, slab.steps);
    bool add = slab.step > 0;
    std::int64_t first = 0;
    const std::int64_t columns = GemmKernels<V>::kRowVectors * lanes();
    while (count == 1 && !slab.packed && c_.column == 1 && first + columns <= slab.columns) {
      Strided<V> q = q_.at(slab.step, slab.column + first);
      kernels_.row(slab.steps, rows.data, rows.column, q.data, q.row,
                   c_.at(row, slab.column + first).data, add);
      first += columns;
    }
    for (; first < slab.columns; first += panel_width()) {
      Ahead ahead = lines_ahead(rows, count, block, slab, first);
      std::int64_t width = std::min(panel_width(), slab.columns - first);
      Strided<V> target = c_.at(row, slab.column + first);
      Strided<V> q = q_.at(slab.step, slab.column + first);
      const V* panel = q.data;
      std::int64_t stride = q.row;
      alignas(64) V last[kMaxDepth * 32];
      if (slab.packed) {
        panel = slab.packed + first * slab.steps;
        stride = padded(width);
      } else if (width != padded(width)) {
        pack(q, slab.steps, width, panel_width(), lanes(), last);
        panel = last;
        stride = padded(width);
      }
      run_tile(count, width, slab.steps, rows, panel, stride, target, add, ahead);
    }
  }

  // What a tile fetches while it computes, a line with each step: the hardware foresees neither
  // the next page nor the next block of rows.
  struct Ahead {
    const V* data = nullptr;
    std::int64_t step = 0;  // in bytes
  };
  Ahead lines_ahead(const Strided<V>& rows, std::int64_t count, std::int64_t block,
                    const Slab& slab, std::int64_t first) const {
    constexpr std::int64_t kSize = sizeof(V), kStepsAhead = 12, kLine = 64;
    if (slab.packed && slab.more_steps && q_.column == 1 && block * kLine < panel_width() * kSize) {
      // The lines of this panel that will be packed next: a column of them a block.
      return {q_.at(slab.step + slab.steps, slab.column + first).data + block * kLine / kSize,
              q_.row * kSize};
    }
    std::int64_t next = m_ * (block + 1) / row_blocks_;
    if (copies_p_) {  // the lines that the next block is copied from: its last ones, then its first
      if (p_.row != 1 || block + 1 == row_blocks_ || first > panel_width()) return {};
      std::int64_t row = first == 0 ? std::min(m_, next + count) - 1 : next;
      return {p_.at(row, slab.step).data, p_.column * kSize};
    }
    if (rows.column != 1) {
      return first > 0 ? Ahead{}
                       : Ahead{rows.data + kStepsAhead * rows.column, rows.column * kSize};
    }
    // The next block, where rows lie close behind one another, spread over the tiles of this one.
    bool dense = rows.row <= slab.steps + slab.steps / 8 && block + 1 < row_blocks_;
    if (!dense) return {};
    std::int64_t tiles = ceil_div(slab.columns, panel_width()), tile = first / panel_width();
    std::int64_t values = count * rows.row;
    return {rows.data + values + values * tile / tiles,
            ceil_div(values * kSize, slab.steps * tiles)};
  }

  // Into memory of this thread, whose rows lie better.
  // The matrix has `rows_left` rows from the first one on.
  Strided<V> copy_rows(const Strided<V>& rows, std::int64_t count, std::int64_t rows_left,
                       std::int64_t depth) const {
    thread_local Workspace workspace;
    bool along = rows.column == 1;
    // Steps of whole lines where the matrix has something to read there.
    constexpr std::int64_t kStep = 16;
    bool whole = !along && rows.row == 1 && rows_left >= kStep;
    std::int64_t row = along ? depth + kStep : 1, column = along ? 1 : kStep;
    std::int64_t size = along ? count * row : depth * column;
    auto* copy = static_cast<V*>(workspace.get(size * static_cast<std::int64_t>(sizeof(V))));
    for (std::int64_t i = 0; i < count && along; ++i) {
      std::memcpy(copy + i * row, rows.data + i * rows.row,
                  static_cast<std::size_t>(depth) * sizeof(V));
    }
    for (std::int64_t p = 0; p < depth && whole; ++p) {
      std::memcpy(copy + p * column, rows.data + p * rows.column, kStep * sizeof(V));
    }
    for (std::int64_t p = 0; p < depth && !along && !whole; ++p) {
      for (std::int64_t i = 0; i < count; ++i) {
        copy[p * column + i] = rows.data[p * rows.column + i * rows.row];
      }
    }
    return {copy, row, column};
  }

  void run_tile(std::int64_t count, std::int64_t width, std::int64_t depth, const Strided<V>& rows,
                const V* q, std::int64_t q_stride, const Strided<V>& c, bool add,
                const Ahead& ahead) const {
    bool whole = width > kernels_.lanes;
    auto tile = kernels_.tile[count - 1][whole];
    std::int64_t full = whole ? panel_width() : kernels_.lanes;
    if (c.column == 1 && width == full) {
      return tile(depth, rows.data, rows.row, rows.column, q, q_stride, c.data, c.row, add,
                  reinterpret_cast<const char*>(ahead.data), ahead.step);
    }
    for (std::int64_t j = 0; j < width && c.row == 1; ++j) {
      __builtin_prefetch(c.data + j * c.column, 1);
    }
    alignas(64) V sums[kMaxTileBytes / sizeof(V)];
    auto for_each = [&](const auto& f) {
      for (std::int64_t j = 0; j < width; ++j) {
        for (std::int64_t i = 0; i < count; ++i) {
          f(c.data[i * c.row + j * c.column], sums[i * full + j]);
        }
      }
    };
    if (add) {
      std::fill_n(sums, count * full, V(0));
      for_each([](const V& element, V& sum) { sum = element; });
    }
    tile(depth, rows.data, rows.row, rows.column, q, q_stride, sums, full, add,
         reinterpret_cast<const char*>(ahead.data), ahead.step);
    for_each([](V& element, const V& sum) { element = sum; });
  }

  const GemmKernels<V>& kernels_;
  std::int64_t m_, n_, k_, row_blocks_ = 0;
  Strided<V> p_, q_, c_;
  std::int64_t dotted_ = 0;  // last columns, not counted in n_, that are left to dot products
  bool copies_p_ = false;
};

template <class V>
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const Strided<V>& a,
              const Strided<V>& b, const Strided<V>& c) {
  if constexpr (std::is_floating_point_v<V>) {
    Product<V> plain(m, n, k, a, b, c);
    Product<V> swapped(n, m, k, b.transposed(), a.transposed(), c.transposed());
    (plain.cost() <= swapped.cost() ? plain : swapped).run();
  } else {
    // Integers and complex numbers: rows of b added to rows of c.
    std::int64_t grain = std::max<std::int64_t>(1, kParallelWork / 4 / (n * k));
    parallel_for(m, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        for (std::int64_t j = 0; j < n; ++j) c.data[i * c.row + j * c.column] = V(0);
        for (std::int64_t p = 0; p < k; ++p) {
          V x = a.data[i * a.row + p * a.column];
          for (std::int64_t j = 0; j < n; ++j) {
            V& sum = c.data[i * c.row + j * c.column];
            sum = sum + x * b.data[p * b.row + j * b.column];
          }
        }
      }
    });
  }
}

ArrayView view_of(const Matrix& matrix, Dtype dtype, std::int64_t rows, std::int64_t columns) {
  return {matrix.data, dtype, Device(), {rows, columns}, {matrix.row_stride, matrix.column_stride}};
}

// The matrix as values V: itself, or a converted copy in `memory`.
template <class V>
Strided<V> values_of(const Matrix& matrix, Dtype dtype, std::int64_t rows, std::int64_t columns,
                     bool convert, std::unique_ptr<V[]>& memory) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(V));
  Dtype own = value_dtype(compute_type_of<V>);
  if (dtype == own) {
    return {reinterpret_cast<V*>(matrix.data), matrix.row_stride / kSize,
            matrix.column_stride / kSize};
  }
  memory = std::make_unique_for_overwrite<V[]>(static_cast<std::size_t>(rows * columns));
  if (convert) {
    ArrayView own_rows = view_of(matrix, dtype, rows, columns);
    Input input = own_rows;
    Matrix copy = {reinterpret_cast<char*>(memory.get()), columns * kSize, kSize};
    run_elementwise(ufunc::copy, dtype, &input, 1, view_of(copy, own, rows, columns));
  }
  return {memory.get(), columns, 1};
}

}  // namespace

void gemm(Dtype dtype, std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a,
          const Matrix& b, const Matrix& c) {
  visit_compute_type(compute_type(dtype), [&](auto zero) {
    using V = decltype(zero);
    std::unique_ptr<V[]> memory[3];
    Strided<V> left = values_of<V>(a, dtype, m, k, true, memory[0]);
    Strided<V> right = values_of<V>(b, dtype, k, n, true, memory[1]);
    Strided<V> result = values_of<V>(c, dtype, m, n, false, memory[2]);
    multiply(m, n, k, left, right, result);
    if (!memory[2]) return;
    constexpr auto kSize = static_cast<std::int64_t>(sizeof(V));
    Matrix sums = {reinterpret_cast<char*>(memory[2].get()), n * kSize, kSize};
    Dtype own = value_dtype(compute_type_of<V>);
    ArrayView summed = view_of(sums, own, m, n);
    Input input = summed;
    run_elementwise(ufunc::copy, own, &input, 1, view_of(c, dtype, m, n));
  });
}

bool gemm_is_fast() { return best_instruction_set() == InstructionSet::avx512; }

}  // namespace rensa::host

// Attention on the CPU: blocks of queries against blocks of keys, products by the project's own
// kernels. A thread has a block of queries, for gradients of keys and values a block of keys.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "rensa/backend/cpu/kernels.h"
#include "rensa/backend/cpu/row_kernels.h"
#include "rensa/core/integers.h"
#include "rensa/core/thread_pool.h"
#include "rensa/device/error_word.h"
#include "rensa/functions/operations/attention/attention.h"
#include "rensa/functions/operations/attention/attention_dropout.h"
#include "rensa/operations/matmul/cpu_gemm.h"
#include "rensa/operations/random/cpu_philox.h"
#include "rensa/operations/reduce/cpu_kernels.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

namespace {

using Int = std::int64_t;

// Keys of a block; backward has more matrices of a block's size.
constexpr Int kKeys = 256, kBackwardKeys = 128;

/// Queries of a block: as many as still leave blocks for the threads.
Int queries_of_block(Int length) { return length >= 512 ? 128 : length >= 128 ? 64 : 32; }

/// A block of scores: queries [i, i + m) and keys [j, j + n) of a head.
struct Block {
  Int b, h, i, m, j, n;
};

/// Rows of memory, `row_stride` bytes apart, whose elements lie together.
struct Rows {
  char* data;
  Int row_stride;
};

Rows rows_of(const Operand& operand, Int b, Int h, Int row) {
  const ArrayView& view = operand.view;
  return {view.data + b * view.strides[0] + h * view.strides[1] + row * view.strides[2],
          view.strides[2]};
}

/// Rows of an operand as a matrix of V: where they are, or converted.
template <class V> class Converted {
 public:
  Matrix get(const Operand& operand, Int b, Int h, Int row, Int count) {
    Rows rows = rows_of(operand, b, h, row);
    constexpr Int size = sizeof(V);
    Dtype dtype = operand.view.dtype;
    if (dtype == value_dtype(compute_type_of<V>)) return {rows.data, rows.row_stride, size};
    Int width = operand.view.shape[3];
    values_.resize(static_cast<std::size_t>(count * width));
    LoadKernel load = kernels().load_of(dtype, compute_type_of<V>);
    for (Int r = 0; r < count; ++r) {
      load(width, rows.data + r * rows.row_stride, itemsize(dtype), values_.data() + r * width);
    }
    return {reinterpret_cast<char*>(values_.data()), width * size, size};
  }

 private:
  std::vector<V> values_;
};

Matrix transposed(const Matrix& m) { return {m.data, m.column_stride, m.row_stride}; }

/// A matrix of a thread's own, in C order.
template <class V> struct Buffer {
  explicit Buffer(Int rows, Int columns)
      : columns(columns), values(static_cast<std::size_t>(rows * columns)) {}
  V* row(Int i) { return values.data() + i * columns; }
  Matrix matrix() {
    constexpr Int size = sizeof(V);
    return {reinterpret_cast<char*>(values.data()), columns * size, size};
  }
  Int columns;
  std::vector<V> values;
};

/// c (m, n) = a (m, k) @ b (k, n).
template <class V>
void product(Int m, Int n, Int k, const Matrix& a, const Matrix& b, const Matrix& c) {
  gemm(value_dtype(compute_type_of<V>), m, n, k, a, b, c);
}

/// row += what `addend` has.
template <class V> void add(Int n, const V* addend, V* row) {
  row_kernels<V>().add(n, addend, row);
}
/// row *= by
template <class V> void multiply(Int n, V by, V* row) {
  row_kernels<V>().multiply(n, row, by, row);
}

/// What both directions know of an operation.
template <class V> class Scores {
 public:
  Scores(const char* name, const operations::AttentionGiven& given)
      : given_(given),
        heads_(given.query.view.shape[1]),
        groups_(given.key.view.shape[1]),
        queries_(given.query.view.shape[2]),
        keys_(given.key.view.shape[2]),
        scale_(static_cast<V>(given.scale)),
        keep_(1 / (V(1) - static_cast<V>(given.dropout_ratio))),
        least_(least_kept(static_cast<float>(given.dropout_ratio))),
        words_(static_cast<unsigned long long>(given.seed.integer),
               static_cast<unsigned long long>(given.offset.integer), queries_, keys_,
               given.dropout_ratio) {
    if (!given.lengths.present()) return;
    Int count = given.lengths.view.size();
    for (Int k = 0; k < count; ++k) {
      Int length = lengths()[k];
      if (length < 0 || length > keys_) {
        throw_reported({ReportedError::length, name, length, keys_}, cpu());
      }
    }
  }

  Int batch() const { return given_.query.view.shape[0]; }
  Int heads() const { return heads_; }
  Int groups() const { return groups_; }
  Int heads_of_group() const { return heads_ / groups_; }
  Int queries() const { return queries_; }
  Int keys() const { return keys_; }
  Int key_width() const { return given_.key.view.shape[3]; }
  Int value_width() const { return given_.value.view.shape[3]; }
  V scale() const { return scale_; }
  const operations::AttentionGiven& given() const { return given_; }

  /// The keys before which all lie that the queries before `end` see.
  Int end_of_keys(Int b, Int h, Int end) const {
    Int keys = given_.lengths.present() ? lengths()[b * heads_ + h] : keys_;
    return given_.causal ? std::min(keys, end) : keys;
  }

  /// From products of queries and keys to scores, in place.
  void mask(const Block& block, Buffer<V>& s) const {
    Int length = end_of_keys(block.b, block.h, queries_ + keys_);
    for (Int r = 0; r < block.m; ++r) {
      V* row = s.row(r);
      Int i = block.i + r;
      multiply(block.n, scale_, row);
      if (given_.mask.present()) add_mask(block, i, row);
      if (given_.slopes.present()) {
        V slope = reinterpret_cast<const V*>(given_.slopes.view.data)[block.h];
        for (Int c = 0; c < block.n; ++c) {
          row[c] -= slope * static_cast<V>(std::abs(i - block.j - c));
        }
      }
      Int end = given_.causal ? std::min(length, i + 1) : length;
      for (Int c = std::max<Int>(0, end - block.j); c < block.n; ++c) row[c] = kNone;
    }
  }

  /// What dropout multiplies the weights of a block by, in `factors` (new_factors()); nothing
  /// without dropout.
  void draw(const Block& block, Buffer<V>& factors) const {
    if (given_.dropout_ratio == 0) return;
    Int head = block.b * heads_ + block.h, counters = ceil_div(block.n, kSquare) * kHalf;
    std::uint32_t words[4 * kKeys];
    for (Int r = 0; r < block.m; ++r) {
      if (r % kSquare >= kHalf) continue;  // with its counters' first
      random_kernels().philox(words_.seed, words_.counter(head, block.i + r, block.j), counters,
                              words);
      for (Int there : {r, r + kHalf}) {
        if (there < block.m)
          keep_or_drop(words + (there - r) / kHalf * 2, counters, factors.row(there));
      }
    }
  }
  Buffer<V> new_factors(Int rows, Int columns) const {
    return Buffer<V>(given_.dropout_ratio == 0 ? 0 : rows, round_up(columns, kSquare));
  }
  /// Weights, or their gradients, as dropout leaves them, in place.
  void drop(const Block& block, Buffer<V>& factors, Buffer<V>& p) const {
    if (given_.dropout_ratio == 0) return;
    for (Int r = 0; r < block.m; ++r) {
      const V* factor = factors.row(r);
      V* row = p.row(r);
      for (Int c = 0; c < block.n; ++c) {
        V kept = row[c] * factor[c];
        row[c] = factor[c] != V(0) ? kept : V(0);
      }
    }
  }

  static constexpr V kNone = -std::numeric_limits<V>::infinity();

 private:
  // Counters have weights of squares of 16 by 16; a block begins at one.
  static constexpr Int kSquare = 16, kHalf = 8;
  static_assert(kKeys % kSquare == 0 && kBackwardKeys % kSquare == 0);

  /// A row's factors by the words of its counters, of which it has the first or the third pair.
  void keep_or_drop(const std::uint32_t* words, Int counters, V* factors) const {
    for (Int square = 0; square < counters; square += kHalf) {
      for (Int half = 0; half < 2; ++half) {
        for (Int k = 0; k < kHalf; ++k) {
          factors[half * kHalf + k] = is_kept(words[4 * k + half], least_) ? keep_ : V(0);
        }
      }
      words += 4 * kHalf, factors += kSquare;
    }
  }

  const std::int64_t* lengths() const {
    return reinterpret_cast<const std::int64_t*>(given_.lengths.view.data);
  }
  void add_mask(const Block& block, Int i, V* row) const {
    const ArrayView& view = given_.mask.view;
    const char* p = view.data + block.b * view.strides[0] + block.h * view.strides[1] +
                    i * view.strides[2] + block.j * view.strides[3];
    V values[kKeys];
    kernels().load_of(view.dtype, compute_type_of<V>)(block.n, p, view.strides[3], values);
    if (view.dtype == bool_) {
      for (Int c = 0; c < block.n; ++c) row[c] = values[c] != 0 ? row[c] : kNone;
    } else {
      add(block.n, values, row);
    }
  }

  const operations::AttentionGiven& given_;
  Int heads_, groups_, queries_, keys_;
  V scale_, keep_;
  std::int32_t least_;
  AttentionDropoutWords words_;
};

template <class V> void exp_in_place(Int n, V* values) {
  const void* input[] = {values};
  kernels().of(ufunc::exp, compute_type_of<V>)(n, input, values, 0);
}

/// row = exp(row - reference)
template <class V> void exp_of_row(Int n, V reference, V* row) {
  row_kernels<V>().subtract(n, row, reference, row);
  exp_in_place(n, row);
}

/// All of a row, reduced.
template <class V> V reduced(Reduction reduction, Int n, const V* row) {
  V result;
  reduce_kernels().of(reduction, compute_type_of<V>).leaf(n, row, &result);
  return result;
}

// --- forward ---

/// A thread's block of queries.
template <class V> class ForwardBlock {
 public:
  ForwardBlock(const operations::Attention& op, const Scores<V>& scores, Int most)
      : op_(op),
        scores_(scores),
        s_(most, std::min(kKeys, scores.keys())),
        factors_(scores.new_factors(most, s_.columns)),
        sum_(most, scores.value_width()),
        part_(most, scores.value_width()),
        greatest_(static_cast<std::size_t>(most)),
        total_(greatest_.size()) {}

  void run(Int b, Int h, Int i, Int m) {
    const operations::AttentionGiven& given = op_.given;
    Int group = h / scores_.heads_of_group(), end = scores_.end_of_keys(b, h, i + m);
    Matrix q = query_.get(given.query, b, h, i, m);
    std::fill(sum_.values.begin(), sum_.values.end(), V(0));
    std::fill(total_.begin(), total_.end(), V(0));
    std::fill(greatest_.begin(), greatest_.end(), Scores<V>::kNone);
    for (Int j = 0; j < end; j += kKeys) {
      Block block = {b, h, i, m, j, std::min(kKeys, end - j)};
      Matrix k = key_.get(given.key, b, group, j, block.n);
      product<V>(m, block.n, scores_.key_width(), q, transposed(k), s_.matrix());
      scores_.mask(block, s_);
      for (Int r = 0; r < m; ++r) weigh(r, block.n);
      scores_.draw(block, factors_);
      scores_.drop(block, factors_, s_);
      Matrix v = value_.get(given.value, b, group, j, block.n);
      product<V>(m, scores_.value_width(), block.n, s_.matrix(), v, part_.matrix());
      for (Int r = 0; r < m; ++r) add(scores_.value_width(), part_.row(r), sum_.row(r));
    }
    for (Int r = 0; r < m; ++r) store(b, h, i + r, r);
  }

 private:
  /// Scores of a row to weights beside the greatest one so far; what was summed is scaled to it.
  void weigh(Int r, Int n) {
    auto k = static_cast<std::size_t>(r);
    V* row = s_.row(r);
    V here = reduced(reduction::max, n, row);
    V greatest = here <= greatest_[k] ? greatest_[k] : here;  // NaN stays
    V reference = greatest == Scores<V>::kNone ? V(0) : greatest;
    V factor = std::exp(greatest_[k] - reference);
    exp_of_row(n, reference, row);
    total_[k] = total_[k] * factor + reduced(reduction::sum, n, row);
    greatest_[k] = greatest;
    if (factor == V(1)) return;
    multiply(sum_.columns, factor, sum_.row(r));
  }

  void store(Int b, Int h, Int i, Int r) {
    auto k = static_cast<std::size_t>(r);
    V *sum = sum_.row(r), total = total_[k];
    V inverse = total == V(0) ? V(0) : V(1) / total;
    multiply(sum_.columns, inverse, sum);
    const ArrayView& out = op_.out.view;
    kernels().store_of(out.dtype, compute_type_of<V>)(
        sum_.columns, sum, rows_of(op_.out, b, h, i).data, itemsize(out.dtype));
    V* lse = reinterpret_cast<V*>(op_.lse.view.data);
    lse[(b * scores_.heads() + h) * scores_.queries() + i] =
        total == V(0) ? std::numeric_limits<V>::infinity() : greatest_[k] + std::log(total);
  }

  const operations::Attention& op_;
  const Scores<V>& scores_;
  Converted<V> query_, key_, value_;
  Buffer<V> s_, factors_, sum_, part_;
  std::vector<V> greatest_, total_;
};

template <class V> void attention(const operations::Attention& op) {
  Scores<V> scores(op.name(), op.given);
  Int rows = queries_of_block(scores.queries()), blocks = ceil_div(scores.queries(), rows);
  Int count = scores.batch() * scores.heads() * blocks;
  parallel_for(count, long_pieces(count, 1), [&](Int begin, Int end) {
    ForwardBlock<V> block(op, scores, rows);
    for (Int k = begin; k < end; ++k) {
      Int head = k / blocks, i = k % blocks * rows;
      block.run(head / scores.heads(), head % scores.heads(), i,
                std::min(rows, scores.queries() - i));
    }
  });
}

// --- backward ---

/// Weights and the gradients of scores, block by block.
template <class V> class Recomputed {
 public:
  Recomputed(const operations::AttentionGrad& op, const Scores<V>& scores, const V* delta, Int rows)
      : op_(op),
        scores_(scores),
        delta_(delta),
        weights(rows, std::min(kBackwardKeys, scores.keys())),
        gscores(rows, weights.columns),
        factors_(scores.new_factors(rows, weights.columns)) {}

  /// `weights` as dropout leaves them, `gscores` the scores' gradients. q, k, v and gout are the
  /// block's.
  void run(const Block& block, const Matrix& q, const Matrix& k, const Matrix& v,
           const Matrix& gout) {
    product<V>(block.m, block.n, scores_.key_width(), q, transposed(k), weights.matrix());
    scores_.mask(block, weights);
    Int first = (block.b * scores_.heads() + block.h) * scores_.queries() + block.i;
    const V* lse = reinterpret_cast<const V*>(op_.lse.view.data) + first;
    for (Int r = 0; r < block.m; ++r) exp_of_row(block.n, lse[r], weights.row(r));
    product<V>(block.m, block.n, scores_.value_width(), gout, transposed(v), gscores.matrix());
    scores_.draw(block, factors_);
    scores_.drop(block, factors_, gscores);
    for (Int r = 0; r < block.m; ++r) {
      V* g = gscores.row(r);
      row_kernels<V>().weigh(block.n, weights.row(r), g, delta_[first + r], g);
    }
    scores_.drop(block, factors_, weights);
  }

 private:
  const operations::AttentionGrad& op_;
  const Scores<V>& scores_;
  const V* delta_;

 public:
  Buffer<V> weights, gscores;

 private:
  Buffer<V> factors_;
};

/// Rows of sums, times a factor, to an operand.
template <class V>
void store_rows(const Operand& to, Int b, Int h, Int row, Int count, V factor, Buffer<V>& sums) {
  Rows rows = rows_of(to, b, h, row);
  Dtype dtype = to.view.dtype;
  for (Int r = 0; r < count; ++r) {
    V* sum = sums.row(r);
    multiply(sums.columns, factor, sum);
    kernels().store_of(dtype, compute_type_of<V>)(sums.columns, sum,
                                                  rows.data + r * rows.row_stride, itemsize(dtype));
  }
}

/// sums += a (m, k) @ b (k, n).
template <class V>
void add_product(Int m, Int k, const Matrix& a, const Matrix& b, Buffer<V>& part, Buffer<V>& sums) {
  product<V>(m, sums.columns, k, a, b, part.matrix());
  for (Int r = 0; r < m; ++r) add(sums.columns, part.row(r), sums.row(r));
}

/// A thread's part of the gradients.
template <class V> class BackwardBlock {
 public:
  BackwardBlock(const operations::AttentionGrad& op, const Scores<V>& scores, const V* delta,
                Int rows)
      : op_(op),
        scores_(scores),
        rows_(rows),
        recomputed_(op, scores, delta, rows),
        gkey_(std::max(rows, std::min(kBackwardKeys, scores.keys())), scores.key_width()),
        gkey_part_(gkey_),
        gvalue_(std::min(kBackwardKeys, scores.keys()), scores.value_width()),
        gvalue_part_(gvalue_) {}

  void of_queries(Int b, Int h, Int i, Int m) {
    const operations::AttentionGiven& given = op_.given;
    Int group = h / scores_.heads_of_group(), end = scores_.end_of_keys(b, h, i + m);
    Matrix q = query_.get(given.query, b, h, i, m), gout = gout_.get(op_.gout, b, h, i, m);
    Buffer<V>& gquery = gkey_;
    std::fill(gquery.values.begin(), gquery.values.end(), V(0));
    for (Int j = 0; j < end; j += kBackwardKeys) {
      Block block = {b, h, i, m, j, std::min(kBackwardKeys, end - j)};
      Matrix k = key_.get(given.key, b, group, j, block.n);
      recomputed_.run(block, q, k, value_.get(given.value, b, group, j, block.n), gout);
      add_product(m, block.n, recomputed_.gscores.matrix(), k, gkey_part_, gquery);
    }
    store_rows(op_.gquery, b, h, i, m, scores_.scale(), gquery);
  }

  void of_keys(Int b, Int group, Int j, Int n) {
    const operations::AttentionGiven& given = op_.given;
    Matrix k = key_.get(given.key, b, group, j, n), v = value_.get(given.value, b, group, j, n);
    std::fill(gkey_.values.begin(), gkey_.values.end(), V(0));
    std::fill(gvalue_.values.begin(), gvalue_.values.end(), V(0));
    Int each = scores_.heads_of_group();
    for (Int h = group * each; h < (group + 1) * each; ++h) {
      Int used = std::min(n, scores_.end_of_keys(b, h, scores_.queries()) - j);
      if (used <= 0) continue;
      // Causal queries before the block's first key see none of it.
      for (Int i = given.causal ? j / rows_ * rows_ : 0; i < scores_.queries(); i += rows_) {
        Block block = {b, h, i, std::min(rows_, scores_.queries() - i), j, used};
        Matrix q = query_.get(given.query, b, h, i, block.m);
        Matrix gout = gout_.get(op_.gout, b, h, i, block.m);
        recomputed_.run(block, q, k, v, gout);
        add_product(used, block.m, transposed(recomputed_.weights.matrix()), gout, gvalue_part_,
                    gvalue_);
        add_product(used, block.m, transposed(recomputed_.gscores.matrix()), q, gkey_part_, gkey_);
      }
    }
    if (op_.gkey.present()) store_rows(op_.gkey, b, group, j, n, scores_.scale(), gkey_);
    if (op_.gvalue.present()) store_rows(op_.gvalue, b, group, j, n, V(1), gvalue_);
  }

 private:
  const operations::AttentionGrad& op_;
  const Scores<V>& scores_;
  Int rows_;
  Converted<V> query_, key_, value_, gout_;
  Recomputed<V> recomputed_;
  Buffer<V> gkey_, gkey_part_, gvalue_, gvalue_part_;
};

/// Sums of out * gout, a row each: what dropout and the softmax leave of the weights' gradients.
template <class V>
std::vector<V> row_sums(const operations::AttentionGrad& op, const Scores<V>& scores) {
  Int heads = scores.heads(), queries = scores.queries(), width = scores.value_width();
  std::vector<V> sums(static_cast<std::size_t>(scores.batch() * heads * queries));
  constexpr Int kGrain = 64;
  parallel_for(static_cast<Int>(sums.size()), kGrain, [&](Int begin, Int end) {
    Converted<V> out, gout;
    for (Int k = begin; k < end; ++k) {
      Int b = k / queries / heads, h = k / queries % heads, i = k % queries;
      auto* y = reinterpret_cast<const V*>(out.get(op.out, b, h, i, 1).data);
      auto* g = reinterpret_cast<const V*>(gout.get(op.gout, b, h, i, 1).data);
      sums[static_cast<std::size_t>(k)] = row_kernels<V>().dot(width, y, g);
    }
  });
  return sums;
}

template <class V> void attention_grad(const operations::AttentionGrad& op) {
  Scores<V> scores(op.name(), op.given);
  std::vector<V> delta = row_sums(op, scores);
  Int rows = queries_of_block(scores.queries()), blocks = ceil_div(scores.queries(), rows);
  if (op.gquery.present()) {
    Int count = scores.batch() * scores.heads() * blocks;
    parallel_for(count, long_pieces(count, 1), [&](Int begin, Int end) {
      BackwardBlock<V> block(op, scores, delta.data(), rows);
      for (Int k = begin; k < end; ++k) {
        Int head = k / blocks, i = k % blocks * rows;
        block.of_queries(head / scores.heads(), head % scores.heads(), i,
                         std::min(rows, scores.queries() - i));
      }
    });
  }
  if (!op.gkey.present() && !op.gvalue.present()) return;
  Int key_blocks = ceil_div(scores.keys(), kBackwardKeys);
  Int count = scores.batch() * scores.groups() * key_blocks;
  parallel_for(count, long_pieces(count, 1), [&](Int begin, Int end) {
    BackwardBlock<V> block(op, scores, delta.data(), rows);
    for (Int k = begin; k < end; ++k) {
      Int group = k / key_blocks, j = k % key_blocks * kBackwardKeys;
      block.of_keys(group / scores.groups(), group % scores.groups(), j,
                    std::min(kBackwardKeys, scores.keys() - j));
    }
  });
}

// --- dropout ---

template <class V> void dropout(const operations::AttentionDropout& op) {
  const Shape& shape = op.out.view.shape;
  Int L = shape[2], S = shape[3];
  AttentionDropoutWords words(static_cast<unsigned long long>(op.seed.integer),
                              static_cast<unsigned long long>(op.offset.integer), L, S, op.ratio);
  V keep = 1 / (V(1) - static_cast<V>(op.ratio));
  V* out = reinterpret_cast<V*>(op.out.view.data);
  parallel_for(shape[0] * shape[1] * L, 16, [&](Int begin, Int end) {
    for (Int row = begin; row < end; ++row) {
      for (Int j = 0; j < S; ++j) {
        out[row * S + j] = words.keeps(row / L, row % L, j) ? keep : V(0);
      }
    }
  });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void Attention::run_cpu() {
  given.query.view.dtype == float64 ? host::attention<double>(*this)
                                    : host::attention<float>(*this);
}

void AttentionGrad::run_cpu() {
  given.query.view.dtype == float64 ? host::attention_grad<double>(*this)
                                    : host::attention_grad<float>(*this);
}

void AttentionDropout::run_cpu() {
  out.view.dtype == float64 ? host::dropout<double>(*this) : host::dropout<float>(*this);
}

}  // namespace rensa::operations

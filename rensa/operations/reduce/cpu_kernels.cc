// The loops of reductions, for one instruction set.
#include "rensa/operations/reduce/cpu_kernels.h"

#include "rensa/backend/cpu/kernel_sources.h"
#include "rensa/core/reduction_functors.h"
#include "rensa/core/reduction_rows.h"
#include "rensa/portable/row_reduction.h"

namespace rensa::host::RENSA_SET {

namespace {

template <class R, class V> void reduce_identity(std::int64_t n, void* accumulators) {
  V* acc = static_cast<V*>(accumulators);
  for (std::int64_t i = 0; i < n; ++i) acc[i] = R::template identity<V>();
}

template <class R, class V> void reduce_leaf(std::int64_t n, const void* in, void* accumulator) {
  *static_cast<V*>(accumulator) = reduce_lanes<red::Of<R, V>, V>(n, static_cast<const V*>(in));
}

template <class R, class V>
void reduce_rows(std::int64_t rows, std::int64_t columns, const void* in, std::int64_t row_stride,
                 void* accumulators) {
  const V* x = static_cast<const V*>(in);
  V* acc = static_cast<V*>(accumulators);
  std::int64_t i = 0;
  for (; i + 4 <= rows; i += 4, x += 4 * row_stride) {  // the accumulators are read less often
    const V *x1 = x + row_stride, *x2 = x1 + row_stride, *x3 = x2 + row_stride;
    RENSA_IVDEP
    for (std::int64_t j = 0; j < columns; ++j) {
      V sum = R::reduce(acc[j], R::map(x[j]));
      sum = R::reduce(sum, R::map(x1[j]));
      sum = R::reduce(sum, R::map(x2[j]));
      acc[j] = R::reduce(sum, R::map(x3[j]));
    }
  }
  for (; i < rows; ++i, x += row_stride) {
    RENSA_IVDEP
    for (std::int64_t j = 0; j < columns; ++j) acc[j] = R::reduce(acc[j], R::map(x[j]));
  }
}

template <class R, class V>
void reduce_combine(std::int64_t n, const void* others, void* accumulators) {
  const V* x = static_cast<const V*>(others);
  V* acc = static_cast<V*>(accumulators);
  RENSA_IVDEP
  for (std::int64_t i = 0; i < n; ++i) acc[i] = R::reduce(acc[i], x[i]);
}

template <class R, class V>
void reduce_post(std::int64_t n, std::int64_t count, void* accumulators) {
  V* acc = static_cast<V*>(accumulators);
  for (std::int64_t i = 0; i < n; ++i) acc[i] = R::post(acc[i], static_cast<long long>(count));
}

// --- bools ---
inline constexpr std::int64_t kTruthBlock =
    1024;  // bytes, after which to look whether it is decided

long long any_true(std::int64_t n, const char* bools) {
  const unsigned char* x = reinterpret_cast<const unsigned char*>(bools);
  for (; n > 0; n -= kTruthBlock, x += kTruthBlock) {
    unsigned char found = 0;
    for (std::int64_t i = 0; i < (n < kTruthBlock ? n : kTruthBlock); ++i) found |= x[i];
    if (found != 0) return 1;
  }
  return 0;
}

long long all_true(std::int64_t n, const char* bools) {
  const unsigned char* x = reinterpret_cast<const unsigned char*>(bools);
  for (; n > 0; n -= kTruthBlock, x += kTruthBlock) {
    unsigned char least = 255;
    for (std::int64_t i = 0; i < (n < kTruthBlock ? n : kTruthBlock); ++i) {
      least = x[i] < least ? x[i] : least;
    }
    if (least == 0) return 0;
  }
  return 1;
}

long long count_true(std::int64_t n, const char* bools) {
  constexpr int L = 64;
  long long count = 0;
  std::int64_t i = 0;
  while (i + L <= n) {
    std::int64_t end = i + 255 * L < n ? i + 255 * L : n;  // as far as lanes of a byte count
    unsigned char lanes[L] = {};
    for (; i + L <= end; i += L) {
      for (int l = 0; l < L; ++l) {
        lanes[l] = static_cast<unsigned char>(lanes[l] + (bools[i + l] != 0));
      }
    }
    for (int l = 0; l < L; ++l) count += lanes[l];
  }
  for (; i < n; ++i) count += bools[i] != 0;
  return count;
}

void add_truths(ReduceTable& table) {
  table.of(reduction::any).truths = any_true;
  table.of(reduction::all).truths = all_true;
  table.of(reduction::count_nonzero).truths = count_true;
  table.of(reduction::sum).truths = count_true;
  using Byte = unsigned char;
#define RENSA_OF_BOOLS(name)                                                                     \
  table.of(reduction::name).bools = {reduce_identity<red::name, Byte>,                           \
                                     reduce_leaf<red::name, Byte>, reduce_rows<red::name, Byte>, \
                                     reduce_combine<red::name, Byte>,                            \
                                     reduce_post<red::name, Byte>};
  RENSA_OF_BOOLS(any)
  RENSA_OF_BOOLS(all)
#undef RENSA_OF_BOOLS
}

template <class V> void add(ReduceTable& table) {
  constexpr int type = static_cast<int>(compute_type_of<V>);
#define RENSA_REDUCTION(name, rule, identity, map, reduce_value, post)                       \
  if constexpr (rule_takes(ReductionRule::rule, compute_type_of<V>)) {                       \
    table.of(reduction::name).over[type] = {                                                 \
        reduce_identity<red::name, V>, reduce_leaf<red::name, V>, reduce_rows<red::name, V>, \
        reduce_combine<red::name, V>, reduce_post<red::name, V>};                            \
  }
#include "rensa/core/reductions.def"
#undef RENSA_REDUCTION
}

}  // namespace

void add_reductions(ReduceTable& table) {
  each_value_type([&]<class V>() { add<V>(table); });
  add_truths(table);
}

}  // namespace rensa::host::RENSA_SET

// The reductions that are compiled at run time for a CPU: templates over a type R that
// reduction_source.h writes.
#pragma once

#include "rensa/portable/division.h"
#include "rensa/portable/reduce_parts.h"

namespace rensa::host {

/// Calls f(position, begin, run) for the pieces of [begin, end) that lie on one row of the last
/// axis.
template <int N, class F>
inline void for_runs(const PlainDiv (&extents)[N], long long begin, long long end, F&& f) {
  while (begin < end) {
    long long position[N], run = end - begin;
    split_index(begin, extents, position);
    long long left = extents[N - 1].divisor - position[N - 1];
    if (N > 1 && left < run) run = left;
    f(position, begin, run);
    begin += run;
  }
}

template <class R> struct Combine : R {
  static RENSA_FN typename R::acc take(const typename R::acc& a, const typename R::acc& b) {
    return R::combine(a, b);
  }
};
template <class R>
__attribute__((noinline)) typename R::acc leaf_of(long long n, const typename R::acc* x) {
  return reduce_lanes<Combine<R>, typename R::acc>(n, x);
}

template <class R>
__attribute__((noinline)) void combine_rows(long long n, const typename R::acc* others,
                                            typename R::acc* values) {
#pragma GCC ivdep
#pragma GCC unroll 1
  for (long long k = 0; k < n; ++k) values[k] = R::combine(values[k], others[k]);
}

/// Joins `count` neighbouring rows of n accumulators pairwise into the first.
template <class R> inline void join_rows(long long count, long long n, typename R::acc* rows) {
  join_pairwise(count, [&](long long others, long long from) {
    combine_rows<R>(others * n, rows + from * n, rows);
  });
}

// --- each output by itself ---

template <class R>
__attribute__((noinline)) typename R::acc reduce_part(const typename R::arguments& a,
                                                      const long long (&base)[R::kInputs],
                                                      long long begin, long long end, long long i) {
  using acc = typename R::acc;
  acc leaves[kReducePart / kReduceLeaf + 1], values[kReduceLeaf];
  long long count = 0;
  leaves[0] = R::identity();
  for (; begin < end; begin += kReduceLeaf, ++count) {
    long long n = end - begin < kReduceLeaf ? end - begin : kReduceLeaf;
    for_runs(a.reduced_extents, begin, begin + n,
             [&](const long long(&position)[R::kReduced], long long at, long long run) {
               long long offset[R::kInputs];
               R::reduced_offsets(a, position, base, offset);
               R::run(a, offset, run, at, i, values + (at - begin));
             });
    leaves[count] = leaf_of<R>(n, values);
  }
  join_rows<R>(count, 1, leaves);
  return leaves[0];
}

/// Finishes the outputs [first, first + n).
template <class R>
inline void finish_outputs(const typename R::arguments& a, long long first, long long n,
                           const typename R::acc* values) {
  for_runs(a.kept_extents, first, first + n,
           [&](const long long(&position)[R::kKept], long long at, long long run) {
             R::post(a, position, 0, run, at, values + (at - first));
           });
}

template <class R>
inline void run_rows(const typename R::arguments& a, long long begin, long long end) {
  using acc = typename R::acc;
  long long parts = a.parts, items = a.items;
  acc* partials = static_cast<acc*>(a.partials);
  if (begin >= items) {  // the parts have been reduced
    for (long long output = begin - items; output < end - items; ++output) {
      join_rows<R>(parts, 1, partials + output * parts);
      finish_outputs<R>(a, output, 1, partials + output * parts);
    }
    return;
  }
  acc results[kReduceColumns];
  long long ready = 0;
  for (long long item = begin; item < end; ++item) {
    long long output = item / parts, first = item % parts * kReducePart;
    long long last = first + kReducePart < a.count ? first + kReducePart : a.count;
    long long position[R::kKept], base[R::kInputs];
    split_index(output, a.kept_extents, position);
    R::kept_offsets(a, position, 0, base);
    acc value = reduce_part<R>(a, base, first, last, output);
    if (parts > 1) {
      partials[item] = value;
      continue;
    }
    results[ready++] = value;
    if (ready == kReduceColumns || item + 1 == end) {
      finish_outputs<R>(a, item + 1 - ready, ready, results);
      ready = 0;
    }
  }
}

// --- rows of outputs together ---

/// values = rows [begin, end) of n columns.
template <class R>
__attribute__((noinline)) void reduce_tile(const typename R::arguments& a,
                                           const long long (&base)[R::kInputs], long long n,
                                           long long i, long long begin, long long end,
                                           typename R::acc* values) {
  using acc = typename R::acc;
  auto add = [&](long long first, long long last, acc* sums) {
    acc row_values[kReduceColumns];
    for (long long k = 0; k < n; ++k) sums[k] = R::identity();
    for (long long row = first; row < last; ++row) {
      long long position[R::kReduced], offset[R::kInputs];
      split_index(row, a.reduced_extents, position);
      R::reduced_offsets(a, position, base, offset);
      R::run(a, offset, n, row, i, row_values);
      combine_rows<R>(n, row_values, sums);
    }
  };
  reduce_row_blocks<kReduceColumns>(begin, end, values, add, [&](const acc* others, acc* sums) {
    combine_rows<R>(n, others, sums);
  });
}

template <class R>
inline void run_columns(const typename R::arguments& a, long long begin, long long end) {
  using acc = typename R::acc;
  long long parts = a.parts, items = a.items;
  long long tile_width = a.tile_width;
  acc* partials = static_cast<acc*>(a.partials);
  bool joining = begin >= items;
  for (long long k = joining ? begin - items : begin; k < (joining ? end - items : end); ++k) {
    long long item = joining ? k : k / parts, part = joining ? 0 : k % parts;
    long long outer = item / a.tiles_x, first = item % a.tiles_x * kReduceColumns;
    long long n = a.width - first < kReduceColumns ? a.width - first : kReduceColumns;
    long long position[R::kKept], base[R::kInputs], output = outer * a.width + first;
    split_index(outer, a.kept_extents, position);
    acc values[kReduceColumns];
    if (joining) {
      acc* mine = partials + item * parts * tile_width;
      join_rows<R>(parts, tile_width, mine);
      R::post(a, position, first, n, output, mine);
      continue;
    }
    R::kept_offsets(a, position, first, base);
    long long row = part * a.part_rows, last = row + a.part_rows;
    reduce_tile<R>(a, base, n, output, row, last < a.count ? last : a.count, values);
    if (parts == 1) {
      R::post(a, position, first, n, output, values);
    } else {
      acc* mine = partials + k * tile_width;
      for (long long c = 0; c < n; ++c) mine[c] = values[c];
    }
  }
}

}  // namespace rensa::host

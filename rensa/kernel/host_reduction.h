// The reductions that are compiled at run time for a CPU: rows, each output by itself in leaves
// that are joined pairwise, and columns, rows of outputs together. Templates over a generated type
// R (reduction_source.h). What is added to what is as in backend/cpu/reduce.cc, so that a fused
// reduction gives the bits of the library's own.
#pragma once

namespace rensa {

struct divisor64 {
  long long divisor, unused;
};

namespace reduction {

constexpr long long kLeaf = 1024;     // values that are reduced in lanes
constexpr long long kPart = 65536;    // values that make one partial result
constexpr long long kColumns = 256;   // accumulators of a tile
constexpr long long kRowBlock = 128;  // rows added one by one; blocks are joined pairwise

template <class A> constexpr int kLanes = sizeof(A) == 4 ? 64 : sizeof(A) == 8 ? 32 : 4;

template <int N>
inline void split(long long index, const divisor64 (&extents)[N], long long (&position)[N]) {
  for (int axis = N - 1; axis > 0; --axis) {
    position[axis] = index % extents[axis].divisor;
    index /= extents[axis].divisor;
  }
  position[0] = index;
}

/// Calls f(position, begin, run) for the pieces of [begin, end) that lie on one row of the last
/// axis.
template <int N, class F>
inline void for_runs(const divisor64 (&extents)[N], long long begin, long long end, F&& f) {
  while (begin < end) {
    long long position[N], run = end - begin;
    split(begin, extents, position);
    long long left = extents[N - 1].divisor - position[N - 1];
    if (N > 1 && left < run) run = left;
    f(position, begin, run);
    begin += run;
  }
}

template <class R>
__attribute__((noinline)) typename R::acc leaf(long long n, const typename R::acc* x) {
  using acc = typename R::acc;
  constexpr int L = kLanes<acc>;
  acc lanes[L];
  // Loops as they stand make vector code; unrolled ones cost the compiler seconds.
#pragma GCC unroll 1
  for (int l = 0; l < L; ++l) lanes[l] = R::identity();
  long long k = 0;
  for (; k + L <= n; k += L) {
#pragma GCC unroll 1
    for (int l = 0; l < L; ++l) lanes[l] = R::combine(lanes[l], x[k + l]);
  }
#pragma GCC unroll 1
  for (int l = 0; k + l < n; ++l) lanes[l] = R::combine(lanes[l], x[k + l]);
#pragma GCC unroll 1
  for (int width = L / 2; width > 0; width /= 2) {
#pragma GCC unroll 1
    for (int l = 0; l < width; ++l) lanes[l] = R::combine(lanes[l], lanes[l + width]);
  }
  return lanes[0];
}

template <class R>
__attribute__((noinline)) void combine_rows(long long n, const typename R::acc* others,
                                            typename R::acc* values) {
#pragma GCC ivdep
#pragma GCC unroll 1
  for (long long k = 0; k < n; ++k) values[k] = R::combine(values[k], others[k]);
}

/// Joins `count` neighbouring rows of n accumulators pairwise into the first.
template <class R> inline void join(long long count, long long n, typename R::acc* rows) {
  while (count > 1) {
    long long half = (count + 1) / 2;
    combine_rows<R>((count - half) * n, rows + half * n, rows);
    count = half;
  }
}

// --- each output by itself -----------------------------------------------------------------------

template <class R>
__attribute__((noinline)) typename R::acc reduce_part(const typename R::arguments& a,
                                                      const long long (&base)[R::kInputs],
                                                      long long begin, long long end, long long i) {
  using acc = typename R::acc;
  acc leaves[kPart / kLeaf + 1], values[kLeaf];
  long long count = 0;
  leaves[0] = R::identity();
  for (; begin < end; begin += kLeaf, ++count) {
    long long n = end - begin < kLeaf ? end - begin : kLeaf;
    for_runs(a.reduced_extents, begin, begin + n,
             [&](const long long(&position)[R::kReduced], long long at, long long run) {
               long long offset[R::kInputs];
               R::reduced_offsets(a, position, base, offset);
               R::run(a, offset, run, at, i, values + (at - begin));
             });
    leaves[count] = leaf<R>(n, values);
  }
  join<R>(count, 1, leaves);
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
inline void rows(const typename R::arguments& a, long long begin, long long end) {
  using acc = typename R::acc;
  long long parts = a.slices, items = a.outputs * parts;
  acc* partials = static_cast<acc*>(a.partials);
  if (begin >= items) {  // the parts have been reduced
    for (long long output = begin - items; output < end - items; ++output) {
      join<R>(parts, 1, partials + output * parts);
      finish_outputs<R>(a, output, 1, partials + output * parts);
    }
    return;
  }
  acc results[kColumns];
  long long ready = 0;
  for (long long item = begin; item < end; ++item) {
    long long output = item / parts, first = item % parts * kPart;
    long long last = first + kPart < a.count ? first + kPart : a.count;
    long long position[R::kKept], base[R::kInputs];
    split(output, a.kept_extents, position);
    R::kept_offsets(a, position, 0, base);
    acc value = reduce_part<R>(a, base, first, last, output);
    if (parts > 1) {
      partials[item] = value;
      continue;
    }
    results[ready++] = value;
    if (ready == kColumns || item + 1 == end) {
      finish_outputs<R>(a, item + 1 - ready, ready, results);
      ready = 0;
    }
  }
}

// --- rows of outputs together --------------------------------------------------------------------

/// values = rows [begin, end) of n columns.
template <class R>
__attribute__((noinline)) void reduce_tile(const typename R::arguments& a,
                                           const long long (&base)[R::kInputs], long long n,
                                           long long i, long long begin, long long end,
                                           typename R::acc* values) {
  using acc = typename R::acc;
  long long blocks = (end - begin + kRowBlock - 1) / kRowBlock;
  acc others[kColumns];
  if (blocks > 1) {
    long long middle = begin + (blocks + 1) / 2 * kRowBlock;
    reduce_tile<R>(a, base, n, i, begin, middle, values);
    reduce_tile<R>(a, base, n, i, middle, end, others);
    return combine_rows<R>(n, others, values);
  }
  for (long long k = 0; k < n; ++k) values[k] = R::identity();
  for (long long row = begin; row < end; ++row) {
    long long position[R::kReduced], offset[R::kInputs];
    split(row, a.reduced_extents, position);
    R::reduced_offsets(a, position, base, offset);
    R::run(a, offset, n, row, i, others);
    combine_rows<R>(n, others, values);
  }
}

template <class R>
inline void columns(const typename R::arguments& a, long long begin, long long end) {
  using acc = typename R::acc;
  long long parts = a.slices, items = a.tiles * parts;
  long long tile_width = a.width < kColumns ? a.width : kColumns;
  acc* partials = static_cast<acc*>(a.partials);
  bool joining = begin >= items;
  for (long long k = joining ? begin - items : begin; k < (joining ? end - items : end); ++k) {
    long long item = joining ? k : k / parts, part = joining ? 0 : k % parts;
    long long outer = item / a.tiles_x, first = item % a.tiles_x * kColumns;
    long long n = a.width - first < kColumns ? a.width - first : kColumns;
    long long position[R::kKept], base[R::kInputs], output = outer * a.width + first;
    split(outer, a.kept_extents, position);
    acc values[kColumns];
    if (joining) {
      acc* mine = partials + item * parts * tile_width;
      join<R>(parts, tile_width, mine);
      R::post(a, position, first, n, output, mine);
      continue;
    }
    R::kept_offsets(a, position, first, base);
    long long row = part * a.slice_rows, last = row + a.slice_rows;
    reduce_tile<R>(a, base, n, output, row, last < a.count ? last : a.count, values);
    if (parts == 1) {
      R::post(a, position, first, n, output, values);
    } else {
      acc* mine = partials + k * tile_width;
      for (long long c = 0; c < n; ++c) mine[c] = values[c];
    }
  }
}

}  // namespace reduction
}  // namespace rensa

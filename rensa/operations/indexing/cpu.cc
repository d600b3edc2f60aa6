// Gathers and scatters by index arrays on the CPU.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>

#include "rensa/backend/cpu/copy.h"
#include "rensa/backend/cpu/strided.h"
#include "rensa/core/error.h"
#include "rensa/core/integers.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/indexing/cpu_kernels.h"
#include "rensa/operations/indexing/indexing.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

ResolveKernel resolve_kernel() {
  static const ResolveKernel kernel = RENSA_IN_SET(best_instruction_set(), get_resolve_kernel)();
  return kernel;
}

namespace {

using operations::IndexPlan;

constexpr std::int64_t kGrain = 32 << 10;  // elements that are worth waking a thread for

// Calls f(i, offset, count, stride) for the elements [begin, end) of a view in C order, by runs of
// `count` along the last axis: number i lies `offset` bytes from the first, the next `stride` on.
template <class F>
void for_each_run(const ArrayView& view, std::int64_t begin, std::int64_t end, const F& f) {
  int last = view.ndim() - 1;
  if (last <= 0) {
    std::int64_t stride = last < 0 ? 0 : view.strides[0];
    return f(begin, begin * stride, end - begin, stride);
  }
  std::int64_t inner = view.shape[last], stride = view.strides[last];
  while (begin < end) {
    std::int64_t at = begin % inner, count = std::min(inner - at, end - begin);
    f(begin, offset_of(view, begin), count, stride);
    begin += count;
  }
}

// Where the indices of the list lead, in bytes: made a chunk at a time, where they are used.
class Offsets {
 public:
  Offsets(const char* operation, const operations::IndexedBy& by, const IndexPlan& plan)
      : operation_(operation), by_(by), plan_(plan) {
    for (int k = 0; k < plan.count; ++k) readers_[k] = Reader(plan.indices[k], ComputeType::i64);
    for (int axis = 0; axis < plan.along.ndim(); ++axis) {
      along_.add(0, plan.along.shape[axis] - 1, plan.along.strides[axis]);
    }
  }

  struct Chunk {
    Scratch scratch;
    std::int64_t offsets[kChunk];
  };
  struct Range {
    std::int64_t low = 0, high = 0;
    void add(std::int64_t least, std::int64_t most, std::int64_t stride) {
      low += std::min(least * stride, most * stride);
      high += std::max(least * stride, most * stride);
    }
    void join(const Range& other) {
      low = std::min(low, other.low);
      high = std::max(high, other.high);
    }
  };

  /// Those of [begin, begin + n), n <= kChunk, and bounds of them. Throws where an index is out of
  /// range.
  Range read(std::int64_t begin, std::int64_t n, Chunk& chunk) const {
    std::int64_t* out = chunk.offsets;
    Range range = along_;
    if (range.low == range.high) {
      std::fill_n(out, n, 0);
    } else {
      for_each_run(
          plan_.along, begin, begin + n,
          [&](std::int64_t i, std::int64_t offset, std::int64_t count, std::int64_t stride) {
            for (std::int64_t c = 0; c < count; ++c) out[i - begin + c] = offset + c * stride;
          });
    }
    const ResolveKernel resolve = resolve_kernel();
    for (int k = 0; k < plan_.count; ++k) {
      const void* values = readers_[k].read(begin, n, chunk.scratch);
      std::int64_t inside[kChunk], bounds[2];
      const auto* indices = static_cast<const std::int64_t*>(values);
      if (plan_.mode == IndexMode::strict) check_none_negative(k, n, indices);
      else if (plan_.mode != IndexMode::raise) indices = brought_inside(k, n, indices, inside);
      resolve(n, indices, plan_.extents[k], plan_.strides[k], out, bounds);
      if (bounds[0] < 0 || bounds[1] >= plan_.extents[k]) throw_out_of_range(k, n, indices);
      range.add(bounds[0], bounds[1], plan_.strides[k]);
    }
    return range;
  }

  /// Bounds of all. Checks every index.
  Range range() const {
    constexpr Range kNone = {std::numeric_limits<std::int64_t>::max(),
                             std::numeric_limits<std::int64_t>::min()};
    Range all = kNone;
    std::mutex mutex;
    parallel_for(plan_.list.size(), 16 * kChunk, [&](std::int64_t begin, std::int64_t end) {
      Chunk chunk;
      Range mine = kNone;
      for (; begin < end; begin += kChunk) {
        mine.join(read(begin, std::min(kChunk, end - begin), chunk));
      }
      std::lock_guard hold(mutex);
      all.join(mine);
    });
    return all;
  }

 private:
  const std::int64_t* brought_inside(int k, std::int64_t n, const std::int64_t* indices,
                                     std::int64_t* inside) const {
    std::int64_t extent = plan_.extents[k];
    bool clip = plan_.mode == IndexMode::clip;
    for (std::int64_t i = 0; i < n; ++i) {
      inside[i] = clip ? std::clamp<std::int64_t>(indices[i], 0, extent - 1)
                       : (indices[i] % extent + extent) % extent;
    }
    return inside;
  }

  void check_none_negative(int k, std::int64_t n, const std::int64_t* indices) const {
    std::int64_t least = 0;
    for (std::int64_t i = 0; i < n; ++i) least = std::min(least, indices[i]);
    if (least < 0) throw_out_of_range(k, n, indices);
  }

  [[noreturn]] void throw_out_of_range(int k, std::int64_t n, const std::int64_t* indices) const {
    std::int64_t extent = plan_.extents[k];
    std::int64_t least = plan_.mode == IndexMode::strict ? 0 : -extent;
    const std::int64_t* first = std::find_if(
        indices, indices + n, [=](std::int64_t i) { return i < least || i >= extent; });
    throw IndexError(fmt::format("{}: index {} is out of bounds for axis {} with size {}",
                                 operation_, *first, by_.axes[k], extent));
  }

  const char* operation_;
  const operations::IndexedBy& by_;
  const IndexPlan& plan_;
  Reader readers_[kMaxNdim];
  Range along_;
};

struct alignas(16) Unit16 {
  std::uint64_t words[2];
};

/// Calls f with an element of `size` bytes.
template <class F> void visit_unit(std::int64_t size, F&& f) {
  switch (size) {
    case 1: return f(std::uint8_t{});
    case 2: return f(std::uint16_t{});
    case 4: return f(std::uint32_t{});
    case 8: return f(std::uint64_t{});
    default: return f(Unit16{});
  }
}

// A row's axes: the last is the inner one, all before it the outer ones.
struct Rows {
  ArrayView outer_listed, outer_indexed;
  std::int64_t outer = 1, inner = 1, listed_stride, indexed_stride;

  explicit Rows(const IndexPlan& plan) : outer_listed(plan.listed), outer_indexed(plan.indexed) {
    ArrayView* rows[] = {&outer_listed, &outer_indexed};
    normalize_axes(rows, 2);
    listed_stride = indexed_stride = itemsize(outer_listed.dtype);
    if (outer_listed.ndim() == 0) return;
    int last = outer_listed.ndim() - 1;
    inner = outer_listed.shape[last];
    listed_stride = outer_listed.strides[last];
    indexed_stride = outer_indexed.strides[last];
    for (ArrayView* view : rows) {
      view->shape.erase(last);
      view->strides.erase(last);
    }
    outer = outer_listed.size();
  }
  bool is_contiguous() const {
    std::int64_t size = itemsize(outer_listed.dtype);
    return outer == 1 && listed_stride == size && indexed_stride == size;
  }
};

// One row, whatever its strides.
template <class Unit> void copy_row(const Rows& rows, const char* in, char* out) {
  for (std::int64_t o = 0; o < rows.outer; ++o) {
    const char* source = in + offset_of(rows.outer_indexed, o);
    char* target = out + offset_of(rows.outer_listed, o);
    for (std::int64_t c = 0; c < rows.inner; ++c) {
      *reinterpret_cast<Unit*>(target + c * rows.listed_stride) =
          *reinterpret_cast<const Unit*>(source + c * rows.indexed_stride);
    }
  }
}

// Calls f(count, to, listed, stride) for the indices [begin, end) by runs: number i leads to
// plan.indexed.data + to[i], and stands for the row at listed + i * stride.
template <class F>
void for_each_run(const IndexPlan& plan, const Offsets& offsets, std::int64_t begin,
                  std::int64_t end, const F& f) {
  Offsets::Chunk chunk;
  for (std::int64_t at = begin; at < end; at += kChunk) {
    std::int64_t n = std::min(kChunk, end - at);
    offsets.read(at, n, chunk);
    for_each_run(plan.list, at, at + n,
                 [&](std::int64_t i, std::int64_t offset, std::int64_t count, std::int64_t stride) {
                   f(count, chunk.offsets + (i - at), plan.list.data + offset, stride);
                 });
  }
}

// Calls f(indexed, listed) with the rows of the indices [begin, end).
template <class F>
void for_each_row(const IndexPlan& plan, const Offsets& offsets, std::int64_t begin,
                  std::int64_t end, const F& f) {
  char* indexed = plan.indexed.data;
  for_each_run(plan, offsets, begin, end,
               [&](std::int64_t count, const std::int64_t* to, char* listed, std::int64_t stride) {
                 for (std::int64_t c = 0; c < count; ++c) f(indexed + to[c], listed + c * stride);
               });
}

// The same for those rows whose offsets lie in [low, low + share).
template <class F>
void for_each_row_within(const IndexPlan& plan, const Offsets& offsets, std::int64_t low,
                         std::int64_t share, const F& f) {
  char* indexed = plan.indexed.data;
  std::int64_t mine[kChunk];
  for_each_run(plan, offsets, 0, plan.list.size(),
               [&](std::int64_t count, const std::int64_t* to, char* listed, std::int64_t stride) {
                 std::int64_t found = 0;
                 for (std::int64_t c = 0; c < count;
                      ++c) {  // without a branch that nobody can foresee
                   mine[found] = c;
                   found += static_cast<int>(to[c] >= low) & static_cast<int>(to[c] - low < share);
                 }
                 for (std::int64_t m = 0; m < found; ++m) {
                   f(indexed + to[mine[m]], listed + mine[m] * stride);
                 }
               });
}

template <class Unit> void gather(const IndexPlan& plan, const Offsets& offsets, const Rows& rows) {
  std::int64_t n = plan.list.size(), size = rows.inner * rows.outer;
  auto move_rows = [&](const auto& move) {
    parallel_for(n, std::max<std::int64_t>(1, kGrain / size),
                 [&](std::int64_t begin, std::int64_t end) {
                   for_each_row(plan, offsets, begin, end, move);
                 });
  };
  if (size == 1) {
    return move_rows([](const char* in, char* out) {
      *reinterpret_cast<Unit*>(out) = *reinterpret_cast<const Unit*>(in);
    });
  }
  if (!rows.is_contiguous()) {
    return move_rows([&](const char* in, char* out) { copy_row<Unit>(rows, in, out); });
  }
  if (size < kGrain) {
    std::int64_t bytes = size * static_cast<std::int64_t>(sizeof(Unit));
    return move_rows([=](const char* in, char* out) { copy_run(out, in, bytes); });
  }
  std::int64_t parts = ceil_div(size, kGrain);  // long rows are shared out among threads, too
  parallel_for(n * parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t job = begin; job < end; ++job) {
      std::int64_t i = job / parts, at = job % parts * kGrain;
      for_each_row(plan, offsets, i, i + 1, [&](const char* in, char* out) {
        constexpr auto kSize = static_cast<std::int64_t>(sizeof(Unit));
        copy_run(out + at * kSize, in + at * kSize, std::min(kGrain, size - at) * kSize);
      });
    }
  });
}

/// out[c] = combine(out[c], in[c])
template <class T, class F>
void combine_run(std::int64_t n, const T* in, T* out, const F& combine) {
  for (std::int64_t c = 0; c < n; ++c) out[c] = combine(out[c], in[c]);
}

// Work that keeps the order of equal indices: threads share out the columns of the rows and, where
// rows are short, the places that are written to, which lie in `range`.
template <class T, class F>
void scatter(const IndexPlan& plan, const Offsets& offsets, const Offsets::Range& range,
             const Rows& rows, F combine) {
  constexpr std::int64_t kLeastShare = 16 << 10;  // bytes: threads keep out of each other's lines
  std::int64_t n = plan.list.size();
  std::int64_t threads = get_num_threads();
  // Parts of rows: enough for the threads, and not shorter, since each is a new place in memory.
  std::int64_t width = std::max(kGrain / n, round_up(ceil_div(rows.inner, 2 * threads), 64));
  width = std::min(width, kGrain);
  std::int64_t chunks = ceil_div(rows.inner, width), columns = rows.outer * chunks;
  std::int64_t places = 1;
  if (columns < std::min<std::int64_t>(threads, 8) && n * rows.inner * rows.outer >= kGrain) {
    // Every place's thread looks at all indices.
    places = std::min<std::int64_t>({threads, 16, (range.high - range.low) / kLeastShare});
    places = std::max<std::int64_t>(places, 1);
  }
  std::int64_t share = (range.high - range.low) / places + 1;
  constexpr std::int64_t size = sizeof(T);
  bool together = rows.listed_stride == size && rows.indexed_stride == size;
  parallel_for(columns * places, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t job = first; job < last; ++job) {
      std::int64_t place = job % places, column = job / places;
      std::int64_t outer = column / chunks, begin = column % chunks * width;
      std::int64_t count = std::min(width, rows.inner - begin);
      std::int64_t in_row = offset_of(rows.outer_listed, outer) + begin * rows.listed_stride;
      std::int64_t out_row = offset_of(rows.outer_indexed, outer) + begin * rows.indexed_stride;
      auto put_each = [&](const auto& put) {
        if (places == 1) return for_each_row(plan, offsets, 0, n, put);
        for_each_row_within(plan, offsets, range.low + place * share, share, put);
      };
      auto put_one = [&](char* target, const char* source) {
        T* element = reinterpret_cast<T*>(target);
        *element = combine(*element, *reinterpret_cast<const T*>(source));
      };
      if (count == 1) {
        put_each([&](char* out, const char* in) { put_one(out + out_row, in + in_row); });
      } else if (together) {
        put_each([&](char* out, const char* in) {
          combine_run(count, reinterpret_cast<const T*>(in + in_row),
                      reinterpret_cast<T*>(out + out_row), combine);
        });
      } else {
        put_each([&](char* out, const char* in) {
          for (std::int64_t c = 0; c < count; ++c) {
            put_one(out + out_row + c * rows.indexed_stride, in + in_row + c * rows.listed_stride);
          }
        });
      }
    }
  });
}

template <class F>
void combine(Dtype dtype, const IndexPlan& plan, const Offsets& offsets,
             const Offsets::Range& range, const Rows& rows, F f) {
  switch (dtype) {
#define RENSA_CASE(d, T)                                                   \
  case Dtype::d: {                                                         \
    using V = ComputeOf<T>;                                                \
    if constexpr (std::is_invocable_v<F, V, V>) {                          \
      scatter<T>(plan, offsets, range, rows, [f](const T& a, const T& b) { \
        return convert<T>(f(convert<V>(a), convert<V>(b)));                \
      });                                                                  \
    }                                                                      \
    return;                                                                \
  }
    RENSA_STORAGE_TYPES(RENSA_CASE)
#undef RENSA_CASE
  }
}

template <class V>
concept Ordered = requires(V a) {
  a < a;
};
struct Greater {
  template <Ordered V> V operator()(V a, V b) const { return m::maximum(a, b); }
};
struct Less {
  template <Ordered V> V operator()(V a, V b) const { return m::minimum(a, b); }
};

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void Gather::run_cpu() {
  IndexPlan plan(by, in.view, out.view);
  host::Offsets offsets(name(), by, plan);
  if (out.view.size() == 0) return (void)offsets.range();  // for its checks
  host::Rows rows(plan);
  host::visit_unit(itemsize(out.view.dtype),
                   [&](auto unit) { host::gather<decltype(unit)>(plan, offsets, rows); });
}

void Scatter::run_cpu() {
  IndexPlan plan(by, out.view, in.view);
  host::Offsets offsets(name(), by, plan);
  host::Offsets::Range range = offsets.range();  // all are checked before anything is written
  if (in.view.size() == 0) return;
  host::Rows rows(plan);
  Dtype dtype = out.view.dtype;
  switch (mode) {
    case ScatterMode::assign:
      return host::visit_unit(itemsize(dtype), [&](auto unit) {
        using Unit = decltype(unit);
        host::scatter<Unit>(plan, offsets, range, rows,
                            [](const Unit&, const Unit& v) { return v; });
      });
    case ScatterMode::add:
      return host::combine(dtype, plan, offsets, range, rows, [](auto a, auto b) { return a + b; });
    case ScatterMode::max: return host::combine(dtype, plan, offsets, range, rows, host::Greater{});
    case ScatterMode::min: return host::combine(dtype, plan, offsets, range, rows, host::Less{});
  }
}

}  // namespace rensa::operations

// Gathers and scatters by index arrays on the CPU.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "rensa/backend/cpu/convert.h"
#include "rensa/backend/cpu/strided.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_pool.h"
#include "rensa/device/indexing_operations.h"

namespace rensa::host {

namespace {

constexpr std::int64_t kGrain = 32 << 10;  // elements that are worth waking a thread for

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

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

[[noreturn]] void throw_out_of_range(const char* operation, std::int64_t index, int axis,
                                     std::int64_t extent) {
  throw IndexError(fmt::format("{}: index {} is out of bounds for axis {} with size {}", operation,
                               index, axis, extent));
}

// An index as one in [0, extent); -1 where it is out of range.
std::int64_t resolve(std::int64_t index, std::int64_t extent, IndexMode mode) {
  if (mode == IndexMode::clip) return std::clamp<std::int64_t>(index, 0, extent - 1);
  if (mode == IndexMode::wrap) return (index % extent + extent) % extent;
  if (index < 0) index += extent;
  return index >= 0 && index < extent ? index : -1;
}

// Where each index of the list leads, in bytes; all are checked before anything is written.
std::vector<std::int64_t> read_offsets(const char* operation, const IndexedBy& by,
                                       const IndexPlan& plan) {
  std::int64_t n = plan.list.size();
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(n), 0);
  bool along = std::any_of(plan.along.strides.begin(), plan.along.strides.end(),
                           [](std::int64_t stride) { return stride != 0; });
  parallel_for(n, 16 * kChunk, [&](std::int64_t first, std::int64_t last) {
    Scratch scratch;
    if (along) {
      for_each_run(
          plan.along, first, last,
          [&](std::int64_t i, std::int64_t offset, std::int64_t count, std::int64_t stride) {
            std::int64_t* out = offsets.data() + i;
            for (std::int64_t c = 0; c < count; ++c) out[c] = offset + c * stride;
          });
    }
    for (int k = 0; k < plan.count; ++k) {
      Reader reader(plan.indices[k], ComputeType::i64);
      for (std::int64_t begin = first; begin < last; begin += kChunk) {
        std::int64_t count = std::min(kChunk, last - begin);
        const auto* values = static_cast<const std::int64_t*>(reader.read(begin, count, scratch));
        std::int64_t* out = offsets.data() + begin;
        for (std::int64_t i = 0; i < count; ++i) {
          std::int64_t index = resolve(values[i], plan.extents[k], plan.mode);
          if (index < 0) throw_out_of_range(operation, values[i], by.axes[k], plan.extents[k]);
          out[i] += index * plan.strides[k];
        }
      }
    }
  });
  return offsets;
}

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

// Calls f(indexed, listed) with the rows of the indices [begin, end).
template <class F>
void for_each_row(const IndexPlan& plan, const std::vector<std::int64_t>& offsets,
                  std::int64_t begin, std::int64_t end, const F& f) {
  const char* indexed = plan.indexed.data;
  for_each_run(plan.list, begin, end,
               [&](std::int64_t i, std::int64_t offset, std::int64_t count, std::int64_t stride) {
                 char* listed = plan.list.data + offset;
                 const std::int64_t* to = offsets.data() + i;
                 for (std::int64_t c = 0; c < count; ++c) f(indexed + to[c], listed + c * stride);
               });
}

template <class Unit>
void gather(const IndexPlan& plan, const std::vector<std::int64_t>& offsets, const Rows& rows) {
  auto n = static_cast<std::int64_t>(offsets.size());
  std::int64_t size = rows.inner * rows.outer;
  if (!rows.is_contiguous() || size < kGrain) {
    parallel_for(
        n, std::max<std::int64_t>(1, kGrain / size), [&](std::int64_t begin, std::int64_t end) {
          if (size == 1) {
            for_each_row(plan, offsets, begin, end, [](const char* in, char* out) {
              *reinterpret_cast<Unit*>(out) = *reinterpret_cast<const Unit*>(in);
            });
          } else if (rows.is_contiguous()) {
            std::size_t bytes = static_cast<std::size_t>(size) * sizeof(Unit);
            for_each_row(plan, offsets, begin, end,
                         [&](const char* in, char* out) { std::memcpy(out, in, bytes); });
          } else {
            for_each_row(plan, offsets, begin, end,
                         [&](const char* in, char* out) { copy_row<Unit>(rows, in, out); });
          }
        });
    return;
  }
  std::int64_t parts = ceil_div(size, kGrain);  // long rows are shared out among threads, too
  parallel_for(n * parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t job = begin; job < end; ++job) {
      std::int64_t i = job / parts, at = job % parts * kGrain;
      for_each_row(plan, offsets, i, i + 1, [&](const char* in, char* out) {
        std::memcpy(reinterpret_cast<Unit*>(out) + at, reinterpret_cast<const Unit*>(in) + at,
                    static_cast<std::size_t>(std::min(kGrain, size - at)) * sizeof(Unit));
      });
    }
  });
}

// Work that keeps the order of equal indices: threads share out the columns of the rows and, where
// rows are short and threads many, the places that are written to.
template <class T, class F>
void scatter(const IndexPlan& plan, const std::vector<std::int64_t>& offsets, const Rows& rows,
             F combine) {
  auto n = static_cast<std::int64_t>(offsets.size());
  std::int64_t width = std::clamp<std::int64_t>(kGrain / n, 64, kGrain);
  std::int64_t chunks = ceil_div(rows.inner, width), columns = rows.outer * chunks;
  // Every place's thread looks at all indices.
  bool narrow = columns < 8 && n * rows.inner * rows.outer >= kGrain && num_threads() >= 4;
  std::int64_t places = narrow ? std::min(num_threads(), 16) : 1;
  std::int64_t low = 0, share = 0;
  if (places > 1) {
    auto [lowest, highest] = std::minmax_element(offsets.begin(), offsets.end());
    low = *lowest;
    share = (*highest - low) / places + 1;
  }
  parallel_for(columns * places, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t job = first; job < last; ++job) {
      std::int64_t place = job % places, column = job / places;
      std::int64_t outer = column / chunks, begin = column % chunks * width;
      std::int64_t count = std::min(width, rows.inner - begin);
      std::int64_t in_row = offset_of(rows.outer_listed, outer) + begin * rows.listed_stride;
      std::int64_t out_row = offset_of(rows.outer_indexed, outer) + begin * rows.indexed_stride;
      char* own_begin = plan.indexed.data + low + place * share;
      auto put = [&](const char* target, const char* source) {
        char* out = const_cast<char*>(target) + out_row;
        const char* in = source + in_row;
        for (std::int64_t c = 0; c < count; ++c) {
          T* element = reinterpret_cast<T*>(out + c * rows.indexed_stride);
          *element = combine(*element, *reinterpret_cast<const T*>(in + c * rows.listed_stride));
        }
      };
      if (places == 1 && count == 1) {
        for_each_row(plan, offsets, 0, n, [&](const char* target, const char* source) {
          T* element = reinterpret_cast<T*>(const_cast<char*>(target) + out_row);
          *element = combine(*element, *reinterpret_cast<const T*>(source + in_row));
        });
      } else if (places == 1) {
        for_each_row(plan, offsets, 0, n, put);
      } else {
        for_each_row(plan, offsets, 0, n, [&](const char* target, const char* source) {
          if (target >= own_begin && target - own_begin < share) put(target, source);
        });
      }
    }
  });
}

template <class T> struct ValueOf { using type = T; };
template <std::signed_integral T> struct ValueOf<T> { using type = long long; };
template <std::unsigned_integral T> struct ValueOf<T> { using type = unsigned long long; };
template <> struct ValueOf<bool> { using type = long long; };
template <> struct ValueOf<half_t> { using type = float; };
template <> struct ValueOf<bfloat16_t> { using type = float; };

template <class F>
void combine(Dtype dtype, const IndexPlan& plan, const std::vector<std::int64_t>& offsets,
             const Rows& rows, F f) {
  switch (dtype) {
#define RENSA_CASE(d, T)                                            \
  case Dtype::d: {                                                  \
    using V = typename ValueOf<T>::type;                            \
    if constexpr (std::is_invocable_v<F, V, V>) {                   \
      scatter<T>(plan, offsets, rows, [f](const T& a, const T& b) { \
        return convert<T>(f(convert<V>(a), convert<V>(b)));         \
      });                                                           \
    }                                                               \
    return;                                                         \
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

namespace rensa {

void Gather::run_cpu() {
  IndexPlan plan(by, in.view, out.view);
  std::vector<std::int64_t> offsets = host::read_offsets(name(), by, plan);
  if (out.view.size() == 0) return;
  host::Rows rows(plan);
  host::visit_unit(itemsize(out.view.dtype),
                   [&](auto unit) { host::gather<decltype(unit)>(plan, offsets, rows); });
}

void Scatter::run_cpu() {
  IndexPlan plan(by, out.view, in.view);
  std::vector<std::int64_t> offsets = host::read_offsets(name(), by, plan);
  if (in.view.size() == 0) return;
  host::Rows rows(plan);
  Dtype dtype = out.view.dtype;
  switch (mode) {
    case ScatterMode::assign:
      return host::visit_unit(itemsize(dtype), [&](auto unit) {
        using Unit = decltype(unit);
        host::scatter<Unit>(plan, offsets, rows, [](const Unit&, const Unit& v) { return v; });
      });
    case ScatterMode::add: return host::combine(dtype, plan, offsets, rows, op::add{});
    case ScatterMode::max: return host::combine(dtype, plan, offsets, rows, host::Greater{});
    case ScatterMode::min: return host::combine(dtype, plan, offsets, rows, host::Less{});
  }
}

}  // namespace rensa

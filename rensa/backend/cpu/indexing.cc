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

// The byte offsets of a view's elements, one after the other in C order.
class Walker {
 public:
  Walker(const ArrayView& view, std::int64_t begin) : view_(view) {
    for (int i = view.ndim() - 1; i >= 0; --i) {
      index_[i] = begin % view.shape[i];
      begin /= view.shape[i];
      offset_ += index_[i] * view.strides[i];
    }
  }
  std::int64_t offset() const { return offset_; }
  void next() {
    for (int i = view_.ndim() - 1; i >= 0; --i) {
      offset_ += view_.strides[i];
      if (++index_[i] < view_.shape[i]) return;
      offset_ -= view_.shape[i] * view_.strides[i];
      index_[i] = 0;
    }
  }

 private:
  const ArrayView& view_;
  std::int64_t index_[kMaxNdim] = {}, offset_ = 0;
};

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
      Walker walker(plan.along, first);
      for (std::int64_t i = first; i < last; ++i, walker.next()) {
        offsets[static_cast<std::size_t>(i)] = walker.offset();
      }
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

template <class Unit>
void gather(const IndexPlan& plan, const std::vector<std::int64_t>& offsets, const Rows& rows) {
  auto n = static_cast<std::int64_t>(offsets.size());
  bool contiguous = rows.is_contiguous();
  // Long rows are shared out among threads, too.
  std::int64_t parts = contiguous ? ceil_div(rows.inner, kGrain) : 1;
  std::int64_t part = ceil_div(rows.inner, parts), row = rows.outer * part;
  parallel_for(n * parts, std::max<std::int64_t>(1, kGrain / row),
               [&](std::int64_t begin, std::int64_t end) {
                 Walker list(plan.list, begin / parts);
                 for (std::int64_t job = begin; job < end; ++job) {
                   std::int64_t i = parts == 1 ? job : job / parts, at = (job - i * parts) * part;
                   const char* in = plan.indexed.data + offsets[static_cast<std::size_t>(i)];
                   char* out = plan.list.data + list.offset();
                   if (job - i * parts == parts - 1) list.next();
                   if (contiguous) {
                     std::int64_t count = std::min(part, rows.inner - at);
                     auto* to = reinterpret_cast<Unit*>(out) + at;
                     if (count == 1) *to = reinterpret_cast<const Unit*>(in)[at];
                     else if (count > 0) {
                       std::memcpy(to, reinterpret_cast<const Unit*>(in) + at,
                                   static_cast<std::size_t>(count) * sizeof(Unit));
                     }
                     continue;
                   }
                   Walker from(rows.outer_indexed, 0), to(rows.outer_listed, 0);
                   for (std::int64_t o = 0; o < rows.outer; ++o, from.next(), to.next()) {
                     const char* source = in + from.offset();
                     char* target = out + to.offset();
                     for (std::int64_t c = 0; c < rows.inner; ++c) {
                       *reinterpret_cast<Unit*>(target + c * rows.listed_stride) =
                           *reinterpret_cast<const Unit*>(source + c * rows.indexed_stride);
                     }
                   }
                 }
               });
}

// Work that keeps the order of equal indices: threads share out the columns of the rows and, where
// rows are short, the places that are written to.
template <class T, class F>
void scatter(const IndexPlan& plan, const std::vector<std::int64_t>& offsets, const Rows& rows,
             F combine) {
  auto n = static_cast<std::int64_t>(offsets.size());
  std::int64_t width = std::clamp<std::int64_t>(kGrain / n, 64, kGrain);
  std::int64_t chunks = ceil_div(rows.inner, width), columns = rows.outer * chunks;
  std::int64_t places = columns >= 16 || n * rows.inner * rows.outer < kGrain ? 1 : 8;
  auto [lowest, highest] = std::minmax_element(offsets.begin(), offsets.end());
  std::int64_t low = *lowest, share = (*highest - low) / places + 1;
  parallel_for(columns * places, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t job = first; job < last; ++job) {
      std::int64_t place = job % places, column = job / places;
      std::int64_t outer = column / chunks, begin = column % chunks * width;
      std::int64_t count = std::min(width, rows.inner - begin);
      std::int64_t place_begin = low + place * share;
      std::int64_t in_row = offset_of(rows.outer_listed, outer) + begin * rows.listed_stride;
      char* out_row =
          plan.indexed.data + offset_of(rows.outer_indexed, outer) + begin * rows.indexed_stride;
      Walker list(plan.list, 0);
      for (std::int64_t i = 0; i < n; ++i, list.next()) {
        std::int64_t offset = offsets[static_cast<std::size_t>(i)];
        if (offset < place_begin || offset - place_begin >= share) continue;
        const char* in = plan.list.data + list.offset() + in_row;
        char* out = out_row + offset;
        for (std::int64_t c = 0; c < count; ++c) {
          T* target = reinterpret_cast<T*>(out + c * rows.indexed_stride);
          *target = combine(*target, *reinterpret_cast<const T*>(in + c * rows.listed_stride));
        }
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

// Gather and scatter of rows by an array of indices on the CPU.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "rensa/backend/cpu/elementwise.h"
#include "rensa/backend/cpu/strided.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_pool.h"
#include "rensa/device/operations.h"

namespace rensa::host {

namespace {

constexpr std::int64_t kGrain = 32 << 10;  // elements that are worth waking a thread for

// The indices as numbers in [0, extent), all checked before anything is written.
std::vector<std::int64_t> read_indices(const char* operation, const ArrayView& indices,
                                       std::int64_t extent) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(indices.size()));
  auto n = static_cast<std::int64_t>(result.size());
  Reader reader(indices, ComputeType::i64);
  Scratch scratch;
  for (std::int64_t begin = 0; begin < n; begin += kChunk) {
    std::int64_t count = std::min(kChunk, n - begin);
    std::memcpy(result.data() + begin, reader.read(begin, count, scratch),
                static_cast<std::size_t>(count) * sizeof(std::int64_t));
  }
  for (std::int64_t& index : result) {
    if (index < -extent || index >= extent) {
      throw IndexError(fmt::format("{}: index {} is out of bounds for axis 0 with size {}",
                                   operation, index, extent));
    }
    if (index < 0) index += extent;
  }
  return result;
}

// The axes of `view` from `first` on.
ArrayView inner_axes(const ArrayView& view, int first) {
  ArrayView row = view;
  row.shape = Shape(
      std::span<const std::int64_t>(view.shape.data() + first, view.shape.data() + view.ndim()));
  row.strides = Shape(std::span<const std::int64_t>(view.strides.data() + first,
                                                    view.strides.data() + view.ndim()));
  return row;
}

// Rows of two arrays: one is indexed along its first axis, the other has the indices' axes in
// front.
class RowPairs {
 public:
  RowPairs(const ArrayView& indexed, const ArrayView& listed, int index_ndim)
      : indexed_(inner_axes(indexed, 1)),
        listed_(inner_axes(listed, index_ndim)),
        list_(listed),
        stride_(indexed.strides[0]) {
    list_.shape = Shape(
        std::span<const std::int64_t>(listed.shape.data(), static_cast<std::size_t>(index_ndim)));
    list_.strides = Shape(
        std::span<const std::int64_t>(listed.strides.data(), static_cast<std::size_t>(index_ndim)));
    ArrayView* list = &list_;
    collapse_axes(&list, 1);
  }
  std::int64_t row_size() const { return indexed_.size(); }
  bool is_contiguous() const { return indexed_.is_c_contiguous() && listed_.is_c_contiguous(); }
  ArrayView indexed(std::int64_t index) const { return at(indexed_, index * stride_); }
  ArrayView listed(std::int64_t i) const { return at(listed_, offset_of(list_, i)); }
  char* indexed_data(std::int64_t index) const { return indexed_.data + index * stride_; }
  char* listed_data(std::int64_t i) const { return listed_.data + offset_of(list_, i); }

 private:
  static ArrayView at(ArrayView view, std::int64_t offset) {
    view.data += offset;
    return view;
  }
  ArrayView indexed_, listed_, list_;
  std::int64_t stride_;
};

void assign(const ArrayView& in, const ArrayView& out) {
  Input input{in, {}};
  run_elementwise(Ufunc::copy, in.dtype, &input, 1, out);
}

void take(const std::vector<std::int64_t>& indices, const RowPairs& rows, Dtype from, Dtype to) {
  bool plain = rows.is_contiguous() && from == to;
  auto row_bytes = static_cast<std::size_t>(rows.row_size() * itemsize(to));
  std::int64_t grain =
      std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, rows.row_size()));
  parallel_for(static_cast<std::int64_t>(indices.size()), grain,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   std::int64_t index = indices[static_cast<std::size_t>(i)];
                   if (plain) {
                     std::memcpy(rows.listed_data(i), rows.indexed_data(index), row_bytes);
                   } else {
                     assign(rows.indexed(index), rows.listed(i));
                   }
                 }
               });
}

// In the order of the indices, so that equal ones are added up, or overwritten, in that order;
// threads share out the columns.
void put(const std::vector<std::int64_t>& indices, const RowPairs& rows, Dtype from, Dtype to,
         bool add) {
  auto n = static_cast<std::int64_t>(indices.size());
  ComputeType type = compute_type(to);
  bool plain = rows.is_contiguous() && from == to && (!add || to == value_dtype(type));
  if (!plain) {
    for (std::int64_t i = 0; i < n; ++i) {
      ArrayView out = rows.indexed(indices[static_cast<std::size_t>(i)]), in = rows.listed(i);
      if (!add) {
        assign(in, out);
        continue;
      }
      Input inputs[] = {{out, {}}, {in, {}}};
      run_elementwise(Ufunc::add, to, inputs, 2, out);
    }
    return;
  }
  std::int64_t size = itemsize(to);
  ElementwiseKernel kernel = kernels().of(Ufunc::add, type);
  std::int64_t grain = std::max<std::int64_t>(256, kGrain / std::max<std::int64_t>(1, n));
  parallel_for(rows.row_size(), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < n; ++i) {
      char* out = rows.indexed_data(indices[static_cast<std::size_t>(i)]) + begin * size;
      const char* in = rows.listed_data(i) + begin * size;
      if (add) {
        const void* inputs[] = {out, in};
        kernel(end - begin, inputs, out);
      } else {
        std::memcpy(out, in, static_cast<std::size_t>((end - begin) * size));
      }
    }
  });
}

}  // namespace

}  // namespace rensa::host

namespace rensa {

void TakeRows::run_cpu() {
  auto rows = host::read_indices(name(), indices.view, in.view.shape[0]);
  host::RowPairs pairs(in.view, out.view, indices.view.ndim());
  host::take(rows, pairs, in.view.dtype, out.view.dtype);
}

void PutRows::run_cpu() {
  auto rows = host::read_indices(name(), indices.view, out.view.shape[0]);
  host::RowPairs pairs(out.view, in.view, indices.view.ndim());
  host::put(rows, pairs, in.view.dtype, out.view.dtype, add);
}

}  // namespace rensa

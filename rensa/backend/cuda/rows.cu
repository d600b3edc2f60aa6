// Gather and scatter of rows by an array of indices on a GPU.
#include <algorithm>
#include <string>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/error.h"
#include "rensa/device/operations.h"

namespace rensa {

namespace cuda {

namespace {

// --- moving rows ---------------------------------------------------------------------------------

// `indexed` is read (written) at the rows that the indices name; `listed` has the indices' axes in
// front. Rows move in units of up to 16 bytes.
struct RowsArgs {
  char* indexed;
  char* listed;
  const char* indices;
  Dtype index_dtype;
  std::int64_t extent, row_stride;  // of the indexed axis
  Indexer<2> list;                  // over the indices: 0 listed, 1 indices
  Indexer<2> row;                   // over the units of a row: 0 listed, 1 indexed
  FastDiv row_units;
  unsigned count;  // units in all
  ErrorSink errors;
};

template <class Unit, bool kPut>
__global__ void __launch_bounds__(kBlock) move_rows(const __grid_constant__ RowsArgs args) {
  unsigned at = blockIdx.x * kBlock + threadIdx.x;
  if (at >= args.count) return;
  unsigned i = args.row_units.divide(at), unit = at - i * args.row_units.divisor;
  std::int64_t list[2], row[2];
  args.list.offsets(i, list);
  args.row.offsets(unit, row);
  long long index = load_integer(args.indices + list[1], args.index_dtype);
  bool valid = index >= -args.extent && index < args.extent;
  if (!valid && unit == 0) args.errors.report(index, args.extent);
  if (index < 0) index += args.extent;
  Unit* listed = reinterpret_cast<Unit*>(args.listed + list[0] + row[0]);
  Unit* indexed = reinterpret_cast<Unit*>(args.indexed + index * args.row_stride + row[1]);
  if (kPut) {
    if (valid) *indexed = *listed;
  } else {
    *listed = valid ? *indexed : Unit{};
  }
}

// The axes [begin, end) of a view.
ArrayView axes_of(const ArrayView& view, int begin, int end) {
  ArrayView part = view;
  part.shape = part.strides = {};
  for (int axis = begin; axis < end; ++axis) {
    part.shape.push_back(view.shape[axis]);
    part.strides.push_back(view.strides[axis]);
  }
  return part;
}

struct RowViews {
  ArrayView list, indices;  // the indices' axes
  ArrayView row, indexed;   // a row's axes
  std::int64_t extent, row_stride;

  RowViews(const ArrayView& indexed_array, const ArrayView& index_array, const ArrayView& listed)
      : list(axes_of(listed, 0, index_array.ndim())),
        indices(index_array),
        row(axes_of(listed, index_array.ndim(), listed.ndim())),
        indexed(axes_of(indexed_array, 1, indexed_array.ndim())),
        extent(indexed_array.shape[0]),
        row_stride(indexed_array.strides[0]) {
    ArrayView* lists[] = {&list, &indices};
    ArrayView* rows[] = {&row, &indexed};
    normalize_axes(lists, 2);
    normalize_axes(rows, 2);
  }
  // The largest unit that pointers and strides allow.
  int unit() const {
    int size = static_cast<int>(itemsize(row.dtype)), last = row.ndim() - 1;
    if (row.strides[last] != size || indexed.strides[last] != size) return size;
    auto bits = reinterpret_cast<std::uintptr_t>(row.data) |
                reinterpret_cast<std::uintptr_t>(indexed.data) |
                static_cast<std::uintptr_t>(row_stride | (row.shape[last] * size));
    for (int axis = 0; axis < last; ++axis) {
      bits |= static_cast<std::uintptr_t>(row.strides[axis] | indexed.strides[axis]);
    }
    for (std::int64_t stride : list.strides) bits |= static_cast<std::uintptr_t>(stride);
    int unit = 16;
    while (bits % static_cast<unsigned>(unit) != 0) unit /= 2;
    return unit;
  }
};

void check_count(const char* operation, std::int64_t count, const ArrayView& listed) {
  if (count <= kMaxCount) return;
  throw NotImplementedError(std::string(operation) + ": " + listed.describe() +
                            " has more elements than one kernel takes; split the indices");
}

template <bool kPut>
void launch_move(const char* operation, const LaunchContext& context, const ArrayView& indexed,
                 const ArrayView& indices, const ArrayView& listed) {
  if (indexed.dtype != listed.dtype) {
    throw DtypeError(std::string(operation) + ": " + indexed.describe() + " and " +
                     listed.describe() + " differ in dtype; convert one with astype");
  }
  RowViews views(indexed, indices, listed);
  int unit = views.unit(), last = views.row.ndim() - 1;
  std::int64_t size = itemsize(listed.dtype);
  RowsArgs args = {};
  args.indexed = indexed.data;
  args.listed = listed.data;
  args.indices = indices.data;
  args.index_dtype = indices.dtype;
  args.extent = views.extent;
  args.row_stride = views.row_stride;
  args.errors = {static_cast<ErrorWord*>(context.error_word), error_operation(operation)};
  std::int64_t list_count = views.list.size(), units = 1;
  for (int axis = 0; axis < views.list.ndim(); ++axis) {
    args.list.push_back(views.list.shape[axis],
                        {views.list.strides[axis], views.indices.strides[axis]});
  }
  for (int axis = 0; axis <= last; ++axis) {
    bool run = axis == last && unit != size;
    std::int64_t extent = run ? views.row.shape[axis] * size / unit : views.row.shape[axis];
    args.row.push_back(
        extent, {run ? unit : views.row.strides[axis], run ? unit : views.indexed.strides[axis]});
    units *= extent;
  }
  check_count(operation, list_count * units, listed);
  args.row_units = FastDiv(units);
  args.count = static_cast<unsigned>(list_count * units);
  std::int64_t grid = ceil_div(args.count, kBlock);
  switch (unit) {
    case 1:
      return launch_kernel(operation, context, move_rows<unsigned char, kPut>, grid, kBlock, args);
    case 2:
      return launch_kernel(operation, context, move_rows<unsigned short, kPut>, grid, kBlock, args);
    case 4: return launch_kernel(operation, context, move_rows<unsigned, kPut>, grid, kBlock, args);
    case 8:
      return launch_kernel(operation, context, move_rows<unsigned long long, kPut>, grid, kBlock,
                           args);
    default: return launch_kernel(operation, context, move_rows<uint4, kPut>, grid, kBlock, args);
  }
}

// --- adding rows ---------------------------------------------------------------------------------

struct AddRowsArgs {
  char* indexed;
  const char* listed;
  const char* indices;
  Dtype index_dtype;
  ElementType in_type, out_type;
  std::int64_t extent, row_stride;
  Indexer<2> list;   // 0 listed, 1 indices
  Indexer<2> row;    // 0 listed, 1 indexed
  unsigned count;    // indices
  unsigned columns;  // elements of a row
  ErrorSink errors;

#if defined(__CUDACC__)
  __device__ __forceinline__ long long index_of(unsigned i) const {
    std::int64_t offset[2];
    list.offsets(i, offset);
    long long index = load_integer(indices + offset[1], index_dtype);
    return index < 0 ? index + extent : index;
  }
#endif
};

// One block an index. The block of an index's first occurrence adds all its occurrences, in their
// order, so that sums are repeatable; the others leave. That takes n^2 comparisons of indices,
// which for the n of a batch cost less than a sort.
template <class V>
__global__ void __launch_bounds__(kBlock) add_rows(const __grid_constant__ AddRowsArgs args) {
  constexpr unsigned kLook = 8;  // indices a thread compares between two meetings of the block
  __shared__ unsigned matches[kBlock / 32];
  unsigned i = blockIdx.x;
  long long index = args.index_of(i);
  if (index < 0 || index >= args.extent) {
    if (threadIdx.x == 0) args.errors.report(index < 0 ? index - args.extent : index, args.extent);
    return;
  }
  for (unsigned begin = 0; begin < i; begin += kBlock * kLook) {
    bool found = false;
    for (unsigned u = 0; u < kLook; ++u) {
      unsigned k = begin + u * kBlock + threadIdx.x;
      found |= k < i && args.index_of(k) == index;
    }
    if (__syncthreads_or(found)) return;
  }
  char* target = args.indexed + index * args.row_stride;
  for (unsigned begin = i; begin < args.count; begin += kBlock) {
    unsigned k = begin + threadIdx.x;
    unsigned ballot = __ballot_sync(0xffffffffu, k < args.count && args.index_of(k) == index);
    if (threadIdx.x % 32 == 0) matches[threadIdx.x / 32] = ballot;
    __syncthreads();
    for (unsigned warp = 0; warp < kBlock / 32; ++warp) {
      for (unsigned rest = matches[warp]; rest != 0; rest &= rest - 1) {
        std::int64_t list[2], row[2];
        args.list.offsets(begin + warp * 32 + __ffs(rest) - 1, list);
        for (unsigned column = threadIdx.x; column < args.columns; column += kBlock) {
          args.row.offsets(column, row);
          V sum = load_any<V>(target + row[1], args.out_type) +
                  load_any<V>(args.listed + list[0] + row[0], args.in_type);
          store_any<V>(target + row[1], args.out_type.dtype, sum);
        }
      }
    }
    __syncthreads();
  }
}

void launch_add(const char* operation, const LaunchContext& context, const ArrayView& indexed,
                const ArrayView& indices, const ArrayView& listed) {
  RowViews views(indexed, indices, listed);
  std::int64_t list_count = views.list.size(), columns = views.row.size();
  check_count(operation, std::max(list_count, columns), listed);
  ComputeType type = compute_type(indexed.dtype);
  AddRowsArgs args = {};
  args.indexed = indexed.data;
  args.listed = listed.data;
  args.indices = indices.data;
  args.index_dtype = indices.dtype;
  args.in_type = ElementType(listed.dtype, type, false);
  args.out_type = ElementType(indexed.dtype, type, false);
  args.extent = views.extent;
  args.row_stride = views.row_stride;
  args.count = static_cast<unsigned>(list_count);
  args.columns = static_cast<unsigned>(columns);
  args.errors = {static_cast<ErrorWord*>(context.error_word), error_operation(operation)};
  for (int axis = 0; axis < views.list.ndim(); ++axis) {
    args.list.push_back(views.list.shape[axis],
                        {views.list.strides[axis], views.indices.strides[axis]});
  }
  for (int axis = 0; axis < views.row.ndim(); ++axis) {
    args.row.push_back(views.row.shape[axis],
                       {views.row.strides[axis], views.indexed.strides[axis]});
  }
  auto launch_as = [&](auto v) {
    launch_kernel(operation, context, add_rows<decltype(v)>, list_count, kBlock, args);
  };
  switch (type) {
    case ComputeType::i64: return launch_as(0ll);
    case ComputeType::u64: return launch_as(0ull);
    case ComputeType::f32: return launch_as(0.0f);
    case ComputeType::f64: return launch_as(0.0);
    case ComputeType::c64: return launch_as(complex_t<float>(0));
    case ComputeType::c128: return launch_as(complex_t<double>(0));
  }
}

}  // namespace

}  // namespace cuda

void TakeRows::run_cuda(const cuda::LaunchContext& context) {
  if (out.view.size() == 0) return;
  cuda::launch_move<false>(name(), context, in.view, indices.view, out.view);
}

void PutRows::run_cuda(const cuda::LaunchContext& context) {
  if (in.view.size() == 0) return;
  if (add) return cuda::launch_add(name(), context, out.view, indices.view, in.view);
  cuda::launch_move<true>(name(), context, out.view, indices.view, in.view);
}

}  // namespace rensa

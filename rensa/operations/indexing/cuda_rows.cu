// Gathers on a GPU of rows that lie together. A team of neighbouring threads moves a piece of a
// row, or a few short rows: an index is looked at once for several units of a thread, and all of a
// thread's loads are under way at a time. That is a seventh of the instructions that move_rows
// (cuda.cu), which knows nothing of the strides, takes for each unit.
#include "rensa/operations/indexing/cuda_rows.cuh"

#include "rensa/operations/indexing/cuda_scatter.cuh"
#include "rensa/portable/block.h"

namespace rensa::cuda {

namespace {

using operations::IndexPlan;

struct RowArgs {
  const char* indices;
  char* listed;
  const char* indexed;
  std::int64_t index_step, listed_step;  // bytes from one index, or what it lists, to the next
  std::int64_t extent, stride;           // of the indexed axis
  IndexMode mode;
  FastDiv pieces;        // of a row, one for a team
  unsigned rows, units;  // rows in all, units of a row
  int log2_lanes;        // threads of a team
  ErrorSink errors;
};

// A team takes kRows whole rows, or of one piece kUnits units a thread. Where threads have several
// units, a team has 32 of them.
template <class Unit, class Index, int kRows, int kUnits>
__global__ void __launch_bounds__(kBlock) move_pieces(const __grid_constant__ RowArgs args) {
  wait_for_previous();
  int log2_lanes = kUnits > 1 ? 5 : args.log2_lanes;
  unsigned lanes = 1u << log2_lanes, teams = kBlock >> log2_lanes;
  unsigned lane = threadIdx.x & (lanes - 1);
  unsigned first = blockIdx.x * (teams * kRows) + (threadIdx.x >> log2_lanes);
  unsigned row[kRows], unit = lane;
  if (kRows == 1) {
    row[0] = args.pieces.divide(first);
    unit += (first - row[0] * args.pieces.divisor) * (lanes * kUnits);
  }
  int left = static_cast<int>(args.units - unit);  // units of the row from the thread's first on
  long long given[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (kRows > 1) row[r] = first + r * teams;
    given[r] = 0;
    if (row[r] < args.rows) {
      given[r] = *reinterpret_cast<const Index*>(args.indices + row[r] * args.index_step);
    }
  }
  Unit value[kRows][kUnits];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    std::int64_t place = place_of<false>(given[r], args.extent, args.mode);
    if (place < 0 && unit == 0 && row[r] < args.rows) {
      args.errors.report(ReportedError::index, given[r], args.extent);
    }
    bool there = place >= 0 && row[r] < args.rows;
    auto* from = reinterpret_cast<const Unit*>(args.indexed + place * args.stride) + unit;
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      value[r][u] = Unit{};
      if (there && static_cast<int>(u * lanes) < left) value[r][u] = from[u * lanes];
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (row[r] >= args.rows) continue;
    auto* to = reinterpret_cast<Unit*>(args.listed + row[r] * args.listed_step) + unit;
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      if (static_cast<int>(u * lanes) < left) to[u * lanes] = value[r][u];
    }
  }
}

template <class Unit, class Index, int kRows, int kUnits>
void launch_teams(const char* operation, const LaunchContext& context, RowArgs args) {
  std::int64_t teams = kBlock >> args.log2_lanes;  // of a block
  std::int64_t pieces = ceil_div(args.units, std::int64_t{kUnits} << args.log2_lanes);
  args.pieces = FastDiv(pieces);
  launch_kernel(operation, context, move_pieces<Unit, Index, kRows, kUnits>,
                ceil_div(args.rows * pieces, teams * kRows), kBlock, args);
}

// From here on a launch has enough units for four per thread.
constexpr std::int64_t kManyUnits = std::int64_t{2} * kMultiprocessors * 2048;

template <class Unit, class Index>
void launch_rows(const char* operation, const LaunchContext& context, const RowArgs& args) {
  bool many = std::int64_t{args.rows} * args.units >= kManyUnits;
  if (!many) launch_teams<Unit, Index, 1, 1>(operation, context, args);
  else if (args.units > 64) launch_teams<Unit, Index, 1, 4>(operation, context, args);
  else if (args.units > 32) launch_teams<Unit, Index, 2, 2>(operation, context, args);
  else launch_teams<Unit, Index, 4, 1>(operation, context, args);
}

// The bytes of the units that the rows move in; 0 where they do not lie together.
int row_unit(const IndexPlan& plan) {
  ArrayView listed = plan.listed, indexed = plan.indexed;
  ArrayView* rows[] = {&listed, &indexed};
  normalize_axes(rows, 2);
  keep_an_axis(rows, 2);
  std::int64_t size = itemsize(listed.dtype);
  if (listed.ndim() > 1 || listed.strides[0] != size || indexed.strides[0] != size) return 0;
  int unit = unit_of(plan, listed, indexed);
  return unit == 16 ? 16 : unit >= 4 ? 4 : 0;
}

std::int64_t row_bytes(const IndexPlan& plan) {
  return plan.listed.size() * itemsize(plan.listed.dtype);
}

}  // namespace

bool gathers_rows(const IndexPlan& plan) {
  bool listed = numbers_places_by_index(plan) && plan.list.ndim() <= 1;
  if (!listed || plan.listed.size() == 0 || plan.mode == IndexMode::wrap) return false;
  Dtype index = plan.indices[0].dtype;
  int unit = row_unit(plan);
  return unit > 0 && (itemsize(index) == 8 || index == Dtype::int32) &&
         row_bytes(plan) / unit <= kMaxCount / plan.list.size();
}

void gather_rows(const char* operation, const LaunchContext& context, const IndexPlan& plan) {
  const ArrayView& index = plan.indices[0];
  int unit = row_unit(plan);
  RowArgs args = {};
  args.indices = index.data;
  args.listed = plan.listed.data;
  args.indexed = plan.indexed.data;
  if (plan.list.ndim() > 0) {
    args.index_step = index.strides[0];
    args.listed_step = plan.list.strides[0];
  }
  args.extent = plan.extents[0];
  args.stride = plan.strides[0];
  args.mode = plan.mode;
  args.rows = static_cast<unsigned>(plan.list.size());
  args.units = static_cast<unsigned>(row_bytes(plan) / unit);
  while (args.log2_lanes < 5 && (1u << args.log2_lanes) < args.units) ++args.log2_lanes;
  args.errors = ErrorSink(operation, context);
  bool wide = itemsize(index.dtype) == 8;
  if (unit == 16) {
    (wide ? launch_rows<uint4, long long> : launch_rows<uint4, int>)(operation, context, args);
  } else {
    (wide ? launch_rows<unsigned, long long> : launch_rows<unsigned, int>)(operation, context,
                                                                           args);
  }
}

}  // namespace rensa::cuda

// Which forms of tiles can compute a product, which is likely the best, and its arguments.
#include "rensa/operations/matmul/cuda_tiles.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <limits>

#include "rensa/backend/cuda/check.h"
#include "rensa/core/integers.h"
#include "rensa/portable/launch_plan.h"

namespace rensa::cuda {

namespace {

struct Size {
  std::uint8_t rows, columns;
};
constexpr Size kFloatSizes[] = {{8, 16}, {16, 16}, {16, 32}, {32, 32}};
constexpr Size kTensorSizes[] = {{16, 8}, {16, 16}, {16, 32}, {32, 32}};

bool is_half(const PlanKey& key) {
  return key.dtype == Dtype::float16 || key.dtype == Dtype::bfloat16;
}

/// Of k, what a warp adds at a time.
std::int64_t depth(const PlanKey& key) { return 64 / itemsize(key.dtype); }

/// Whether every line of an operand can be read 16 bytes at a time. `width` is a line's.
bool has_chunks(const PlanKey& key, PlanKey::Aligned operand, std::int64_t ld, std::int64_t stride,
                std::int64_t width) {
  std::int64_t chunk = 16 / itemsize(key.dtype);
  return (key.aligned & operand) && ld % chunk == 0 && stride % chunk == 0 && width % chunk == 0;
}
bool a_has_chunks(const PlanKey& key) {
  return has_chunks(key, PlanKey::aligned_a, key.a_ld, key.a_stride,
                    key.a_transposed ? key.m : key.k);
}
bool b_has_chunks(const PlanKey& key) {
  return has_chunks(key, PlanKey::aligned_b, key.b_ld, key.b_stride,
                    key.b_transposed ? key.k : key.n);
}

bool is_possible(const PlanKey& key, Device device) {
  constexpr std::int64_t kMaxGrid = 65535, kLarge = std::int64_t{1} << 28;
  constexpr std::int64_t kMax = std::numeric_limits<int>::max() / 2;
  if ((key.dtype != Dtype::float32 && !is_half(key)) || key.bias == PlanKey::Bias::separate ||
      (key.a_transposed && key.b_transposed)) {
    return false;
  }
  if (key.m > kMax || key.n > kMax || key.k > kMax || ceil_div(key.m, 8) > kMaxGrid ||
      key.batch > kMaxGrid) {
    return false;
  }
  // Beyond this many multiplications cuBLASLt's tiles have enough to do.
  return key.multiplications() <= static_cast<double>(kLarge) && has_tiles(device);
}

/// Calls f(size, whether by tensor cores) for each size of tile that fits the key, the smallest
/// first.
template <class F> void for_each_size(const PlanKey& key, F&& f) {
  bool chunks = a_has_chunks(key) && b_has_chunks(key);
  auto all = [&](const auto& sizes, bool tensor_cores) {
    for (Size size : sizes) {
      if (chunks || size.rows * size.columns <= kMaxTileInElements) f(size, tensor_cores);
    }
  };
  if (is_half(key) || key.tf32) all(kTensorSizes, true);
  if (!is_half(key)) all(kFloatSizes, false);
}

int attribute(cudaDeviceAttr which, Device device) {
  int value = 0;
  RENSA_CUDA_CHECK("matmul", cudaDeviceGetAttribute(&value, which, device.index));
  return value;
}

/// Large tiles of short sums (cuda_panels.cuh).
constexpr TileForm kPanels[] = {{128, 64, 8, true}, {64, 64, 4, true}};

bool takes_panels(const PlanKey& key, TileForm form, Device device) {
  constexpr std::int64_t kMostParts = 8, kNarrow = 32;
  std::int64_t parts = ceil_div(key.k, depth(key));
  std::int64_t bytes = parts * (form.rows + form.columns) * kPanelLineBytes;
  return (is_half(key) || key.tf32) && a_has_chunks(key) && b_has_chunks(key) &&
         std::min(key.m, key.n) > kNarrow && parts <= kMostParts && bytes <= most_memory(device);
}

int most_warps(Size size) { return size.rows * size.columns >= 1024 ? 8 : 16; }

}  // namespace

std::vector<TileForm> tile_forms(const PlanKey& key, Device device) {
  std::vector<TileForm> forms;
  if (!is_possible(key, device)) return forms;
  std::int64_t parts = ceil_div(key.k, depth(key));
  for_each_size(key, [&](Size size, bool tensor_cores) {
    int most = most_warps(size);
    for (int warps = 1; warps <= most; warps *= 2) {
      if (warps >= 2 * parts) break;
      // A warp that has many parts alone is for products of many tiles, which are not these.
      if (4 * warps < parts && warps < std::min(most, 8)) continue;
      forms.push_back({size.rows, size.columns, static_cast<std::uint8_t>(warps), tensor_cores});
    }
  });
  for (TileForm form : kPanels) {
    if (takes_panels(key, form, device)) forms.push_back(form);
  }
  return forms;
}

std::optional<TileForm> likely_tile_form(const PlanKey& key, Device device) {
  if (!is_possible(key, device)) return std::nullopt;
  // Measured on an H200: as many blocks as there are multiprocessors, and blocks that are done
  // before cuBLASLt's have their first operands. A long sum for a vector has one row of a tile to
  // do, and few blocks.
  constexpr std::int64_t kLongVector = 256;
  if (std::min(key.m, key.n) == 1 && key.k > kLongVector) return std::nullopt;
  auto tiles_of = [&](std::int64_t rows, std::int64_t columns) {
    return ceil_div(key.m, rows) * ceil_div(key.n, columns) * key.batch;
  };
  constexpr std::int64_t kShortest = 64;
  std::int64_t large = tiles_of(kPanels[0].rows, kPanels[0].columns);
  if (key.tf32 && key.k >= kShortest && large <= kMultiprocessors && 2 * large > kMultiprocessors &&
      takes_panels(key, kPanels[0], device)) {
    return kPanels[0];
  }
  bool half = is_half(key);
  std::int64_t most_work = half ? 131072 : 262144;  // multiplications of a block
  std::optional<TileForm> likely;
  for_each_size(key, [&](Size size, bool tensor_cores) {
    std::int64_t tiles = tiles_of(size.rows, size.columns), area = size.rows * size.columns;
    // What a gate costs as a pass of its own pays for longer sums.
    bool long_with_gate = key.gate_follows && area == 1024 && key.k <= 1024;
    if (likely || tiles > kMultiprocessors || (half && area > 512) ||
        (area * key.k > most_work && !long_with_gate)) {
      return;
    }
    std::int64_t warps = 1, parts = ceil_div(key.k, depth(key));
    while (warps < parts && warps < most_warps(size)) warps *= 2;
    likely = {size.rows, size.columns, static_cast<std::uint8_t>(warps), tensor_cores};
  });
  return likely;
}

int memory_of_one_alone(Device device) {
  // With what each block has beside.
  return attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, device) / 2;
}

int most_memory(Device device) {
  return attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
}

void run_tiles(const PlanKey& key, TileForm form, const MatmulRun& run) {
  TileArgs args{product_args(key, run), key.a_ld,          key.b_ld,         !key.a_transposed,
                key.b_transposed,       a_has_chunks(key), b_has_chunks(key)};
  if (is_half(key)) launch_half_tiles(key.dtype, args, form, run.context);
  else launch_float_tiles(args, form, run.context);
}

}  // namespace rensa::cuda

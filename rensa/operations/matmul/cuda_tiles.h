// Products of floats by small tiles of c, whose sums the warps of a block share: where a product is
// so small that cuBLASLt's tiles would leave most of a GPU idle. A warp takes every `warps`-th part
// of k, and the warps' sums are added in one order, which depends on the form alone. Of the forms
// of 64 or 128 rows each warp has a piece of the tile, and all of k, or half of it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rensa/operations/matmul/cuda_plan.h"

namespace rensa::cuda {

/// The strides are of a between its rows, or between its columns where these lie together, of b
/// likewise.
struct TileArgs : ProductArgs {
  std::int64_t a_ld, b_ld;
  bool a_along_k, b_along_k;  // neighbours in memory are neighbours along k
  bool a_chunks, b_chunks;    // lines start at multiples of 16 bytes and have that many
  SgdUpdate update;           // where takes_update()
};

/// Tiles of more elements are only for operands that are read in chunks.
inline constexpr int kMaxTileInElements = 256;

/// What 64 bytes of an operand's line take of a block's shared memory, at most, in the forms for
/// short sums.
inline constexpr int kPanelLineBytes = 80;

/// Bytes along k that a box has (cuda_boxes.cuh).
inline constexpr int kBoxDepthBytes = 128;
/// Bytes of shared memory that parts take in the forms of cuda_warpgroup_panels.cuh and
/// cuda_fma_panels.cuh, at most.
inline constexpr int kLargeTileBytes = 192 << 10;
/// Terms of a part, and parts at most, in the form of cuda_box_panels.cuh.
inline constexpr int kBoxPanelTerms = 32, kMostBoxPanelParts = 8;
/// Large tiles by fused multiply-adds: of short sums (cuda_box_panels.cuh), and of any
/// (cuda_fma_panels.cuh).
inline constexpr TileForm kBoxPanel = {128, 64, 4, false, true},
                          kFmaPanel = {128, 64, 8, false, true};
/// How many parts of an operand a warp has in shared memory, at most.
inline constexpr int kWarpParts = 2;

/// The forms in which `key` can be computed on the current device, which is `device`; of large
/// products those alone of cuda_warpgroup_panels.cuh, in TF32 and as two TF32 numbers, and of
/// cuda_fma_panels.cuh.
std::vector<TileForm> tile_forms(const PlanKey& key, Device device);
/// The one of them that is likely faster than cuBLASLt, as far as the shape tells.
std::optional<TileForm> likely_tile_form(const PlanKey& key, Device device);

/// Whether the form's kernel does a SgdUpdate: those of large tiles with boxes do, where a does not
/// lie along k, as for gradients of weights, and c has multiples of four columns.
bool takes_update(const PlanKey& key, TileForm form);
/// Queues the product in a form of tile_forms.
void run_tiles(const PlanKey& key, TileForm form, const MatmulRun& run);

/// Bytes of shared memory of which no multiprocessor of the device has room for two blocks.
int memory_of_one_alone(Device device);

// The kernels: cuda_tiles_float.cu, cuda_tiles_split.cu, cuda_warpgroup_panels_sm90a.cu and
// cuda_tiles_half.cu.
void launch_float_tiles(const TileArgs& args, TileForm form, const LaunchContext& context);
void launch_split_tiles(const TileArgs& args, TileForm form, const LaunchContext& context);
void launch_warpgroup_panels(UseTf32 tf32, const TileArgs& args, TileForm form,
                             const LaunchContext& context);
void launch_half_tiles(Dtype dtype, const TileArgs& args, TileForm form,
                       const LaunchContext& context);
/// Whether the device has the kernels: GPUs before Ampere lack what they are made of, those before
/// Hopper what forms with boxes are, and all but Hopper what cuda_warpgroup_panels.cuh is.
bool has_tiles(Device device);
bool has_boxes(Device device);
bool has_warpgroup_panels(Device device);

}  // namespace rensa::cuda

// Which forms of tiles can compute a product, which is likely the best, and its arguments.
#include "rensa/operations/matmul/cuda_tiles.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/backend/cuda/tensor_map.h"
#include "rensa/core/integers.h"
#include "rensa/portable/launch_plan.h"

namespace rensa::cuda {

namespace {

struct Size {
  std::uint8_t rows, columns;
};
constexpr Size kFloatSizes[] = {{8, 16}, {16, 16}, {16, 32}, {32, 32}};
constexpr Size kTensorSizes[] = {{16, 8}, {16, 16}, {16, 32}, {32, 32}};
constexpr Size kBoxSizes[] = {{16, 16}, {16, 32}, {32, 32}};

bool is_half(const PlanKey& key) {
  return key.dtype == Dtype::float16 || key.dtype == Dtype::bfloat16;
}

/// Of k, what a warp has in a part.
std::int64_t depth(const PlanKey& key, bool boxes) {
  return (boxes ? kBoxDepthBytes : 64) / itemsize(key.dtype);
}
std::int64_t parts_of(const PlanKey& key, bool boxes) { return ceil_div(key.k, depth(key, boxes)); }

/// Whether every line of an operand can be read 16 bytes at a time. `width` is a line's.
bool has_chunks(const PlanKey& key, PlanKey::Aligned operand, std::int64_t ld, std::int64_t stride,
                std::int64_t width) {
  std::int64_t chunk = 16 / itemsize(key.dtype);
  return (key.aligned & operand) && ld % chunk == 0 && stride % chunk == 0 && width % chunk == 0;
}
std::int64_t a_width(const PlanKey& key) { return key.a_transposed ? key.m : key.k; }
std::int64_t b_width(const PlanKey& key) { return key.b_transposed ? key.k : key.n; }
bool a_has_chunks(const PlanKey& key) {
  return has_chunks(key, PlanKey::aligned_a, key.a_ld, key.a_stride, a_width(key));
}
bool b_has_chunks(const PlanKey& key) {
  return has_chunks(key, PlanKey::aligned_b, key.b_ld, key.b_stride, b_width(key));
}

bool is_possible(const PlanKey& key, Device device) {
  constexpr std::int64_t kMaxGrid = 65535;
  constexpr std::int64_t kMax = std::numeric_limits<int>::max() / 2;
  if ((key.dtype != Dtype::float32 && !is_half(key)) || key.bias == PlanKey::Bias::separate ||
      (key.a_transposed && key.b_transposed)) {
    return false;
  }
  if (key.m > kMax || key.n > kMax || key.k > kMax || ceil_div(key.m, 8) > kMaxGrid ||
      key.batch > kMaxGrid) {
    return false;
  }
  return has_tiles(device);
}

/// Whether it may go by tiles that are not large. Beyond this many multiplications cuBLASLt's have
/// enough to do.
bool is_small(const PlanKey& key) {
  constexpr std::int64_t kLarge = std::int64_t{1} << 28;
  return key.multiplications() <= static_cast<double>(kLarge);
}

bool lines_have_chunks(const PlanKey& key) { return a_has_chunks(key) && b_has_chunks(key); }

/// Whether operands may come in boxes. What is no longer than a part is brought by copies as fast.
bool takes_boxes(const PlanKey& key, Device device) {
  return !key.a_transposed && key.k > depth(key, true) && lines_have_chunks(key) &&
         key.a_ld >= key.k && key.b_ld >= b_width(key) && has_boxes(device);
}
bool is_rounded(const PlanKey& key) { return is_half(key) || key.tf32; }
bool is_vector(const PlanKey& key) { return std::min(key.m, key.n) == 1; }

/// Calls f(form without warps, the most warps it may have) for each size of tile that fits the key,
/// the smallest of a kind first.
template <class F> void for_each_size(const PlanKey& key, Device device, F&& f) {
  bool chunks = lines_have_chunks(key), rounded = is_rounded(key);
  auto all = [&](const auto& sizes, bool tensor_cores, bool boxes) {
    for (Size size : sizes) {
      int area = size.rows * size.columns;
      if (!chunks && area > kMaxTileInElements) continue;
      f(TileForm{size.rows, size.columns, 0, tensor_cores, boxes}, area >= 1024 ? 8 : 16);
    }
  };
  if (rounded) all(kTensorSizes, true, false);
  if (!is_half(key)) all(kFloatSizes, false, false);
  if (!takes_boxes(key, device)) return;
  all(kBoxSizes, rounded, true);
  if (key.tf32.is_x3()) all(kBoxSizes, true, true);
}

constexpr std::int64_t kNarrow = 32;  // sides up to this leave most of a large tile empty

/// Large tiles of short sums (cuda_panels.cuh).
constexpr TileForm kPanels[] = {{128, 64, 8, true}, {64, 64, 4, true}};

bool takes_panels(const PlanKey& key, TileForm form, Device device) {
  constexpr std::int64_t kMostParts = 8;
  std::int64_t parts = parts_of(key, false);
  std::int64_t bytes = parts * (form.rows + form.columns) * kPanelLineBytes;
  return is_rounded(key) && lines_have_chunks(key) && std::min(key.m, key.n) > kNarrow &&
         parts <= kMostParts && bytes <= most_shared_memory("matmul", device);
}

/// Whether floats' lines come in boxes to large tiles.
bool lines_have_boxes(const PlanKey& key) {
  return key.dtype == Dtype::float32 && lines_have_chunks(key) && key.a_ld >= a_width(key) &&
         key.b_ld >= b_width(key) && std::min(key.m, key.n) > kNarrow;
}
/// Whether the device has boxes, and that many bytes of shared memory for those of a block.
bool has_room_for_boxes(std::int64_t bytes, Device device) {
  return has_boxes(device) && bytes + 2 * kBoxAlignment <= most_shared_memory("matmul", device);
}

/// Large tiles of short sums by fused multiply-adds.
bool takes_box_panels(const PlanKey& key, Device device) {
  std::int64_t parts = ceil_div(key.k, kBoxPanelTerms);
  std::int64_t bytes = parts * kBoxPanelTerms * (kBoxPanel.rows + kBoxPanel.columns) * 4;
  bool c_has_chunks = has_chunks(key, PlanKey::aligned_c, key.c_ld, key.c_stride, key.n);
  return key.a_transposed && lines_have_boxes(key) && c_has_chunks && parts <= kMostBoxPanelParts &&
         has_room_for_boxes(bytes, device);
}

/// Whether the device has large tiles of sums of any length, whose operands come in boxes.
bool has_large_tiles(Device device) { return has_room_for_boxes(kLargeTileBytes, device); }
bool takes_large_tiles(const PlanKey& key, Device device) {
  return lines_have_boxes(key) && has_large_tiles(device);
}

/// Large tiles by fused multiply-adds (cuda_fma_panels.cuh), and up to how many terms they are
/// likely faster: longer sums pay to be split.
constexpr std::int64_t kLongestOfFma = 1280;
bool takes_fma_panel(const PlanKey& key, Device device) {
  return !key.tf32 && takes_large_tiles(key, device);
}

/// Large tiles in TF32, the first alone, or as two TF32 numbers (cuda_warpgroup_panels.cuh).
constexpr TileForm kWarpgroupPanels[] = {{128, 64, 8, true, true}, {64, 64, 4, true, true}};

bool is_warpgroup_panel(TileForm form) {
  return form.tensor_cores && form.boxes && form.rows >= kWarpgroupPanels[1].rows;
}

bool takes_warpgroup_panels(const PlanKey& key, TileForm form, Device device) {
  bool has_form = key.tf32.is_x3() || (key.tf32 && form == kWarpgroupPanels[0]);
  return has_form && takes_large_tiles(key, device) && has_warpgroup_panels(device);
}

std::int64_t tiles_of(const PlanKey& key, std::int64_t rows, std::int64_t columns) {
  return ceil_div(key.m, rows) * ceil_div(key.n, columns) * key.batch;
}

/// The shared memory of a block of the form, which is not of large tiles, at most.
std::int64_t bytes_of_block(const PlanKey& key, TileForm form) {
  constexpr std::int64_t kCopiedLineBytes = 96;  // of 64 bytes of a line with its pads, at most
  std::int64_t needed = ceil_div(key.k, depth(key, form.boxes) * form.warps);
  std::int64_t lines =
      std::min<std::int64_t>(needed, kWarpParts) * form.warps * (form.rows + form.columns);
  return lines * (form.boxes ? kBoxDepthBytes : kCopiedLineBytes) + 2 * kBoxAlignment;
}
/// Whether it may have that much. GPUs for desktops have half of what others have.
bool fits_memory(const PlanKey& key, TileForm form, Device device) {
  return bytes_of_block(key, form) <= most_shared_memory("matmul", device);
}

/// Whether it is likely the gradient of a last layer's weights, beside which those of other layers
/// have large tiles; these leave room for kBesideLarge warps.
bool comes_beside_large(const PlanKey& key, Device device) {
  constexpr std::int64_t kFewUnits = 16;
  if (key.dtype != Dtype::float32 || !key.a_transposed || std::min(key.m, key.n) > kFewUnits) {
    return false;
  }
  if (key.tf32 || key.tf32.is_x3()) return has_warpgroup_panels(device);
  return key.k <= kLongestOfFma && has_large_tiles(device);
}
constexpr std::uint8_t kBesideLarge = 4;

/// A warp for each of its parts of k, if it may have as many.
std::uint8_t likely_warps(const PlanKey& key, TileForm form, int most) {
  std::int64_t parts = parts_of(key, form.boxes);
  int warps = 1;
  while (warps < parts && warps < most) warps *= 2;
  return static_cast<std::uint8_t>(warps);
}

/// How many blocks may share a multiprocessor where cuBLASLt's tiles still take longer: several of
/// small tiles with little to do.
std::int64_t likely_to_share(const PlanKey& key, TileForm form) {
  constexpr std::int64_t kShort = 32, kSmall = 256;
  bool little = key.k <= kShort && form.rows * form.columns <= kSmall;
  return little && !is_vector(key) ? 4 : 1;
}

/// Of the forms with or without boxes the first that has a multiprocessor for each block, or for as
/// many as are likely to share one, and blocks that are done before cuBLASLt's, as far as was
/// measured on an H200.
std::optional<TileForm> first_form(const PlanKey& key, Device device, bool boxes) {
  bool half = is_half(key);
  std::int64_t most_work = half ? 128 : 256;  // thousands of multiplications of a block
  if (boxes) most_work = half || key.tf32 ? 1024 : 2048;
  bool tensor_cores = is_rounded(key) || (boxes && key.tf32.is_x3());
  std::optional<TileForm> first;
  for_each_size(key, device, [&](TileForm form, int most) {
    std::int64_t area = form.rows * form.columns;
    // What a gate costs as a pass of its own pays for longer sums.
    bool long_with_gate = key.gate_follows && area == 1024 && key.k <= 1024;
    if (first || form.boxes != boxes || form.tensor_cores != tensor_cores ||
        tiles_of(key, form.rows, form.columns) > likely_to_share(key, form) * kMultiprocessors ||
        (half && area > 512) || (area * key.k > most_work << 10 && !long_with_gate)) {
      return;
    }
    form.warps = likely_warps(key, form, most);
    if (comes_beside_large(key, device)) form.warps = std::min(form.warps, kBesideLarge);
    if (form.warps > 8 && !fits_memory(key, form, device)) form.warps = 8;
    if (fits_memory(key, form, device)) first = form;
  });
  return first;
}

/// Of floats as two TF32 numbers: where no form in boxes has a multiprocessor for each block, the
/// one whose blocks, so many at a time, are likely done first.
std::optional<TileForm> likely_split_form(const PlanKey& key, Device device) {
  constexpr std::int64_t kShortest = 64;
  if (key.k < kShortest) return std::nullopt;
  if (is_small(key)) {
    if (auto form = first_form(key, device, true)) return form;
  }
  struct Timed {
    TileForm form;
    double start, thousand_terms;  // microseconds of a block, on an H200
  };
  constexpr Timed kTimed[] = {{{32, 32, 8, true, true}, 2.5, 5},
                              {kWarpgroupPanels[1], 4, 15},
                              {kWarpgroupPanels[0], 5, 20}};
  std::optional<TileForm> best;
  double least = 0;
  for (const Timed& timed : kTimed) {
    TileForm form = timed.form;
    bool large = form.rows >= 64;
    bool can = large ? takes_warpgroup_panels(key, form, device)
                     : is_small(key) && takes_boxes(key, device) && fits_memory(key, form, device);
    if (!can) continue;
    std::int64_t rounds = ceil_div(tiles_of(key, form.rows, form.columns), kMultiprocessors);
    double thousands = static_cast<double>(key.k) / 1000;
    double time = static_cast<double>(rounds) * (timed.start + thousands * timed.thousand_terms);
    if (best && time >= least) continue;
    best = form;
    least = time;
  }
  return best;
}

/// Of the forms with tiles of 128 x 64, where most of the multiprocessors have one to do.
std::optional<TileForm> likely_large_form(const PlanKey& key, Device device) {
  std::int64_t tiles = tiles_of(key, kPanels[0].rows, kPanels[0].columns);
  if (tiles > kMultiprocessors || 2 * tiles <= kMultiprocessors) return std::nullopt;
  constexpr std::int64_t kShortest = 64, kShortestOfBoxes = 32, kLongestOfBoxes = 128;
  bool nearly_all = 8 * tiles > 7 * kMultiprocessors;
  bool is_gradient = key.a_transposed || key.gate_follows;
  if (key.tf32 && key.k >= kShortest) {
    // As measured on an H200 beside cuBLASLt, whose tiles use the multiprocessors better, but which
    // wants operands along k, and the gate behind it.
    constexpr std::int64_t kLongestGradient = 2048, kLongestOther = 1280;
    bool wins = is_gradient ? key.k <= kLongestGradient : nearly_all && key.k <= kLongestOther;
    if (wins && key.k > kShortest && takes_warpgroup_panels(key, kWarpgroupPanels[0], device)) {
      return kWarpgroupPanels[0];
    }
    if (takes_panels(key, kPanels[0], device)) return kPanels[0];
  }
  if (key.tf32) return std::nullopt;
  bool short_sums = key.k >= kShortestOfBoxes && key.k <= kLongestOfBoxes;
  if (short_sums && takes_box_panels(key, device)) return kBoxPanel;
  // With fewer tiles, or where they are not full, cuBLASLt's use the multiprocessors better.
  constexpr std::int64_t kShortestOfFma = 96;
  std::int64_t area = std::int64_t{kFmaPanel.rows} * kFmaPanel.columns * tiles;
  bool full = 4 * key.m * key.n * key.batch >= 3 * area;
  bool wins = full && (nearly_all || (is_gradient && 4 * tiles > 3 * kMultiprocessors));
  if (wins && key.k >= kShortestOfFma && key.k <= kLongestOfFma && takes_fma_panel(key, device)) {
    return kFmaPanel;
  }
  return std::nullopt;
}

/// How long a product takes by tiles of a size, in microseconds on an H200: to begin, for each part
/// of k that the blocks of a multiprocessor have together, and for each of these blocks.
struct SharedTimes {
  Size size;
  double start, part, block;
};
/// The same of cuBLASLt: to begin, for a thousand terms, for a thousand of each tile of 64 x 64
/// that a multiprocessor has, and for a million elements of c.
struct LibraryTimes {
  double start, terms, tile_terms, elements;
};
struct LikelyTimes {
  SharedTimes ours[3];  // of tiles in boxes
  LibraryTimes library;
};
// Fitted to the times of some 360 products of 1 to 1024 rows, columns and terms, 1 to 64 at a time,
// which other rules leave to cuBLASLt.
constexpr LikelyTimes kTimesOfFloats = {
    {{{16, 16}, 1.4, 0.1, 0.08}, {{16, 32}, 1.8, 0.175, 0.165}, {{32, 32}, 1.5, 0.26, 0.36}},
    {2.3, 0.2, 7.3, 5.5}};
constexpr LikelyTimes kTimesOfTf32 = {
    {{{16, 16}, 1.4, 0.083, 0.036}, {{16, 32}, 1.55, 0.108, 0.09}, {{32, 32}, 1.95, 0.136, 0.19}},
    {2.75, 2.3, 5.75, 1.35}};
constexpr LikelyTimes kTimesOfHalves = {
    {{{16, 16}, 1.6, 0.08, 0.08}, {{16, 32}, 1.55, 0.105, 0.125}, {{32, 32}, 2.1, 0.125, 0.18}},
    {2.5, 0.95, 2.3, 0.55}};

/// Of the forms in boxes the one that is likely done first where multiprocessors have several of
/// its blocks, if that is well before cuBLASLt is.
std::optional<TileForm> likely_shared_form(const PlanKey& key, Device device) {
  constexpr double kWellBefore = 1.1;
  if (!takes_boxes(key, device) || key.tf32.is_x3() || (is_vector(key) && !is_rounded(key))) {
    return std::nullopt;
  }
  const LikelyTimes& times = is_half(key) ? kTimesOfHalves
                             : key.tf32   ? kTimesOfTf32
                                          : kTimesOfFloats;
  auto share = [&](Size size) {
    return static_cast<double>(tiles_of(key, size.rows, size.columns)) / kMultiprocessors;
  };
  auto parts = static_cast<double>(parts_of(key, true));
  std::optional<TileForm> best;
  double least = 0;
  for (const SharedTimes& of : times.ours) {
    TileForm form{of.size.rows, of.size.columns, 0, is_rounded(key), true};
    form.warps = likely_warps(key, form, 8);
    if (!fits_memory(key, form, device)) continue;
    double blocks = share(of.size);
    if (bytes_of_block(key, form) > memory_of_one_alone(device)) blocks = std::ceil(blocks);
    double time = of.start + std::max(blocks, 1.0) * parts * of.part + blocks * of.block;
    if (best && time >= least) continue;
    best = form;
    least = time;
  }
  const LibraryTimes& library = times.library;
  double thousands = static_cast<double>(key.k) / 1000;
  double theirs = library.start +
                  thousands * (library.terms + share({64, 64}) * library.tile_terms) +
                  key.multiplications() / static_cast<double>(key.k) * 1e-6 * library.elements;
  return best && least * kWellBefore < theirs ? best : std::nullopt;
}

/// Of a vector times a matrix, with long sums. A tile has one row or column to do: by fused
/// multiply-adds cuBLASLt is faster, but for widths at which its first proposal is slow.
std::optional<TileForm> likely_vector_form(const PlanKey& key, Device device) {
  constexpr std::int64_t kWide = 512, kLongest = 1024;
  if (!is_small(key)) return std::nullopt;
  bool wide = std::max(key.m, key.n) >= kWide, moderate = key.k <= kLongest;
  bool wins = is_half(key) || (key.tf32 && (wide || moderate)) ||
              (wide && moderate && key.batch == 1 && tiles_of(key, 16, 16) <= kMultiprocessors);
  if (!wins) return std::nullopt;
  if (auto form = first_form(key, device, true)) return form;
  return likely_shared_form(key, device);
}

}  // namespace

std::vector<TileForm> tile_forms(const PlanKey& key, Device device) {
  std::vector<TileForm> forms;
  if (!is_possible(key, device)) return forms;
  for (TileForm form : kWarpgroupPanels) {
    if (takes_warpgroup_panels(key, form, device)) forms.push_back(form);
  }
  if (takes_fma_panel(key, device)) forms.push_back(kFmaPanel);
  if (!is_small(key)) return forms;
  bool beside_large = comes_beside_large(key, device);
  for_each_size(key, device, [&](TileForm form, int most) {
    std::int64_t parts = parts_of(key, form.boxes);
    for (int warps = 1; warps <= most; warps *= 2) {
      if (warps >= 2 * parts) break;
      form.warps = static_cast<std::uint8_t>(warps);
      // A warp that has many parts alone is for products of many tiles, which are not these.
      bool many_parts = 4 * warps < parts && warps < std::min(most, 8);
      if (many_parts && !(beside_large && form.warps == kBesideLarge)) continue;
      if (fits_memory(key, form, device)) forms.push_back(form);
    }
  });
  for (TileForm form : kPanels) {
    if (takes_panels(key, form, device)) forms.push_back(form);
  }
  if (takes_box_panels(key, device)) forms.push_back(kBoxPanel);
  return forms;
}

std::optional<TileForm> likely_tile_form(const PlanKey& key, Device device) {
  if (!is_possible(key, device)) return std::nullopt;
  constexpr std::int64_t kLong = 256;
  if (is_vector(key) && key.k > kLong) return likely_vector_form(key, device);
  constexpr std::int64_t kFewBlocks = 48;
  bool few = tiles_of(key, 16, 16) < kFewBlocks;
  if (key.tf32.is_x3() && !few) {
    if (auto form = likely_split_form(key, device)) return form;
  }
  if (auto form = likely_large_form(key, device)) return form;
  if (!is_small(key)) return std::nullopt;
  // Few blocks go faster by the smallest tiles, of which there are no boxes: by fused multiply-adds
  // always, of 16 bits as long as their sums are not very long.
  std::int64_t long_sum = few && is_half(key) ? 2 * kLong : kLong;
  if (key.k >= long_sum && (!few || is_rounded(key))) {
    if (auto form = first_form(key, device, true)) return form;
  }
  if (auto form = first_form(key, device, false)) return form;
  return likely_shared_form(key, device);
}

bool takes_update(const PlanKey& key, TileForm form) {
  bool is_large = form == kBoxPanel || form == kFmaPanel || is_warpgroup_panel(form);
  return is_large && key.a_transposed && key.n % 4 == 0 && key.batch == 1;
}

int memory_of_one_alone(Device device) {
  int whole = 0;
  RENSA_CUDA_CHECK(
      "matmul",
      cudaDeviceGetAttribute(&whole, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device.index));
  return whole / 2;  // with what each block has beside
}

void run_tiles(const PlanKey& key, TileForm form, const MatmulRun& run) {
  TileArgs args{product_args(key, run), key.a_ld,          key.b_ld,          !key.a_transposed,
                key.b_transposed,       a_has_chunks(key), b_has_chunks(key), run.update};
  if (is_half(key)) launch_half_tiles(key.dtype, args, form, run.context);
  else if (is_warpgroup_panel(form)) launch_warpgroup_panels(key.tf32, args, form, run.context);
  else if (!key.tf32.is_x3() || !form.tensor_cores) launch_float_tiles(args, form, run.context);
  else launch_split_tiles(args, form, run.context);
}

}  // namespace rensa::cuda

// Plans of products: how a product of given shapes, strides and dtype is computed, chosen once and
// used by all threads and all GPUs of one model from then on.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rensa/core/device.h"
#include "rensa/core/dtype.h"
#include "rensa/core/use_tf32.h"
#include "rensa/device/operation.h"
#include "rensa/operations/matmul/matmul.h"

namespace rensa::cuda {

/// Everything that a plan depends on; see MatmulLayout for the dimensions. Whether relu follows is
/// not part of it where there is a bias: a recording turns the one into the other, and both must
/// give the same bits.
struct PlanKey {
  enum class Bias : std::uint8_t { none, epilogue, separate };
  enum Aligned : std::uint8_t { aligned_a = 1, aligned_b = 2, aligned_c = 4, aligned_bias = 8 };

  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t a_ld = 1, b_ld = 1, c_ld = 1;
  std::int64_t batch = 1, a_stride = 0, b_stride = 0, c_stride = 0;
  std::int64_t workspace_limit = 0;
  std::int32_t device_class = 0;  // GPUs of one model share plans
  Dtype dtype = Dtype::float32;
  bool a_transposed = false, b_transposed = false;
  UseTf32 tf32;  // of float32
  bool autotune = false;
  bool relu_alone = false;    // relu without a bias
  bool gate_follows = false;  // Matmul::gate_follows
  Bias bias = Bias::none;
  std::uint8_t aligned = 0;     // the operands that start at a multiple of 16 bytes
  std::uint8_t unused[3] = {};  // no padding: keys are compared as bytes

  /// As a floating-point number, which cannot overflow.
  double multiplications() const {
    return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
           static_cast<double>(batch);
  }
  bool operator==(const PlanKey& other) const {
    return std::memcmp(this, &other, sizeof(PlanKey)) == 0;
  }
  std::size_t hash() const {
    std::uint64_t words[sizeof(PlanKey) / 8], h = 0;
    std::memcpy(words, this, sizeof(PlanKey));
    for (std::uint64_t word : words) {
      h = (h ^ word) * 0x9e3779b97f4a7c15u;
      h ^= h >> 32;
    }
    return h;
  }
};
static_assert(std::has_unique_object_representations_v<PlanKey> && sizeof(PlanKey) % 8 == 0);

/// cublaslt, one of the kernels of cuda_skinny.h, or the tiles of cuda_tiles.h.
enum class PlanKind : std::uint8_t { cublaslt, dot, outer, tiles };

/// How a product goes by tiles: the size of a block's tile of c, the warps of a block that
/// multiply, whether tensor cores do (float32 as the key's tf32 says), and whether operands come in
/// boxes (cuda_boxes.cuh).
struct TileForm {
  std::uint8_t rows = 0, columns = 0, warps = 0;
  bool tensor_cores = false, boxes = false;

  bool operator==(const TileForm&) const = default;
};

/// The operand that a product has turned first, into the workspace, so that it lies along k.
enum class Turned : std::uint8_t { none, a, b };

/// What was chosen; with the key, all that a plan file keeps.
struct PlanChoice {
  PlanKind kind = PlanKind::cublaslt;
  bool separate_epilogue = false;  // bias and relu by a kernel of their own
  std::size_t workspace = 0;
  cublasLtMatmulAlgo_t algo = {};
  TileForm form = {};            // of tiles
  Turned turned = Turned::none;  // of cublaslt
};

/// cuBLASLt's descriptions of a key, and of the product without and with relu. Plain data.
struct PlanDescriptors {
  PlanDescriptors(const PlanKey& key, bool separate_epilogue);

  cublasLtMatmulDescOpaque_t plain, relu;
  cublasLtMatrixLayoutOpaque_t a, b, c;  // cuBLASLt's A is our b: see PlanDescriptors in the .cc
};

struct MatmulPlan {
  MatmulPlan(const PlanKey& key, const PlanChoice& choice);
  PlanKey key;
  PlanChoice choice;
  std::optional<PlanDescriptors> descriptors;
};

/// SGD's update with a gradient that a product gives: parameter -= lr * c, the rule of
/// update_rules.def, bit for bit.
struct SgdUpdate {
  float* parameter = nullptr;  // null: no update; else as c lies, from a multiple of 16 bytes on
  double lr = 0;
  const double* replay_lr = nullptr;  // where a replay's value lies, or null
};

/// One run of a plan.
struct MatmulRun {
  const char* a = nullptr;
  const char* b = nullptr;
  const char* bias = nullptr;    // null: none
  std::int64_t bias_stride = 1;  // elements
  char* c = nullptr;
  const char* gate = nullptr;                 // null: none; Matmul::gate
  bool a_settled = false, b_settled = false;  // Operand::settled
  double alpha = 1;
  operations::Activation activation = operations::Activation::none;
  SgdUpdate update = {};       // where the product takes_update()
  LaunchContext context = {};  // with a workspace of at least choice.workspace bytes
};

/// Queues the product, and the update with what it gives, in one kernel. False, and nothing is
/// queued, where there is none that does both.
bool run_with_update(const operations::Matmul& product, const SgdUpdate& update,
                     const LaunchContext& context);

/// What our kernels for products of floats have in common: c(b, i, j) = sum over p < k of
/// a(b, i, p) * b(b, p, j), and what `finish` (cuda_kernels.h) makes of it. Strides are in
/// elements.
struct ProductArgs {
  const void* a;
  const void* b;
  const void* bias;  // null, or a value for each column of c
  void* c;
  const void* gate;  // null, or what lies as c does: see Matmul
  std::int64_t c_ld, a_batch, b_batch, c_batch;
  int m, n, k, batch;
  float alpha;
  operations::Activation activation;
  bool a_settled, b_settled;  // Operand::settled
};
ProductArgs product_args(const PlanKey& key, const MatmulRun& run);

/// The plan for `key` on `device`, made when it is not there: from a loaded plan file, by timing
/// (key.autotune), or as the shape and cuBLASLt's heuristic tell. While `stream` is being captured
/// nothing is timed. The plan lives as long as the process.
const MatmulPlan& matmul_plan(const PlanKey& key, Device device, cudaStream_t stream);

/// Queues the product; the current device must be the context's. Returns cuBLASLt's status, which
/// is success for other kinds.
cublasStatus_t run_plan(const MatmulPlan& plan, const MatmulRun& run);

/// At most `count` ways of cuBLASLt's to compute the product, the most promising first, some more
/// with an operand turned, before or behind these, the kernel of cuda_skinny.h if there is one, and
/// the forms of cuda_tiles.h; not empty. Their epilogues take a bias with and without relu alike.
/// Throws CudaError where there is none.
std::vector<PlanChoice> plan_candidates(const PlanKey& key, Device device, int count);

/// The fastest of `candidates` by timing on scratch memory, among those whose results repeat bit
/// for bit; a slightly slower one where a recorded step is likely the faster for it. Waits for the
/// device.
PlanChoice tune_plan(const PlanKey& key, Device device, std::span<const PlanChoice> candidates);

/// For plan files: everything chosen so far, and choices that plans made from now on use.
std::vector<std::pair<PlanKey, PlanChoice>> chosen_plans();
void use_plans(std::span<const std::pair<PlanKey, PlanChoice>> plans);

}  // namespace rensa::cuda

// Descriptions of products for cuBLASLt, what it proposes for them, and the plans chosen so far.
#include "rensa/operations/matmul/cuda_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/backend/cuda/timing.h"
#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/operations/matmul/cuda_cublaslt.h"
#include "rensa/operations/matmul/cuda_kernels.h"
#include "rensa/operations/matmul/cuda_skinny.h"
#include "rensa/operations/matmul/cuda_tiles.h"
#include "rensa/operations/matmul/cuda_turned.h"

namespace rensa::cuda {

namespace {

struct Types {
  cudaDataType_t data, scale;
  cublasComputeType_t compute;
};

Types types_of(const PlanKey& key) {
  switch (key.dtype) {
    case Dtype::float16: return {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case Dtype::bfloat16: return {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case Dtype::float32:
      return {CUDA_R_32F, CUDA_R_32F, key.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F};
    case Dtype::float64: return {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
    case Dtype::complex64: return {CUDA_C_32F, CUDA_C_32F, CUBLAS_COMPUTE_32F};
    default: return {CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F};
  }
}

cublasLtMatrixLayoutOpaque_t make_layout(const PlanKey& key, std::int64_t rows,
                                         std::int64_t columns, std::int64_t ld,
                                         std::int64_t stride) {
  const CublasLt& lt = cublaslt();
  cublasLtMatrixLayoutOpaque_t layout;
  check_cublas(
      "cublasLtMatrixLayoutInit",
      lt.layout_init(&layout, sizeof(layout), types_of(key).data, static_cast<std::uint64_t>(rows),
                     static_cast<std::uint64_t>(columns), ld));
  if (key.batch > 1) {
    auto count = static_cast<std::int32_t>(key.batch);
    check_cublas("cublasLtMatrixLayoutSetAttribute",
                 lt.layout_set(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)));
    check_cublas("cublasLtMatrixLayoutSetAttribute",
                 lt.layout_set(&layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                               sizeof(stride)));
  }
  return layout;
}

template <class T>
void set(cublasLtMatmulDescOpaque_t& desc, cublasLtMatmulDescAttributes_t attribute, T value) {
  check_cublas("cublasLtMatmulDescSetAttribute",
               cublaslt().desc_set(&desc, attribute, &value, sizeof(value)));
}

/// The alignment that a plan may count on.
std::uint32_t alignment(const PlanKey& key, PlanKey::Aligned operand) {
  return key.aligned & operand ? 16 : static_cast<std::uint32_t>(itemsize(key.dtype));
}

cublasLtMatmulDescOpaque_t make_desc(const PlanKey& key, std::int32_t epilogue) {
  Types types = types_of(key);
  cublasLtMatmulDescOpaque_t desc;
  check_cublas("cublasLtMatmulDescInit",
               cublaslt().desc_init(&desc, sizeof(desc), types.compute, types.scale));
  auto operation = [](bool transposed) -> std::int32_t {
    return transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  };
  set(desc, CUBLASLT_MATMUL_DESC_TRANSA, operation(key.b_transposed));
  set(desc, CUBLASLT_MATMUL_DESC_TRANSB, operation(key.a_transposed));
  set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  if (epilogue & CUBLASLT_EPILOGUE_BIAS) {
    // Not read before a run sets the real one, but its alignment counts in the choice.
    std::uintptr_t address = 4096 + alignment(key, PlanKey::aligned_bias);
    set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, address);
  }
  return desc;
}

struct Epilogues {
  std::int32_t plain, relu;
};

Epilogues epilogues_of(const PlanKey& key, bool separate) {
  if (separate || key.bias == PlanKey::Bias::separate) {
    return {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_DEFAULT};
  }
  if (key.bias == PlanKey::Bias::epilogue) {
    return {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS};
  }
  return {CUBLASLT_EPILOGUE_DEFAULT,
          key.relu_alone ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT};
}

cublasLtMatmulPreferenceOpaque_t make_preference(const PlanKey& key) {
  const CublasLt& lt = cublaslt();
  cublasLtMatmulPreferenceOpaque_t preference;
  check_cublas("cublasLtMatmulPreferenceInit", lt.preference_init(&preference, sizeof(preference)));
  auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    check_cublas("cublasLtMatmulPreferenceSetAttribute",
                 lt.preference_set(&preference, attribute, &value, sizeof(value)));
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(key.workspace_limit));
  // Parts of a sum are added up in a step of their own, in the type it is computed in, so that the
  // order is fixed. (Adding them up in the output keeps an order too, but with it allowed the
  // heuristic chose plans that made a training step at batch 100 in float32 1.7 times slower.)
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE |
                                    CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(key, PlanKey::aligned_b));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(key, PlanKey::aligned_a));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(key, PlanKey::aligned_c));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(key, PlanKey::aligned_c));
  return preference;
}

/// The workspace that `algo` needs for `desc`, or none where it cannot do it.
std::optional<std::size_t> check_algo(const PlanKey& key, Device device, PlanDescriptors& d,
                                      cublasLtMatmulDescOpaque_t& desc,
                                      const cublasLtMatmulAlgo_t& algo) {
  cublasLtMatmulHeuristicResult_t result{};
  cublasStatus_t status =
      cublaslt().algo_check(cublaslt_handle(device), &desc, &d.a, &d.b, &d.c, &d.c, &algo, &result);
  if (status != CUBLAS_STATUS_SUCCESS ||
      result.workspaceSize > static_cast<std::size_t>(key.workspace_limit)) {
    return std::nullopt;
  }
  return result.workspaceSize;
}

/// What cuBLASLt proposes for the richest epilogue that the plan may be run with, as far as it does
/// the plain one too.
std::vector<PlanChoice> proposals(const PlanKey& whole, Device device, int count, bool separate,
                                  Turned turned = Turned::none) {
  PlanKey key = turned_key(whole, turned);
  PlanDescriptors d(key, separate);
  cublasLtMatmulPreferenceOpaque_t preference = make_preference(key);
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(count));
  int found = 0;
  cublasStatus_t status = cublaslt().heuristic(cublaslt_handle(device), &d.relu, &d.a, &d.b, &d.c,
                                               &d.c, &preference, count, results.data(), &found);
  std::vector<PlanChoice> choices;
  if (status != CUBLAS_STATUS_SUCCESS) return choices;  // usually: no such epilogue for this dtype
  for (int i = 0; i < found; ++i) {
    const auto& result = results[static_cast<std::size_t>(i)];
    if (result.state != CUBLAS_STATUS_SUCCESS) continue;
    auto plain = check_algo(key, device, d, d.plain, result.algo);
    if (!plain) continue;
    auto workspace = static_cast<std::size_t>(turned_bytes(whole, turned)) +
                     std::max(*plain, result.workspaceSize);
    choices.push_back({PlanKind::cublaslt, separate, workspace, result.algo, {}, turned});
  }
  return choices;
}

std::string describe(const PlanKey& key) {
  return fmt::format("({}, {}) @ ({}, {}) {}, batch {}, strides ({}{}, {}{}, {})", key.m, key.k,
                     key.k, key.n, dtype_name(key.dtype), key.batch, key.a_ld,
                     key.a_transposed ? " transposed" : "", key.b_ld,
                     key.b_transposed ? " transposed" : "", key.c_ld);
}

PlanChoice tile_choice(TileForm form) { return {.kind = PlanKind::tiles, .form = form}; }

struct KeyHash {
  std::size_t operator()(const PlanKey& key) const { return key.hash(); }
};

class PlanCache {
 public:
  std::atomic<std::uint64_t> generation{0};  // counts what use_plans() has replaced

  const MatmulPlan* find(const PlanKey& key) {
    std::shared_lock<std::shared_mutex> hold(mutex_);
    auto it = plans_.find(key);
    return it == plans_.end() ? nullptr : it->second.get();
  }

  /// Plans are made one at a time: threads that want the same one wait for it.
  const MatmulPlan& find_or_make(const PlanKey& key, Device device) {
    std::lock_guard<std::mutex> alone(making_);
    if (const MatmulPlan* plan = find(key)) return *plan;
    runtime::set_device(device);
    auto plan = std::make_unique<MatmulPlan>(key, choose(key, device));
    std::unique_lock<std::shared_mutex> hold(mutex_);
    return *(plans_[key] = std::move(plan));
  }

  std::vector<std::pair<PlanKey, PlanChoice>> all() {
    std::shared_lock<std::shared_mutex> hold(mutex_);
    std::vector<std::pair<PlanKey, PlanChoice>> result;
    for (const auto& [key, plan] : plans_) result.emplace_back(key, plan->choice);
    for (const auto& [key, choice] : loaded_) {
      if (!plans_.count(key)) result.emplace_back(key, choice);
    }
    return result;
  }

  void use(std::span<const std::pair<PlanKey, PlanChoice>> choices) {
    std::lock_guard<std::mutex> alone(making_);
    std::unique_lock<std::shared_mutex> hold(mutex_);
    for (const auto& [key, choice] : choices) {
      loaded_[key] = choice;
      auto it = plans_.find(key);
      if (it == plans_.end()) continue;
      retired_.push_back(std::move(it->second));  // a thread may be about to run it
      plans_.erase(it);
    }
    generation.fetch_add(1, std::memory_order_release);
  }

 private:
  PlanChoice choose(const PlanKey& key, Device device) {
    if (auto it = loaded_.find(key); it != loaded_.end()) {
      check_loaded(key, device, it->second);
      return it->second;
    }
    if (!key.autotune) {
      if (skinny_is_likely_faster(key)) return {.kind = skinny_kind(key)};
      if (auto form = likely_tile_form(key, device)) return tile_choice(*form);
      return plan_candidates(key, device, 8).front();
    }
    return tune_plan(key, device, plan_candidates(key, device, 64));
  }

  static void check_loaded(const PlanKey& key, Device device, const PlanChoice& choice) {
    bool fits = choice.kind == skinny_kind(key);
    if (choice.kind == PlanKind::tiles) {
      std::vector<TileForm> forms = tile_forms(key, device);
      fits = std::find(forms.begin(), forms.end(), choice.form) != forms.end();
    } else if (choice.kind == PlanKind::cublaslt) {
      PlanKey left = turned_key(key, choice.turned);
      PlanDescriptors d(left, choice.separate_epilogue);
      auto plain = check_algo(left, device, d, d.plain, choice.algo);
      auto relu = check_algo(left, device, d, d.relu, choice.algo);
      auto turned = static_cast<std::size_t>(turned_bytes(key, choice.turned));
      fits = plain && relu && turned + std::max(*plain, *relu) <= choice.workspace;
    }
    if (!fits) {
      throw CudaError("matmul: the loaded plan for " + describe(key) +
                      " cannot be used; save the plans anew with cuda::save_plans");
    }
  }

  std::mutex making_;
  std::shared_mutex mutex_;  // of what follows
  std::unordered_map<PlanKey, std::unique_ptr<MatmulPlan>, KeyHash> plans_;
  std::unordered_map<PlanKey, PlanChoice, KeyHash> loaded_;
  std::vector<std::unique_ptr<MatmulPlan>> retired_;
};

/// Never destroyed: threads may still be running when the program ends.
PlanCache& plan_cache() {
  static PlanCache& cache = *new PlanCache;
  return cache;
}

}  // namespace

PlanDescriptors::PlanDescriptors(const PlanKey& key, bool separate_epilogue)
    // cuBLASLt's matrices are column-major. What lies as a row-major c is, read that way, c
    // transposed, and that is b transposed times a transposed: b comes first, a row-major operand
    // needs no transposition, and a bias along n lies along the rows, where the epilogue adds it.
    : plain(make_desc(key, epilogues_of(key, separate_epilogue).plain)),
      relu(make_desc(key, epilogues_of(key, separate_epilogue).relu)),
      a(key.b_transposed ? make_layout(key, key.k, key.n, key.b_ld, key.b_stride)
                         : make_layout(key, key.n, key.k, key.b_ld, key.b_stride)),
      b(key.a_transposed ? make_layout(key, key.m, key.k, key.a_ld, key.a_stride)
                         : make_layout(key, key.k, key.m, key.a_ld, key.a_stride)),
      c(make_layout(key, key.n, key.m, key.c_ld, key.c_stride)) {}

MatmulPlan::MatmulPlan(const PlanKey& k, const PlanChoice& c) : key(k), choice(c) {
  if (c.kind != PlanKind::cublaslt) return;
  descriptors.emplace(turned_key(k, c.turned), c.separate_epilogue);
}

std::vector<PlanChoice> plan_candidates(const PlanKey& key, Device device, int count) {
  constexpr int kMostTurned = 8;
  PlanKind skinny = skinny_kind(key);
  bool has_epilogue = key.bias == PlanKey::Bias::epilogue || key.relu_alone;
  std::vector<PlanChoice> choices;
  if (!has_epilogue || dtype_kind(key.dtype) != 'c') choices = proposals(key, device, count, false);
  if (choices.empty() && has_epilogue) choices = proposals(key, device, count, true);
  if (Turned turned = operand_to_turn(key); turned != Turned::none) {
    auto more = proposals(key, device, std::min(count, kMostTurned), false, turned);
    choices.insert(turning_is_likely_faster(key) ? choices.begin() : choices.end(), more.begin(),
                   more.end());
  }
  if (skinny != PlanKind::cublaslt) choices.push_back({.kind = skinny});
  for (TileForm form : tile_forms(key, device)) choices.push_back(tile_choice(form));
  if (choices.empty()) {
    throw CudaError(
        fmt::format("matmul: cuBLASLt {} has no way to compute {} on {}; a contiguous "
                    "copy of the operands may help",
                    cublaslt().version(), describe(key), device.str()));
  }
  return choices;
}

const MatmulPlan& matmul_plan(const PlanKey& key, Device device, cudaStream_t stream) {
  struct Slot {
    std::uint64_t generation = 0;
    const MatmulPlan* plan = nullptr;
  };
  thread_local std::array<Slot, 256> slots;  // the plans this thread used last, without a lock
  PlanCache& cache = plan_cache();
  Slot& slot = slots[key.hash() % slots.size()];
  std::uint64_t generation = cache.generation.load(std::memory_order_acquire);
  if (slot.plan && slot.generation == generation && slot.plan->key == key) return *slot.plan;
  const MatmulPlan* plan = cache.find(key);
  if (!plan && key.autotune && is_capturing(stream)) {
    PlanKey untuned = key;
    untuned.autotune = false;
    return matmul_plan(untuned, device, stream);
  }
  if (!plan) plan = &cache.find_or_make(key, device);
  slot = {generation, plan};
  return *plan;
}

cublasStatus_t run_plan(const MatmulPlan& plan, const MatmulRun& given) {
  const PlanKey& key = plan.key;
  if (plan.choice.kind != PlanKind::cublaslt) {
    if (plan.choice.kind == PlanKind::tiles) run_tiles(key, plan.choice.form, given);
    else run_skinny(key, plan.choice.kind, given);
    return CUBLAS_STATUS_SUCCESS;
  }
  Turned turned = plan.choice.turned;
  MatmulRun run = turned == Turned::none ? given : turn_operand(key, turned, given);
  const CublasLt& lt = cublaslt();
  const PlanDescriptors& d = *plan.descriptors;
  using operations::Activation;
  bool relu = run.activation == Activation::relu;
  bool separate = plan.choice.separate_epilogue || key.bias == PlanKey::Bias::separate;
  // Threads share the plan, so the bias goes into a copy. cuBLASLt takes descriptions by non-const
  // pointers and does not write to them.
  cublasLtMatmulDescOpaque_t desc = relu ? d.relu : d.plain;
  if (run.bias && !separate) set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, run.bias);
  auto shared = [](const cublasLtMatrixLayoutOpaque_t& layout) {
    return const_cast<cublasLtMatrixLayoutOpaque_t*>(&layout);
  };
  bool is_double = key.dtype == Dtype::float64 || key.dtype == Dtype::complex128;
  double alpha64[2] = {run.alpha, 0}, beta64[2] = {0, 0};
  float alpha32[2] = {static_cast<float>(run.alpha), 0}, beta32[2] = {0, 0};
  cublasStatus_t status = lt.matmul(
      cublaslt_handle(run.context.device), &desc, is_double ? static_cast<void*>(alpha64) : alpha32,
      run.b, shared(d.a), run.a, shared(d.b), is_double ? static_cast<void*>(beta64) : beta32,
      run.c, shared(d.c), run.c, shared(d.c), &plan.choice.algo, run.context.workspace,
      plan.choice.workspace - static_cast<std::size_t>(turned_bytes(key, turned)),
      static_cast<cudaStream_t>(run.context.handle));
  const char* bias_left = separate ? run.bias : nullptr;
  bool activation_left = run.activation != Activation::none && (separate || !relu);
  if (status == CUBLAS_STATUS_SUCCESS && (bias_left || activation_left || run.gate)) {
    EpilogueArgs args{run.c,           bias_left,
                      run.bias_stride, run.gate,
                      key.batch,       key.m,
                      key.n,           key.c_stride,
                      key.c_ld,        activation_left ? run.activation : Activation::none};
    launch_matmul_epilogue(key.dtype, args, run.context);
  }
  return status;
}

ProductArgs product_args(const PlanKey& key, const MatmulRun& run) {
  ProductArgs args{};
  args.a = run.a;
  args.b = run.b;
  args.bias = run.bias;
  args.c = run.c;
  args.gate = run.gate;
  args.c_ld = key.c_ld;
  args.a_batch = key.a_stride;
  args.b_batch = key.b_stride;
  args.c_batch = key.c_stride;
  args.m = static_cast<int>(key.m);
  args.n = static_cast<int>(key.n);
  args.k = static_cast<int>(key.k);
  args.batch = static_cast<int>(key.batch);
  args.alpha = static_cast<float>(run.alpha);
  args.activation = run.activation;
  args.a_settled = run.a_settled;
  args.b_settled = run.b_settled;
  return args;
}

std::vector<std::pair<PlanKey, PlanChoice>> chosen_plans() { return plan_cache().all(); }

void use_plans(std::span<const std::pair<PlanKey, PlanChoice>> plans) { plan_cache().use(plans); }

}  // namespace rensa::cuda

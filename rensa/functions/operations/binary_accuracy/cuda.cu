// Binary accuracy on a GPU: one pass over scores and labels, whose counts are joined as those of
// other reductions are.
#include "rensa/functions/operations/binary_accuracy/binary_accuracy.h"
#include "rensa/operations/reduce/cuda_pairs.cuh"

namespace rensa::cuda {

namespace {

constexpr int kLabelled = 4;                           // scores of a vector, each with its label
constexpr std::int64_t kVectorBytes = 16 / kLabelled;  // the offsets' bytes per score

/// kLabelled elements from p on, of which `left` are there, in loads of at most 16 bytes where
/// kFull says that they are aligned and all there.
template <class T, bool kFull>
__device__ __forceinline__ void load_labelled(const T* p, std::int64_t left,
                                              T (&element)[kLabelled]) {
  if constexpr (kFull) {
    constexpr int W = sizeof(T) == 8 ? kLabelled / 2 : kLabelled;
#pragma unroll
    for (int k = 0; k < kLabelled; k += W) {
      auto pack = *reinterpret_cast<const Pack<T, W>*>(p + k);
#pragma unroll
      for (int j = 0; j < W; ++j) element[k + j] = pack.value[j];
    }
  } else {
#pragma unroll
    for (int j = 0; j < kLabelled; ++j) element[j] = j < left ? p[j] : T{};
  }
}

/// Scores of T and labels of L. The value of a pair has bit 0 where the label is met, bit 1 where
/// it counts.
template <class T, class L> struct LabelledLoader {
  using Args = ReducePairArgs;
  using Value = unsigned;
  static constexpr int kWidth = kLabelled, kValues = kLabelled;
  struct Data {
    T y[kLabelled];
    L t[kLabelled];
  };
  template <bool kFull>
  static __device__ __forceinline__ Data load(const Args& args, std::int64_t offset,
                                              std::int64_t left) {
    std::int64_t first = offset / kVectorBytes;
    Data data;
    load_labelled<T, kFull>(reinterpret_cast<const T*>(args.in) + first, left, data.y);
    load_labelled<L, kFull>(reinterpret_cast<const L*>(args.second) + first, left, data.t);
    return data;
  }
  static __device__ __forceinline__ Value value(const Args&, const Data& data, int j) {
    using V = ComputeOf<T>;
    L label = data.t[j], answer = convert<V>(data.y[j]) >= V(0) ? L(1) : L(0);
    return unsigned{label == answer} | unsigned{label != L(-1)} << 1;
  }
};

struct ShareReducer {
  using Value = unsigned;
  struct Acc {
    long long right, counted;
  };
  static constexpr bool kBlockwise = false;
  static __device__ __forceinline__ Acc identity() { return {0, 0}; }
  static __device__ __forceinline__ Acc take(Acc acc, Value value, std::int64_t) {
    return {acc.right + (value & 1), acc.counted + (value >> 1)};
  }
  static __device__ __forceinline__ Acc combine(Acc a, Acc b) {
    return {a.right + b.right, a.counted + b.counted};
  }
  static __device__ __forceinline__ void store(char* p, Dtype dtype, Acc acc, std::int64_t) {
    double share = acc.counted > 0 ? static_cast<double>(acc.right) / acc.counted : 0.0;
    store_any<double>(p, dtype, share);
  }
};

template <class T> auto kernel_of(Dtype labels) {
  return labels == Dtype::int64 ? reduce_rows<ShareReducer, LabelledLoader<T, std::int64_t>>
                                : reduce_rows<ShareReducer, LabelledLoader<T, std::int32_t>>;
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

std::size_t BinaryAccuracy::workspace_bytes() const {
  return cuda::flat_workspace_bytes(y.view.size() * cuda::kVectorBytes);
}

void BinaryAccuracy::run_cuda(const cuda::LaunchContext& context) {
  visit_floating(y.view.dtype, [&](auto element) {
    cuda::launch_pairs(name(), context, cuda::kernel_of<decltype(element)>(t.view.dtype),
                       y.view.data, t.view.data, y.view.size(), cuda::kVectorBytes,
                       accuracy.view.data, accuracy.view.dtype);
  });
}

}  // namespace rensa::operations

// Attention and its gradients as cuDNN's graph API describes them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rensa/backend/cuda/cudnn_graph.h"

namespace rensa::cuda {

/// Steps from one batch, head and row to the next, in elements.
using HeadStrides = std::array<std::int64_t, 3>;

/// What a graph is made of: extents as in operations::AttentionGiven, and strides.
struct AttentionLayout {
  Dtype dtype = float16;
  bool causal = false;
  bool gradient = false;      // of query, key and value, all three
  bool deterministic = true;  // of a gradient: the same bits every time
  std::int64_t batch = 0, heads = 0, groups = 0, queries = 0, keys = 0, width = 0, value_width = 0;
  HeadStrides query{}, key{}, value{}, out{}, gout{}, gquery{}, gkey{}, gvalue{};

  auto operator<=>(const AttentionLayout& other) const = default;
};

/// The tensors' addresses; those of the other direction are null.
struct AttentionAddresses {
  void *query, *key, *value, *out, *lse, *gout, *gquery, *gkey, *gvalue;
};

/// Why cuDNN does not compute something.
struct CudnnRefusal {
  std::string text;
  std::size_t bytes = 0;  // of the scratch, where there is no other reason
};

/// One of cuDNN's engines for a layout, ready to run.
class CudnnAttention {
 public:
  /// Nothing where cuDNN has no engine for it that works in `limit` bytes of scratch. The caller
  /// holds the GPU's handle.
  static std::shared_ptr<const CudnnAttention> make(const char* operation,
                                                    const AttentionLayout& layout,
                                                    const CudnnHandle& handle, std::size_t limit,
                                                    CudnnRefusal* refusal);

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// Queues it, with scratch of workspace_bytes(). Throws CudaError.
  void run(const char* operation, const AttentionAddresses& addresses, double scale,
           const LaunchContext& context) const;

 private:
  using Parts = std::vector<std::unique_ptr<CudnnDescriptor>>;
  CudnnAttention(Parts parts, CudnnExecution execution, const AttentionLayout& layout);

  Parts parts_;  // what plan_ may refer to
  CudnnDescriptor plan_;
  bool causal_, gradient_;
  // Where in the scratch lie the sums of out * gout and of the query's gradient; behind them
  // cuDNN's.
  std::size_t sums_bytes_ = 0, gquery_bytes_ = 0, workspace_bytes_ = 0;
};

}  // namespace rensa::cuda

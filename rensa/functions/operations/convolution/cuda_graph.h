// A convolution as cuDNN's graph API describes it, and the ways to compute it that cuDNN proposes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rensa/backend/cuda/cudnn_graph.h"
#include "rensa/functions/operations/convolution/convolution.h"

namespace rensa::cuda {

/// What cuDNN computes behind the sums, before they are rounded.
enum class Epilogue : unsigned char { none, bias, bias_relu };

/// One of cuDNN's engines and how its knobs are set.
struct ConvolutionChoice {
  bool bias = false;  // whether its graph adds the bias
  std::int64_t engine = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> knobs;  // by type

  bool operator==(const ConvolutionChoice& other) const = default;
  /// "[bias ]<engine> <type>=<value> ...", and back; nothing where the text is anything else.
  std::string str() const;
  static std::optional<ConvolutionChoice> parse(const std::string& text);
};

/// The operation's description, without addresses. Whoever calls holds the GPU's handle.
class ConvolutionGraph {
 public:
  ConvolutionGraph(const operations::Convolution& op, Epilogue epilogue, const CudnnHandle& handle);
  Epilogue epilogue() const { return epilogue_; }

  /// The engine configurations that cuDNN's heuristics propose, the most promising first, as far as
  /// they keep what the operation promises: the same bits every time (unless others are allowed),
  /// sums in the type that they are computed in, float32 of all its digits unless TF32 is allowed.
  std::vector<CudnnDescriptor> proposals(const operations::Convolution& op) const;
  /// What one of them is.
  ConvolutionChoice choice_of(const operations::Convolution& op,
                              const CudnnDescriptor& config) const;

 private:
  CudnnDescriptor& add(CudnnDescriptor part) {
    return *parts_.emplace_back(std::make_unique<CudnnDescriptor>(std::move(part)));
  }
  /// Adds `mode` of `in` and `second` (null: of `in` alone), which gives `out`; returns it.
  /// Null where cuDNN has no such part.
  CudnnDescriptor* add_pointwise(const operations::Convolution& op, cudnnPointwiseMode_t mode,
                                 const CudnnDescriptor& in, const CudnnDescriptor* second,
                                 const CudnnDescriptor& out);

  Epilogue epilogue_;
  std::vector<std::unique_ptr<CudnnDescriptor>> parts_;  // what graph_ refers to
  std::optional<CudnnDescriptor> graph_;
};

/// A graph with the configuration to compute it by, ready to run.
class ConvolutionExecution {
 public:
  /// Nothing where cuDNN does not support it, or it takes more than `limit` bytes of workspace. The
  /// caller holds the GPU's handle.
  static std::optional<ConvolutionExecution> make(const operations::Convolution& op,
                                                  std::shared_ptr<const ConvolutionGraph> graph,
                                                  CudnnDescriptor config, std::int64_t limit);

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  Epilogue epilogue() const { return graph_->epilogue(); }
  ConvolutionChoice choice(const operations::Convolution& op) const {
    return graph_->choice_of(op, config_);
  }
  /// Queues it with the epilogue alone. Returns what cuDNN says; what is no success is the caller's
  /// to report.
  cudnnStatus_t run(const operations::Convolution& op, const LaunchContext& context) const;

 private:
  ConvolutionExecution(std::shared_ptr<const ConvolutionGraph> graph, CudnnDescriptor config,
                       CudnnDescriptor plan, std::size_t workspace_bytes)
      : graph_(std::move(graph)),
        config_(std::move(config)),
        plan_(std::move(plan)),
        workspace_bytes_(workspace_bytes) {}

  std::shared_ptr<const ConvolutionGraph> graph_;  // which config_ and plan_ may refer to
  CudnnDescriptor config_, plan_;
  std::size_t workspace_bytes_;
};

}  // namespace rensa::cuda

// oneDNN's kernels for pieces of convolutions, each run on one thread: the pool shares the pieces
// out, and no other pool works beside it.
#pragma once

#include <array>
#include <cstddef>
#include <dnnl.hpp>
#include <memory>

#include "rensa/functions/operations/convolution/cpu_pieces.h"

namespace rensa::host {

const dnnl::engine& onednn_engine();

/// How an operand of a piece lies, how a kernel wants it, and the copy from one to the other.
struct OneDnnForm {
  dnnl::memory::desc lies, wanted;
  dnnl::reorder copy;
  bool copied = false;

  std::size_t copied_bytes() const { return copied ? wanted.get_size() : 0; }
};

/// A thread that calls oneDNN, which stays on it.
class OneDnnThread {
 public:
  OneDnnThread();
  ~OneDnnThread();
  OneDnnThread(const OneDnnThread&) = delete;
  OneDnnThread& operator=(const OneDnnThread&) = delete;

  /// The operand in `lies` as a kernel wants it: itself, or a copy in `block`.
  char* take(const OneDnnForm& form, char* lies, char* block);
  /// Where a kernel writes what is to lie in `lies`, and the copy of that to there.
  static char* target(const OneDnnForm& form, char* lies, char* block) {
    return form.copied ? block : lies;
  }
  void give(const OneDnnForm& form, char* lies, char* block);

  dnnl::stream& stream() { return stream_; }

 private:
  int threads_before_ = 0;
  dnnl::stream stream_{onednn_engine()};
};

/// oneDNN's kernel for the pieces of one shape.
class OneDnnKernel {
 public:
  /// The kernel for `parts` of `op`, made at the first call. Safe to call from several threads.
  static std::shared_ptr<const OneDnnKernel> of(const operations::Convolution& op,
                                                const ConvolutionGeometry& g, const Parts& parts);
  OneDnnKernel(const operations::Convolution& op, const ConvolutionGeometry& g, const Parts& parts);

  /// Whether oneDNN has one for this machine that is better than a loop.
  bool exists() const { return static_cast<bool>(run_); }
  std::size_t scratch_bytes() const { return scratch_.get_size(); }
  /// Runs on operands as the kernel wants them, in the calling thread. `bias`, of what is made of
  /// y, is there where the operation that the kernel was made for goes forward and has one.
  void run(OneDnnThread& thread, char* x, char* w, char* y, const float* bias, char* scratch) const;

  OneDnnForm x, w, y;

 private:
  template <class P>
  void settle(const typename P::primitive_desc& description, const std::array<int, 3>& arguments);

  operations::ConvolutionDirection direction_;
  bool is_half_, clears_scratch_ = false, has_bias_ = false;
  std::array<int, 3> arguments_{};  // what oneDNN calls x, w and y
  dnnl::memory::desc bias_;
  dnnl::memory::desc scratch_;
  dnnl::primitive run_;
};

/// How the elements of an operand lie.
enum class Lie { c_order, channels_last, otherwise };
Lie lie_of(const ArrayView& view);

}  // namespace rensa::host

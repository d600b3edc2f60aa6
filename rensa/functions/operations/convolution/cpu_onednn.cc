// Convolutions on the CPU by oneDNN: a piece is copied into the layout that a kernel wants, and
// back out of it, while it is in the cache.
#include "rensa/functions/operations/convolution/cpu_onednn.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/core/thread_pool.h"
#include "rensa/functions/operations/convolution/cpu_onednn_kernel.h"

namespace rensa::host {

namespace {

using operations::Convolution;
using operations::ConvolutionDirection;

constexpr std::int64_t kFewestChannels = 16;  // that fill the vectors of oneDNN's kernels

/// Some blocks of memory, aligned as vectors are.
template <std::size_t N> class Blocks {
 public:
  explicit Blocks(const std::array<std::size_t, N>& bytes) {
    std::size_t all = kAlignment;
    for (std::size_t size : bytes) all += rounded(size);
    memory_ = std::make_unique_for_overwrite<char[]>(all);
    std::size_t lead = rounded(reinterpret_cast<std::uintptr_t>(memory_.get())) -
                       reinterpret_cast<std::uintptr_t>(memory_.get());
    char* at = memory_.get() + lead;
    for (std::size_t i = 0; i < N; at += rounded(bytes[i++])) blocks_[i] = at;
  }
  char* operator[](std::size_t i) const { return blocks_[i]; }

 private:
  static constexpr std::size_t kAlignment = 64;
  static std::size_t rounded(std::size_t n) {
    return (n + kAlignment - 1) / kAlignment * kAlignment;
  }
  std::unique_ptr<char[]> memory_;
  std::array<char*, N> blocks_;
};

/// A convolution as pieces.
class Pieces {
 public:
  Pieces(const Convolution& op, const ConvolutionGeometry& g) : op_(op), g_(g), cut_(op, g) {
    OneDnnThread thread;
    for (int i = 0; i < 4; ++i) {
      bool last_pile = i / 2, last_slice = i % 2;
      auto made_for = parts(last_pile ? cut_.piles() - 1 : 0, last_slice ? cut_.slices() - 1 : 0);
      kernels_[last_pile][last_slice] = OneDnnKernel::of(op, g, made_for);
      exist_ &= kernels_[last_pile][last_slice]->exists();
    }
  }

  /// Whether oneDNN has good kernels of them.
  bool exist() const { return exist_; }

  void run() const {
    op_.direction == ConvolutionDirection::weight_gradient ? make_weights() : make_activations();
  }

 private:
  const OneDnnKernel& kernel(std::int64_t pile, std::int64_t slice) const {
    return *kernels_[pile == cut_.piles() - 1][slice == cut_.slices() - 1];
  }
  Parts parts(std::int64_t pile, std::int64_t slice) const {
    return Parts(op_, g_, cut_.piece(pile, slice));
  }
  static char* at(const ArrayView& view, const Part& part) { return view.data + part.offset; }

  /// f(pile, slice, kernel, parts, thread) for each piece, in parallel.
  template <class F> void for_pieces(F&& f) const {
    parallel_for(cut_.piles() * cut_.slices(), 1, [&](std::int64_t begin, std::int64_t end) {
      OneDnnThread thread;
      for (std::int64_t i = begin; i < end; ++i) {
        std::int64_t pile = i / cut_.slices(), slice = i % cut_.slices();
        f(pile, slice, kernel(pile, slice), parts(pile, slice), thread);
      }
    });
  }

  /// y of x and w, or x of y and w.
  void make_activations() const {
    bool forward = op_.direction == ConvolutionDirection::forward;
    auto weights = wanted_weights();
    for_pieces([&](std::int64_t, std::int64_t slice, const OneDnnKernel& k, const Parts& p,
                   OneDnnThread& thread) {
      Blocks<3> blocks({k.x.copied_bytes(), k.y.copied_bytes(), k.scratch_bytes()});
      char *x = at(op_.x.view, p.x), *y = at(op_.y.view, p.y);
      char* w = k.w.copied ? weights[static_cast<std::size_t>(slice)][0] : at(op_.w.view, p.w);
      if (forward) {
        char* target = OneDnnThread::target(k.y, y, blocks[1]);
        k.run(thread, thread.take(k.x, x, blocks[0]), w, target, blocks[2]);
        thread.give(k.y, y, target);
      } else {
        char* target = OneDnnThread::target(k.x, x, blocks[0]);
        k.run(thread, target, w, thread.take(k.y, y, blocks[1]), blocks[2]);
        thread.give(k.x, x, target);
      }
    });
  }

  /// The weights of each slice as its kernel wants them. Piles are alike here.
  std::vector<Blocks<1>> wanted_weights() const {
    std::vector<Blocks<1>> weights;
    for (std::int64_t slice = 0; slice < cut_.slices(); ++slice)
      weights.emplace_back(std::array{kernel(0, slice).w.copied_bytes()});
    parallel_for(cut_.slices(), 1, [&](std::int64_t begin, std::int64_t end) {
      OneDnnThread thread;
      for (std::int64_t slice = begin; slice < end; ++slice) {
        thread.take(kernel(0, slice).w, at(op_.w.view, parts(0, slice).w),
                    weights[static_cast<std::size_t>(slice)][0]);
      }
    });
    return weights;
  }

  /// w of x and y: of each pile of images on its own, and added up.
  void make_weights() const {
    const ArrayView& w = op_.w.view;
    std::int64_t size = w.size(), filter = size / w.shape[0];
    bool in_place = cut_.piles() == 1 && w.dtype == float32 && w.is_c_contiguous();
    std::unique_ptr<float[]> held;
    if (!in_place) held = buffer<float>(cut_.piles() * size);
    float* sums = in_place ? w.as<float>() : held.get();
    for_pieces([&](std::int64_t pile, std::int64_t, const OneDnnKernel& k, const Parts& p,
                   OneDnnThread& thread) {
      Blocks<4> blocks(
          {k.x.copied_bytes(), k.w.copied_bytes(), k.y.copied_bytes(), k.scratch_bytes()});
      float* sum = sums + pile * size + p.first_filter * filter;
      auto* lies = reinterpret_cast<char*>(sum);
      char* target = OneDnnThread::target(k.w, lies, blocks[1]);
      k.run(thread, thread.take(k.x, at(op_.x.view, p.x), blocks[0]), target,
            thread.take(k.y, at(op_.y.view, p.y), blocks[2]), blocks[3]);
      thread.give(k.w, lies, target);
    });
    if (in_place) return;
    add_parts(sums, cut_.piles(), size);
    store_values(w, sums);
  }

  const Convolution& op_;
  const ConvolutionGeometry& g_;
  Cut cut_;
  bool exist_ = true;
  // By whether the pile is the last one, and the slice.
  std::shared_ptr<const OneDnnKernel> kernels_[2][2];
};

/// What oneDNN is asked for: several places of a kernel (with one, the product of matrices is as
/// fast as it is, and needs no copies), and enough channels to fill the vectors of its kernels.
bool is_for_onednn(const Convolution& op, const ConvolutionGeometry& g) {
  Dtype dtype = op.x.view.dtype;
  if ((dtype != float32 && dtype != bfloat16) || g.axes > 3 || g.places == 1) return false;
  bool makes_x = op.direction == ConvolutionDirection::input_gradient;
  if (g.groups * (makes_x ? g.channels : g.filters) < kFewestChannels) return false;
  bool makes_w = op.direction == ConvolutionDirection::weight_gradient;
  return lie_of(op.x.view) != Lie::otherwise && lie_of(op.y.view) != Lie::otherwise &&
         (makes_w || lie_of(op.w.view) != Lie::otherwise);
}

}  // namespace

bool convolve_by_onednn(const Convolution& op) try {
  ConvolutionGeometry g(op);
  if (!is_for_onednn(op, g)) return false;
  Pieces pieces(op, g);
  if (!pieces.exist()) return false;
  pieces.run();
  return true;
} catch (const dnnl::error& error) {
  std::string what = fmt::format("{}: oneDNN: {}", op.name(), error.message);
  if (error.status == dnnl_out_of_memory) throw OutOfMemoryError(what);
  throw Error(what);
}

}  // namespace rensa::host

// Convolutions on the CPU by oneDNN: a piece is copied into the layout that a kernel wants, and
// back out of it, while it is in the cache.
#include "rensa/functions/operations/convolution/cpu_onednn.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/core/thread_pool.h"
#include "rensa/functions/operations/convolution/cpu_onednn_kernel.h"

namespace rensa::host {

namespace {

using operations::Convolution;
using operations::ConvolutionDirection;

constexpr std::int64_t kFewestChannels = 16;  // that fill the vectors of oneDNN's kernels
// Fewer pieces than these are left where a piece has more than few pixels.
constexpr std::int64_t kFewestPieces = 4, kFewPixels = 2048;
constexpr std::int64_t kMostCopied =
    4 << 20;  // values of x, by each slice that a sum for weights has

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
  Pieces(const Convolution& op, const ConvolutionGeometry& g, const Cut& cut)
      : op_(op), g_(g), cut_(cut) {
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

  /// y of x and w, or x of y and w. Piles are alike here.
  void make_activations() const {
    bool forward = op_.direction == ConvolutionDirection::forward;
    auto given_of = [=](const OneDnnKernel& k) -> const OneDnnForm& { return forward ? k.x : k.y; };
    auto given_at = [&](const Parts& p) {
      return forward ? at(op_.x.view, p.x) : at(op_.y.view, p.y);
    };
    // Without groups all slices read the same of the activation that is given.
    bool shared = cut_.slices() > 1 && g_.groups == 1 &&
                  given_of(kernel(0, 0)).wanted == given_of(kernel(0, cut_.slices() - 1)).wanted;
    BiasOf<float> bias(op_);
    auto weights = copies(cut_.slices(), [&](std::int64_t slice) {
      return std::pair(&kernel(0, slice).w, at(op_.w.view, parts(0, slice).w));
    });
    auto given = copies(shared ? cut_.piles() : 0, [&](std::int64_t pile) {
      return std::pair(&given_of(kernel(pile, 0)), given_at(parts(pile, 0)));
    });
    for_pieces([&](std::int64_t pile, std::int64_t slice, const OneDnnKernel& k, const Parts& p,
                   OneDnnThread& thread) {
      const OneDnnForm &in = given_of(k), &out = forward ? k.y : k.x;
      Blocks<3> blocks({shared ? 0 : in.copied_bytes(), out.copied_bytes(), k.scratch_bytes()});
      char* to = forward ? at(op_.y.view, p.y) : at(op_.x.view, p.x);
      char* target = OneDnnThread::target(out, to, blocks[1]);
      char* w = k.w.copied ? weights[static_cast<std::size_t>(slice)][0] : at(op_.w.view, p.w);
      char* from = shared && in.copied ? given[static_cast<std::size_t>(pile)][0]
                                       : thread.take(in, given_at(p), blocks[0]);
      k.run(thread, forward ? from : target, w, forward ? target : from,
            forward ? bias.from(p.first_filter) : nullptr, blocks[2]);
      thread.give(out, to, target);
    });
  }

  /// The operands `of`(i), a form and where it lies, as kernels want them.
  template <class F> static std::vector<Blocks<1>> copies(std::int64_t count, F&& of) {
    std::vector<Blocks<1>> blocks;
    for (std::int64_t i = 0; i < count; ++i)
      blocks.emplace_back(std::array{of(i).first->copied_bytes()});
    parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
      OneDnnThread thread;
      for (std::int64_t i = begin; i < end; ++i) {
        auto [form, lies] = of(i);
        thread.take(*form, lies, blocks[static_cast<std::size_t>(i)][0]);
      }
    });
    return blocks;
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
            thread.take(k.y, at(op_.y.view, p.y), blocks[2]), nullptr, blocks[3]);
      thread.give(k.w, lies, target);
    });
    if (in_place) return;
    add_parts(sums, cut_.piles(), size);
    store_values(w, sums);
  }

  const Convolution& op_;
  const ConvolutionGeometry& g_;
  const Cut& cut_;
  bool exist_ = true;
  // By whether the pile is the last one, and the slice.
  std::shared_ptr<const OneDnnKernel> kernels_[2][2];
};

std::int64_t padded(std::int64_t channels) {
  return (channels + kFewestChannels - 1) / kFewestChannels * kFewestChannels;
}

/// Whether most of what oneDNN's vectors hold are channels that there are.
bool fills_vectors(const ConvolutionGeometry& g, bool makes_x) {
  if (g.groups * (makes_x ? g.channels : g.filters) < kFewestChannels) return false;
  if (g.groups > 1) return true;
  // Kernels of few channels, those of pictures, hold the filters alone in vectors.
  if (g.channels < kFewestChannels) return 2 * padded(g.filters) <= 3 * g.filters;
  return 2 * padded(g.channels) * padded(g.filters) <= 5 * g.channels * g.filters;
}

/// Whether pieces are enough for several threads, and small enough to be copied while they are in
/// the cache. Images are not cut along their spatial axes, as the project's own kernels do.
bool cuts_well(const Convolution& op, const ConvolutionGeometry& g, const Cut& cut) {
  std::int64_t images = cut.piece(0, 0).images, pieces = cut.piles() * cut.slices();
  if (pieces < kFewestPieces && images * g.pixels > kFewPixels) return false;
  bool makes_w = op.direction == ConvolutionDirection::weight_gradient;
  return !makes_w || images * g.groups * g.channels * g.positions <= kMostCopied;
}

/// What oneDNN is asked for: several places of a kernel (with one, the product of matrices is as
/// fast as it is, and needs no copies) of enough channels, in good pieces.
bool is_for_onednn(const Convolution& op, const ConvolutionGeometry& g, const Cut& cut) {
  Dtype dtype = op.x.view.dtype;
  if ((dtype != float32 && dtype != bfloat16) || g.axes > 3 || g.places == 1) return false;
  bool makes_w = op.direction == ConvolutionDirection::weight_gradient;
  bool makes_x = op.direction == ConvolutionDirection::input_gradient;
  if (!fills_vectors(g, makes_x) || !cuts_well(op, g, cut)) return false;
  return lie_of(op.x.view) != Lie::otherwise && lie_of(op.y.view) != Lie::otherwise &&
         (makes_w || lie_of(op.w.view) != Lie::otherwise);
}

}  // namespace

bool convolve_by_onednn(const Convolution& op) try {
  ConvolutionGeometry g(op);
  Cut cut(op, g);
  if (!is_for_onednn(op, g, cut)) return false;
  Pieces pieces(op, g, cut);
  if (!pieces.exist()) return false;
  pieces.run();
  // oneDNN's kernels of gradients take none.
  bool left = op.bias.present() && op.direction == ConvolutionDirection::input_gradient;
  if (left) operations::bias_addition(op).run_cpu();
  return true;
} catch (const dnnl::error& error) {
  std::string what = fmt::format("{}: oneDNN: {}", op.name(), error.message);
  if (error.status == dnnl_out_of_memory) throw OutOfMemoryError(what);
  throw Error(what);
}

}  // namespace rensa::host

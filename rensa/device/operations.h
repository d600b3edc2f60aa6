// Every kind of operation there is. Elementwise work and reductions are rows of tables
// (core/ops.def, core/reductions.h); a new kind is needed only for a new shape of work.
#pragma once

#include <vector>

#include "rensa/core/reductions.h"
#include "rensa/core/scalar.h"
#include "rensa/core/ufunc.h"
#include "rensa/core/update_rules.h"
#include "rensa/device/kind.h"

namespace rensa {

/// One input of an elementwise operation: an array, or a number.
struct ElementwiseInput {
  Operand array;  // absent: the number
  Scalar scalar;
};

/// out[i] = ufunc(in0[i], in1[i], in2[i]) in compute_type(compute), every input already broadcast
/// to out's shape (stride 0) and of any dtype; out of any dtype. Ufunc::copy is astype, fill and
/// the strided copy. in and out may be the same elements, not partly overlapping ones.
struct Elementwise final : KindOf<Elementwise> {
  Elementwise(const char* name, Ufunc f) : KindOf(name), ufunc(f) {}
  Ufunc ufunc;
  Dtype compute = Dtype::float32;
  int num_inputs = 0;
  ElementwiseInput in[3];
  Operand out;

  template <class V> void fields(V& v) {
    for (int i = 0; i < num_inputs; ++i) v.read(in[i].array), v.number(in[i].scalar);
    v.write(out), v.number(ufunc, compute);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

/// out = reduction of `in` over the axes whose bit in `axes` is set; out has those axes with extent
/// 1 (keepdims), all others as in `in`. Sums of float16, bfloat16 and float32 are carried in float
/// (pairwise on the CPU). argmax and argmin give int64 positions along the one reduced axis, the
/// first of equals, and NaN counts as the greatest (least).
struct Reduce final : KindOf<Reduce> {
  Reduce(const char* name, Reduction r) : KindOf(name), reduction(r) {}
  Reduction reduction;
  unsigned axes = 0;
  Dtype compute = Dtype::float32;
  Operand in, out;

  template <class V> void fields(V& v) {
    v.read(in), v.write(out), v.number(reduction, axes, compute);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// c = alpha * a @ b (+ bias) (then relu). a is (..., m, k), b (..., k, n), c (..., m, n), one
/// dtype, equal leading axes (stride 0 where broadcast); bias is (n,). The last two axes of a and b
/// may be transposed views.
struct Matmul final : KindOf<Matmul> {
  Matmul() : KindOf("matmul") {}
  explicit Matmul(const char* name) : KindOf(name) {}
  double alpha = 1;
  bool relu = false;
  bool tf32 = false;  // taken from Config when the operation is made
  bool autotune = false;
  Operand a, b, bias, c;

  template <class V> void fields(V& v) {
    v.read(a, b, bias), v.write(c), v.number(alpha, relu, tf32);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// out[i] = start + i * step, out one-dimensional.
struct Arange final : KindOf<Arange> {
  Arange() : KindOf("arange") {}
  Scalar start, step;
  Operand out;

  template <class V> void fields(V& v) { v.write(out), v.number(start, step); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

/// Fills `out` (C-contiguous) from Philox counter `offset`; see core/philox.h.
///   uniform: low + (high - low) * u, u in [0, 1); two words an element for float64
///   normal: loc + scale * z by Box-Muller, two elements from two words (four for float64)
///   exponential to cauchy: loc + scale * the inverse distribution function of a uniform in (0, 1)
///   integers: low + floor(word * span / 2^bits), the word made of one, two or four; of two a span
///   of 0 stands for 2^64
///   order: a permutation of [0, size) by core/random_integers.h's PseudoOrder, int64
struct Random final : KindOf<Random> {
  enum class Kind : unsigned char {
    uniform,
    normal,
    exponential,
    gumbel,
    laplace,
    logistic,
    cauchy,
    integers,
    order
  };
  Random(const char* name, Kind k) : KindOf(name), kind(k) {}
  Kind kind;
  double a = 0, b = 1;  // low, high or loc, scale
  long long low = 0;    // of integers
  unsigned long long span = 1;
  int words = 1;
  HostScalar seed, offset;  // integers
  Operand out;

  template <class V> void fields(V& v) {
    v.write(out), v.scalar(seed, offset);
    v.number(kind, a, b, low, span, words);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

/// out[i] = in[i] / (1 - ratio) where uniform_float(word i) >= ratio, else 0: the same mask for the
/// same seed and offset. in and out are C-contiguous and of one dtype.
struct Dropout final : KindOf<Dropout> {
  Dropout() : KindOf("dropout") {}
  double ratio = 0.5;
  HostScalar seed, offset;
  Operand in, out;

  template <class V> void fields(V& v) {
    v.read(in), v.write(out), v.scalar(seed, offset), v.number(ratio);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

/// Chainer's softmax_cross_entropy over x (n, classes) and integer labels t (n,), both
/// C-contiguous:
///   y = log softmax of x, by row
///   loss = -sum(y[i, t[i]] over t[i] != ignore_label) / count,
///   count = the rows counted (at least 1) if `normalize`, else n
/// y has x's dtype; loss and count are 0-d, loss of x's dtype, count float32. A label outside
/// [0, classes) that is not `ignore_label` throws IndexError (on the GPU at the next wait).
struct SoftmaxCrossEntropy final : KindOf<SoftmaxCrossEntropy> {
  SoftmaxCrossEntropy() : KindOf("softmax_cross_entropy") {}
  bool normalize = true;
  long long ignore_label = -1;
  Operand x, t, y, loss, count;

  template <class V> void fields(V& v) {
    v.read(x, t), v.write(y, loss, count), v.number(normalize, ignore_label);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// gx[i, j] = (exp(y[i, j]) - [j == t[i]]) * gy / count, 0 in ignored rows; gy is 0-d.
struct SoftmaxCrossEntropyGrad final : KindOf<SoftmaxCrossEntropyGrad> {
  SoftmaxCrossEntropyGrad() : KindOf("softmax_cross_entropy_grad") {}
  long long ignore_label = -1;
  Operand y, t, count, gy, gx;

  template <class V> void fields(V& v) {
    v.read(y, t, count, gy), v.write(gx), v.number(ignore_label);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

/// Chainer's accuracy: the share of rows of y (n, classes) whose greatest element stands at t[i],
/// rows with `ignore_label` (where has_ignore_label) left out. `accuracy` is 0-d of y's dtype.
struct Accuracy final : KindOf<Accuracy> {
  Accuracy() : KindOf("accuracy") {}
  bool has_ignore_label = false;
  long long ignore_label = 0;
  Operand y, t, accuracy;

  template <class V> void fields(V& v) {
    v.read(y, t), v.write(accuracy), v.number(has_ignore_label, ignore_label);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// gz = where(y > 0, gy, 0) and gb = sum of gz over axis 0, in one pass; y, gy, gz are (n, m)
/// C-contiguous, gb (m,). gz may be gy. What capture makes of relu's and a bias's gradients; gb is
/// bit-equal to Reduce's sum over axis 0.
struct ReluBiasGrad final : KindOf<ReluBiasGrad> {
  ReluBiasGrad() : KindOf("relu_bias_grad") {}
  Operand gy, y, gz, gb;

  template <class V> void fields(V& v) { v.read(gy, y), v.write(gz, gb); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// One parameter of an UpdateParameters: all C-contiguous and of one shape; the states have the
/// parameter's dtype.
struct UpdateTarget {
  Operand parameter, gradient, states[kMaxStates];
};
/// Applies one rule of update_rules.def to all targets, on one device, in one launch (a few when
/// there are very many).
struct UpdateParameters final : KindOf<UpdateParameters> {
  UpdateParameters(const char* name, UpdateRuleId r) : KindOf(name), rule(r) {}
  UpdateRuleId rule;
  int num_states = 0;
  std::vector<UpdateTarget> targets;
  HostScalar hyperparameters[kMaxHyperparameters];
  int num_hyperparameters = 0;

  template <class V> void fields(V& v) {
    for (UpdateTarget& target : targets) {
      v.read(target.gradient), v.update(target.parameter);
      for (int i = 0; i < num_states; ++i) v.write(target.states[i]);
    }
    for (int i = 0; i < num_hyperparameters; ++i) v.scalar(hyperparameters[i]);
    v.number(rule);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

/// out = in between two devices, or host and device; both C-contiguous, one dtype and size. Runs on
/// the destination's current stream after what the source's current stream has queued, and the
/// other way round for its end. Host memory that is not pinned makes the copy wait (counted).
struct Transfer final : KindOf<Transfer> {
  explicit Transfer(const char* name = "copyto") : KindOf(name) {}
  Operand in, out;

  template <class V> void fields(V& v) { v.read(in), v.write(out); }
  bool is_between_devices() const override { return true; }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa

// The elementwise loops for one instruction set: of the rows of RENSA_ROWS, a file of ops.def. What
// is compiled includes this one (rensa/CMakeLists.txt writes it, one file per subject).
#include "rensa/backend/cpu/kernel_sources.h"

#include "rensa/core/begin_functors.h"
namespace rensa::op {
struct fmod;  // the rows that have loops of their own
struct remainder;
struct floor_divide;
struct power;
#include RENSA_ROWS
}  // namespace rensa::op
#include "rensa/core/end_functors.h"

namespace rensa::host::RENSA_SET {

namespace {

// Floating functions are computed in whole blocks only, the last one padded, so that a value gives
// the same result wherever in an array it stands: vector and scalar functions differ in the last
// bit.
template <class V>
inline constexpr int kBlock = std::is_same_v<V, float> || std::is_same_v<V, double> ? 32 : 1;

// fmodf's result where the quotient is below 2^29; sets is_large where it is not. In double its
// whole part is exact: a quotient is a whole number, or 2^-24 and more away from any. So is the
// product, of 29 and 24 bits, and the difference, which is made of the bits of `b`.
RENSA_FN float small_fmod(float a, float b, int& is_large) {
  double x = m::abs(double(a)), y = m::abs(double(b)), quotient = x / y;
  bool large = (0x1p29 <= quotient) & (quotient < m::infinity<double>());
  is_large |= large ? 1 : 0;
  int whole = int(quotient < 0x1p29 ? quotient : 0.0);
  float rest = float(x - double(whole) * y);
  float mod = x < y ? a : rest;
  float size = float(quotient);  // infinite or NaN where nothing can be left
  return m::copysign(size < m::infinity<float>() ? mod : size - size, a);
}

// The rows over float that are made of it.
template <class Op, class V>
concept FromFmod = std::is_same_v<V, float> &&
    (std::is_same_v<Op, op::fmod> || std::is_same_v<Op, op::remainder> ||
     std::is_same_v<Op, op::floor_divide>);
template <class Op> RENSA_FN float from_fmod(float mod, float a, float b) {
  if constexpr (std::is_same_v<Op, op::fmod>) return (void)a, (void)b, mod;
  else if constexpr (std::is_same_v<Op, op::remainder>) return (void)a, m::remainder_of(mod, b);
  else return m::floor_divide_of(mod, a, b);
}

template <class Op> RENSA_FN void fmod_block(const float* a, const float* b, float* out) {
  float mod[kBlock<float>];
  int is_large = 0;
  for (int i = 0; i < kBlock<float>; ++i) mod[i] = small_fmod(a[i], b[i], is_large);
  if (is_large) {
    for (int i = 0; i < kBlock<float>; ++i) mod[i] = m::fmod(a[i], b[i]);
  }
  RENSA_IVDEP
  for (int i = 0; i < kBlock<float>; ++i) out[i] = from_fmod<Op>(mod[i], a[i], b[i]);
}

// power over float, where the processor has fused multiply-adds. Usually all bases are positive and
// normal and so are all results: then neither C's special cases nor rounding to subnormals have to
// be computed. Two loops, as the processor works on several iterations of each at a time; those of
// a single loop would be too long for that.
#if RENSA_HAS_FMA
template <class Op, class V>
inline constexpr bool kFusedPower = std::is_same_v<Op, op::power>&& std::is_same_v<V, float>;
#else
template <class Op, class V> inline constexpr bool kFusedPower = false;
#endif

template <int n> RENSA_FN void power_chunk(const float* a, const float* b, float* out) {
  namespace fused = m::power;
  float head[n], tail[n], result[n];
  unsigned base = 0, argument = 0;  // the greatest, as bits: NaN is greater than any number
  for (int i = 0; i < n; ++i) {
    fused::HalfLog log = fused::half_log(a[i], 0.0f);
    unsigned above = fused::above_smallest(a[i]);
    base = base < above ? above : base;
    head[i] = log.head, tail[i] = log.tail;
  }
  for (int i = 0; i < n; ++i) {
    fused::Exponential e = fused::exponential(b[i], {head[i], tail[i]});
    unsigned size = detail::bit_cast<unsigned>(m::abs(e.argument));
    argument = argument < size ? size : argument;
    result[i] = fused::scaled_normal(e);
  }
  if (base >= fused::kNormals || argument >= detail::bit_cast<unsigned>(fused::kNormalArgument)) {
    for (int i = 0; i < n; ++i) result[i] = fused::pow(a[i], b[i]);
  }
  std::memcpy(out, result, sizeof(result));
}

RENSA_FN void power_blocks(std::int64_t blocks, const float* a, const float* b, float* out) {
  constexpr int kSmall = kBlock<float>, kLarge = 4 * kSmall;
  std::int64_t n = blocks * kSmall, at = 0;
  for (; at + kLarge <= n; at += kLarge) power_chunk<kLarge>(a + at, b + at, out + at);
  for (; at < n; at += kSmall) power_chunk<kSmall>(a + at, b + at, out + at);
}

// Whether the loop over blocks takes inputs of which one block is repeated.
template <class Op, class V>
inline constexpr bool kRepeatsBlocks = kBlock<V> > 1 && !FromFmod<Op, V> && !kFusedPower<Op, V>;

// How far each input goes on from one block to the next: by a block, or not at all.
struct Steps {
  std::int64_t of[3];
};

template <class Op, class V, int kInputs>
__attribute__((noinline)) void elementwise_blocks(std::int64_t blocks, const V* a, const V* b,
                                                  const V* c, V* out, const Steps& steps) {
  auto apply = [](V x, V y, V z) {
    (void)y, (void)z;
    if constexpr (kInputs == 1) return Op{}(x);
    else if constexpr (kInputs == 2) return Op{}(x, y);
    else return Op{}(x, y, z);
  };
  if constexpr (FromFmod<Op, V>) {
    for (std::int64_t at = 0; at < blocks * kBlock<V>; at += kBlock<V>) {
      fmod_block<Op>(a + at, b + at, out + at);
    }
  } else if constexpr (kFusedPower<Op, V>) {
    power_blocks(blocks, a, b, out);
  } else if constexpr (kBlock<V> == 1) {
    RENSA_IVDEP
    for (std::int64_t i = 0; i < blocks; ++i) out[i] = apply(a[i], b[i], c[i]);
  } else {
    for (std::int64_t k = 0; k < blocks; ++k) {
      RENSA_IVDEP
      for (int i = 0; i < kBlock<V>; ++i) out[i] = apply(a[i], b[i], c[i]);
      a += steps.of[0], b += steps.of[1], c += steps.of[2], out += kBlock<V>;
    }
  }
}

template <class Op, class V, int kInputs>
void elementwise(std::int64_t n, const void* const* in, void* out, unsigned repeated) {
  const V* p[3];
  V* result = static_cast<V*>(out);
  Steps steps;
  for (int k = 0; k < 3; ++k) {
    int input = k < kInputs ? k : 0;
    p[k] = static_cast<const V*>(in[input]);
    steps.of[k] = (repeated >> input & 1) != 0 ? 0 : kBlock<V>;
  }
  if constexpr (!kRepeatsBlocks<Op, V>) {
    while (repeated != 0 && n > kRepeats) {
      const void* part[3] = {p[0], p[1], p[2]};
      elementwise<Op, V, kInputs>(kRepeats, part, result, 0);
      n -= kRepeats, result += kRepeats;
      for (int k = 0; k < 3; ++k) p[k] += steps.of[k] == 0 ? 0 : kRepeats;
    }
  }
  std::int64_t blocks = n / kBlock<V>, done = blocks * kBlock<V>;
  if (blocks > 0) elementwise_blocks<Op, V, kInputs>(blocks, p[0], p[1], p[2], result, steps);
  if (done == n) return;
  V padded[kInputs][kBlock<V>], padded_result[kBlock<V>];
  std::size_t rest = static_cast<std::size_t>(n - done);
  for (int k = 0; k < kInputs; ++k) {
    std::int64_t at = kRepeatsBlocks<Op, V> && steps.of[k] == 0 ? 0 : done;
    std::memcpy(padded[k], p[k] + at, rest * sizeof(V));
    for (std::size_t i = rest; i < kBlock<V>; ++i) padded[k][i] = padded[k][0];
  }
  elementwise_blocks<Op, V, kInputs>(1, padded[0], padded[kInputs > 1 ? 1 : 0],
                                     padded[kInputs > 2 ? 2 : 0], padded_result, steps);
  std::memcpy(result + done, padded_result, rest * sizeof(V));
}

template <class Op, int kInputs, class V> constexpr void add_over(ElementwiseKernels& kernels) {
  kernels.over[static_cast<int>(compute_type_of<V>)] = elementwise<Op, V, kInputs>;
}
template <class Op, int kInputs, DtypeRule kRule> constexpr ElementwiseKernels kernels_of() {
  ElementwiseKernels kernels = {};
  each_value_type([&]<class V>() {
    if constexpr (rule_takes(kRule, compute_type_of<V>)) add_over<Op, kInputs, V>(kernels);
  });
  return kernels;
}

// What RENSA_ON_BOOL says, over bytes: every one but 0 is true.
namespace on_bool {
#define RENSA_RULE(name, expression)                                            \
  struct name {                                                                 \
    RENSA_FN unsigned char operator()(unsigned char a, unsigned char b) const { \
      return m::flag<unsigned char>(expression);                                \
    }                                                                           \
  };
RENSA_RULE(both, m::truth(a) && m::truth(b))
RENSA_RULE(either, m::truth(a) || m::truth(b))
RENSA_RULE(one, m::truth(a) ^ m::truth(b))
RENSA_RULE(alike, m::truth(a) == m::truth(b))
#undef RENSA_RULE
struct opposite {
  RENSA_FN unsigned char operator()(unsigned char a) const {
    return m::flag<unsigned char>(!m::truth(a));
  }
};
}  // namespace on_bool

template <class Op> constexpr ElementwiseKernel kOnBool = nullptr;
template <class Op> constexpr ElementwiseKernel kOnInt32 = nullptr;
#define RENSA_UFUNC(name, inputs, rule, expression)
#define RENSA_INTERNAL(name, inputs, rule, expression)
#define RENSA_ON_BOOL(name, inputs, what)         \
  template <>                                     \
  constexpr ElementwiseKernel kOnBool<op::name> = \
      elementwise<on_bool::what, unsigned char, inputs>;
#define RENSA_ON_INT32(name, inputs) \
  template <> constexpr ElementwiseKernel kOnInt32<op::name> = elementwise<op::name, int, inputs>;
#include RENSA_ROWS
#undef RENSA_UFUNC
#undef RENSA_INTERNAL
#undef RENSA_ON_BOOL
#undef RENSA_ON_INT32

template <class Op, int kInputs, DtypeRule kRule> constexpr ElementwiseKernels row() {
  ElementwiseKernels kernels = kernels_of<Op, kInputs, kRule>();
  kernels.on_bool = kOnBool<Op>;
  kernels.on_int32 = kOnInt32<Op>;
  return kernels;
}

}  // namespace

namespace elementwise_rows {
#define RENSA_UFUNC(name, inputs, rule, expression) \
  extern const ElementwiseKernels name;             \
  constinit const ElementwiseKernels name = row<op::name, inputs, DtypeRule::rule>();
#define RENSA_INTERNAL(name, inputs, rule, expression) RENSA_UFUNC(name, inputs, rule, expression)
#include RENSA_ROWS
#undef RENSA_UFUNC
#undef RENSA_INTERNAL
}  // namespace elementwise_rows

}  // namespace rensa::host::RENSA_SET

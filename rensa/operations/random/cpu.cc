// Random numbers on the CPU.
#include <algorithm>
#include <cmath>

#include "rensa/core/random_integers.h"
#include "rensa/operations/random/cpu_philox.h"
#include "rensa/operations/random/random.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

const RandomKernels& random_kernels() {
  static const RandomKernels kernels = RENSA_IN_SET(best_instruction_set(), get_random_kernels)();
  return kernels;
}

namespace {

using operations::Random;

template <class V> void fill_uniform(const Random& op) {
  V low = static_cast<V>(op.a), span = static_cast<V>(op.b) - low;
  constexpr int kWords = sizeof(V) / 4;
  for_each_chunk(op.out.view.size(), kWords, op.seed, op.offset,
                 [&](std::int64_t begin, std::int64_t n, const std::uint32_t* words) {
                   V values[kChunk];
                   for (std::int64_t i = 0; i < n; ++i) {
                     values[i] = low + span * uniform_value<V>(words, i);
                   }
                   store_chunk(op.out.view, begin, n, values);
                 });
}

// Box-Muller: each pair of uniforms gives two elements.
template <class V> void fill_normal(const Random& op) {
  constexpr int kWords = sizeof(V) / 4;
  constexpr ComputeType kType = compute_type_of<V>;
  constexpr V kTwoPi = V(6.283185307179586476925286766559);
  V loc = static_cast<V>(op.a), scale = static_cast<V>(op.b);
  const KernelTable& k = kernels();
  for_each_chunk(op.out.view.size(), kWords, op.seed, op.offset,
                 [&](std::int64_t begin, std::int64_t n, const std::uint32_t* words) {
                   V radius[kChunk / 2], angle[kChunk / 2], cosine[kChunk / 2], values[kChunk];
                   std::int64_t pairs = (n + 1) / 2;
                   for (std::int64_t i = 0; i < pairs; ++i) {
                     radius[i] = V(1) - uniform_value<V>(words, 2 * i);  // in (0, 1]
                     angle[i] = kTwoPi * uniform_value<V>(words, 2 * i + 1);
                   }
                   const void *r[] = {radius}, *a[] = {angle};
                   k.of(ufunc::log, kType)(pairs, r, radius, 0);
                   k.of(ufunc::cos, kType)(pairs, a, cosine, 0);
                   k.of(ufunc::sin, kType)(pairs, a, angle, 0);
                   for (std::int64_t i = 0; i < pairs; ++i) {
                     V length = std::sqrt(V(-2) * radius[i]);
                     values[2 * i] = loc + scale * (length * cosine[i]);
                     values[2 * i + 1] = loc + scale * (length * angle[i]);
                   }
                   store_chunk(op.out.view, begin, n, values);
                 });
}

// u in (0, 1) to the standard variate of the kind, in place: the inverse distribution functions.
template <class V> void invert(Random::Kind kind, std::int64_t n, V* u) {
  constexpr ComputeType kType = compute_type_of<V>;
  ElementwiseKernel log = kernels().of(ufunc::log, kType);
  const void* in[] = {u};
  V other[kChunk], sine[kChunk];
  switch (kind) {
    case Random::Kind::exponential:
    case Random::Kind::gumbel:
      log(n, in, u, 0);
      for (std::int64_t i = 0; i < n; ++i) u[i] = -u[i];
      if (kind == Random::Kind::exponential) return;
      log(n, in, u, 0);
      for (std::int64_t i = 0; i < n; ++i) u[i] = -u[i];
      return;
    case Random::Kind::logistic:
      for (std::int64_t i = 0; i < n; ++i) u[i] = u[i] / (V(1) - u[i]);
      return log(n, in, u, 0);
    case Random::Kind::laplace: {
      const void* size[] = {other};
      for (std::int64_t i = 0; i < n; ++i) other[i] = V(2) * std::min(u[i], V(1) - u[i]);
      log(n, size, other, 0);
      for (std::int64_t i = 0; i < n; ++i) u[i] = u[i] < V(0.5) ? other[i] : -other[i];
      return;
    }
    default: {  // cauchy: minus the cotangent of pi * u
      const void* angle[] = {other};
      for (std::int64_t i = 0; i < n; ++i) {
        other[i] = V(3.141592653589793238) * std::min(u[i], V(1) - u[i]);
      }
      kernels().of(ufunc::sin, kType)(n, angle, sine, 0);
      kernels().of(ufunc::cos, kType)(n, angle, other, 0);
      for (std::int64_t i = 0; i < n; ++i) {
        V size = other[i] / sine[i];
        u[i] = u[i] < V(0.5) ? -size : size;
      }
    }
  }
}

template <class V> void fill_inverse(const Random& op) {
  constexpr int kWords = sizeof(V) / 4;
  V loc = static_cast<V>(op.a), scale = static_cast<V>(op.b);
  for_each_chunk(op.out.view.size(), kWords, op.seed, op.offset,
                 [&](std::int64_t begin, std::int64_t n, const std::uint32_t* words) {
                   V values[kChunk];
                   for (std::int64_t i = 0; i < n; ++i) {
                     if constexpr (kWords == 2) {
                       values[i] = open_double(words[2 * i], words[2 * i + 1]);
                     } else {
                       values[i] = open_float(words[i]);
                     }
                   }
                   invert(op.kind, n, values);
                   for (std::int64_t i = 0; i < n; ++i) values[i] = loc + scale * values[i];
                   store_chunk(op.out.view, begin, n, values);
                 });
}

// A whole number of the two words at `words`.
unsigned long long join(const std::uint32_t* words) {
  return static_cast<unsigned long long>(words[0]) << 32 | words[1];
}

void fill_integers(const Random& op) {
  auto low = static_cast<unsigned long long>(op.low), span = op.span;
  for_each_chunk(op.out.view.size(), op.words, op.seed, op.offset,
                 [&](std::int64_t begin, std::int64_t n, const std::uint32_t* words) {
                   unsigned long long values[kChunk];
                   if (op.words == 1) {
                     auto narrow = static_cast<std::uint32_t>(span);
                     for (std::int64_t i = 0; i < n; ++i)
                       values[i] = low + scaled(words[i], narrow);
                   } else if (op.words == 2) {
                     for (std::int64_t i = 0; i < n; ++i) {
                       auto word = join(words + 2 * i);
                       values[i] = low + (span ? scaled(word, span) : word);
                     }
                   } else {
                     for (std::int64_t i = 0; i < n; ++i) {
                       const std::uint32_t* word = words + 4 * i;
                       values[i] = low + scaled(join(word), join(word + 2), span);
                     }
                   }
                   store_chunk(op.out.view, begin, n, values);
                 });
}

void fill_order(const Random& op) {
  PseudoOrder order;
  order.set_size(static_cast<unsigned long long>(op.out.view.size()));
  random_kernels().philox(static_cast<unsigned long long>(op.seed.integer),
                          static_cast<unsigned long long>(op.offset.integer),
                          PseudoOrder::kCounters, order.key);
  auto* out = op.out.view.as<std::uint64_t>();
  parallel_for(op.out.view.size(), kRandomGrain, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t begin = first; begin < end; begin += kChunk) {
      // Those that come to lie above the size go round again, together.
      std::uint64_t walking[kChunk];
      std::int64_t places[kChunk], n = std::min(kChunk, end - begin);
      for (std::int64_t i = 0; i < n; ++i) {
        walking[i] = static_cast<std::uint64_t>(begin + i);
        places[i] = begin + i;
      }
      while (n > 0) {
        random_kernels().walk(order, n, walking);
        std::int64_t left = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          std::uint64_t at = walking[i];
          out[places[i]] = at;
          walking[left] = at;
          places[left] = places[i];
          left += at >= order.n;
        }
        n = left;
      }
    }
  });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void Random::run_cpu() {
  bool is_double = out.view.dtype == float64;
  switch (kind) {
    case Kind::uniform:
      return is_double ? host::fill_uniform<double>(*this) : host::fill_uniform<float>(*this);
    case Kind::normal:
      return is_double ? host::fill_normal<double>(*this) : host::fill_normal<float>(*this);
    case Kind::integers: return host::fill_integers(*this);
    case Kind::order: return host::fill_order(*this);
    default:
      return is_double ? host::fill_inverse<double>(*this) : host::fill_inverse<float>(*this);
  }
}

}  // namespace rensa::operations

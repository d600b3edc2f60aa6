// A quicksort whose partitions compare and move a vector of keys at a time, down to a few vectors,
// which a bitonic network sorts.
#include "rensa/operations/sort/cpu_wide_sort.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>

#include "rensa/backend/cpu/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(                                                  \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt,prefer-vector-width=512")
#endif

namespace rensa::host::avx512 {

namespace {

// The order of four lanes in which each stands where its number differs by `bits`, as shuffles take
// it.
constexpr int lanes_of_four(unsigned bits) {
  return static_cast<int>((0 ^ bits) | (1 ^ bits) << 2 | (2 ^ bits) << 4 | (3 ^ bits) << 6);
}

struct Keys32 {
  using Key = unsigned;
  static constexpr int kLanes = 16;
  // GCC takes what the forms without a mask leave undefined for a mistake.
  static constexpr __mmask16 kEach = 0xffff;
  static __m512i all(Key key) { return _mm512_set1_epi32(static_cast<int>(key)); }
  static unsigned less(__m512i a, __m512i b) { return _mm512_cmplt_epu32_mask(a, b); }
  static unsigned less_equal(__m512i a, __m512i b) { return _mm512_cmple_epu32_mask(a, b); }
  static __m512i compress(unsigned lanes, __m512i v) {
    return _mm512_maskz_compress_epi32(static_cast<__mmask16>(lanes), v);
  }
  static void store_some(Key* to, unsigned lanes, __m512i v) {
    _mm512_mask_storeu_epi32(to, static_cast<__mmask16>(lanes), v);
  }
  static __m512i min(__m512i a, __m512i b) { return _mm512_maskz_min_epu32(kEach, a, b); }
  static __m512i max(__m512i a, __m512i b) { return _mm512_maskz_max_epu32(kEach, a, b); }
  // `least`, but in `lanes` the greater of v and w.
  static __m512i max_in(__m512i least, unsigned lanes, __m512i v, __m512i w) {
    return _mm512_mask_max_epu32(least, static_cast<__mmask16>(lanes), v, w);
  }
  // Each lane gets the one whose number differs by the bits of kBits. Within four lanes, and of
  // four lanes as one, that is a shorter instruction.
  template <unsigned kBits> static __m512i across(__m512i v) {
    if constexpr (kBits < 4) {
      return _mm512_maskz_shuffle_epi32(kEach, v, static_cast<_MM_PERM_ENUM>(lanes_of_four(kBits)));
    } else if constexpr (kBits % 4 == 0) {
      return _mm512_maskz_shuffle_i32x4(kEach, v, v, lanes_of_four(kBits / 4));
    } else {
      __m512i numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
      return _mm512_maskz_permutexvar_epi32(kEach, _mm512_xor_si512(numbers, all(kBits)), v);
    }
  }
  static __m512i load_some(const Key* from, unsigned lanes) {
    return _mm512_mask_loadu_epi32(_mm512_set1_epi32(-1), static_cast<__mmask16>(lanes), from);
  }
};

struct Keys64 {
  using Key = unsigned long long;
  static constexpr int kLanes = 8;
  static constexpr __mmask8 kEach = 0xff;
  static __m512i all(Key key) { return _mm512_set1_epi64(static_cast<long long>(key)); }
  static unsigned less(__m512i a, __m512i b) { return _mm512_cmplt_epu64_mask(a, b); }
  static unsigned less_equal(__m512i a, __m512i b) { return _mm512_cmple_epu64_mask(a, b); }
  static __m512i compress(unsigned lanes, __m512i v) {
    return _mm512_maskz_compress_epi64(static_cast<__mmask8>(lanes), v);
  }
  static void store_some(Key* to, unsigned lanes, __m512i v) {
    _mm512_mask_storeu_epi64(to, static_cast<__mmask8>(lanes), v);
  }
  static __m512i min(__m512i a, __m512i b) { return _mm512_maskz_min_epu64(kEach, a, b); }
  static __m512i max(__m512i a, __m512i b) { return _mm512_maskz_max_epu64(kEach, a, b); }
  static __m512i max_in(__m512i least, unsigned lanes, __m512i v, __m512i w) {
    return _mm512_mask_max_epu64(least, static_cast<__mmask8>(lanes), v, w);
  }
  template <unsigned kBits> static __m512i across(__m512i v) {
    if constexpr (kBits == 1) {
      return _mm512_maskz_shuffle_epi32(0xffff, v, _MM_PERM_BADC);
    } else if constexpr (kBits % 2 == 0) {
      return _mm512_maskz_shuffle_i64x2(kEach, v, v, lanes_of_four(kBits / 2));
    } else {
      __m512i numbers = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
      return _mm512_maskz_permutexvar_epi64(kEach, _mm512_xor_si512(numbers, all(kBits)), v);
    }
  }
  static __m512i load_some(const Key* from, unsigned lanes) {
    return _mm512_mask_loadu_epi64(_mm512_set1_epi64(-1), static_cast<__mmask8>(lanes), from);
  }
};

template <class K> class WideSort {
 public:
  using Key = typename K::Key;
  static constexpr int kLanes = K::kLanes, kVectors = 32, kFew = kVectors * kLanes;

  static void sort(Key* keys, std::int64_t n, int depth) {
    while (n > kFew) {
      if (depth-- == 0) return std::sort(keys, keys + n);
      std::int64_t below = split(keys, n, [&](std::int64_t left) { sort(keys, left, depth); });
      keys += below;
      n -= below;
    }
    sort_few(keys, keys, n);
  }

  static std::int64_t halve(Key* keys, std::int64_t n) {
    return n > kFew ? split(keys, n, [](std::int64_t) {}) : 0;
  }

  static void select(Key* keys, std::int64_t n, std::int64_t kth, int depth) {
    while (n > kFew) {
      if (depth-- == 0) return std::nth_element(keys, keys + kth, keys + n);
      bool inside = false;
      std::int64_t below = split(keys, n, [&](std::int64_t left) { inside = kth < left; });
      if (inside) {
        n = below;
      } else if (kth < below) {
        return;  // among the equals of the pivot
      } else {
        keys += below;
        n -= below;
        kth -= below;
      }
    }
    sort_few(keys, keys, n);
  }

 private:
  // Partitions n > kFew keys and calls on_left with the count of those in front, unless these are
  // equal to one another; returns their count, n where all are.
  template <class F> static std::int64_t split(Key* keys, std::int64_t n, const F& on_left) {
    Key pivot = choose(keys, n);
    std::int64_t below = partition(keys, n, pivot);
    if (below > 0) {
      on_left(below);
      return below;
    }
    // The pivot is the least.
    return pivot == std::numeric_limits<Key>::max() ? n : partition(keys, n, pivot + 1);
  }

  static __m512i load(const Key* from) { return _mm512_loadu_si512(from); }

  // Orders each lane and the one whose number differs by the bits of kApart.
  template <unsigned kApart> static __m512i exchange(__m512i v) {
    constexpr unsigned kUpper = [] {  // the lanes that get the greater one
      unsigned upper = 0;
      for (unsigned lane = 0; lane < kLanes; ++lane)
        upper |= (lane ^ kApart) < lane ? 1u << lane : 0;
      return upper;
    }();
    __m512i partner = K::template across<kApart>(v);
    return K::max_in(K::min(v, partner), kUpper, v, partner);
  }
  // Exchanges kApart, kApart / 2, ..., 1 apart: sorts runs of 2 kApart that rise and then fall.
  template <unsigned kApart> static __m512i smooth(__m512i v) {
    if constexpr (kApart == 0) return v;
    else return smooth<kApart / 2>(exchange<kApart>(v));
  }
  // From sorted runs of kSize lanes to a sorted vector.
  template <unsigned kSize> static __m512i sort_lanes(__m512i v) {
    if constexpr (kSize == kLanes) return v;
    else return sort_lanes<2 * kSize>(smooth<kSize / 2>(exchange<2 * kSize - 1>(v)));
  }
  // From two sorted halves of kCount vectors to a sorted whole.
  template <int kCount> static void merge(__m512i* v) {
    constexpr int kHalf = kCount / 2;
    __m512i upper[kHalf];
#pragma GCC unroll 32
    for (int k = 0; k < kHalf; ++k) {
      __m512i turned = K::template across<kLanes - 1>(v[kCount - 1 - k]);
      upper[k] = K::max(v[k], turned);
      v[k] = K::min(v[k], turned);
    }
#pragma GCC unroll 32
    for (int k = 0; k < kHalf; ++k) v[kHalf + k] = upper[k];
#pragma GCC unroll 32
    for (int apart = kHalf / 2; apart > 0; apart /= 2) {
#pragma GCC unroll 32
      for (int k = 0; k < kCount; ++k) {
        if (k & apart) continue;
        __m512i least = K::min(v[k], v[k + apart]);
        v[k + apart] = K::max(v[k], v[k + apart]);
        v[k] = least;
      }
    }
#pragma GCC unroll 32
    for (int k = 0; k < kCount; ++k) v[k] = smooth<kLanes / 2>(v[k]);
  }

  template <int kCount> static void sort_vectors(__m512i* v) {
    if constexpr (kCount == 1) {
      v[0] = sort_lanes<1>(v[0]);
    } else {
      sort_vectors<kCount / 2>(v);
      sort_vectors<kCount / 2>(v + kCount / 2);
      merge<kCount>(v);
    }
  }
  template <int kCount> static void sort_into(const Key* keys, Key* out, std::int64_t n) {
    __m512i v[kCount];
    unsigned lanes[kCount];
#pragma GCC unroll 32
    for (int k = 0; k < kCount; ++k) {
      std::int64_t left = std::clamp<std::int64_t>(n - k * kLanes, 0, kLanes);
      lanes[k] = (1u << left) - 1;
      v[k] = K::load_some(keys + k * kLanes, lanes[k]);
    }
    sort_vectors<kCount>(v);
#pragma GCC unroll 32
    for (int k = 0; k < kCount; ++k) K::store_some(out + k * kLanes, lanes[k], v[k]);
  }
  // out = n <= kFew keys, sorted.
  static void sort_few(const Key* keys, Key* out, std::int64_t n) {
    if (n <= kLanes) sort_into<1>(keys, out, n);
    else if (n <= 2 * kLanes) sort_into<2>(keys, out, n);
    else if (n <= 4 * kLanes) sort_into<4>(keys, out, n);
    else if (n <= 8 * kLanes) sort_into<8>(keys, out, n);
    else if (n <= 16 * kLanes) sort_into<16>(keys, out, n);
    else sort_into<32>(keys, out, n);
  }

  // The middle one of a sample.
  static Key choose(const Key* keys, std::int64_t n) {
    Key sample[kFew];
    std::int64_t count = n > 8 * kFew ? 4 * kLanes : kLanes, step = n / count;
    for (std::int64_t i = 0; i < count; ++i) sample[i] = keys[i * step + step / 2];
    sort_few(sample, sample, count);
    return sample[count / 2];
  }

  // Puts the keys of `v` below the pivot at `low`, the others before `high`; counts the latter.
  // From low on there is room for a whole vector.
  static std::int64_t put(Key* low, Key* high, __m512i v, __m512i pivot) {
    constexpr unsigned kAll = (1u << kLanes) - 1;
    unsigned less = K::less(v, pivot);
    int above = kLanes - std::popcount(less);
    _mm512_storeu_si512(low, K::compress(less, v));
    K::store_some(high - above, (1u << above) - 1, K::compress(~less & kAll, v));
    return above;
  }

  static std::int64_t partition(Key* keys, std::int64_t n, Key pivot) {
    return n >= 4 * kFew ? partition_by<8>(keys, n, pivot) : partition_by<4>(keys, n, pivot);
  }

  // Keys below the pivot to the front, kBlock vectors at a time; returns their count. There are two
  // blocks at least.
  template <int kBlock> static std::int64_t partition_by(Key* keys, std::int64_t n, Key pivot_key) {
    constexpr std::int64_t kStep = kBlock * kLanes;
    Key *low = keys, *high = keys + n;
    __m512i pivot = K::all(pivot_key), first[kBlock], last[kBlock], v[kBlock];
    auto put_vectors = [&](const __m512i* vectors, std::int64_t count) {
      for (std::int64_t k = 0; k < count; ++k) {
        std::int64_t above = put(low, high, vectors[k], pivot);
        high -= above;
        low += kLanes - above;
      }
    };
    auto load_all = [](const Key* from, __m512i* block) {
      for (int k = 0; k < kBlock; ++k) block[k] = load(from + k * kLanes);
    };
    // What is left over by the blocks is kept until the end: whole vectors, and a part of one.
    std::int64_t rest = n % kStep, over = rest / kLanes, some = rest % kLanes;
    __m512i left_over[kBlock] = {}, part = K::load_some(low + over * kLanes, (1u << some) - 1);
    for (std::int64_t k = 0; k < over; ++k) left_over[k] = load(low + k * kLanes);
    // A block taken from each end leaves the room that the next ones are put into. The next one is
    // taken where less room is left, so that then there is a block's at both ends.
    load_all(low + rest, first);
    load_all(high - kStep, last);
    Key *unread = low + rest + kStep, *unread_end = high - kStep;
    while (unread != unread_end) {
      if (high - unread_end < unread - low) {
        unread_end -= kStep;
        load_all(unread_end, v);
      } else {
        load_all(unread, v);
        unread += kStep;
      }
      put_vectors(v, kBlock);
    }
    put_vectors(first, kBlock);
    put_vectors(last, kBlock);
    put_vectors(left_over, over);
    unsigned less = K::less(part, pivot) & ((1u << some) - 1);
    int below = std::popcount(less);
    K::store_some(low, (1u << below) - 1, K::compress(less, part));
    K::store_some(low + below, (1u << (some - below)) - 1,
                  K::compress(~less & ((1u << some) - 1), part));
    return low + below - keys;
  }
};

int depth_for(std::int64_t n) {
  return 2 * static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n)));
}

}  // namespace

static void sort(unsigned* keys, std::int64_t n) { WideSort<Keys32>::sort(keys, n, depth_for(n)); }
static void sort(unsigned long long* keys, std::int64_t n) {
  WideSort<Keys64>::sort(keys, n, depth_for(n));
}
static std::int64_t halve(unsigned* keys, std::int64_t n) {
  return WideSort<Keys32>::halve(keys, n);
}
static std::int64_t halve(unsigned long long* keys, std::int64_t n) {
  return WideSort<Keys64>::halve(keys, n);
}
static void select(unsigned* keys, std::int64_t n, std::int64_t kth) {
  WideSort<Keys32>::select(keys, n, kth, depth_for(n));
}
static void select(unsigned long long* keys, std::int64_t n, std::int64_t kth) {
  WideSort<Keys64>::select(keys, n, kth, depth_for(n));
}

}  // namespace rensa::host::avx512

#include "rensa/backend/cpu/target_end.inc"

namespace rensa::host {

bool has_wide_sort() {
  static const bool has = best_instruction_set() == InstructionSet::avx512;
  return has;
}
void sort_wide(unsigned* keys, std::int64_t n) { avx512::sort(keys, n); }
void sort_wide(unsigned long long* keys, std::int64_t n) { avx512::sort(keys, n); }
std::int64_t split_wide(unsigned* keys, std::int64_t n) { return avx512::halve(keys, n); }
std::int64_t split_wide(unsigned long long* keys, std::int64_t n) { return avx512::halve(keys, n); }
void select_wide(unsigned* keys, std::int64_t n, std::int64_t kth) { avx512::select(keys, n, kth); }
void select_wide(unsigned long long* keys, std::int64_t n, std::int64_t kth) {
  avx512::select(keys, n, kth);
}

}  // namespace rensa::host

#else

namespace rensa::host {

bool has_wide_sort() { return false; }
void sort_wide(unsigned*, std::int64_t) { std::abort(); }
void sort_wide(unsigned long long*, std::int64_t) { std::abort(); }
std::int64_t split_wide(unsigned*, std::int64_t) { std::abort(); }
std::int64_t split_wide(unsigned long long*, std::int64_t) { std::abort(); }
void select_wide(unsigned*, std::int64_t, std::int64_t) { std::abort(); }
void select_wide(unsigned long long*, std::int64_t, std::int64_t) { std::abort(); }

}  // namespace rensa::host

#endif

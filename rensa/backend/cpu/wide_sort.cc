// A quicksort whose partitions compare and move a vector of keys at a time, down to a few vectors,
// in which each key is put at its rank: the count of those that are less.
#include "rensa/backend/cpu/wide_sort.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>

#include "rensa/backend/cpu/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,popcnt"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,popcnt,prefer-vector-width=512")
#endif

namespace rensa::host::avx512 {

namespace {

struct Keys32 {
  using Key = unsigned;
  static constexpr int kLanes = 16;
  static __m512i all(Key key) { return _mm512_set1_epi32(static_cast<int>(key)); }
  static unsigned less(__m512i a, __m512i b) { return _mm512_cmplt_epu32_mask(a, b); }
  static unsigned less_equal(__m512i a, __m512i b) { return _mm512_cmple_epu32_mask(a, b); }
  static __m512i compress(unsigned lanes, __m512i v) {
    return _mm512_maskz_compress_epi32(static_cast<__mmask16>(lanes), v);
  }
  static void store_some(Key* to, unsigned lanes, __m512i v) {
    _mm512_mask_storeu_epi32(to, static_cast<__mmask16>(lanes), v);
  }
  static __m512i load_some(const Key* from, unsigned lanes) {
    return _mm512_mask_loadu_epi32(_mm512_set1_epi32(-1), static_cast<__mmask16>(lanes), from);
  }
};

struct Keys64 {
  using Key = unsigned long long;
  static constexpr int kLanes = 8;
  static __m512i all(Key key) { return _mm512_set1_epi64(static_cast<long long>(key)); }
  static unsigned less(__m512i a, __m512i b) { return _mm512_cmplt_epu64_mask(a, b); }
  static unsigned less_equal(__m512i a, __m512i b) { return _mm512_cmple_epu64_mask(a, b); }
  static __m512i compress(unsigned lanes, __m512i v) {
    return _mm512_maskz_compress_epi64(static_cast<__mmask8>(lanes), v);
  }
  static void store_some(Key* to, unsigned lanes, __m512i v) {
    _mm512_mask_storeu_epi64(to, static_cast<__mmask8>(lanes), v);
  }
  static __m512i load_some(const Key* from, unsigned lanes) {
    return _mm512_mask_loadu_epi64(_mm512_set1_epi64(-1), static_cast<__mmask8>(lanes), from);
  }
};

template <class K> class WideSort {
 public:
  using Key = typename K::Key;
  static constexpr int kLanes = K::kLanes, kVectors = 4, kFew = kVectors * kLanes;

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

  // out = n <= kFew keys, sorted.
  static void sort_few(const Key* keys, Key* out, std::int64_t n) {
    constexpr unsigned kAll = (1u << kLanes) - 1;
    Key copy[kFew];
    __m512i v[kVectors];
    for (int k = 0; k < kVectors; ++k) {
      std::int64_t left = std::clamp<std::int64_t>(n - k * kLanes, 0, kLanes);
      v[k] = left > 0 ? K::load_some(keys + k * kLanes, (1u << left) - 1) : K::all(Key(~Key(0)));
      _mm512_storeu_si512(copy + k * kLanes, v[k]);
    }
    auto used = static_cast<int>((n + kLanes - 1) / kLanes);
    for (int own = 0; own < used; ++own) {
      int lanes = static_cast<int>(std::min<std::int64_t>(kLanes, n - own * kLanes));
      for (int lane = 0; lane < lanes; ++lane) {
        __m512i key = K::all(copy[own * kLanes + lane]);
        // Of equal keys the first has the lower rank.
        unsigned before = (1u << lane) - 1;
        unsigned mixed =
            (K::less_equal(v[own], key) & before) | (K::less(v[own], key) & ~before & kAll);
        int rank = std::popcount(mixed);
        for (int k = 0; k < own; ++k) rank += std::popcount(K::less_equal(v[k], key));
        for (int k = own + 1; k < used; ++k) rank += std::popcount(K::less(v[k], key));
        out[rank] = copy[own * kLanes + lane];
      }
    }
  }

  // The middle one of a sample.
  static Key choose(const Key* keys, std::int64_t n) {
    Key sample[kFew];
    std::int64_t count = n > 64 * kFew ? kFew : kLanes, step = n / count;
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
    return n >= 64 * kFew ? partition_by<4>(keys, n, pivot) : partition_by<1>(keys, n, pivot);
  }

  // Keys below the pivot to the front, kBlock vectors at a time; returns their count. There are two
  // blocks at least.
  template <int kBlock> static std::int64_t partition_by(Key* keys, std::int64_t n, Key pivot_key) {
    constexpr std::int64_t kStep = kBlock * kLanes;
    Key *low = keys, *high = keys + n;
    for (std::int64_t rest = n % kStep; rest > 0; --rest) {
      if (*low < pivot_key) ++low;
      else std::swap(*low, *--high);
    }
    __m512i pivot = K::all(pivot_key), first[kBlock], last[kBlock], v[kBlock];
    auto put_all = [&](const __m512i* block) {
      for (int k = 0; k < kBlock; ++k) {
        std::int64_t above = put(low, high, block[k], pivot);
        high -= above;
        low += kLanes - above;
      }
    };
    auto load_all = [](const Key* from, __m512i* block) {
      for (int k = 0; k < kBlock; ++k) block[k] = load(from + k * kLanes);
    };
    // A block taken from each end leaves the room that the next ones are put into. The next one is
    // taken where less room is left, so that then there is a block's at both ends.
    load_all(low, first);
    load_all(high - kStep, last);
    Key *unread = low + kStep, *unread_end = high - kStep;
    while (unread != unread_end) {
      if (high - unread_end < unread - low) {
        unread_end -= kStep;
        load_all(unread_end, v);
      } else {
        load_all(unread, v);
        unread += kStep;
      }
      put_all(v);
    }
    put_all(first);
    put_all(last);
    return low - keys;
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

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

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

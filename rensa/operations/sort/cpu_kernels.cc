// The kernels of sorting, for one instruction set: keys from elements and back and, with AVX-512, a
// quicksort whose partitions compare and move a vector of keys at a time, down to a few vectors,
// which a bitonic network sorts.
#include "rensa/operations/sort/cpu_kernels.h"

#include "rensa/backend/cpu/kernel_sources.h"
#include "rensa/core/sort_keys.h"

namespace rensa::host::RENSA_SET {

namespace {

template <class T> RENSA_FN T element_of(const void* elements, std::int64_t i) {
  if constexpr (std::is_same_v<T, bool>) {
    return static_cast<const unsigned char*>(elements)[i] != 0;
  } else {
    return static_cast<const T*>(elements)[i];
  }
}

template <class T>
void to_keys(std::int64_t n, const void* elements, bool descending, bool merge_zeros, void* keys) {
  using Key = KeyOf<T>;
  auto* out = static_cast<Key*>(keys);
  const Key flip = static_cast<Key>(descending ? ~Key(0) : Key(0));
  RENSA_IVDEP
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = static_cast<Key>(sort_key(element_of<T>(elements, i), merge_zeros) ^ flip);
  }
}
template <class T> void to_elements(std::int64_t n, const void* keys, bool descending, void* out) {
  using Key = KeyOf<T>;
  const auto* in = static_cast<const Key*>(keys);
  const Key flip = static_cast<Key>(descending ? ~Key(0) : Key(0));
  auto* elements = static_cast<Key*>(out);
  RENSA_IVDEP
  for (std::int64_t i = 0; i < n; ++i) {
    elements[i] = detail::bit_cast<Key>(key_value<T>(static_cast<Key>(in[i] ^ flip)));
  }
}

#if defined(__AVX512F__)

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

// For each set of eight lanes an order of all: those of the set first. A byte is a lane's number.
struct OrdersOfEight {
  unsigned long long of[256] = {};
  constexpr OrdersOfEight() {
    for (unsigned set = 0; set < 256; ++set) {
      int at = 0;
      for (bool inside : {true, false}) {
        for (unsigned long long lane = 0; lane < 8; ++lane) {
          if ((set >> lane & 1) == inside) of[set] |= lane << (8 * at++);
        }
      }
    }
  }
};
constexpr OrdersOfEight kOrders;

struct Keys64 {
  using Key = unsigned long long;
  static constexpr int kLanes = 8;
  static constexpr __mmask8 kEach = 0xff;
  static __m512i all(Key key) { return _mm512_set1_epi64(static_cast<long long>(key)); }
  static unsigned less(__m512i a, __m512i b) { return _mm512_cmplt_epu64_mask(a, b); }
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
      if (depth-- == 0) return sort_by_comparison(keys, n);
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
      if (depth-- == 0) return select_by_comparison(keys, n, kth);
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
    return pivot == static_cast<Key>(~Key(0)) ? n : partition(keys, n, pivot + 1);
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
      std::int64_t rest = n - k * kLanes, left = rest < 0 ? 0 : rest < kLanes ? rest : kLanes;
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
    int above = kLanes - __builtin_popcount(less);
    _mm512_storeu_si512(low, K::compress(less, v));
    K::store_some(high - above, (1u << above) - 1, K::compress(~less & kAll, v));
    return above;
  }

  static std::int64_t partition(Key* keys, std::int64_t n, Key pivot) {
    return n >= 4 * kFew ? partition_by<8>(keys, n, pivot) : partition_by<4>(keys, n, pivot);
  }

  // The same where there is room for a whole vector before `high` too: lanes that belong to the
  // other end are written over later.
  static std::int64_t put_with_room(Key* low, Key* high, __m512i v, __m512i pivot) {
    if constexpr (kLanes == 8) {
      unsigned less = K::less(v, pivot);
      __m512i order = _mm512_maskz_cvtepu8_epi64(
          K::kEach, _mm_cvtsi64_si128(static_cast<long long>(kOrders.of[less])));
      __m512i parted = _mm512_maskz_permutexvar_epi64(K::kEach, order, v);
      _mm512_storeu_si512(low, parted);
      _mm512_storeu_si512(high - kLanes, parted);
      return kLanes - __builtin_popcount(less);
    } else {
      return put(low, high, v, pivot);
    }
  }

  // Keys below the pivot to the front, kBlock vectors at a time; returns their count. There are two
  // blocks at least.
  template <int kBlock> static std::int64_t partition_by(Key* keys, std::int64_t n, Key pivot_key) {
    constexpr std::int64_t kStep = kBlock * kLanes;
    Key *low = keys, *high = keys + n;
    __m512i pivot = K::all(pivot_key), first[kBlock], last[kBlock], v[kBlock];
    auto move = [&](std::int64_t above) {
      high -= above;
      low += kLanes - above;
    };
    auto put_vectors = [&](const __m512i* vectors, std::int64_t count) {
      for (std::int64_t k = 0; k < count; ++k) move(put(low, high, vectors[k], pivot));
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
      for (const __m512i& vector : v) move(put_with_room(low, high, vector, pivot));
    }
    put_vectors(first, kBlock);
    put_vectors(last, kBlock);
    put_vectors(left_over, over);
    unsigned less = K::less(part, pivot) & ((1u << some) - 1);
    int below = __builtin_popcount(less);
    K::store_some(low, (1u << below) - 1, K::compress(less, part));
    K::store_some(low + below, (1u << (some - below)) - 1,
                  K::compress(~less & ((1u << some) - 1), part));
    return low + below - keys;
  }
};

int depth_for(std::int64_t n) {
  return 2 * (64 - __builtin_clzll(static_cast<unsigned long long>(n) | 1));
}

template <class K, class Key> KeySorting<Key> sorting_of() {
  return {[](Key* keys, std::int64_t n) { WideSort<K>::sort(keys, n, depth_for(n)); },
          [](Key* keys, std::int64_t n) { return WideSort<K>::halve(keys, n); },
          [](Key* keys, std::int64_t n, std::int64_t kth) {
            WideSort<K>::select(keys, n, kth, depth_for(n));
          }};
}

#endif

}  // namespace

SortKernels get_sort_kernels() {
  SortKernels kernels = {};
#define RENSA_KEYS(d, T)                                    \
  kernels.to_keys[static_cast<int>(Dtype::d)] = to_keys<T>; \
  kernels.to_elements[static_cast<int>(Dtype::d)] = to_elements<T>;
  RENSA_KEYS(bool_, bool)
  RENSA_KEYS(int8, std::int8_t)
  RENSA_KEYS(int16, std::int16_t)
  RENSA_KEYS(int32, std::int32_t)
  RENSA_KEYS(int64, std::int64_t)
  RENSA_KEYS(uint8, std::uint8_t)
  RENSA_KEYS(uint16, std::uint16_t)
  RENSA_KEYS(uint32, std::uint32_t)
  RENSA_KEYS(uint64, std::uint64_t)
  RENSA_KEYS(float16, half_t)
  RENSA_KEYS(bfloat16, bfloat16_t)
  RENSA_KEYS(float32, float)
  RENSA_KEYS(float64, double)
#undef RENSA_KEYS
#if defined(__AVX512F__)
  kernels.narrow = sorting_of<Keys32, unsigned>();
  kernels.wide = sorting_of<Keys64, unsigned long long>();
#endif
  return kernels;
}

}  // namespace rensa::host::RENSA_SET

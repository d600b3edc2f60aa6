// Sorting on the CPU: elements become unsigned keys in the order wanted. Keys alone are sorted by
// vector instructions where the processor has them. Else short rows are sorted by comparison, long
// ones by a radix sort of eight bits at a time. Of long rows the threads take parts each.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <type_traits>
#include <vector>

#include "rensa/core/sort_keys.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/sort/cpu_kernels.h"
#include "rensa/operations/sort/sort.h"

namespace rensa::host {

const SortKernels& sort_kernels() {
  static const SortKernels kernels = RENSA_IN_SET(best_instruction_set(), get_sort_kernels)();
  return kernels;
}

void sort_by_comparison(unsigned* keys, std::int64_t n) { std::sort(keys, keys + n); }
void sort_by_comparison(unsigned long long* keys, std::int64_t n) { std::sort(keys, keys + n); }
void select_by_comparison(unsigned* keys, std::int64_t n, std::int64_t kth) {
  std::nth_element(keys, keys + kth, keys + n);
}
void select_by_comparison(unsigned long long* keys, std::int64_t n, std::int64_t kth) {
  std::nth_element(keys, keys + kth, keys + n);
}

namespace {

__extension__ typedef unsigned __int128 Key128;

constexpr std::int64_t kLongRow = 1 << 17;  // rows that all threads share
constexpr std::int64_t kGrain = 16 << 10;   // elements that are worth waking a thread for
constexpr int kBuckets = 256;

// --- keys ---

template <class T> struct KeyType { using type = KeyOf<T>; };
template <> struct KeyType<complex_t<float>> { using type = std::uint64_t; };
template <> struct KeyType<complex_t<double>> { using type = Key128; };

template <class T> auto key_of(const complex_t<T>* x) {
  using Key = typename KeyType<complex_t<T>>::type;
  auto key = sort_key(*x);
  return static_cast<Key>(static_cast<Key>(key.high) << (8 * sizeof(T)) | key.low);
}

// Sorting by vector instructions, or nothing in those places: for keys of other sizes, and on
// machines without them.
template <class Key> KeySorting<Key> vector_sorting() {
  if constexpr (std::is_same_v<Key, unsigned>) return sort_kernels().narrow;
  else if constexpr (std::is_same_v<Key, unsigned long long>) return sort_kernels().wide;
  else return {};
}

// --- one row ---

// The keys of a row, with their places where those are wanted, and room to move them to.
template <class Key> class Row {
 public:
  /// Where `keys` and `places` are not null they are memory to sort in; the result may lie
  /// elsewhere.
  Row(std::int64_t n, Key* keys, std::int64_t* places, bool with_places) : n_(n), keys_(keys) {
    // Vector instructions sort in place.
    if (!keys || with_places || !vectors_.sort) {
      room_ = make<Key>(keys ? n : 2 * n);
      other_keys_ = room_.get();
      if (!keys) keys_ = other_keys_ + n;
    }
    if (!with_places) return;
    places_room_ = make<std::int64_t>(places ? n : 2 * n);
    other_places_ = places_room_.get();
    places_ = places ? places : other_places_ + n;
  }
  Key* keys() { return keys_; }
  std::int64_t* places() { return places_; }

  void sort(bool shared) {
    if (!places_ && vectors_.sort) return shared ? sort_parts() : vectors_.sort(keys_, n_);
    // Below, the passes over all buckets cost more than comparisons.
    if (n_ >= static_cast<std::int64_t>(16 * sizeof(Key))) return radix_sort(shared);
    if (!places_) return std::sort(keys_, keys_ + n_);
    std::stable_sort(places_, places_ + n_,
                     [&](std::int64_t a, std::int64_t b) { return keys_[a] < keys_[b]; });
  }
  void select(std::int64_t kth) {
    if (!places_ && vectors_.select) return vectors_.select(keys_, n_, kth);
    if (!places_) return std::nth_element(keys_, keys_ + kth, keys_ + n_);
    std::nth_element(places_, places_ + kth, places_ + n_,
                     [&](std::int64_t a, std::int64_t b) { return keys_[a] < keys_[b]; });
  }

 private:
  template <class T> static std::unique_ptr<T[]> make(std::int64_t n) {
    return std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(n));
  }

  // --- by vector instructions, in parts for the threads ---

  void sort_parts() {
    constexpr std::int64_t kPart = 32 << 10;
    auto wanted = std::min<std::int64_t>(4 * get_num_threads(), n_ / kPart);
    std::vector<std::int64_t> borders = {0, n_};
    // Each part is split into two around a pivot, until there are enough for the threads.
    while (static_cast<std::int64_t>(borders.size()) <= wanted) {
      auto parts = static_cast<std::int64_t>(borders.size()) - 1;
      std::vector<std::int64_t> halves(static_cast<std::size_t>(2 * parts + 1), n_);
      parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
        for (auto p = static_cast<std::size_t>(begin); p < static_cast<std::size_t>(end); ++p) {
          std::int64_t first = borders[p], size = borders[p + 1] - first;
          halves[2 * p] = first;
          halves[2 * p + 1] = first + vectors_.halve(keys_ + first, size);
        }
      });
      borders = std::move(halves);
    }
    parallel_for(static_cast<std::int64_t>(borders.size()) - 1, 1, [&](auto begin, auto end) {
      for (auto p = static_cast<std::size_t>(begin); p < static_cast<std::size_t>(end); ++p) {
        vectors_.sort(keys_ + borders[p], borders[p + 1] - borders[p]);
      }
    });
  }

  // --- eight bits at a time ---

  void radix_sort(bool shared) {
    std::int64_t chunk = shared ? std::max<std::int64_t>(1 << 16, n_ / 64 + 1) : n_;
    std::int64_t chunks = (n_ + chunk - 1) / chunk;
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(chunks) * kBuckets);
    for (int shift = 0; shift < static_cast<int>(8 * sizeof(Key)); shift += 8) {
      parallel_for(chunks, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t c = begin; c < end; ++c) {
          count(shift, c * chunk, std::min(n_, (c + 1) * chunk), &offsets[c * kBuckets]);
        }
      });
      if (!place_buckets(chunks, offsets)) continue;  // all in one bucket
      parallel_for(chunks, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t c = begin; c < end; ++c) {
          move(shift, c * chunk, std::min(n_, (c + 1) * chunk), &offsets[c * kBuckets]);
        }
      });
      std::swap(keys_, other_keys_);
      std::swap(places_, other_places_);
    }
  }

  void count(int shift, std::int64_t begin, std::int64_t end, std::int64_t* counts) const {
    std::int64_t two[2][kBuckets] = {};  // neighbours that are equal do not wait for one another
    std::int64_t i = begin;
    for (; i + 1 < end; i += 2) {
      ++two[0][static_cast<unsigned char>(keys_[i] >> shift)];
      ++two[1][static_cast<unsigned char>(keys_[i + 1] >> shift)];
    }
    if (i < end) ++two[0][static_cast<unsigned char>(keys_[i] >> shift)];
    for (int b = 0; b < kBuckets; ++b) counts[b] = two[0][b] + two[1][b];
  }

  // Turns counts into where each chunk's part of each bucket begins.
  bool place_buckets(std::int64_t chunks, std::vector<std::int64_t>& offsets) const {
    std::int64_t at = 0;
    for (int b = 0; b < kBuckets; ++b) {
      std::int64_t first = at;
      for (std::int64_t c = 0; c < chunks; ++c) {
        std::int64_t count = offsets[static_cast<std::size_t>(c * kBuckets + b)];
        offsets[static_cast<std::size_t>(c * kBuckets + b)] = at;
        at += count;
      }
      if (at - first == n_) return false;
    }
    return true;
  }

  void move(int shift, std::int64_t begin, std::int64_t end, std::int64_t* offsets) const {
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t to = offsets[static_cast<unsigned char>(keys_[i] >> shift)]++;
      other_keys_[to] = keys_[i];
      if (places_) other_places_[to] = places_[i];
    }
  }

  KeySorting<Key> vectors_ = vector_sorting<Key>();
  std::int64_t n_;
  std::unique_ptr<Key[]> room_;
  std::unique_ptr<std::int64_t[]> places_room_;
  Key *other_keys_ = nullptr, *keys_;
  std::int64_t *places_ = nullptr, *other_places_ = nullptr;
};

// --- all rows ---

template <class T> class Sorter {
 public:
  explicit Sorter(const operations::Sort& op)
      : op_(op),
        n_(op.in.view.shape[1]),
        with_places_(op.order.present() || m::is_complex<T>::value) {}

  void run() const {
    std::int64_t rows = op_.in.view.shape[0];
    if (n_ >= kLongRow) {
      for (std::int64_t row = 0; row < rows; ++row) sort_row(row, true);
      return;
    }
    std::int64_t grain = std::max<std::int64_t>(1, kGrain / n_);
    parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) sort_row(row, false);
    });
  }

 private:
  using Key = typename KeyType<T>::type;

  // Calls f(begin, end) over the row, with all threads where they share it.
  template <class F> void over_row(bool shared, const F& f) const {
    shared ? parallel_for(n_, kGrain, f) : f(0, n_);
  }

  void sort_row(std::int64_t row, bool shared) const {
    const T* in = op_.in.view.as<T>() + row * n_;
    std::int64_t* order =
        op_.order.present() ? op_.order.view.as<std::int64_t>() + row * n_ : nullptr;
    Row<Key> sorted(n_, with_places_ ? nullptr : keys_in_values(row), order, with_places_);
    over_row(shared, [&](std::int64_t begin, std::int64_t end) {
      make_keys(in, begin, end, sorted.keys());
      if (with_places_) std::iota(sorted.places() + begin, sorted.places() + end, begin);
    });
    op_.kth >= 0 ? sorted.select(op_.kth) : sorted.sort(shared);
    over_row(shared, [&](std::int64_t begin, std::int64_t end) {
      if (order && sorted.places() != order) {
        std::copy(sorted.places() + begin, sorted.places() + end, order + begin);
      }
      if (op_.values.present()) write_values(sorted, row, begin, end, in);
    });
  }

  void make_keys(const T* in, std::int64_t begin, std::int64_t end, Key* keys) const {
    if constexpr (m::is_complex<T>::value) {
      for (std::int64_t i = begin; i < end; ++i) {
        keys[i] = static_cast<Key>(op_.descending ? ~key_of(in + i) : key_of(in + i));
      }
    } else {
      to_keys_(end - begin, in + begin, op_.descending, with_places_, keys + begin);
    }
  }

  // Keys have the size of the elements that they stand for: they are sorted where these shall be.
  Key* keys_in_values(std::int64_t row) const { return op_.values.view.as<Key>() + row * n_; }

  void write_values(Row<Key>& sorted, std::int64_t row, std::int64_t begin, std::int64_t end,
                    const T* in) const {
    if (with_places_) {
      const std::int64_t* places = sorted.places();
      T* values = op_.values.view.as<T>() + row * n_;
      for (std::int64_t i = begin; i < end; ++i) values[i] = in[places[i]];
    } else if constexpr (!m::is_complex<T>::value) {
      to_elements_(end - begin, sorted.keys() + begin, op_.descending, keys_in_values(row) + begin);
    }
  }

  const operations::Sort& op_;
  std::int64_t n_;
  bool with_places_;
  ToKeys to_keys_ = sort_kernels().to_keys[static_cast<int>(op_.in.view.dtype)];
  ToElements to_elements_ = sort_kernels().to_elements[static_cast<int>(op_.in.view.dtype)];
};

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void Sort::run_cpu() {
  if (in.view.size() == 0) return;
  visit_dtype(in.view.dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (requires { typename T::value_type; }) {
      host::Sorter<complex_t<typename T::value_type>>(*this).run();
    } else {
      host::Sorter<T>(*this).run();
    }
  });
}

}  // namespace rensa::operations

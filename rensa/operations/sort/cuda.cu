// Sorting on a GPU by CUB's radix sort. One row of float32, float64 or unsigned integers is sorted
// as it is. Else elements become unsigned keys in the order wanted, with their row above the key's
// bits where several rows are sorted at once; values come back from the keys, or, where places are
// wanted or a key takes several words, from where the sorted places say.
#include <algorithm>
#include <bit>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/sort_keys.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/operations/sort/cuda_radix_sort.h"
#include "rensa/operations/sort/sort.h"

namespace rensa::cuda {

namespace {

using operations::Sort;

using Word = unsigned long long;

// --- what is done ---

struct SortPlan {
  std::int64_t n = 0, total = 0;
  int words = 1, word_bits = 0, row_bits = 0;
  bool fused = true;         // a word and its row fit one key
  bool direct = false;       // the elements are the keys
  bool by_places = false;    // places are sorted along
  bool wide_keys = false;    // of 64 bits, not 32
  bool wide_places = false;  // likewise

  explicit SortPlan(const Sort& op) {
    const ArrayView& in = op.in.view;
    n = in.shape[1];
    total = in.size();
    std::int64_t rows = in.shape[0];
    bool complex = dtype_kind(in.dtype) == 'c';
    words = in.dtype == Dtype::complex128 ? 2 : 1;
    word_bits = static_cast<int>(8 * itemsize(in.dtype)) / words;
    row_bits =
        rows > 1 ? static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows - 1))) : 0;
    fused = words == 1 && word_bits + row_bits <= 64;
    by_places = op.order.present() || complex || !fused;
    wide_places = by_places && total > std::int64_t{0xffffffff};
    wide_keys = wide_places || !fused || word_bits + row_bits > 32;
    direct = !by_places && rows == 1 && !op.descending &&
             (in.dtype == Dtype::float32 || in.dtype == Dtype::float64 ||
              in.dtype == Dtype::uint32 || in.dtype == Dtype::uint64);
  }
};

/// Calls f with the types of the keys and the places.
template <class F> void with_types(const SortPlan& plan, const F& f) {
  if (plan.wide_places) f(Word{}, 0ll);
  else if (plan.wide_keys) f(Word{}, 0u);
  else f(0u, 0u);
}

/// Calls f with the type of elements that are keys themselves.
template <class F> void with_direct_type(Dtype dtype, const F& f) {
  switch (dtype) {
    case Dtype::float32: return f(0.0f);
    case Dtype::float64: return f(0.0);
    case Dtype::uint32: return f(0u);
    default: return f(Word{});
  }
}

std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

// The workspace of a sort that is not direct: keys, places, CUB's own.
template <class Key, class Place> struct Buffers {
  Key* keys[2] = {};
  Place* places[2] = {};
  char* temp = nullptr;
  std::size_t bytes = 0;  // of keys and places

  Buffers(const SortPlan& plan, void* workspace) {
    char* base = static_cast<char*>(workspace);
    auto count = static_cast<std::size_t>(plan.total);
    for (Key*& key : keys) {
      key = reinterpret_cast<Key*>(base + bytes);
      bytes += aligned(count * sizeof(Key));
    }
    for (Place*& place : places) {
      if (!plan.by_places) break;
      place = reinterpret_cast<Place*>(base + bytes);
      bytes += aligned(count * sizeof(Place));
    }
    temp = base + bytes;
  }
};

// Sorts the buffers by the keys' lowest `bits`; with temp null asks for CUB's bytes.
template <class Key, class Place>
void sort_buffers(const char* name, const SortPlan& plan, Buffers<Key, Place>& buffers, int bits,
                  void* temp, std::size_t& bytes, void* stream) {
  if (plan.by_places) {
    radix_sort_pairs(name, buffers.keys, buffers.places, plan.total, bits, temp, bytes, stream);
  } else if constexpr (sizeof(Place) == 4) {  // 64-bit places always go along
    radix_sort_buffers(name, buffers.keys, plan.total, bits, temp, bytes, stream);
  }
}

std::int64_t blocks_for(std::int64_t count) {
  return std::min(ceil_div(count, kBlock), std::int64_t{32} * kMultiprocessors);
}

// --- keys ---

// The key of element i, or one of the two words of it.
__device__ __forceinline__ Word key_word(const char* in, Dtype dtype, std::int64_t i, bool high,
                                         bool merge_zeros) {
  switch (dtype) {
    case Dtype::bool_: return reinterpret_cast<const unsigned char*>(in)[i] != 0;
    case Dtype::complex64: {
      auto key = sort_key(reinterpret_cast<const complex_t<float>*>(in)[i]);
      return static_cast<Word>(key.high) << 32 | key.low;
    }
    case Dtype::complex128: {
      auto key = sort_key(reinterpret_cast<const complex_t<double>*>(in)[i]);
      return high ? key.high : key.low;
    }
#define RENSA_CASE(d, T) \
  case Dtype::d: return sort_key(reinterpret_cast<const T*>(in)[i], merge_zeros);
      RENSA_NUMBER_TYPES(RENSA_CASE)
#undef RENSA_CASE
  }
  return 0;
}

// The element that a key stands for.
__device__ __forceinline__ void store_value(char* out, Dtype dtype, std::int64_t i, Word key) {
  switch (dtype) {
    case Dtype::bool_: reinterpret_cast<unsigned char*>(out)[i] = key != 0; return;
#define RENSA_CASE(d, T) \
  case Dtype::d: reinterpret_cast<T*>(out)[i] = key_value<T>(static_cast<KeyOf<T>>(key)); return;
      RENSA_NUMBER_TYPES(RENSA_CASE)
#undef RENSA_CASE
    default: return;  // complex elements are moved
  }
}

template <class Key, class Place> struct KeyArgs {
  const char* in;
  char* out;  // of values
  Dtype dtype;
  std::int64_t n, total;
  int word_bits;
  Word flip;  // all ones in a word's bits for the reverse order
  bool merge_zeros, high, rows, row_alone, number;
  Key* keys;
  Place* places;
};

// The keys of one pass. In the first one places are counted, in later ones they say which element's
// key is wanted.
template <class Key, class Place>
__global__ void __launch_bounds__(kBlock)
    prepare_keys(const __grid_constant__ KeyArgs<Key, Place> args) {
  wait_for_previous();
  std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlock;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
       i < args.total; i += step) {
    std::int64_t source = i;
    if (args.number) args.places[i] = static_cast<Place>(i);
    else if (args.places) source = args.places[i];
    Word key = 0;
    if (!args.row_alone) {
      key = key_word(args.in, args.dtype, source, args.high, args.merge_zeros) ^ args.flip;
    }
    if (args.rows) {
      Word row = static_cast<Word>(source) / static_cast<Word>(args.n);
      key = args.row_alone ? row : key | row << args.word_bits;
    }
    args.keys[i] = static_cast<Key>(key);
  }
}

template <class Key, class Place>
__global__ void __launch_bounds__(kBlock)
    values_of_keys(const __grid_constant__ KeyArgs<Key, Place> args) {
  wait_for_previous();
  std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlock;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
       i < args.total; i += step) {
    Word below_row = ~Word{0} >> (64 - args.word_bits);
    store_value(args.out, args.dtype, i, (args.keys[i] ^ args.flip) & below_row);
  }
}

// --- places ---

template <class Place> struct PlaceArgs {
  const Place* places;
  std::int64_t n, total;
  long long* order;  // may be null, like out
  const char* in;
  char* out;
  int item_bytes;
};

template <class Place>
__global__ void __launch_bounds__(kBlock)
    finish_places(const __grid_constant__ PlaceArgs<Place> args) {
  wait_for_previous();
  std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlock;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
       i < args.total; i += step) {
    std::int64_t place = args.places[i];
    if (args.order) {
      args.order[i] = static_cast<long long>(static_cast<Word>(place) % static_cast<Word>(args.n));
    }
    if (!args.out) continue;
    switch (args.item_bytes) {
#define RENSA_MOVE(bytes, T) \
  case bytes: reinterpret_cast<T*>(args.out)[i] = reinterpret_cast<const T*>(args.in)[place]; break;
      RENSA_MOVE(1, unsigned char)
      RENSA_MOVE(2, unsigned short)
      RENSA_MOVE(4, unsigned)
      RENSA_MOVE(8, Word)
      default:  // 16, of which alignment is known for 8
        reinterpret_cast<Word*>(args.out)[2 * i] =
            reinterpret_cast<const Word*>(args.in)[2 * place];
        reinterpret_cast<Word*>(args.out)[2 * i + 1] =
            reinterpret_cast<const Word*>(args.in)[2 * place + 1];
#undef RENSA_MOVE
    }
  }
}

// --- NaN with the sign set ---

template <class T> struct RotateArgs {
  T* sorted;
  T* room;
  unsigned* wanted;
  std::int64_t n;
};

template <class T> __device__ __forceinline__ bool is_negative_nan(T x) {
  return x != x && m::signbit(x);
}

// Radix order puts NaNs with the sign set in front. Where there are any, `room` gets the elements
// with them at the end, and `wanted` is set.
template <class T>
__global__ void __launch_bounds__(kBlock) rotate_nans(const __grid_constant__ RotateArgs<T> args) {
  wait_for_previous();
  bool any = is_negative_nan(args.sorted[0]);
  if (blockIdx.x == 0 && threadIdx.x == 0) *args.wanted = any;
  if (!any) return;
  std::int64_t low = 1, high = args.n;  // the count of them lies in between
  while (low < high) {
    std::int64_t middle = low + (high - low) / 2;
    if (is_negative_nan(args.sorted[middle])) low = middle + 1;
    else high = middle;
  }
  std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlock;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x; i < args.n;
       i += step) {
    args.room[i < low ? i + args.n - low : i - low] = args.sorted[i];
  }
}

template <class T>
__global__ void __launch_bounds__(kBlock) take_rotated(const __grid_constant__ RotateArgs<T> args) {
  wait_for_previous();
  if (!*args.wanted) return;
  std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlock;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x; i < args.n;
       i += step) {
    args.sorted[i] = args.room[i];
  }
}

// --- the sorts ---

template <class T> void sort_directly(const Sort& op, const LaunchContext& context) {
  std::int64_t n = op.in.view.size();
  T* out = op.values.view.as<T>();
  std::size_t bytes = context.workspace_bytes;
  radix_sort_keys(op.name(), static_cast<const T*>(op.in.view.as<T>()), out, n, context.workspace,
                  bytes, context.handle);
  if constexpr (std::is_floating_point_v<T>) {
    char* workspace = static_cast<char*>(context.workspace);
    RotateArgs<T> args = {out, reinterpret_cast<T*>(workspace + 256),
                          reinterpret_cast<unsigned*>(workspace), n};
    launch_kernel(op.name(), context, rotate_nans<T>, blocks_for(n), kBlock, args);
    launch_kernel(op.name(), context, take_rotated<T>, blocks_for(n), kBlock, args);
  }
}

template <class Key, class Place>
void sort_by_keys(const Sort& op, const SortPlan& plan, const LaunchContext& context) {
  Buffers<Key, Place> buffers(plan, context.workspace);
  std::size_t temp_bytes = context.workspace_bytes - buffers.bytes;
  KeyArgs<Key, Place> args = {};
  args.in = op.in.view.data;
  args.dtype = op.in.view.dtype;
  args.n = plan.n;
  args.total = plan.total;
  args.word_bits = plan.word_bits;
  if (op.descending) args.flip = ~Word{0} >> (64 - plan.word_bits);
  args.merge_zeros = plan.by_places;
  // From the least word to the row, each pass leaves the order of the ones before where its own
  // keys are equal.
  int passes = plan.words + (plan.fused || plan.row_bits == 0 ? 0 : 1);
  for (int pass = 0; pass < passes; ++pass) {
    args.row_alone = pass == plan.words;
    args.rows = args.row_alone || (plan.fused && plan.row_bits > 0);
    args.high = pass == 1;
    args.number = plan.by_places && pass == 0;
    args.keys = buffers.keys[0];
    args.places = plan.by_places ? buffers.places[0] : nullptr;
    launch_kernel(op.name(), context, prepare_keys<Key, Place>, blocks_for(plan.total), kBlock,
                  args);
    int bits = args.row_alone ? plan.row_bits : plan.word_bits + (args.rows ? plan.row_bits : 0);
    sort_buffers(op.name(), plan, buffers, bits, buffers.temp, temp_bytes, context.handle);
  }
  if (!plan.by_places) {
    args.keys = buffers.keys[0];
    args.out = op.values.view.data;
    launch_kernel(op.name(), context, values_of_keys<Key, Place>, blocks_for(plan.total), kBlock,
                  args);
    return;
  }
  PlaceArgs<Place> finish = {buffers.places[0],
                             plan.n,
                             plan.total,
                             nullptr,
                             op.in.view.data,
                             nullptr,
                             static_cast<int>(itemsize(op.in.view.dtype))};
  if (op.order.present()) finish.order = op.order.view.as<long long>();
  if (op.values.present()) finish.out = op.values.view.data;
  launch_kernel(op.name(), context, finish_places<Place>, blocks_for(plan.total), kBlock, finish);
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

std::size_t Sort::workspace_bytes() const {
  if (in.view.size() == 0) return 0;
  cuda::runtime::set_device(in.view.device);
  cuda::SortPlan plan(*this);
  std::size_t bytes = 0;
  if (plan.direct) {
    cuda::with_direct_type(in.view.dtype, [&](auto key) {
      using Key = decltype(key);
      const Key* none = nullptr;
      cuda::radix_sort_keys(name(), none, static_cast<Key*>(nullptr), plan.total, nullptr, bytes,
                            nullptr);
    });
    auto rotated = static_cast<std::size_t>(in.view.nbytes()) + 256;
    return std::max(bytes, rotated);
  }
  cuda::with_types(plan, [&](auto key, auto place) {
    cuda::Buffers<decltype(key), decltype(place)> buffers(plan, nullptr);
    std::size_t arrays = buffers.bytes;
    // What CUB wants may depend on the bits of a pass.
    int bits = plan.fused ? plan.word_bits + plan.row_bits : 64;
    cuda::sort_buffers(name(), plan, buffers, bits, nullptr, bytes, nullptr);
    bytes += arrays;
  });
  return bytes;
}

void Sort::run_cuda(const cuda::LaunchContext& context) {
  if (in.view.size() == 0) return;
  cuda::SortPlan plan(*this);
  if (plan.direct) {
    cuda::with_direct_type(in.view.dtype,
                           [&](auto key) { cuda::sort_directly<decltype(key)>(*this, context); });
  } else {
    cuda::with_types(plan, [&](auto key, auto place) {
      cuda::sort_by_keys<decltype(key), decltype(place)>(*this, plan, context);
    });
  }
}

}  // namespace rensa::operations

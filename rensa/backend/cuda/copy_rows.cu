// Copies of rows that begin at any address, such as those of padded images: a thread writes one
// aligned vector of 16 bytes, which it shifts together from the aligned words of 4 bytes that the
// bytes are in. Nothing beside a row is read: words that its ends cut are loaded by units.
#include "rensa/backend/cuda/copy_rows.h"

#include <algorithm>
#include <numeric>

#include "rensa/backend/cuda/kernel.cuh"

namespace rensa::cuda {

namespace {

constexpr int kWord = 4, kVector = 16, kWords = kVector / kWord;
constexpr std::int64_t kLeastBytes = 32;  // of a row, whose two ends are in different words

template <int kUnit> struct UnitOf;
template <> struct UnitOf<1> { using type = unsigned char; };
template <> struct UnitOf<2> { using type = unsigned short; };
template <> struct UnitOf<4> { using type = unsigned; };

struct CopyRowsArgs {
  const char* in;
  char* out;
  std::int64_t bytes;  // of a row
  FastDiv vectors;     // that a row lies in, at most
  unsigned count;      // vectors in all
  Indexer<2> rows;     // 0 is the output
};

__device__ __forceinline__ int beyond(const void* p, int multiple) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(p) % static_cast<unsigned>(multiple));
}

/// The units from p + `begin` to p + `end` as the bytes of the word at p.
template <int kUnit>
__device__ __forceinline__ unsigned load_part(const char* p, int begin, int end) {
  unsigned word = 0;
#pragma unroll
  for (int i = 0; i < kWord; i += kUnit) {
    if (i < begin || i >= end) continue;
    unsigned unit = *reinterpret_cast<const typename UnitOf<kUnit>::type*>(p + i);
    word |= unit << (8 * i);
  }
  return word;
}

/// Stores those bytes of a vector at p that are from `begin` to `end`.
template <int kUnit>
__device__ __forceinline__ void store_part(char* p, const unsigned (&words)[kWords + 1], int begin,
                                           int end) {
  using Unit = typename UnitOf<kUnit>::type;
#pragma unroll
  for (int k = 0; k < kWords; ++k) {
    if (k * kWord >= begin && k * kWord + kWord <= end) {
      *reinterpret_cast<unsigned*>(p + k * kWord) = words[k];
      continue;
    }
#pragma unroll
    for (int i = 0; i < kWord; i += kUnit) {
      int at = k * kWord + i;
      if (at < begin || at >= end) continue;
      *reinterpret_cast<Unit*>(p + at) = static_cast<Unit>(words[k] >> (8 * i));
    }
  }
}

template <int kUnit>
__global__ void __launch_bounds__(kBlock)
    copy_row_vectors(const __grid_constant__ CopyRowsArgs args) {
  wait_for_previous();
  unsigned index = blockIdx.x * kBlock + threadIdx.x;
  if (index >= args.count) return;
  unsigned row = args.vectors.divide(index);
  unsigned vector = index - row * args.vectors.divisor;
  std::int64_t offset[2];
  args.rows.offsets(row, offset);
  char* out = args.out + offset[0];
  const char* in = args.in + offset[1];

  // From the row's begin: where the vector is, and the first word that it has bytes of.
  std::int64_t to = vector * std::int64_t{kVector} - beyond(out, kVector);
  if (to >= args.bytes) return;
  int shift = kUnit < kWord ? beyond(in + to, kWord) : 0;
  std::int64_t from = to - shift;
  // What there is of the row, from that word on.
  int begin = static_cast<int>(max(-from, std::int64_t{0}));
  int end = static_cast<int>(min(args.bytes - from, std::int64_t{kVector + kWord}));

  unsigned words[kWords + 1];
#pragma unroll
  for (int k = 0; k <= kWords; ++k) {
    words[k] = 0;
    bool whole = k * kWord >= begin && k * kWord + kWord <= end;
    if (whole && (k < kWords || shift > 0)) {
      words[k] = *reinterpret_cast<const unsigned*>(in + from + k * kWord);
    }
  }
  if constexpr (kUnit < kWord) {
    // The two words that the row has only a part of.
    int first = beyond(in, kWord), last = beyond(in + args.bytes, kWord);
    unsigned head = 0, tail = 0;
    if (begin > 0 && first > 0) head = load_part<kUnit>(in - first, first, kWord);
    bool ends = args.bytes - from < kVector + kWord;
    if (ends && last > 0) tail = load_part<kUnit>(in + args.bytes - last, 0, last);
#pragma unroll
    for (int k = 0; k <= kWords; ++k) {
      if (k * kWord == begin - first) words[k] |= head;
      if (k * kWord == end - last) words[k] |= tail;
    }
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      words[k] = __funnelshift_r(words[k], words[k + 1], 8 * shift);
    }
  }
  if (to >= 0 && to + kVector <= args.bytes) {
    *reinterpret_cast<uint4*>(out + to) = make_uint4(words[0], words[1], words[2], words[3]);
  } else {
    int left = static_cast<int>(min(args.bytes - to, std::int64_t{kVector}));
    store_part<kUnit>(out + to, words, static_cast<int>(max(-to, std::int64_t{0})), left);
  }
}

}  // namespace

bool copy_rows(const char* operation, const LaunchContext& context, const ArrayView& in,
               const ArrayView& out, int unit) {
  int last = out.ndim() - 1;
  std::int64_t bytes = out.shape[last] * itemsize(out.dtype);
  if (unit > kWord || bytes < kLeastBytes) return false;
  unit = static_cast<int>(std::gcd<std::int64_t>(unit, bytes));
  // What the first vector of a row may have in front of the row.
  auto bits = reinterpret_cast<std::uintptr_t>(out.data) | kVector;
  for (int axis = 0; axis < last; ++axis) bits |= static_cast<std::uintptr_t>(out.strides[axis]);
  std::int64_t before = kVector - static_cast<std::int64_t>(bits & -bits);
  std::int64_t vectors = ceil_div(before + bytes, kVector), rows = out.size() / out.shape[last];
  if (2 * vectors > bytes / unit || rows * vectors > kMaxCount) return false;

  CopyRowsArgs args = {};
  args.in = in.data;
  args.out = out.data;
  args.bytes = bytes;
  args.vectors = FastDiv(vectors);
  args.count = static_cast<unsigned>(rows * vectors);
  for (int axis = 0; axis < last; ++axis) {
    args.rows.push_back(out.shape[axis], {out.strides[axis], in.strides[axis]});
  }
  if (last == 0) args.rows.push_back(1, {0, 0});
  void (*kernel)(CopyRowsArgs) = unit == 4   ? copy_row_vectors<4>
                                 : unit == 2 ? copy_row_vectors<2>
                                             : copy_row_vectors<1>;
  launch_kernel(operation, context, kernel, ceil_div(args.count, kBlock), kBlock, args);
  return true;
}

}  // namespace rensa::cuda

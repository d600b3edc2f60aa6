// Products of float32 by large tiles on Hopper's tensor cores, in TF32 or as the sum of two TF32
// numbers. Parts of both operands, in any layout, come in boxes, several of them ahead; while the
// tensor cores work on a part, warps have the next one of a in registers, and put b's numbers where
// they are multiplied, unless they lie there. A gradient's product may update its parameter.
#pragma once

#include "rensa/backend/cuda/warpgroups.cuh"
#include "rensa/operations/matmul/cuda_boxes.cuh"

namespace rensa::cuda {

/// What a block has of an operand in a part: kLines lines and kSlices slices of 32 terms, in boxes
/// of all the lines and a slice where it lies along k, of 32 lines and all slices elsewhere.
template <int kLines, int kSlices, bool kAlongK> struct WarpgroupOperand {
  static constexpr bool along_k = kAlongK;
  static constexpr int kSliceTerms = 32;
  using Box = OperandBox<float, kAlongK ? kLines : 32, kAlongK,
                         kAlongK ? kSliceTerms : kSlices * kSliceTerms>;
  static constexpr int kBoxes = kAlongK ? kSlices : kLines / 32, kSize = kBoxes * Box::kSize;

  static __device__ __forceinline__ int offset(int line, int k) {
    if (kAlongK) return k / kSliceTerms * Box::kSize + Box::offset(line, k % kSliceTerms);
    return line / 32 * Box::kSize + Box::offset(line % 32, k);
  }
  /// As OperandBox's.
  static __device__ __forceinline__ int first_line(int tile, int lines) {
    return kAlongK ? Box::first_line(tile, lines) : tile * kLines;
  }
  static __device__ __forceinline__ int bytes(int lines) { return kBoxes * Box::bytes(lines); }
#if RENSA_HAS_BOXES
  static __device__ __forceinline__ void bring(int box, float* operand, const CUtensorMap& map,
                                               int line, int k, int batch, BoxBarrier& barrier) {
    int lines = kAlongK ? 0 : box * 32, terms = kAlongK ? box * kSliceTerms : 0;
    Box::bring(operand + box * Box::kSize, map, line + lines, k + terms, batch, barrier);
  }
#endif
};

/// A block's tile of c, by warps that have sixteen rows of it each, and its shared memory: as many
/// parts of both operands as there are, up to kMostParts, a's before b's; then, where b is copied,
/// three places for a part of it as it is multiplied. A parameter's tile takes the place of the
/// parts that would follow the last one. E: BroughtTf32 or SplitFloat.
template <class E, int kRows, bool kAAlongK, bool kBAlongK> struct WarpgroupPanel {
  using Element = E;
  static constexpr int kColumns = 64, kWarps = kRows / 16;
  static constexpr int kNumbers = OperandWords<E>::kParts;  // for each element
  static constexpr int kSlices = 2 / kNumbers;              // as many as there are registers for
  using A = WarpgroupOperand<kRows, kSlices, kAAlongK>;
  using B = WarpgroupOperand<kColumns, kSlices, kBAlongK>;
  static_assert(A::kBoxes + B::kBoxes <= kWarps);
  static constexpr int kDepth = kSlices * A::kSliceTerms, kPartSize = A::kSize + B::kSize;
  static constexpr int kPartBytes = kPartSize * static_cast<int>(sizeof(float));

  // A slice of b's numbers along k, as matrix_in_lines says: as boxes bring it, or as it is copied,
  // of split floats first the nearest TF32 numbers, then what these leave.
  static constexpr bool kCopied = kNumbers == 2 || !B::along_k;
  using Columns = Box<float, B::kSliceTerms, kColumns>;
  static constexpr int kColumnsSize = kNumbers * Columns::kSize;
  static constexpr int kPlaces = 3, kPlaceSize = kCopied ? kSlices * kColumnsSize : 0;
  static constexpr int kPlaceBytes = kPlaceSize * static_cast<int>(sizeof(float));
  static constexpr int kMostParts = (kLargeTileBytes - kPlaces * kPlaceBytes) / kPartBytes;
  /// After how many further parts the tensor cores have read one.
  static constexpr int kReadAfter = kCopied ? 0 : 2;
  static_assert(kMostParts >= 2 && kMostParts > kReadAfter);

  static constexpr bool kTakesUpdate = !kAAlongK;  // takes_update()
  using ParameterBox = Box<float, 32, kRows>;
  static constexpr int kParameterSize = kRows * kColumns;
  static constexpr int kParameterBytes = kParameterSize * static_cast<int>(sizeof(float));
  static constexpr int kParameterParts = (kParameterSize + kPartSize - 1) / kPartSize;
  static_assert(kParameterParts == 1 || (kParameterParts == 2 && kMostParts % 2 == 0));
  static_assert(!kTakesUpdate || (kCopied && kReadAfter == 0));

  /// An even number: the last one may be zeros alone.
  RENSA_FN static int parts(int k) { return (k + 2 * kDepth - 1) / (2 * kDepth) * 2; }
  /// How many of them are in shared memory at a time.
  RENSA_FN static int parts_there(int k) { return parts(k) < kMostParts ? parts(k) : kMostParts; }
  /// Where the parameter's tile is, in elements from the first part.
  RENSA_FN static int parameter_at(int k) { return parts(k) % kMostParts * kPartSize; }
  /// What room it has there of its own: 0 where parts were there before.
  RENSA_FN static int parameter_room(int k, bool updates) {
    return updates && parts(k) + kParameterParts <= kMostParts ? kParameterSize : 0;
  }
  static int bytes(int k, bool updates) {
    return parts_there(k) * kPartBytes + kPlaces * kPlaceBytes + kBoxAlignment +
           parameter_room(k, updates) * static_cast<int>(sizeof(float));
  }
};

struct WarpgroupArgs : BoxArgs {
  CUtensorMap parameter_map;  // where there is an update
};

#if RENSA_HAS_WARPGROUPS

/// Where a thread finds what it takes of a part, and where it puts b's numbers: elements from the
/// first, worked out once.
template <class Panel> class WarpgroupPlaces {
 public:
  using A = typename Panel::A;
  using B = typename Panel::B;
  using Columns = typename Panel::Columns;
  static constexpr int kThreads = 32 * Panel::kWarps;
  static constexpr int kSliceSteps = A::kSliceTerms / 8, kSteps = Panel::kDepth / 8;  // of k
  // Of b the thread copies four terms of a column at a time.
  static constexpr int kSliceFours = Panel::kColumns * B::kSliceTerms / 4 / kThreads;
  static constexpr int kFours = Panel::kSlices * kSliceFours;

  __device__ __forceinline__ WarpgroupPlaces() {
    int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      int row = A::along_k ? warp % 2 * 16 + lane % 16 : row_of(i % 2);
      int k = A::along_k ? i * 8 + lane / 16 * 4 : i / 2 * 4 + lane % 4;
      keep(rows_[i] = A::offset(warp / 2 * 32 + row, k));
    }
    if constexpr (Panel::kCopied) {
      int column = B::along_k ? thread / kColumnFours : thread % Panel::kColumns;
      int k = 4 * (B::along_k ? thread % kColumnFours : thread / Panel::kColumns);
#pragma unroll
      for (int e = 0; e < kWords; ++e) keep(words_[e] = A::kSize + B::offset(column, k + e));
#pragma unroll
      for (int n = 0; n < kTargets; ++n) keep(to_[n] = Columns::offset(k + n * kNextTerms, column));
    }
  }
  /// The row, of the 32 of two warps, that the first or second half of the thread's sums are of.
  static __device__ __forceinline__ int row_of(int half) {
    int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    return A::Box::line(warp % 2 * 2 + half, lane / 4);
  }
  /// A step's words of a's rows.
  __device__ __forceinline__ void load_rows(unsigned (&words)[4], const float* part,
                                            int step) const {
    if constexpr (A::along_k) {
      static_assert(kSliceSteps == 4);
      load_matrices(words, part + rows_[step % 4] + step / 4 * A::Box::kSize);
    } else {  // eight terms lie as the eight before
#pragma unroll
      for (int w = 0; w < 4; ++w) words[w] = __float_as_uint(part[rows_[w] + step * 8 * 32]);
    }
  }
  /// The thread's n-th four of b.
  __device__ __forceinline__ void load_four(unsigned (&words)[4], const float* part, int n) const {
    if constexpr (B::along_k) {
      static_assert(Panel::kSlices == 1);
      auto four = *reinterpret_cast<const Pack<unsigned, 4>*>(part + words_[0] + n * kNextLines);
#pragma unroll
      for (int e = 0; e < 4; ++e) words[e] = four.value[e];
    } else {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        words[e] = __float_as_uint(part[words_[e] + n * kNextTerms * 32]);
      }
    }
  }
  /// Puts them where they are multiplied.
  __device__ __forceinline__ void store_four(float* columns, int n,
                                             const unsigned (&words)[4]) const {
    float* slice = columns + n / kSliceFours * Panel::kColumnsSize;
    n %= kSliceFours;
    float* to = slice + (B::along_k ? to_[0] + n * kNextLines : to_[n % kTargets]);
    *reinterpret_cast<Pack<unsigned, 4>*>(to) = {{words[0], words[1], words[2], words[3]}};
  }

 private:
  // From a thread's four to its next there are lines of b along k, or terms.
  static constexpr int kColumnFours = B::kSliceTerms / 4;
  static constexpr int kNextLines = kThreads / kColumnFours * B::kSliceTerms;
  static constexpr int kNextTerms = B::along_k ? 0 : kThreads / Panel::kColumns * 4;
  static_assert(kThreads / kColumnFours % 8 == 0 && kNextTerms % 8 == 0);
  static constexpr int kWords = B::along_k ? 1 : 4, kTargets = B::along_k ? 1 : kSliceFours;

  int rows_[4], words_[kWords], to_[kTargets];
};

/// A thread's sums of a warpgroup's 64 x 64, and what its warp multiplies.
template <class Panel> class WarpgroupSums {
 public:
  using E = typename Panel::Element;
  using Places = WarpgroupPlaces<Panel>;
  using Columns = typename Panel::Columns;
  static constexpr int kSteps = Places::kSteps, kSliceSteps = Places::kSliceSteps;

  /// Takes a part: of a the warp's rows, and of b what is the thread's to copy to `columns`.
  template <int kTurn> __device__ __forceinline__ void take(const float* part, float* columns) {
    unsigned rows[kSteps][4];
    [[maybe_unused]] unsigned words[Places::kFours][4];
    if constexpr (Panel::kCopied) {
#pragma unroll
      for (int n = 0; n < Places::kFours; ++n) places_.load_four(words[n], part, n);
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) places_.load_rows(rows[step], part, step);
    if constexpr (Panel::kCopied) {
#pragma unroll
      for (int n = 0; n < Places::kFours; ++n) {
        OperandWords<E> four;
        four.set(words[n]);
#pragma unroll
        for (int p = 0; p < Panel::kNumbers; ++p) {
          places_.store_four(columns + p * Columns::kSize, n, four.part[p]);
        }
      }
      show_to_products();
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) rows_[kTurn][step].set(rows[step]);
  }
  /// Has the products of what was taken, and of `columns`, computed, from nothing.
  template <int kTurn> __device__ __forceinline__ void multiply(const float* columns) {
    std::uint64_t matrices[Panel::kSlices][Panel::kNumbers];
#pragma unroll
    for (int slice = 0; slice < Panel::kSlices; ++slice) {
#pragma unroll
      for (int p = 0; p < Panel::kNumbers; ++p) {
        const float* matrix = columns + slice * Panel::kColumnsSize + p * Columns::kSize;
        matrices[slice][p] = matrix_in_lines(matrix);
      }
    }
    open_products();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const OperandWords<E>& rows = rows_[kTurn][step];
      for_each_product<E>([&]<int N>() {
        std::uint64_t matrix = matrices[step / kSliceSteps][kPartOfB<E, N>];
        multiply_later(part_[kTurn], rows.part[kPartOfA<E, N>], matrix + step % kSliceSteps * 2,
                       step > 0 || N > 0);
      });
    }
    close_products();
  }
  /// Waits for them, but not for the kLater groups that came later. Tensor cores cut off what a sum
  /// gains, rather than round it, so they add up no more than a part, and float32 additions the
  /// parts.
  template <int kTurn, int kLater> __device__ __forceinline__ void add() {
    wait_for_products<kLater>(part_[kTurn]);
#pragma unroll
    for (int i = 0; i < 32; ++i) sum_[i] += part_[kTurn][i];
  }

  /// Loads what the gate says of the tile, before store().
  __device__ __forceinline__ void load_gate(const TileArgs& p, const TilePlace& tile) {
    if (!p.gate) return;
    if (has_packs<2>(p, p.gate)) closed_ = closed_gates<2>(p, tile, row_of, column_of);
    else closed_ = closed_gates<1>(p, tile, row_of, column_of);
  }
  /// Stores the tile. What few products need, tanh and sums that tensor cores make no number of,
  /// comes behind by code that is small: more of it would come late.
  __device__ __forceinline__ void store(const TileArgs& p, const TilePlace& tile) const {
    using operations::Activation;
    auto c = static_cast<float*>(p.c);
    bool in_pairs = has_packs<2>(p, p.c);
    float bias[16];
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      int column = min(tile.column0 + column_of(j / 2 * 4 + j % 2), p.n - 1);
      bias[j] = bias_of(static_cast<const float*>(p.bias), column);
    }
    unsigned odd = 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = row_of(2 * half);
      if (!tile.has_row(row, p.m)) continue;
      row += tile.row0;
      std::int64_t first = blockIdx.z * p.c_batch + row * p.c_ld;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        int i = 4 * j + 2 * half;
        Pack<float, 2> pair;
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          if (std::is_same_v<E, SplitFloat> && !isfinite(sum_[i + e])) odd |= 1u << (i + e);
          float value = finish<float>(sum_[i + e], p.alpha, bias[2 * j + e], Activation::none);
          if (p.activation == Activation::relu) value = relu_of(value);
          pair.value[e] = closed_ >> (i + e) & 1 ? 0.0f : value;
        }
        float* to = c + first + tile.column0 + column_of(i);
        bool has[2] = {tile.has_column(column_of(i), p.n), tile.has_column(column_of(i + 1), p.n)};
        if (in_pairs) {  // both or none
          if (has[0]) *reinterpret_cast<Pack<float, 2>*>(to) = pair;
        } else {
          if (has[0]) to[0] = pair.value[0];
          if (has[1]) to[1] = pair.value[1];
        }
      }
    }
    unsigned left = p.activation == Activation::tanh ? ~0u : odd;
#pragma unroll 1
    for (; left != 0; left &= left - 1) {
      int i = __ffs(static_cast<int>(left)) - 1;
      if (!tile.has_row(row_of(i), p.m) || !tile.has_column(column_of(i), p.n)) continue;
      int row = tile.row0 + row_of(i), column = tile.column0 + column_of(i);
      float* to = c + blockIdx.z * p.c_batch + row * p.c_ld + column;
      if (odd >> i & 1) {
        float of_column = bias_of(static_cast<const float*>(p.bias), column);
        float value = finish<float>(plain_sum(p, row, column), p.alpha, of_column, p.activation);
        *to = closed_ >> i & 1 ? 0.0f : value;
      } else {
        *to = m::tanh(*to);
      }
    }
  }
  /// SGD's update of the parameter with what was stored; its tile is in shared memory.
  __device__ __forceinline__ void update(const WarpgroupArgs& p, const TilePlace& tile,
                                         const float* parameter, float lr) const {
    using ParameterBox = typename Panel::ParameterBox;
    update::sgd<float> rule{lr};
#pragma unroll
    for (int i = 0; i < 32; i += 2) {
      int row = row_of(i), column = column_of(i);
      if (!tile.has_row(row, p.m) || !tile.has_column(column, p.n)) continue;
      std::int64_t at = (tile.row0 + row) * p.c_ld + tile.column0 + column;
      int in_tile = column / 32 * ParameterBox::kSize + ParameterBox::offset(column % 32, row);
      auto pair = *reinterpret_cast<const Pack<float, 2>*>(parameter + in_tile);
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float gradient = sum_[i + e];
        if (std::is_same_v<E, SplitFloat> && !isfinite(gradient)) {
          gradient = static_cast<const float*>(p.c)[at + e];
        }
        rule.apply(pair.value[e], gradient);
      }
      *reinterpret_cast<Pack<float, 2>*>(p.update.parameter + at) = pair;
    }
  }

 private:
  /// Where sum i is in the block's tile.
  static __device__ __forceinline__ int row_of(int i) {
    return static_cast<int>(threadIdx.x) / 64 * 32 + Places::row_of(i / 2 % 2);
  }
  static __device__ __forceinline__ int column_of(int i) {
    return i / 4 * 8 + static_cast<int>(threadIdx.x) % 4 * 2 + i % 2;
  }

  Places places_;
  OperandWords<E> rows_[2][kSteps];
  float part_[2][32], sum_[32] = {};
  unsigned closed_ = 0;  // a bit for each sum
};

/// What brings a block's parts of both operands: of each box that a part has, a warp's first
/// thread.
template <class Panel> struct WarpgroupParts {
  using A = typename Panel::A;
  using B = typename Panel::B;
  const BoxArgs& p;
  float* parts;
  BoxBarrier* there;
  int row0, column0, bytes = A::bytes(p.m) + B::bytes(p.n);
  int box = static_cast<int>(threadIdx.x) / 32;

  /// By one thread, before any other goes on.
  __device__ __forceinline__ void open() const {
    prefetch_map(p.a_map);
    prefetch_map(p.b_map);
    int count = Panel::parts_there(p.k);
#pragma unroll 1
    for (int part = 0; part < count; ++part) there[part].init();
    open_barriers();
#pragma unroll 1
    for (int part = 0; part < count; ++part) there[part].expect(bytes);
  }
  /// What all places begin with, where the operand is settled, or where it is not.
  __device__ __forceinline__ void bring_first(bool settled) const {
    if (!brings() || (box < A::kBoxes ? p.a_settled : p.b_settled) != settled) return;
    int count = Panel::parts_there(p.k);
#pragma unroll 1
    for (int part = 0; part < count; ++part) bring(part, part);
  }
  /// The part that comes next to a place, when it was read.
  __device__ __forceinline__ void bring_next(int part, int place) const {
    if (threadIdx.x == 0) there[place].expect(bytes);
    if (brings()) bring(part, place);
  }

 private:
  __device__ __forceinline__ bool brings() const {
    return threadIdx.x % 32 == 0 && box < A::kBoxes + B::kBoxes;
  }
  __device__ __forceinline__ void bring(int part, int place) const {
    float* to = parts + place * Panel::kPartSize;
    int k = part * Panel::kDepth;
    if (box < A::kBoxes) {
      A::bring(box, to, p.a_map, row0, k, matrix_of_block(p.a_batch), there[place]);
    } else {
      B::bring(box - A::kBoxes, to + A::kSize, p.b_map, column0, k, matrix_of_block(p.b_batch),
               there[place]);
    }
  }
};

/// What brings a block's tile of the parameter, where there is one, by the block's first thread.
template <class Panel> struct WarpgroupParameter {
  using Box = typename Panel::ParameterBox;
  const WarpgroupArgs& p;
  float* tile;
  BoxBarrier& there;

  __device__ __forceinline__ bool present() const {
    return Panel::kTakesUpdate && p.update.parameter;
  }
  /// By that thread, before any other goes on.
  __device__ __forceinline__ void open() const {
    if (!present()) return;
    prefetch_map(p.parameter_map);
    there.init();
  }
  __device__ __forceinline__ void bring(const TilePlace& place) const {
    if (!present() || threadIdx.x != 0) return;
    there.expect(Panel::kParameterBytes);
#pragma unroll
    for (int i = 0; i < Panel::kColumns / Box::kInner; ++i) {
      bring_box(tile + i * Box::kSize, p.parameter_map, place.column0 + i * Box::kInner, place.row0,
                0, there);
    }
  }
};

#endif

template <class E, int kRows, bool kAAlongK, bool kBAlongK>
__global__ void __launch_bounds__(kRows * 2)
    warpgroup_panel_kernel(const __grid_constant__ WarpgroupArgs p) {
#if RENSA_HAS_WARPGROUPS
  using Panel = WarpgroupPanel<E, kRows, kAAlongK, kBAlongK>;
  extern __shared__ uint4 tile_memory[];
  __shared__ BoxBarrier there[Panel::kMostParts], parameter_there;
  char* all = reinterpret_cast<char*>(tile_memory);
  float* parts = reinterpret_cast<float*>(all + -shared_address(all) % kBoxAlignment);
  WarpgroupParameter<Panel> parameter{p, parts + Panel::parameter_at(p.k), parameter_there};
  int room = Panel::parameter_room(p.k, parameter.present());
  float* places = parts + Panel::parts_there(p.k) * Panel::kPartSize + room;
  auto tile = place_of_block<Panel, kRows, Panel::kColumns>(p);
  WarpgroupParts<Panel> operands{p, parts, there, tile.row0, tile.column0};
  if (threadIdx.x == 0) {
    parameter.open();
    operands.open();
  }
  __syncthreads();
  operands.bring_first(true);
  wait_for_previous();
  operands.bring_first(false);
  WarpgroupSums<Panel> sums;
  sums.load_gate(p, tile);
  float lr = parameter.present() ? rate_of(p.update) : 0;
  if (room > 0) parameter.bring(tile);

  int place = 0, parity = 0, count = Panel::parts(p.k);
  auto columns_of = [&](int part) {
    if (!Panel::kCopied)
      return parts + part % Panel::kMostParts * Panel::kPartSize + Panel::A::kSize;
    return places + part % Panel::kPlaces * Panel::kPlaceSize;
  };
  auto take = [&]<int kTurn>(int part) {
    there[place].wait(parity);
    __syncwarp();
    sums.template take<kTurn>(parts + place * Panel::kPartSize, columns_of(part));
  };
  // When all warps have taken the part.
  auto multiply = [&]<int kTurn>(int part) {
    __syncthreads();
    sums.template multiply<kTurn>(columns_of(part));
    int read = part - Panel::kReadAfter, next = read + Panel::kMostParts;
    if (read >= 0 && next < count) operands.bring_next(next, read % Panel::kMostParts);
    if (read >= 0 && next == count + Panel::kParameterParts - 1) parameter.bring(tile);
    if (++place == Panel::kMostParts) place = 0, parity ^= 1;
  };
  take.template operator()<0>(0);
#pragma unroll 1
  for (int part = 0; part < count; part += 2) {
    multiply.template operator()<0>(part);
    take.template operator()<1>(part + 1);
    multiply.template operator()<1>(part + 1);
    sums.template add<0, 1>();
    if (part + 2 < count) take.template operator()<0>(part + 2);
    sums.template add<1, 0>();
  }
  sums.store(p, tile);
  if (!parameter.present()) return;
  parameter_there.wait(0);
  sums.update(p, tile, parameter.tile, lr);
#endif
}

/// By tiles of kRows x 64. Both operands come in chunks.
template <class E, int kRows>
void launch_warpgroup_panels(const TileArgs& args, const LaunchContext& context) {
  launch_by_layout(args, [&]<bool kAAlongK, bool kBAlongK>() {
    using Panel = WarpgroupPanel<E, kRows, kAAlongK, kBAlongK>;
    bool updates = args.update.parameter != nullptr;
    WarpgroupArgs boxes{box_args<E, typename Panel::A::Box, typename Panel::B::Box>(args), {}};
    if (updates) {
      BatchOfMatrices x{args.update.parameter, float32, args.n, args.m, 1, args.c_ld, 0};
      boxes.parameter_map = tensor_map("matmul", x, Panel::ParameterBox::kInner, kRows);
    }
    launch_tiles(warpgroup_panel_kernel<E, kRows, kAAlongK, kBAlongK>, boxes, kRows,
                 Panel::kColumns, Panel::kWarps, Panel::bytes(args.k, updates), context);
  });
}

}  // namespace rensa::cuda

// Products of floats by fused multiply-adds in large tiles. Parts of both operands come in boxes,
// several of them ahead; of an operand that lies along k, warps that do nothing else turn each
// part, so that what a lane multiplies of a term lies in fours.
#pragma once

#include <algorithm>

#include "rensa/operations/matmul/cuda_boxes.cuh"

namespace rensa::cuda {

/// A block's tile of c, by two groups of four warps that have fours of terms in turns. A warp has
/// 32 rows and all columns, each of its 4 x 8 lanes 8 x 8 of them, in fours. One more warp has the
/// parts brought, and where an operand lies along k four more turn it. In shared memory are as many
/// parts of both operands as there are, up to kMostParts, a's before b's, and then three places for
/// what is turned of a part.
template <bool kAAlongK, bool kBAlongK> struct FmaPanel {
  static constexpr int kRows = 128, kColumns = 64, kTerms = 32;
  static constexpr int kGroups = 2, kGroupWarps = kRows / 32, kAdders = kGroups * kGroupWarps;
  static_assert(kAAlongK || !kBAlongK);
  static constexpr bool kTurns = kAAlongK || kBAlongK, kTurnsAll = kAAlongK && kBAlongK;
  static constexpr bool kTakesUpdate = !kAAlongK;  // takes_update()
  static constexpr int kTurners = kTurns ? 4 : 0, kWarps = kAdders + 1 + kTurners;
  using A = OperandBox<float, kRows, kAAlongK, kTerms>;
  using B = OperandBox<float, kColumns, kBAlongK, kTerms>;
  static constexpr int kPartSize = A::kSize + B::kSize;
  static constexpr int kPartBytes = kPartSize * static_cast<int>(sizeof(float));

  static constexpr int kPlaces = kTurns ? 3 : 0;
  static constexpr int kPlaceSize = (kAAlongK ? A::kSize : 0) + (kBAlongK ? B::kSize : 0);
  static constexpr int kPlaceBytes = kPlaceSize * static_cast<int>(sizeof(float));
  /// More would be there no sooner, and leave no room for other kernels' blocks beside.
  static constexpr int kMostParts = kTurns ? 4 : 5;
  static_assert(kMostParts * kPartBytes + kPlaces * kPlaceBytes <= kLargeTileBytes);

  RENSA_FN static int parts(int k) { return (k + kTerms - 1) / kTerms; }
  RENSA_FN static int parts_there(int k) { return parts(k) < kMostParts ? parts(k) : kMostParts; }
  static int bytes(int k) {
    constexpr int kSumBytes = kRows * kColumns * static_cast<int>(sizeof(float));
    return std::max(parts_there(k) * kPartBytes + kPlaces * kPlaceBytes, kSumBytes) + kBoxAlignment;
  }
};

#if RENSA_HAS_BOXES

/// Who waits for whom in a block: for a part that it is there, and that all have read it; for a
/// place that its part is turned, and that all have used it.
template <class Panel> struct FmaBarriers {
  static constexpr int kPlaces = std::max(Panel::kPlaces, 1);
  BoxBarrier there[Panel::kMostParts], read[Panel::kMostParts];
  BoxBarrier turned[kPlaces], used[kPlaces];

  /// By one thread, before any other goes on.
  __device__ __forceinline__ void open() {
#pragma unroll 1
    for (int at = 0; at < Panel::kMostParts; ++at) {
      there[at].init();
      read[at].init(Panel::kTurners + (Panel::kTurnsAll ? 0 : Panel::kAdders));
    }
#pragma unroll 1
    for (int at = 0; at < Panel::kPlaces; ++at) {
      turned[at].init(Panel::kTurners);
      used[at].init(Panel::kAdders);
    }
    open_barriers();
  }
};

/// A block's parts, places and barriers.
template <class Panel> struct FmaMemory {
  float* parts;
  float* places;
  FmaBarriers<Panel>& when;
};

/// Of kCount parts or places, again and again, the one that is next, and the parity of its round.
template <int kCount> struct FmaRing {
  int at = 0, parity = 0;
  __device__ __forceinline__ void advance() {
    if (++at == kCount) at = 0, parity ^= 1;
  }
};

/// The work of the one thread that has all parts brought, those of settled operands before the
/// kernels before are done.
template <class Panel>
__device__ __forceinline__ void bring_all(const BoxArgs& p, const FmaMemory<Panel>& memory,
                                          const TilePlace& tile) {
  using A = typename Panel::A;
  using B = typename Panel::B;
  int a_batch = matrix_of_block(p.a_batch), b_batch = matrix_of_block(p.b_batch);
  auto bring_a = [&](int part, int at) {
    float* to = memory.parts + at * Panel::kPartSize;
    A::bring(to, p.a_map, tile.row0, part * Panel::kTerms, a_batch, memory.when.there[at]);
  };
  auto bring_b = [&](int part, int at) {
    float* to = memory.parts + at * Panel::kPartSize + A::kSize;
    B::bring(to, p.b_map, tile.column0, part * Panel::kTerms, b_batch, memory.when.there[at]);
  };
  prefetch_map(p.a_map);
  prefetch_map(p.b_map);
  int bytes = A::bytes(p.m) + B::bytes(p.n);
  int count = Panel::parts(p.k), first = Panel::parts_there(p.k);
#pragma unroll 1
  for (int part = 0; part < first; ++part) {
    memory.when.there[part].expect(bytes);
    if (p.a_settled) bring_a(part, part);
    if (p.b_settled) bring_b(part, part);
  }
  wait_for_previous();
#pragma unroll 1
  for (int part = 0; part < first; ++part) {
    if (!p.a_settled) bring_a(part, part);
    if (!p.b_settled) bring_b(part, part);
  }
  FmaRing<Panel::kMostParts> next;
#pragma unroll 1
  for (int part = first; part < count; ++part, next.advance()) {
    memory.when.read[next.at].wait(next.parity);
    memory.when.there[next.at].expect(bytes);
    bring_a(part, next.at);
    bring_b(part, next.at);
  }
}

/// Turns boxes of kLines lines along k into rows of a term each, as one of kThreads threads.
template <int kLines, int kThreads> class BoxTurner {
 public:
  __device__ __forceinline__ explicit BoxTurner(int thread) {
    int line = thread % kLines, first = thread / kLines;
#pragma unroll
    for (int n = 0; n < kFours; ++n) keep(from_[n] = Along::offset(line, 4 * (first + n * kEach)));
    keep(to_ = 4 * first * kLines + line);
  }
  __device__ __forceinline__ void turn(float* to, const float* box) const {
    Pack<float, 4> fours[kFours];
#pragma unroll
    for (int n = 0; n < kFours; ++n) {
      fours[n] = *reinterpret_cast<const Pack<float, 4>*>(box + from_[n]);
    }
#pragma unroll
    for (int n = 0; n < kFours; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        to[to_ + (4 * n * kEach + e) * kLines] = fours[n].value[e];
      }
    }
  }

 private:
  using Along = OperandBox<float, kLines, true>;
  static constexpr int kEach = kThreads / kLines, kFours = Along::kDepth / 4 / kEach;
  int from_[kFours], to_;
};

/// The work of the warps that turn all parts. They touch shared memory alone: those who add wait
/// for the kernels before.
template <class Panel>
__device__ __forceinline__ void turn_all(const BoxArgs& p, const FmaMemory<Panel>& memory) {
  constexpr int kThreads = 32 * Panel::kTurners;
  int thread = static_cast<int>(threadIdx.x) - 32 * (Panel::kWarps - Panel::kTurners);
  BoxTurner<Panel::kRows, kThreads> rows(thread);
  BoxTurner<Panel::kColumns, kThreads> columns(thread);
  int count = Panel::parts(p.k);
  FmaRing<Panel::kMostParts> from;
  FmaRing<Panel::kPlaces> to;
#pragma unroll 1
  for (int part = 0; part < count; ++part, from.advance(), to.advance()) {
    if (part >= Panel::kPlaces) memory.when.used[to.at].wait(to.parity ^ 1);
    memory.when.there[from.at].wait(from.parity);
    __syncwarp();
    const float* box = memory.parts + from.at * Panel::kPartSize;
    float* place = memory.places + to.at * Panel::kPlaceSize;
    if constexpr (Panel::A::along_k) rows.turn(place, box);
    if constexpr (Panel::B::along_k) columns.turn(place + Panel::A::kSize, box + Panel::A::kSize);
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
      memory.when.turned[to.at].arrive();
      memory.when.read[from.at].arrive();
    }
  }
}

/// Where a warp's lane stands in the block's tile.
template <class Panel> struct FmaLane {
  static __device__ __forceinline__ int group() {
    return static_cast<int>(threadIdx.x) / (32 * Panel::kGroupWarps);
  }
  /// The first four of its rows; the next is kNextRows behind. Columns likewise.
  static __device__ __forceinline__ int row() {
    return static_cast<int>(threadIdx.x) / 32 % Panel::kGroupWarps * 32 + Lanes<4>::row() * 4;
  }
  static __device__ __forceinline__ int column() { return Lanes<4>::column() * 4; }
  static constexpr int kNextRows = 16, kNextColumns = 32;
};

/// Where a lane reads its terms. A part has two halves, of four fours of terms each, of which the
/// lane's group has every other.
template <class Panel> class FmaTerms {
 public:
  using A = typename Panel::A;
  using B = typename Panel::B;
  using Lane = FmaLane<Panel>;
  static constexpr int kCount = Panel::kTerms / 2 / Panel::kGroups;
  struct Begun {
    int part, place;
  };

  __device__ __forceinline__ explicit FmaTerms(const FmaMemory<Panel>& memory) : memory_(memory) {
    keep(lane_a_ = 4 * Lane::group() * Panel::kRows + Lane::row());
    keep(lane_b_ = 4 * Lane::group() * Panel::kColumns + Lane::column());
  }
  /// Waits for the part that is next.
  __device__ __forceinline__ void wait() const {
    if constexpr (!Panel::kTurnsAll) memory_.when.there[part_.at].wait(part_.parity);
    if constexpr (Panel::kTurns) memory_.when.turned[place_.at].wait(place_.parity);
    __syncwarp();
  }
  /// Goes to its first half. Returns what end() takes.
  __device__ __forceinline__ Begun begin() {
    Begun begun{part_.at, place_.at};
    const float* part = memory_.parts + part_.at * Panel::kPartSize;
    const float* place = memory_.places + place_.at * Panel::kPlaceSize;
    a_ = (A::along_k ? place : part) + lane_a_;
    b_ = (B::along_k ? place + A::kSize : part + A::kSize) + lane_b_;
    if constexpr (!Panel::kTurnsAll) part_.advance();
    if constexpr (Panel::kTurns) place_.advance();
    return begun;
  }
  /// Goes to the second half.
  __device__ __forceinline__ void go_on() {
    a_ += Panel::kTerms / 2 * Panel::kRows;
    b_ += Panel::kTerms / 2 * Panel::kColumns;
  }
  /// By all of a warp, when it has read a part.
  __device__ __forceinline__ void end(Begun begun) const {
    __syncwarp();
    if (threadIdx.x % 32 != 0) return;
    if constexpr (!Panel::kTurnsAll) memory_.when.read[begun.part].arrive();
    if constexpr (Panel::kTurns) memory_.when.used[begun.place].arrive();
  }
  /// At the kTerm-th term the first four of the lane's rows, or the second.
  template <int kTerm> __device__ __forceinline__ Pack<float, 4> rows(int four) const {
    const float* at = a_ + four * Lane::kNextRows + term<kTerm>() * Panel::kRows;
    return *reinterpret_cast<const Pack<float, 4>*>(at);
  }
  template <int kTerm> __device__ __forceinline__ Pack<float, 4> columns(int four) const {
    const float* at = b_ + four * Lane::kNextColumns + term<kTerm>() * Panel::kColumns;
    return *reinterpret_cast<const Pack<float, 4>*>(at);
  }

 private:
  template <int kTerm> static constexpr int term() {
    return kTerm / 4 * 4 * Panel::kGroups + kTerm % 4;
  }
  const FmaMemory<Panel>& memory_;
  FmaRing<Panel::kMostParts> part_;
  FmaRing<FmaBarriers<Panel>::kPlaces> place_;
  int lane_a_, lane_b_;
  const float *a_, *b_;
};

/// A lane's sums, and what it multiplies. Registers lie in two banks. A multiplication should have
/// one operand of the one before, and its other two in different banks. So neighbours in a row of
/// sums are exchanged: a sum and b's value of its column never lie in one bank. The compiler keeps
/// to it only where an instruction has four of them at once.
template <class Panel> class FmaSums {
 public:
  __device__ __forceinline__ explicit FmaSums(const Pack<float, 4>& zeros) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int j = 0; j < 8; j += 4) load_swapped(&sum_[i][j], &zeros);
    }
  }
  /// Takes a term.
  template <int kTerm> __device__ __forceinline__ void take(const FmaTerms<Panel>& terms) {
    constexpr int kSet = kTerm % 2;
#pragma unroll
    for (int h = 0; h < 2; ++h) put(y_[kSet] + 4 * h, terms.template columns<kTerm>(h));
#pragma unroll
    for (int h = 0; h < 2; ++h) put(x_[kSet] + 4 * h, terms.template rows<kTerm>(h));
  }
  /// Adds the products of the term that was taken; back and forth, so that each has an operand of
  /// the one before.
  template <int kTerm> __device__ __forceinline__ void add() {
    constexpr int kSet = kTerm % 2;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int step = 0; step < 8; ++step) {
        int j = i % 2 == kBack ? 7 - step : step;
        sum_[i][j] = fmaf(x_[kSet][i], y_[kSet][j], sum_[i][j]);
      }
    }
  }
  /// Loads what the gate says of the 4 x 8 sums that the lane stores, before store().
  __device__ __forceinline__ void load_gate(const TileArgs& p, const TilePlace& tile) {
    if (!p.gate) return;
    if (has_packs<4>(p, p.gate)) {
      closed_ = closed_gates<4>(p, tile, stored_row_of, stored_column_of);
    } else {
      closed_ = closed_gates<1>(p, tile, stored_row_of, stored_column_of);
    }
  }
  /// Adds up what both groups have, in `memory`: each gets half of the rows.
  __device__ __forceinline__ void join(float* memory) {
    constexpr int kThreads = 32 * Panel::kGroupWarps;
    float* mine = memory + static_cast<int>(threadIdx.x) % kThreads * 4;
    auto give = [&]<int kFirst>() {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          float* to = mine + (kFirst / 4 * 8 + i * 2 + h) * 4 * kThreads;
          store_swapped(to, &sum_[kFirst + i][4 * h]);
        }
      }
    };
    auto add_other = [&]<int kFirst>() {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          float other[4];
          const float* from = mine + (kFirst / 4 * 8 + i * 2 + h) * 4 * kThreads;
          load_swapped(other, reinterpret_cast<const Pack<float, 4>*>(from));
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            sum_[i][4 * h + e] = sum_[kFirst + i][4 * h + e] + other[e];
          }
        }
      }
    };
    sync_adders();
    if (Lane::group() == 0) give.template operator()<4>();
    else give.template operator()<0>();
    sync_adders();
    if (Lane::group() == 0) add_other.template operator()<0>();
    else add_other.template operator()<4>();
  }
  /// Stores what join() left. What tanh makes of it, which few products need, comes behind by code
  /// that is small: more of it would come late.
  __device__ __forceinline__ void store(const TileArgs& p, const TilePlace& tile) const {
    using operations::Activation;
    auto c = static_cast<float*>(p.c) + blockIdx.z * p.c_batch;
    bool in_fours = has_packs<4>(p, p.c);
    float bias[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      int column = min(tile.column0 + column_of(j), p.n - 1);
      bias[j] = bias_of(static_cast<const float*>(p.bias), column);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (!tile.has_row(row_of(i), p.m)) continue;
      float* row = c + (tile.row0 + row_of(i)) * p.c_ld + tile.column0;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        Pack<float, 4> four;
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          int j = 4 * h + e;
          float value = finish<float>(sum_[i][j], p.alpha, bias[j], Activation::none);
          if (p.activation == Activation::relu) value = relu_of(value);
          four.value[e] = closed_ >> (8 * i + j) & 1 ? 0.0f : value;
        }
        int first = column_of(4 * h);
        if (in_fours) {  // all or none
          if (tile.has_column(first, p.n)) *reinterpret_cast<Pack<float, 4>*>(row + first) = four;
          continue;
        }
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          if (tile.has_column(first + e, p.n)) row[first + e] = four.value[e];
        }
      }
    }
    if constexpr (Panel::kTakesUpdate) {
      // Behind the stores: were the parameter loaded sooner, the sums would get other registers.
      update_parameter<32>(p, tile, stored_row_of, stored_column_of,
                           [&](int at) { return sum_[at / 8][at % 8]; });
    }
    if (p.activation != Activation::tanh) return;
#pragma unroll 1
    for (int at = 0; at < 32; ++at) {
      int row = row_of(at / 8), column = column_of(at % 8);
      if (!tile.has_row(row, p.m) || !tile.has_column(column, p.n)) continue;
      float* value = c + (tile.row0 + row) * p.c_ld + tile.column0 + column;
      *value = m::tanh(*value);
    }
  }

 private:
  using Lane = FmaLane<Panel>;
  /// Where the i-th row that the lane stores is in the tile, and its j-th column.
  static __device__ __forceinline__ int row_of(int i) {
    return Lane::row() + Lane::group() * Lane::kNextRows + i;
  }
  static __device__ __forceinline__ int column_of(int j) {
    return Lane::column() + j / 4 * Lane::kNextColumns + j % 4;
  }
  /// Of the `at`-th sum that it stores.
  static __device__ __forceinline__ int stored_row_of(int at) { return row_of(at / 8); }
  static __device__ __forceinline__ int stored_column_of(int at) { return column_of(at % 8); }
  static __device__ __forceinline__ void put(float* to, const Pack<float, 4>& four) {
#pragma unroll
    for (int e = 0; e < 4; ++e) to[e] = four.value[e];
  }
  static __device__ __forceinline__ void sync_adders() {
    asm volatile("bar.sync 1, %0;" ::"n"(32 * Panel::kAdders) : "memory");
  }
  static __device__ __forceinline__ void load_swapped(float* four, const Pack<float, 4>* from) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(four[1]), "=f"(four[0]), "=f"(four[3]), "=f"(four[2])
                 : "r"(shared_address(from))
                 : "memory");
  }
  static __device__ __forceinline__ void store_swapped(float* to, const float* four) {
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(to)), "f"(four[1]),
                 "f"(four[0]), "f"(four[3]), "f"(four[2])
                 : "memory");
  }

  /// Rows with numbers of this parity are gone through back: the other way the compiler takes an
  /// order in which more multiplications wait for registers.
  static constexpr int kBack = Panel::kTurnsAll ? 0 : 1;

  float sum_[8][8], x_[2][8], y_[2][8];
  unsigned closed_ = 0;  // a bit for each sum that the lane stores
};

/// Adds the products of all terms of the lane's group, each taken while the one before is added.
template <class Panel>
__device__ __forceinline__ void add_all(FmaTerms<Panel>& terms, FmaSums<Panel>& sums, int k) {
  terms.wait();
  auto begun = terms.begin();
  sums.template take<0>(terms);
#pragma unroll 1
  for (int left = k; left > 0; left -= Panel::kTerms) {  // zeros lie behind the last
    bool more = left > Panel::kTerms;
    auto next = begun;
#pragma unroll 1
    for (int halves = left > Panel::kTerms / 2 ? 2 : 1; halves > 0; --halves) {
      auto add = [&]<int kTerm>() {
        constexpr int kNext = kTerm + 1, kLast = FmaTerms<Panel>::kCount - 1;
        if (kTerm == kLast - 1 && halves == 1 && more) terms.wait();
        if constexpr (kTerm < kLast) {
          sums.template take<kNext>(terms);
        } else {
          if (halves > 1) terms.go_on();
          else if (more) next = terms.begin();
          sums.template take<0>(terms);
        }
        sums.template add<kTerm>();
      };
      [&]<int... kTerm>(std::integer_sequence<int, kTerm...>) {
        (add.template operator()<kTerm>(), ...);
      }
      (std::make_integer_sequence<int, FmaTerms<Panel>::kCount>{});
    }
    terms.end(begun);
    begun = next;
  }
}

#endif

template <bool kAAlongK, bool kBAlongK>
__global__ void __launch_bounds__(32 * FmaPanel<kAAlongK, kBAlongK>::kWarps, 1)
    fma_panel_kernel(const __grid_constant__ BoxArgs p) {
#if RENSA_HAS_BOXES
  using Panel = FmaPanel<kAAlongK, kBAlongK>;
  extern __shared__ uint4 tile_memory[];
  __shared__ FmaBarriers<Panel> barriers;
  __shared__ Pack<float, 4> zeros;
  char* all = reinterpret_cast<char*>(tile_memory);
  float* parts = reinterpret_cast<float*>(all + -shared_address(all) % kBoxAlignment);
  FmaMemory<Panel> memory{parts, parts + Panel::parts_there(p.k) * Panel::kPartSize, barriers};
  if (threadIdx.x == 0) {
    zeros = {};
    barriers.open();
  }
  __syncthreads();
  auto tile = place_of_block<Panel, Panel::kRows, Panel::kColumns>(p);
  int warp = static_cast<int>(threadIdx.x) / 32;
  if (warp >= Panel::kAdders) {
    if constexpr (Panel::kTurns) {
      if (warp > Panel::kAdders) return turn_all(p, memory);
    }
    if (threadIdx.x % 32 == 0) bring_all(p, memory, tile);
    return;
  }
  wait_for_previous();
  FmaTerms<Panel> terms(memory);
  FmaSums<Panel> sums(zeros);
  sums.load_gate(p, tile);
  add_all(terms, sums, p.k);
  sums.join(memory.parts);
  sums.store(p, tile);
#endif
}

/// By tiles of 128 x 64. Both operands come in chunks.
inline void launch_fma_panels(const TileArgs& args, const LaunchContext& context) {
  launch_by_layout(args, [&]<bool kAAlongK, bool kBAlongK>() {
    using Panel = FmaPanel<kAAlongK, kBAlongK>;
    auto boxes = box_args<float, typename Panel::A, typename Panel::B>(args);
    // Where other kernels' blocks leave room, two blocks of this one would gather on a
    // multiprocessor.
    int bytes = std::max(Panel::bytes(args.k), memory_of_one_alone(context.device));
    launch_tiles(fma_panel_kernel<kAAlongK, kBAlongK>, boxes, Panel::kRows, Panel::kColumns,
                 Panel::kWarps, bytes, context);
  });
}

}  // namespace rensa::cuda

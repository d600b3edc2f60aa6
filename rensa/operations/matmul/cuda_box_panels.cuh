// Products of short sums of floats, by fused multiply-adds in large tiles: all that a block needs
// of both operands is brought at once, in boxes, and each of its warps has a piece of its tile of
// c. For operands whose neighbours in memory are other lines, not other terms, as the gradient of a
// layer's weights has them.
#pragma once

#include <algorithm>

#include "rensa/operations/matmul/cuda_boxes.cuh"

namespace rensa::cuda {

/// A block's tile of c and its shared memory: parts of both operands, of some terms each. A warp
/// has 32 rows and all columns, each of its 4 x 8 lanes 8 x 8 of them, in fours.
struct BoxPanel {
  static constexpr int kRows = 128, kColumns = 64, kWarps = 4, kTerms = kBoxPanelTerms;
  using A = Box<float, kRows, kTerms>;
  using B = Box<float, kColumns, kTerms>;
  static constexpr int kPartSize = A::kSize + B::kSize;
  static constexpr int kPartBytes = kPartSize * static_cast<int>(sizeof(float));

  RENSA_FN static int parts(int k) { return (k + kTerms - 1) / kTerms; }
};

/// A lane's sums.
class BoxPanelSums {
 public:
  /// Adds terms `first` to `first` + 4 of a part.
  __device__ __forceinline__ void add_four(const float* a, const float* b, int first) {
    Pack<float, 4> x[4][2], y[4][2];
#pragma unroll
    for (int term = 0; term < 4; ++term) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        x[term][h] = four(a + BoxPanel::A::offset(row_of(4 * h), first + term));
        y[term][h] = four(b + BoxPanel::B::offset(column_of(4 * h), first + term));
      }
    }
#pragma unroll
    for (int term = 0; term < 4; ++term) {
      // Back and forth, so that each multiplication has an operand of the one before.
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int step = 0; step < 8; ++step) {
          int j = i % 2 ? 7 - step : step;
          sum_[i][j] = fmaf(x[term][i / 4].value[i % 4], y[term][j / 4].value[j % 4], sum_[i][j]);
        }
      }
    }
  }
  /// Of the tile that begins at (row0, column0). c, whose lines are multiples of 16 bytes, is
  /// written four columns at a time. What is to be made of the sums, which a gradient of weights
  /// has not, is made of what was written, by code that is small: more of it would come late.
  __device__ __forceinline__ void store(const BoxArgs& p, int row0, int column0) const {
    float* c = static_cast<float*>(p.c) + blockIdx.z * p.c_batch;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      int row = row0 + row_of(i);
#pragma unroll
      for (int j = 0; j < 8; j += 4) {
        int column = column0 + column_of(j);
        if (row >= p.m || column >= p.n) continue;
        Pack<float, 4> four{{sum_[i][j], sum_[i][j + 1], sum_[i][j + 2], sum_[i][j + 3]}};
        *reinterpret_cast<Pack<float, 4>*>(c + row * p.c_ld + column) = four;
      }
    }
    update_parameter<64>(
        p, {row0, column0}, [](int at) { return row_of(at / 8); },
        [](int at) { return column_of(at % 8); }, [&](int at) { return sum_[at / 8][at % 8]; });
    if (p.alpha == 1.0f && !p.bias && !p.gate && p.activation == operations::Activation::none)
      return;
#pragma unroll 1
    for (int at = 0; at < 64; ++at) {
      int row = row0 + row_of(at / 8), column = column0 + column_of(at % 8);
      if (row >= p.m || column >= p.n) continue;
      float* value = c + row * p.c_ld + column;
      float bias = bias_of(static_cast<const float*>(p.bias), column);
      bool open = is_open(static_cast<const float*>(p.gate), value - static_cast<float*>(p.c));
      *value = open ? finish<float>(*value, p.alpha, bias, p.activation) : 0.0f;
    }
  }

 private:
  static __device__ __forceinline__ Pack<float, 4> four(const float* from) {
    return *reinterpret_cast<const Pack<float, 4>*>(from);
  }
  static __device__ __forceinline__ int row_of(int i) {
    return i / 4 * 16 + Lanes<4>::row() * 4 + i % 4;
  }
  static __device__ __forceinline__ int column_of(int j) {
    return j / 4 * 32 + Lanes<4>::column() * 4 + j % 4;
  }

  float sum_[8][8] = {};
};

static __global__ void __launch_bounds__(32 * BoxPanel::kWarps, 2)
    box_panel_kernel(const __grid_constant__ BoxArgs p) {
#if RENSA_HAS_BOXES
  extern __shared__ uint4 tile_memory[];
  __shared__ BoxBarrier there[kMostBoxPanelParts];
  char* all = reinterpret_cast<char*>(tile_memory);
  float* parts = reinterpret_cast<float*>(all + -shared_address(all) % kBoxAlignment);
  int warp = static_cast<int>(threadIdx.x) / 32;
  int row0 = static_cast<int>(blockIdx.y) * BoxPanel::kRows;
  int column0 = static_cast<int>(blockIdx.x) * BoxPanel::kColumns;
  int a_batch = matrix_of_block(p.a_batch), b_batch = matrix_of_block(p.b_batch);
  int count = BoxPanel::parts(p.k);
  // In their order, so that the first is there soon.
  auto bring_settled = [&](bool settled) {
#pragma unroll 1
    for (int part = 0; part < count; ++part) {
      float* to = parts + part * BoxPanel::kPartSize;
      int term = part * BoxPanel::kTerms;
      if (p.a_settled == settled) bring_box(to, p.a_map, row0, term, a_batch, there[part]);
      to += BoxPanel::A::kSize;
      if (p.b_settled == settled) bring_box(to, p.b_map, column0, term, b_batch, there[part]);
    }
  };
  if (threadIdx.x == 0) {
    prefetch_map(p.a_map);
    prefetch_map(p.b_map);
#pragma unroll 1
    for (int part = 0; part < count; ++part) there[part].init();
    open_barriers();
#pragma unroll 1
    for (int part = 0; part < count; ++part) there[part].expect(BoxPanel::kPartBytes);
    bring_settled(true);
  }
  wait_for_previous();
  if (threadIdx.x == 0) bring_settled(false);
  __syncthreads();
  BoxPanelSums sums;
#pragma unroll 1
  for (int part = 0; part < count; ++part) {
    there[part].wait(0);
    __syncwarp();
    const float* a = parts + part * BoxPanel::kPartSize + warp * 32;
    const float* b = parts + part * BoxPanel::kPartSize + BoxPanel::A::kSize;
    int terms = p.k - part * BoxPanel::kTerms;
    if (terms >= BoxPanel::kTerms) {
#pragma unroll 4
      for (int term = 0; term < BoxPanel::kTerms; term += 4) sums.add_four(a, b, term);
    } else {  // zeros lie behind the last
#pragma unroll 1
      for (int term = 0; term < terms; term += 4) sums.add_four(a, b, term);
    }
  }
  sums.store(p, row0 + warp * 32, column0);
#endif
}

inline void launch_box_panels(const TileArgs& args, const LaunchContext& context) {
  auto map = [&](const void* data, int lines, std::int64_t ld, std::int64_t batch_stride,
                 int box_width) {
    BatchOfMatrices x{data, Dtype::float32, lines, args.k, args.batch, ld, batch_stride};
    return tensor_map("matmul", x, box_width, BoxPanel::kTerms);
  };
  BoxArgs panel{args, map(args.a, args.m, args.a_ld, args.a_batch, BoxPanel::kRows),
                map(args.b, args.n, args.b_ld, args.b_batch, BoxPanel::kColumns)};
  int bytes = BoxPanel::parts(args.k) * BoxPanel::kPartBytes + kBoxAlignment;
  // Where other kernels' blocks leave room, two blocks of this one would gather on a
  // multiprocessor.
  bytes = std::max(bytes, memory_of_one_alone(context.device));
  launch_tiles(box_panel_kernel, panel, BoxPanel::kRows, BoxPanel::kColumns, BoxPanel::kWarps,
               bytes, context);
}

}  // namespace rensa::cuda

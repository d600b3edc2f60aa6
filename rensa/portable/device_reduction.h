// A reduction that is compiled at run time for a GPU, as reduce_blocks.h wants it.
#pragma once

#include "rensa/portable/reduce_blocks.h"

namespace rensa::cuda {

/// G is written by reduction_source.h.
template <class G> struct Generated : G {
  using Args = typename G::arguments;
  using Index = typename G::index;
  using Acc = typename G::acc;
  using Data = typename G::elements;
  struct Place {
    Index position[G::kKept];
  };
  struct Base {
    long long offset[G::kInputs];
  };
  static constexpr int kValues = G::kWidth, kRows = 4;
  static constexpr bool kBlockwise = false;

  static __device__ __forceinline__ Place place(const Args& args, Index index) {
    Place place;
    split_index(index, args.kept_extents, place.position);
    return place;
  }
  static __device__ __forceinline__ Base base(const Args& args, const Place& place, Index column) {
    Base base;
    G::kept_offsets(args, place.position, column, base.offset);
    return base;
  }
  static __device__ __forceinline__ bool loads_whole(const Args&) { return true; }
  static __device__ __forceinline__ Base vector(const Args& args, const Base& base, Index k) {
    Base vector;
    G::reduced_offsets(args, k, base.offset, vector.offset);
    return vector;
  }
  template <bool kFull>
  static __device__ __forceinline__ Data load(const Args& args, const Base& vector, Index left) {
    Data data;
    data.template load<kFull>(args, vector.offset,
                              left < kValues ? static_cast<int>(left) : kValues);
    return data;
  }
  static __device__ __forceinline__ void finish(const Args&, const Base&, Data&, bool, Index) {}
  static __device__ __forceinline__ Acc take(const Args& args, Acc acc, const Data& data, int j,
                                             Index k, Index i) {
    return G::combine(acc, G::map(args, data, j, k, i));
  }
  static __device__ __forceinline__ void store(const Args& args, const Place& place, Index column,
                                               Index i, Acc acc) {
    if (args.count == 0) acc = G::identity();  // of nothing, not of many
    G::post(args, place.position, column, i, acc);
  }
};

}  // namespace rensa::cuda

// Which weights attention's dropout leaves: by Philox and the weight's place, so that forward and
// backward find the same ones and no mask is stored. Read by the host compiler and nvcc.
#pragma once

#include "rensa/core/philox.h"

namespace rensa {

/// A counter has the weights (i, j), (i, j + 8), (i + 8, j) and (i + 8, j + 8) of a square of 16 by
/// 16: what one thread holds of a tensor core's tile, in the matrix and in its transpose.
struct AttentionDropoutWords {
  unsigned long long seed = 0, offset = 0;
  long long rows = 0, columns = 0;  // counters of a head
  float ratio = 0;

  RENSA_FN static long long counters(long long n) { return (n + 15) / 16 * 8; }
  RENSA_FN AttentionDropoutWords(unsigned long long seed_, unsigned long long offset_, long long L,
                                 long long S, double ratio_)
      : seed(seed_),
        offset(offset_),
        rows(counters(L)),
        columns(counters(S)),
        ratio(static_cast<float>(ratio_)) {}

  /// The words of the weights around query i and key j of `head`, of all batches; bit 3 of i and of
  /// j is not looked at.
  RENSA_FN PhiloxWords words(long long head, long long i, long long j) const {
    return philox(seed, counter(head, i, j));
  }
  /// The counter of those words. The first eight of the 16 keys from a multiple of 16 on have
  /// counters that follow one another, and so have the other eight, with the same ones.
  RENSA_FN unsigned long long counter(long long head, long long i, long long j) const {
    long long row = head * rows + (i >> 4) * 8 + (i & 7);
    return offset + static_cast<unsigned long long>(row * columns + (j >> 4) * 8 + (j & 7));
  }
  RENSA_FN static int word_of(long long i, long long j) {
    return static_cast<int>((i >> 3 & 1) * 2 + (j >> 3 & 1));
  }
  RENSA_FN bool keeps(unsigned int word) const { return uniform_float(word) >= ratio; }
  RENSA_FN bool keeps(long long head, long long i, long long j) const {
    return keeps(words(head, i, j).word[word_of(i, j)]);
  }
};

}  // namespace rensa

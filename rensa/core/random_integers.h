// What integers and orders are made of, alike on every device. Read by the host compiler and nvcc.
#pragma once

#include "rensa/core/philox.h"

namespace rensa {

/// floor(word * span / 2^bits of the word): an integer of [0, span), each of nearly as many words.
RENSA_FN unsigned long long scaled(unsigned int word, unsigned int span) {
  return (unsigned long long)word * span >> 32;
}
RENSA_FN unsigned long long scaled(unsigned long long word, unsigned long long span) {
  return (unsigned long long)((unsigned __int128)word * span >> 64);
}
RENSA_FN unsigned long long scaled(unsigned long long high, unsigned long long low,
                                   unsigned long long span) {
  return (unsigned long long)(((unsigned __int128)high * span + scaled(low, span)) >> 64);
}

/// An order of n > 1 things, place by place: a Feistel network of twelve rounds over the least
/// power of two that holds n, walked until it comes below n. A one-to-one map whatever the keys
/// are.
struct PseudoOrder {
  static constexpr int kRounds = 12;  // even
  static constexpr int kCounters = kRounds / 4;
  unsigned int key[kRounds];
  unsigned long long n;
  int low_bits;
  unsigned int low_mask, high_mask;

  /// For all but the keys, which are the words of kCounters Philox counters.
  RENSA_FN void set_size(unsigned long long size) {
    n = size;
    int bits = 2;
    while (bits < 64 && (size - 1) >> bits != 0) ++bits;
    low_bits = bits / 2;
    low_mask = (unsigned int)((1ull << low_bits) - 1);
    high_mask = (unsigned int)((1ull << (bits - low_bits)) - 1);
  }
  static RENSA_FN unsigned int mix(unsigned int x, unsigned int k) {
    x = (x ^ k) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
  }
  /// One walk of i through the network.
  RENSA_FN unsigned long long step(unsigned long long i) const {
    unsigned int low = (unsigned int)i & low_mask, high = (unsigned int)(i >> low_bits);
    for (int round = 0; round < kRounds; round += 2) {
      high ^= mix(low, key[round]) & high_mask;
      low ^= mix(high, key[round + 1]) & low_mask;
    }
    return (unsigned long long)high << low_bits | low;
  }
  RENSA_FN unsigned long long operator()(unsigned long long i) const {
    do i = step(i);
    while (i >= n);
    return i;
  }
};

}  // namespace rensa

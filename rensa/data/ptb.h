// The words of the Penn Treebank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rensa/array/array.h"

namespace rensa::datasets {

struct PtbWords {
  Array train, valid, test;  // int32 (929,589), (73,760) and (82,430)
};

/// The Penn Treebank as Mikolov et al. (2010) prepared it: numbers of words, one after the other,
/// "<eos>" at the end of each line. Read from ptb.train.txt, ptb.valid.txt and ptb.test.txt in
/// $RENSA_DATASET_ROOT/ptb, $RENSA_DATASET_ROOT and the user's cache, where they have to be the
/// published ones (SHA-256), else downloaded into that cache. Throws SerializationError saying
/// where it looked.
PtbWords get_ptb_words();
/// The word of each number: numbers are given to words as they come first, in train, valid and
/// test. Of the published files 10,000.
std::vector<std::string> get_ptb_words_vocabulary();

}  // namespace rensa::datasets

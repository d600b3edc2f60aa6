// Where pieces of memory that are needed for a time lie in one block.
#pragma once

#include <cstdint>
#include <vector>

#include "rensa/graph/precedence.h"

namespace rensa {

/// A piece of memory to place; the operations that use it, in order, each once.
struct Block {
  std::int64_t bytes;
  std::vector<int> users;
  std::int64_t offset = 0;
};

/// Gives every block an offset: the lowest that is free of blocks which it must not share with, in
/// the order of their first uses. Two blocks may share a place where every use of the one comes
/// before every use of the other. Returns how many bytes that takes in all.
std::int64_t place_blocks(std::vector<Block>& blocks, const Precedence& precedence);

/// The same with the largest block first, each compared with all before it: less is left between
/// blocks, and it takes time and memory with the square of how many there are.
std::int64_t place_largest_first(std::vector<Block>& blocks, const Precedence& precedence);

}  // namespace rensa

// The pieces of a memory pool: blocks, the segments they are cut from, and an index of free blocks
// that finds a fitting one in constant time. All of it is guarded by the pool's lock.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "rensa/core/integers.h"
#include "rensa/device/storage.h"

namespace rensa::pool {

/// Sizes are multiples of this many bytes.
inline constexpr std::int64_t kUnit = 512;
/// No request may be larger: more than any device has, and safe to round up.
inline constexpr std::int64_t kMostAsked = std::int64_t{1} << 50;

struct Arena;
struct Segment;
class Core;

/// A stream that uses a block besides the one it was allocated on.
struct Use {
  cuda::StreamState* stream;
  std::shared_ptr<cuda::StreamState> keep;  // null when nobody shares the stream's state
  void* ticket = nullptr;                   // once the block is freed: what to wait for
  bool ordered = false;                     // it runs after what the home stream had queued
};

/// A piece of a segment, and, while it is alive, the Storage that arrays share. Blocks are
/// recycled, never deleted before their pool.
class alignas(64) Block final : public Storage {
 public:
  enum class State : unsigned char { spare, alive, pending, free };

  /// Names the memory this block stands for.
  void place(char* data, std::int64_t bytes, Segment* in) {
    data_ = data;
    size = bytes;
    segment = in;
  }
  void describe(Device device, bool pinned) {
    device_ = device;
    pinned_ = pinned;
  }
  /// Makes it an array's: the first handle has a count already.
  void open(std::int64_t nbytes, cuda::StreamState* home) {
    state = State::alive;
    nbytes_ = nbytes;
    home_ = home;
    refs_.store(1, std::memory_order_relaxed);
    version_.store(0, std::memory_order_relaxed);
  }

  State state = State::spare;
  std::int64_t size = 0;
  Segment* segment = nullptr;
  Block *before = nullptr, *after = nullptr;   // neighbours in memory
  Block *previous = nullptr, *next = nullptr;  // of a list: free ones, pending ones, spare ones
  std::vector<Use> uses;
  std::atomic<cuda::StreamState*> last_use{nullptr};  // spares repeated uses the lock

 private:
  void destroy() noexcept override;
  void use_on_other(cuda::StreamState* stream) override;
};

/// Memory as the source gave it.
struct Segment {
  Core* pool;
  Arena* arena;
  char* data;
  std::int64_t size;
  bool large;  // serves requests of kLargeRequest and more
  Block* first;
  std::size_t position;                       // in arena->segments
  Segment* next = nullptr;                    // of a list of released ones
  std::shared_ptr<cuda::StreamState> stream;  // of a released one: whose order its free follows

  bool wholly_free() const { return first->state == Block::State::free && first->size == size; }
};

/// Free blocks by size: 32 bins to each doubling, with a bitmap over them ("two-level
/// segregated fit", Masmano et al., 2004). Bins below 32 units hold one size each.
class FreeIndex {
 public:
  void insert(Block* block) {
    int bin = bin_of(block->size);
    Block*& head = heads_[index(bin)];
    block->previous = nullptr;
    block->next = head;
    if (head) head->previous = block;
    head = block;
    rows_[index(bin >> 5)] |= 1u << (bin & 31);
    row_bits_ |= std::uint64_t{1} << (bin >> 5);
    ++count_;
  }

  void remove(Block* block) {
    if (block->next) block->next->previous = block->previous;
    --count_;
    if (block->previous) {
      block->previous->next = block->next;
      return;
    }
    int bin = bin_of(block->size);
    heads_[index(bin)] = block->next;
    if (block->next) return;
    std::uint32_t& row = rows_[index(bin >> 5)];
    row &= ~(1u << (bin & 31));
    if (row == 0) row_bits_ &= ~(std::uint64_t{1} << (bin >> 5));
  }

  /// The smallest block of at least `size` bytes among the first few of its bin, else of the next
  /// bin that has any; null when none is large enough.
  Block* find(std::int64_t size) const {
    int bin = bin_of(size);
    // Blocks of the request's own bin may be too small: if they all are, a long list of them is
    // given up for the next bin, where every block fits.
    if (Block* block = best_of(heads_[index(bin)], size)) return block;
    bin = next_bin(bin + 1);
    return bin < 0 ? nullptr : best_of(heads_[index(bin)], size);
  }

  Block* largest() const {
    if (row_bits_ == 0) return nullptr;
    int row = std::bit_width(row_bits_) - 1;
    int bin = row * 32 + std::bit_width(rows_[index(row)]) - 1;
    Block* best = heads_[index(bin)];
    for (Block* block = best; block; block = block->next) {
      if (block->size > best->size) best = block;
    }
    return best;
  }

  std::int64_t count() const { return count_; }

 private:
  static constexpr int kRows = 48;
  static constexpr int kScan = 4;

  static constexpr std::size_t index(int i) { return static_cast<std::size_t>(i); }

  static int bin_of(std::int64_t size) {
    auto units = static_cast<std::uint64_t>(size / kUnit);
    int doubling = std::bit_width(units) - 1;
    if (doubling < 5) return static_cast<int>(units);
    return (doubling - 4) * 32 + static_cast<int>((units >> (doubling - 5)) & 31);
  }

  int next_bin(int bin) const {
    int row = bin >> 5;
    std::uint32_t bits =
        (bin & 31) ? rows_[index(row)] >> (bin & 31) << (bin & 31) : rows_[index(row)];
    if (bits == 0) {
      std::uint64_t above = row + 1 < 64 ? row_bits_ >> (row + 1) << (row + 1) : 0;
      if (above == 0) return -1;
      row = std::countr_zero(above);
      bits = rows_[index(row)];
    }
    return row * 32 + std::countr_zero(bits);
  }

  static Block* best_of(Block* block, std::int64_t size) {
    Block* best = nullptr;
    for (int i = 0; block && i < kScan; ++i, block = block->next) {
      if (block->size == size) return block;
      if (block->size > size && (!best || block->size < best->size)) best = block;
    }
    return best;
  }

  std::int64_t count_ = 0;
  std::uint64_t row_bits_ = 0;
  std::array<std::uint32_t, kRows> rows_{};
  std::array<Block*, kRows * 32> heads_{};
};

/// What is had for one stream. Its free blocks were last used there, in that stream's order.
struct Arena {
  cuda::StreamState* stream = nullptr;
  std::shared_ptr<cuda::StreamState> keep;  // the stream's state lives while blocks of it do
  std::int64_t busy = 0;                    // blocks alive or pending
  FreeIndex free[2];                        // of small and of large segments
  std::vector<Segment*> segments;
  std::int64_t small_bytes = 0;  // in small segments

  void add(Segment* segment) {
    segment->arena = this;
    segment->position = segments.size();
    segments.push_back(segment);
    if (!segment->large) small_bytes += segment->size;
  }
  void remove(Segment* segment) {
    segments[segment->position] = segments.back();
    segments[segment->position]->position = segment->position;
    segments.pop_back();
    if (!segment->large) small_bytes -= segment->size;
  }
};

}  // namespace rensa::pool

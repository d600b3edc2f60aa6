// The memory pool's way of handing out, taking back, merging and waiting.
#include "rensa/device/pool_core.h"

#include <algorithm>
#include <utility>

#include "rensa/core/error.h"
#include "rensa/device/pool_options.h"
#include "rensa/device/stream_state.h"

namespace rensa::pool {

namespace {

constexpr std::size_t kSlab = 64;
/// Every so many frees the oldest pending block is looked at; all are before memory is asked for.
constexpr unsigned kLookEvery = 16;

/// Counters have one writer at a time: no read-modify-write is needed.
void add_to(std::atomic<std::int64_t>& counter, std::int64_t n) {
  counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}
void add_to(std::atomic<std::int64_t>& counter, std::int64_t n, std::atomic<std::int64_t>& peak) {
  std::int64_t now = counter.load(std::memory_order_relaxed) + n;
  counter.store(now, std::memory_order_relaxed);
  if (now > peak.load(std::memory_order_relaxed)) peak.store(now, std::memory_order_relaxed);
}

}  // namespace

// --- the hot path's pieces ---

inline Block* Core::spare_block() {
  if (!spare_) more_spare_blocks();
  Block* block = spare_;
  spare_ = block->next;
  block->before = block->after = nullptr;
  return block;
}

inline void Core::recycle(Block* block) {
  block->state = Block::State::spare;
  block->next = spare_;
  spare_ = block;
}

void Core::more_spare_blocks() {
  slabs_.push_back(std::make_unique<Block[]>(kSlab));
  for (std::size_t i = 0; i < kSlab; ++i) {
    slabs_.back()[i].describe(device, pinned);
    recycle(&slabs_.back()[i]);
  }
}

inline Block* Core::carve(Block* block, std::int64_t size) {
  Segment* segment = block->segment;
  FreeIndex& index = segment->arena->free[segment->large];
  index.remove(block);
  std::int64_t rest = block->size - size;
  if (rest >= (segment->large ? kLargeRequest : kUnit)) {
    Block* remainder = spare_block();
    remainder->place(block->data() + size, rest, segment);
    remainder->before = block;
    remainder->after = block->after;
    if (block->after) block->after->before = remainder;
    block->after = remainder;
    block->size = size;
    remainder->state = Block::State::free;
    index.insert(remainder);
  }
  return block;
}

inline void Core::open(Block* block, std::int64_t nbytes, cuda::StreamState* stream) {
  Arena& arena = *block->segment->arena;
  if (arena.busy++ == 0 && arena.stream) arena.keep = arena.stream->weak_from_this().lock();
  block->open(nbytes, stream);
  add_to(used, block->size, peak_used);
}

inline Block* Core::take(Arena& arena, std::int64_t size, Cut cut) {
  bool large = size >= kLargeRequest;
  Block* block = arena.free[large].find(size);
  if (block && cut == Cut::sparing && block->size >= kPreciousBlock && size <= block->size / 4) {
    return nullptr;
  }
  if (!block && cut == Cut::any) block = arena.free[!large].find(size);
  return block ? carve(block, size) : nullptr;
}

inline Arena& Core::arena_of(cuda::StreamState* stream) {
  for (std::size_t i = 0; i < arenas_.size(); ++i) {
    if (arenas_[i]->stream != stream) continue;
    if (i > 0) std::swap(arenas_[0], arenas_[i]);
    return *arenas_[0];
  }
  arenas_.push_back(std::make_unique<Arena>());
  arenas_.back()->stream = stream;
  return *arenas_.back();
}

/// Makes `block`, with its free neighbours, one free block.
inline void Core::merge(Block* block) noexcept {
  Segment* segment = block->segment;
  FreeIndex& index = segment->arena->free[segment->large];
  if (Block* after = block->after; after && after->state == Block::State::free) {
    index.remove(after);
    block->size += after->size;
    block->after = after->after;
    if (block->after) block->after->before = block;
    recycle(after);
  }
  if (Block* before = block->before; before && before->state == Block::State::free) {
    index.remove(before);
    before->size += block->size;
    before->after = block->after;
    if (before->after) before->after->before = before;
    recycle(block);
    block = before;
  }
  block->state = Block::State::free;
  index.insert(block);
}

// --- storage ---

void Block::destroy() noexcept { segment->pool->free(this); }

void Block::use_on_other(cuda::StreamState* stream) {
  if (last_use.load(std::memory_order_relaxed) == stream) return;
  segment->pool->note_use(this, stream);
}

Core::Core(Device on, std::unique_ptr<MemorySource> source, bool is_pinned)
    : device(on),
      pinned(is_pinned),
      source_(std::move(source)),
      poison_(pool_poison()),
      caching_(!pool_off()),
      plain_(caching_ && !poison_) {}

Core::~Core() = default;

// --- handing out ---

Block* Core::malloc(std::int64_t nbytes, std::int64_t size, cuda::StreamState* stream) {
  {
    Lock hold(lock_);
    Arena& arena = arena_of(stream);
    if (Block* block = take(arena, size, Cut::sparing)) {
      open(block, nbytes, stream);
      return block;
    }
  }
  return malloc_slowly(nbytes, size, stream);
}

Block* Core::take_shared(Arena& arena, std::int64_t size, Cut cut) {
  // A segment that nobody uses moves to the stream that wants it.
  Segment* best = nullptr;
  for (Segment* segment : shared_.segments) {
    if (segment->wholly_free() && segment->size >= size &&
        segment->large == (size >= kLargeRequest) && (!best || segment->size < best->size)) {
      best = segment;
    }
  }
  if (best) {
    shared_.free[best->large].remove(best->first);
    shared_.remove(best);
    arena.add(best);
    arena.free[best->large].insert(best->first);
    if (Block* block = take(arena, size, cut)) return block;
  }
  Block* block = take(shared_, size, cut);
  // It goes back to memory that every stream may take, so only after this stream's work.
  if (block && arena.stream) {
    block->uses.push_back({arena.stream, arena.stream->weak_from_this().lock(), nullptr, true});
  }
  return block;
}

/// Memory is handed out in the order of its home stream, on which work for whoever had it before
/// may still wait. Another stream's first use therefore comes after all that the home stream has
/// queued.
void Core::note_use(Block* block, cuda::StreamState* stream) {
  cuda::StreamState* home = block->home_stream();
  // Without the lock: the driver may wait for room in a queue whose work frees memory of this pool.
  // Of threads that come at once each asks for the order. A capture that cannot have it leaves it
  // to the launches of its graph, which note their uses.
  bool ordered = note_use(block, stream, !home);
  if (!ordered && source_->order(home, stream)) note_use(block, stream, true);
}

/// Whether the use is ordered; `now` it is.
bool Core::note_use(Block* block, cuda::StreamState* stream, bool now) {
  Lock hold(lock_);
  auto known = std::find_if(block->uses.begin(), block->uses.end(),
                            [=](const Use& use) { return use.stream == stream; });
  if (known == block->uses.end()) {
    block->uses.push_back({stream, stream->weak_from_this().lock()});
    known = block->uses.end() - 1;
  }
  known->ordered = known->ordered || now;
  if (known->ordered) block->last_use.store(stream, std::memory_order_relaxed);
  return known->ordered;
}

// --- where nothing fits ---

Block* Core::malloc_slowly(std::int64_t nbytes, std::int64_t size, cuda::StreamState* stream) {
  if (Block* block = try_cached(nbytes, size, stream, Cut::sparing)) return block;
  std::int64_t wanted = segment_size_for(size, stream);
  trim_for(wanted, stream);
  if (Block* block = grow(wanted, nbytes, size, stream)) return block;
  if (Block* block = try_cached(nbytes, size, stream, Cut::any)) return block;
  if (Block* block = wanted > size ? grow(size, nbytes, size, stream) : nullptr) return block;
  free_all_blocks(stream);
  if (Block* block = grow(size, nbytes, size, stream)) return block;
  free_all_blocks();
  if (Block* block = grow(size, nbytes, size, stream)) return block;
  free_cached_elsewhere(*this);
  if (Block* block = grow(size, nbytes, size, stream)) return block;
  source_->synchronize();
  if (Block* block = try_cached(nbytes, size, stream, Cut::any)) return block;
  free_all_blocks();
  if (Block* block = grow(size, nbytes, size, stream)) return block;
  throw OutOfMemoryError(out_of_memory_text(nbytes));
}

Block* Core::try_cached(std::int64_t nbytes, std::int64_t size, cuda::StreamState* stream,
                        Cut cut) {
  Dropped dropped;
  Block* block;
  {
    Lock hold(lock_);
    share_retired(dropped);
    look_at_pending(-1, dropped);
    Arena& arena = arena_of(stream);
    block = take(arena, size, cut);
    if (!block) block = take_shared(arena, size, cut);
    if (block) open(block, nbytes, stream);
  }
  let_go(dropped);
  return block;
}

std::int64_t Core::segment_size_for(std::int64_t size, cuda::StreamState* stream) {
  Lock hold(lock_);
  if (!caching_) return size;
  if (size >= kLargeRequest) return round_up(size, kSegmentUnit);
  std::int64_t more = round_up(arena_of(stream).small_bytes, kSegmentUnit);
  return std::clamp(more, kSegmentUnit, kMostSmallSegment);
}

/// A miss means that every wholly free segment is too small, but for the precious ones, which are
/// larger and stay. So what goes back is not missed by this size again: a loop of the same requests
/// ends up with segments that serve it.
void Core::trim_for(std::int64_t size, cuda::StreamState* stream) {
  Dropped dropped;
  {
    Lock hold(lock_);
    std::int64_t in_use = used.load(std::memory_order_relaxed);
    std::int64_t cached = total.load(std::memory_order_relaxed) - in_use;
    if (size < kLargeRequest || retaining_ || cached <= std::max(in_use, 2 * size)) return;
    std::vector<Segment*> small;
    for (Segment* segment : arena_of(stream).segments) {
      if (segment->large && segment->size < size && segment->wholly_free()) {
        small.push_back(segment);
      }
    }
    std::sort(small.begin(), small.end(),
              [](const Segment* a, const Segment* b) { return a->size < b->size; });
    std::int64_t released = 0;
    for (std::size_t i = 0; i < small.size() && released < size; ++i) {
      released += small[i]->size;
      release_segment(small[i], dropped);
    }
  }
  let_go(dropped);
}

bool Core::reserve(std::int64_t bytes) {
  Lock hold(lock_);
  std::int64_t most = limit.load(std::memory_order_relaxed);
  if (most > 0 && total.load(std::memory_order_relaxed) + bytes > most) return false;
  add_to(total, bytes, peak_total);
  return true;
}

Block* Core::grow(std::int64_t segment_size, std::int64_t nbytes, std::int64_t size,
                  cuda::StreamState* stream) {
  if (!reserve(segment_size)) return nullptr;
  driver_calls.fetch_add(1, std::memory_order_relaxed);
  auto give_up = [&] {
    Lock hold(lock_);
    add_to(total, -segment_size);
  };
  void* data = nullptr;
  try {
    MemoryEvent event{device, nbytes, segment_size, nullptr};
    if (hook_count > 0) call_hooks(&MemoryHook::alloc_preprocess, event);
    // Without caching the source sees what was asked for, so that checkers know where it ends.
    std::int64_t asked = caching_ ? segment_size : std::max<std::int64_t>(nbytes, 1);
    data = source_->allocate_on(asked, stream);
    event.data = data;
    if (data && hook_count > 0) call_hooks(&MemoryHook::alloc_postprocess, event);
  } catch (...) {
    if (data) source_->free_on(data, stream);
    give_up();
    throw;
  }
  if (!data) {
    give_up();
    return nullptr;
  }
  Lock hold(lock_);
  auto* segment = new Segment{this,
                              nullptr,
                              static_cast<char*>(data),
                              segment_size,
                              size >= kLargeRequest,
                              spare_block(),
                              0,
                              nullptr,
                              nullptr};
  Arena& arena = arena_of(stream);
  arena.add(segment);
  ++segments_;
  segment->first->place(segment->data, segment_size, segment);
  segment->first->state = Block::State::free;
  arena.free[segment->large].insert(segment->first);
  Block* block = carve(segment->first, size);
  open(block, nbytes, stream);
  return block;
}

// --- taking back ---

void Core::free(Block* block) noexcept {
  if (hook_count > 0) {
    const MemoryEvent event{device, block->nbytes(), block->size, block->data()};
    call_hooks(&MemoryHook::free_preprocess, event);
    take_back(block);
    call_hooks(&MemoryHook::free_postprocess, event);
  } else {
    take_back(block);
  }
}

inline void Core::take_back(Block* block) noexcept {
  {
    Lock hold(lock_);
    Arena& arena = *block->segment->arena;
    if (plain_ && block->uses.empty() && !pending_first_ && arena.busy > 1) {
      add_to(used, -block->size);
      --arena.busy;
      merge(block);
      return;
    }
  }
  take_back_slowly(block);
}

/// Freed memory that others wait for, or whose freeing ends something.
void Core::take_back_slowly(Block* block) noexcept {
  Dropped dropped;
  // Nobody else holds the block any more. Without the lock, as in note_use.
  for (Use& use : block->uses) use.ticket = ticket_of(use.stream);
  {
    Lock hold(lock_);
    add_to(used, -block->size);
    if (block->uses.empty()) {
      settle(block, dropped);
    } else {
      pend(block);
    }
    if (pending_first_ && ++operations_ % kLookEvery == 0) look_at_pending(1, dropped);
    if (self_) finish_if_closed(dropped);
  }
  let_go(dropped);
}

void Core::settle(Block* block, Dropped& dropped) noexcept {
  Segment* segment = block->segment;
  Arena& arena = *segment->arena;
  // What was asked for: without caching the block's memory ends there.
  if (poison_) source_->poison(block->data(), block->nbytes(), block->home_stream());
  if (--arena.busy == 0 && arena.keep) dropped.streams.push_back(std::move(arena.keep));
  merge(block);
  if (!caching_ && segment->wholly_free()) release_segment(segment, dropped);
}

void Core::pend(Block* block) noexcept {
  block->state = Block::State::pending;
  block->next = nullptr;
  (pending_first_ ? pending_last_->next : pending_first_) = block;
  pending_last_ = block;
}

// A device that fails runs nothing any more: there is nothing to wait for.
void* Core::ticket_of(cuda::StreamState* stream) noexcept try {
  return source_->record(stream);
} catch (...) {
  return nullptr;
}

bool Core::is_done(void* ticket) noexcept try { return source_->is_done(ticket); } catch (...) {
  return true;
}

bool Core::is_done(Block* block) noexcept {
  for (Use& use : block->uses) {
    if (!use.ticket) continue;
    if (!is_done(use.ticket)) return false;
    source_->discard(std::exchange(use.ticket, nullptr));
  }
  return true;
}

/// Looks at the `most` oldest pending blocks (-1: at all) and takes back those that are done.
void Core::look_at_pending(int most, Dropped& dropped) noexcept {
  Block* last = nullptr;
  for (Block* block = pending_first_; block && most != 0; --most) {
    Block* next = block->next;
    if (is_done(block)) {
      (last ? last->next : pending_first_) = next;
      if (pending_last_ == block) pending_last_ = last;
      for (Use& use : block->uses) dropped.uses.push_back(std::move(use));
      block->uses.clear();
      block->last_use.store(nullptr, std::memory_order_relaxed);
      settle(block, dropped);
    } else {
      last = block;
    }
    block = next;
  }
}

// --- giving back to the source ---

void Core::release_segment(Segment* segment, Dropped& dropped) noexcept {
  Arena& arena = *segment->arena;
  if (arena.stream) segment->stream = arena.stream->weak_from_this().lock();
  arena.free[segment->large].remove(segment->first);
  recycle(segment->first);
  arena.remove(segment);
  add_to(total, -segment->size);
  --segments_;
  segment->next = dropped.segments;
  dropped.segments = segment;
}

void Core::release_free_segments(Arena& arena, Dropped& dropped) noexcept {
  if (retaining_ && !self_) return;
  for (std::size_t i = arena.segments.size(); i-- > 0;) {
    if (arena.segments[i]->wholly_free()) release_segment(arena.segments[i], dropped);
  }
}

void Core::release_all(Dropped& dropped) noexcept {
  share_retired(dropped);
  look_at_pending(-1, dropped);
  for (auto& arena : arenas_) release_free_segments(*arena, dropped);
  release_free_segments(shared_, dropped);
}

void Core::let_go(Dropped& dropped) noexcept {
  while (Segment* segment = dropped.segments) {
    dropped.segments = segment->next;
    source_->free_on(segment->data, segment->stream.get());
    delete segment;
  }
}

void Core::free_all_blocks() {
  Dropped dropped;
  {
    Lock hold(lock_);
    release_all(dropped);
  }
  let_go(dropped);
  source_->trim();
}

void Core::free_all_blocks(cuda::StreamState* stream) {
  Dropped dropped;
  {
    Lock hold(lock_);
    look_at_pending(-1, dropped);
    release_free_segments(arena_of(stream), dropped);
  }
  let_go(dropped);
}

// --- streams and pools that end ---

void Core::release_stream(cuda::StreamState* stream) noexcept {
  Dropped dropped;
  {
    Lock hold(lock_);
    auto found = std::find_if(arenas_.begin(), arenas_.end(),
                              [&](const auto& arena) { return arena->stream == stream; });
    if (found == arenas_.end()) return;
    Retired retired{std::move(*found), nullptr};
    arenas_.erase(found);
    retired.arena->stream = nullptr;
    if (!retired.arena->segments.empty()) retired.ticket = ticket_of(stream);
    if (retired.ticket) {
      retired_.push_back(std::move(retired));
    } else {
      share(retired, dropped);
    }
    if (self_) finish_if_closed(dropped);
  }
  let_go(dropped);
}

void Core::share_retired(Dropped& dropped) noexcept {
  for (Retired& retired : retired_) {
    if (is_done(retired.ticket)) share(retired, dropped);
  }
  std::erase_if(retired_, [](const Retired& retired) { return !retired.arena; });
}

/// Hands a retired arena's segments, with what is still alive in them, to all streams.
void Core::share(Retired& retired, Dropped& dropped) noexcept {
  Arena& from = *retired.arena;
  if (retired.ticket) source_->discard(retired.ticket);
  if (from.keep) dropped.streams.push_back(std::move(from.keep));
  shared_.busy += from.busy;
  for (Segment* segment : from.segments) {
    shared_.add(segment);
    for (Block* block = segment->first; block; block = block->after) {
      if (block->state == Block::State::free) shared_.free[segment->large].insert(block);
    }
  }
  retired.arena.reset();
}

void Core::close(std::shared_ptr<Core> self) noexcept {
  Dropped dropped;
  {
    Lock hold(lock_);
    self_ = std::move(self);
    caching_ = plain_ = false;
    finish_if_closed(dropped);
  }
  let_go(dropped);
}

/// Of a closed pool: gives back what is free, and ends the pool with its last block.
void Core::finish_if_closed(Dropped& dropped) noexcept {
  if (pending_first_ || !retired_.empty()) {
    try {
      source_->synchronize();
    } catch (...) {
      // As in ticket_of.
    }
  }
  release_all(dropped);
  if (segments_ == 0) dropped.core = std::move(self_);
}

// --- the rest ---

void Core::set_poison(bool on) {
  Lock hold(lock_);
  poison_ = on;
  plain_ = caching_ && !poison_;
}

void Core::set_caching(bool on) {
  {
    Lock hold(lock_);
    caching_ = on;
    plain_ = caching_ && !poison_;
  }
  if (!on) free_all_blocks();
}

void Core::set_retaining(bool on) {
  Lock hold(lock_);
  retaining_ = on;
}

void Core::set_name(std::string name) {
  Lock hold(lock_);
  name_ = std::move(name);
}

void Core::reset_peaks() {
  Lock hold(lock_);
  peak_used.store(used.load(std::memory_order_relaxed), std::memory_order_relaxed);
  peak_total.store(total.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

}  // namespace rensa::pool

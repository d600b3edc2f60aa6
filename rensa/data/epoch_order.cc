// Drawing an epoch's order and keeping copies of it on GPUs.
#include "rensa/data/epoch_order.h"

#include <cstring>
#include <numeric>
#include <utility>

#include "rensa/array/routines.h"
#include "rensa/core/philox.h"

namespace rensa {

std::optional<Array> OrderBuffers::on(Device device, std::int64_t generation, const Array& order) {
  std::lock_guard lock(mutex_);
  Pair& pair = pairs_[device];
  Place& place = pair.places[generation % 2];
  if (place.generation == generation) return place.device;
  if (place.generation > generation) return std::nullopt;
  if (!place.device.defined()) {
    for (Place& p : pair.places) {
      p.pinned = xp::empty_pinned(order.shape(), int64);
      p.device = xp::empty(order.shape(), int64, device);
    }
  }
  // The copy of two epochs ago: done long since, unless an epoch is a step or two.
  if (place.sent && !place.sent->done()) place.sent->synchronize();
  std::memcpy(place.pinned.data(), order.data(), static_cast<std::size_t>(order.nbytes()));
  cuda::Stream stream = cuda::current_stream(device);
  place.device.set(place.pinned, stream);
  if (!place.sent) place.sent.emplace(false);
  stream.record(*place.sent);
  place.generation = generation;
  return place.device;
}

void random_order(std::uint64_t seed, std::int64_t generation, std::int64_t n, std::int64_t* out) {
  std::iota(out, out + n, std::int64_t{0});
  // 2^40 counters a generation: more than any dataset asks for.
  std::uint64_t counter = static_cast<std::uint64_t>(generation) << 40;
  PhiloxWords words{};
  for (std::int64_t i = n - 1; i > 0; --i) {
    bool second = (n - 1 - i) % 2;
    if (!second) words = philox(seed, counter++);
    std::uint64_t word = std::uint64_t{words.word[second ? 2 : 0]} << 32 | words.word[second ? 3 : 1];
    // word / 2^64 * (i + 1), rounded down; the bias is below 2^-32 for any dataset.
    auto j = static_cast<std::int64_t>(
        static_cast<unsigned __int128>(word) * static_cast<unsigned __int128>(i + 1) >> 64);
    std::swap(out[i], out[j]);
  }
}

}  // namespace rensa

// Drawing an epoch's order and keeping copies of it on GPUs.
#include "rensa/data/epoch_order.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <utility>

#include "rensa/array/routines.h"
#include "rensa/core/philox.h"

namespace rensa {

std::optional<Array> OrderBuffers::on(Device device, std::int64_t generation, const Array& order) {
  std::lock_guard lock(mutex_);
  Buffers& buffers = buffers_[device];
  Place& place = buffers.places[generation % 2];
  if (place.generation > generation) return std::nullopt;
  cuda::Stream stream = cuda::current_stream(device);
  if (place.generation < generation) {
    if (!place.device.defined()) place.device = xp::empty(order.shape(), int64, device);
    send(buffers, place, stream, order);
    place.generation = generation;
  } else if (std::ranges::find(place.readers, stream) == place.readers.end()) {
    stream.wait(place.sent);
    place.readers.push_back(stream);
  }
  return place.device;
}

/// Queued behind the work that reads the order of two epochs ago from this place.
void OrderBuffers::send(Buffers& buffers, Place& place, const cuda::Stream& stream,
                        const Array& order) {
  for (const cuda::Stream& reader : place.readers) {
    if (reader == stream) continue;
    cuda::Event done(false);
    reader.record(done);
    stream.wait(done);
  }
  place.readers = {stream};
  Staging& staging = stage(buffers, order);
  place.device.set(staging.pinned, stream);
  stream.record(staging.sent);
  stream.record(place.sent);
}

OrderBuffers::Staging& OrderBuffers::stage(Buffers& buffers, const Array& order) {
  auto idle = std::find_if(buffers.staging.begin(), buffers.staging.end(),
                           [](const Staging& s) { return s.sent.done(); });
  if (idle == buffers.staging.end()) {
    buffers.staging.push_back({xp::empty_pinned(order.shape(), int64)});
    idle = std::prev(buffers.staging.end());
  }
  std::memcpy(idle->pinned.data(), order.data(), static_cast<std::size_t>(order.nbytes()));
  return *idle;
}

void random_order(std::uint64_t seed, std::int64_t generation, std::int64_t n, std::int64_t* out) {
  std::iota(out, out + n, std::int64_t{0});
  // 2^40 counters per generation: more than any dataset asks for.
  std::uint64_t counter = static_cast<std::uint64_t>(generation) << 40;
  PhiloxWords words{};
  for (std::int64_t i = n - 1; i > 0; --i) {
    bool second = (n - 1 - i) % 2;
    if (!second) words = philox(seed, counter++);
    std::uint64_t word =
        std::uint64_t{words.word[second ? 2 : 0]} << 32 | words.word[second ? 3 : 1];
    // word / 2^64 * (i + 1), rounded down; the bias is below 2^-32 for any dataset.
    auto j = static_cast<std::int64_t>(
        static_cast<unsigned __int128>(word) * static_cast<unsigned __int128>(i + 1) >> 64);
    std::swap(out[i], out[j]);
  }
}

}  // namespace rensa

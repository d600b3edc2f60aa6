// Random programs on two streams by two threads that hand each other their arrays, against the same
// programs one after the other: equal results, and no memory left behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/array/index.h"
#include "rensa/array/routines.h"
#include "rensa/array/ufuncs/hyperbolic.h"
#include "rensa/array/ufuncs/trigonometric.h"
#include "rensa/device/memory_pool.h"
#include "rensa/device/stream.h"
#include "tests/testing.h"

namespace rensa {
namespace {

/// The streams that the programs run on; none on the CPU.
struct Streams {
  explicit Streams(Device on) : device(on) {
    if (device.is_cpu()) return;
    for (int i = 0; i < 2; ++i) streams.emplace_back(device, cuda::non_blocking);
  }
  const Device device;
  std::vector<cuda::Stream> streams;
};

/// Work of this scope runs on stream `i`, after what `after` has queued; the thread's own goes on
/// after it.
class OnStream {
 public:
  OnStream(const Streams& all, std::size_t i, std::size_t after) : all_(all), i_(i), after_(after) {
    if (all_.streams.empty()) return;
    order(after_, i_);
    scope_.emplace(all_.streams[i_]);
  }
  ~OnStream() {
    if (all_.streams.empty()) return;
    scope_.reset();
    order(i_, after_);
  }
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;

 private:
  void order(std::size_t first, std::size_t then) const {
    if (first == then) return;
    cuda::Event event(false);
    all_.streams[first].record(event);
    all_.streams[then].wait(event);
  }
  const Streams& all_;
  std::size_t i_, after_;
  std::optional<cuda::StreamScope> scope_;
};

/// A program of ten to thirty steps on four arrays of one length, all of it drawn from the seed.
class Program {
 public:
  Program(const Streams& streams, std::size_t home, unsigned seed)
      : streams_(streams), home_(home), random_(seed) {
    n_ = draw(20) == 0 ? 50'000 + draw(200'000) : 2 + draw(3000);
  }

  Array run() {
    OnStream here(streams_, home_, home_);
    for (Array& array : arrays_) array = fresh();
    for (std::int64_t steps = 10 + draw(20); steps > 0; --steps) step();
    return (arrays_[0] + arrays_[1]) * 0.5f + xp::maximum(arrays_[2], arrays_[3]);
  }

 private:
  std::int64_t draw(std::int64_t below) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(below));
  }
  Array& any() { return arrays_[static_cast<std::size_t>(draw(4))]; }

  Array fresh() {
    std::int64_t start = draw(100);
    Array values = xp::arange(start, start + n_, 1, float32, streams_.device);
    return xp::sin(values * 0.01f);
  }

  void step() {
    Array &to = any(), &a = any(), &b = any();
    switch (draw(11)) {
      case 0: to = (a + b) * 0.5f; break;
      case 1: to = a * b - a; break;
      case 2: to = a.copy(); break;
      case 3: {  // rolled by some places
        std::int64_t k = 1 + draw(n_ - 1);
        to = xp::concatenate({a[Slice(k, n_)], a[Slice(0, k)]});
        break;
      }
      case 4: to = a - a.mean(); break;
      case 5: to = xp::minimum(a, b.sum() * 1e-3f); break;
      case 6: {  // a part overwritten; views of one array are not mixed
        if (to.storage() == a.storage()) break;
        to = to.copy();
        std::int64_t k = 1 + draw(n_ - 1);
        to[Slice(0, k)] = a[Slice(n_ - k, n_)];
        break;
      }
      case 7: {  // backwards, by a view
        Array backwards = a[Slice(none, none, -1)];
        to = backwards * 0.9f;
        break;
      }
      case 8: to = a.astype(float64).astype(float32); break;
      case 9: {  // freed here, and its memory perhaps used at once
        to = Array();
        to = fresh();
        break;
      }
      default: {  // on the other stream; what it made and what it freed comes back
        OnStream there(streams_, 1 - home_, home_);
        Array passing = a * 2.f;
        to = xp::tanh(passing + b);
        passing = Array();
        Array more = a - to;
        to = more * more;
      }
    }
  }

  const Streams& streams_;
  std::size_t home_;
  std::mt19937 random_;
  std::int64_t n_;
  Array arrays_[4];
};

/// What the array holds, in one number.
std::uint64_t fingerprint(const Array& array) {
  std::uint64_t hash = 1469598103934665603u;
  for (float value : array.to_vector<float>()) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    hash = (hash ^ bits) * 1099511628211u;
  }
  return hash;
}

/// A result on its way to the thread that reads it.
struct Parcel {
  int program;
  Array array;
  cuda::Event ready;
};

class Mailbox {
 public:
  void put(Parcel parcel) {
    std::lock_guard<std::mutex> hold(mutex_);
    parcels_.push_back(std::move(parcel));
  }
  std::optional<Parcel> take() {
    std::lock_guard<std::mutex> hold(mutex_);
    if (parcels_.empty()) return std::nullopt;
    Parcel parcel = std::move(parcels_.front());
    parcels_.pop_front();
    return parcel;
  }

 private:
  std::mutex mutex_;
  std::deque<Parcel> parcels_;
};

/// Two threads, each running every second program on its stream and reading the other's results.
std::vector<std::uint64_t> run_together(const Streams& streams, int count) {
  std::vector<std::uint64_t> results(static_cast<std::size_t>(count));
  Mailbox boxes[2];
  std::exception_ptr failure[2];
  std::atomic<bool> failed{false};
  auto work = [&](std::size_t me) {
    int expected = count / 2;
    auto read_one = [&] {
      std::optional<Parcel> parcel = boxes[me].take();
      if (!parcel) return std::this_thread::yield();
      OnStream here(streams, me, me);
      if (!streams.streams.empty()) streams.streams[me].wait(parcel->ready);
      // Read on this thread's stream; freed here as well.
      results[static_cast<std::size_t>(parcel->program)] = fingerprint(parcel->array + 0.f);
      --expected;
    };
    try {
      for (int program = static_cast<int>(me); program < count; program += 2) {
        Parcel parcel{program, Program(streams, me, static_cast<unsigned>(program)).run(),
                      cuda::Event(false)};
        if (!streams.streams.empty()) streams.streams[me].record(parcel.ready);
        boxes[1 - me].put(std::move(parcel));
        if (program % 3 == 0) read_one();
      }
      while (expected > 0 && !failed) read_one();
    } catch (...) {
      failure[me] = std::current_exception();
      failed = true;
    }
  };
  std::thread first(work, 0), second(work, 1);
  first.join();
  second.join();
  for (const auto& error : failure) {
    if (error) std::rethrow_exception(error);
  }
  return results;
}

std::vector<std::uint64_t> run_alone(const Streams& streams, int count) {
  std::vector<std::uint64_t> results;
  for (int program = 0; program < count; ++program) {
    Array result = Program(streams, static_cast<std::size_t>(program % 2),  // the same streams
                           static_cast<unsigned>(program))
                       .run();
    if (!streams.streams.empty()) cuda::synchronize(streams.device);
    results.push_back(fingerprint(result + 0.f));
  }
  return results;
}

TEST(StreamsStress, TwoThreadsOnTwoStreamsGiveWhatOneGives) {
  const int count = testing::quick() ? 60 : 1000;
  for (Device device : testing::test_devices()) {
    std::int64_t used = 0, total = 0;
    if (device.is_cuda()) {
      cuda::synchronize(device);
      cuda::memory_pool(device).free_all_blocks();
      used = cuda::memory_pool(device).used_bytes();
      total = cuda::memory_pool(device).total_bytes();
    }
    {
      Streams streams(device);
      std::vector<std::uint64_t> together = run_together(streams, count);
      std::vector<std::uint64_t> alone = run_alone(streams, count);
      ASSERT_EQ(together.size(), alone.size());
      for (std::size_t i = 0; i < alone.size(); ++i) {
        ASSERT_EQ(together[i], alone[i]) << "program " << i << " on " << device.str();
      }
      std::vector<std::uint64_t> again = run_together(streams, count / 10 * 2);
      EXPECT_TRUE(std::equal(again.begin(), again.end(), alone.begin())) << device.str();
    }
    if (device.is_cuda()) {
      cuda::synchronize(device);
      cuda::memory_pool(device).free_all_blocks();
      EXPECT_EQ(cuda::memory_pool(device).used_bytes(), used);
      EXPECT_EQ(cuda::memory_pool(device).total_bytes(), total);
    }
  }
}

}  // namespace
}  // namespace rensa

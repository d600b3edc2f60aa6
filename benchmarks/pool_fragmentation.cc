// How much memory the pool holds beyond what is asked of it, for three patterns of requests that
// tear pools to pieces: sizes that grow step by step; big and small mixed; long-lived among
// short-lived. peers/pool_fragmentation.py asks the same of CuPy's and PyTorch's pools: the
// requests come from one rule, which both programs hold (Requests, below).
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "benchmarks/counting_source.h"
#include "benchmarks/timing.h"
#include "rensa/device/devices.h"
#include "rensa/device/memory_pool.h"
#include "rensa/device/stream.h"
#include "rensa/device/stream_state.h"

namespace {

using namespace rensa;

/// A request for `nbytes` under a number, or (nbytes < 0) the free of that number.
struct Request {
  std::int64_t number, nbytes;
};

/// The rule. Random numbers are the upper 31 bits of x = x * 6364136223846793005 +
/// 1442695040888963407 (mod 2^64), x = 1 at the start of each pattern.
class Requests {
 public:
  static std::vector<Request> of(const std::string& pattern) {
    Requests made;
    if (pattern == "growing") made.growing();
    if (pattern == "mixed") made.mixed();
    if (pattern == "lifetimes") made.lifetimes();
    std::sort(made.alive_.begin(), made.alive_.end());
    for (std::int64_t number : std::vector<std::int64_t>(made.alive_)) made.free(number);
    return std::move(made.list_);
  }

 private:
  std::int64_t random(std::int64_t below) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::int64_t>(state_ >> 33) % below;
  }
  std::int64_t ask(std::int64_t nbytes) {
    list_.push_back({next_, nbytes});
    alive_.push_back(next_);
    return next_++;
  }
  void free(std::int64_t number) {
    list_.push_back({number, -1});
    alive_.erase(std::find(alive_.begin(), alive_.end(), number));
  }

  /// 400 steps: the next array, a quarter of a MiB larger, and half of it for scratch; then the
  /// last array goes.
  void growing() {
    std::int64_t last = ask(1_MiB);
    for (int i = 1; i <= 400; ++i) {
      std::int64_t size = 1_MiB + i * 256_KiB;
      std::int64_t scratch = ask(size / 2), now = ask(size);
      free(scratch);
      free(last);
      last = now;
    }
  }

  /// 20,000 times one of 256 places gets another array: one in four is big.
  void mixed() {
    std::vector<std::int64_t> places(256, -1);
    for (int i = 0; i < 20'000; ++i) {
      std::int64_t& place = places[static_cast<std::size_t>(random(256))];
      if (place >= 0) free(place);
      bool big = random(4) == 0;
      place = ask(big ? 1_MiB + random(32_MiB) : 512 + random(64_KiB));
    }
  }

  /// 200 rounds of 40 arrays; every eighth stays until a hundred younger ones do.
  void lifetimes() {
    std::vector<std::int64_t> kept;
    for (int round = 0; round < 200; ++round) {
      std::vector<std::int64_t> passing;
      for (int i = 0; i < 40; ++i) {
        std::int64_t number = ask(64_KiB + random(8_MiB));
        (i % 8 == 7 ? kept : passing).push_back(number);
      }
      for (std::int64_t number : passing) free(number);
      while (kept.size() > 100) {
        free(kept.front());
        kept.erase(kept.begin());
      }
    }
  }

  std::uint64_t state_ = 1;
  std::int64_t next_ = 0;
  std::vector<Request> list_;
  std::vector<std::int64_t> alive_;
};

std::int64_t most_asked_at_once(const std::vector<Request>& requests) {
  std::unordered_map<std::int64_t, std::int64_t> sizes;
  std::int64_t now = 0, most = 0;
  for (const Request& request : requests) {
    if (request.nbytes < 0) {
      now -= sizes[request.number];
    } else {
      now += sizes[request.number] = request.nbytes;
      most = std::max(most, now);
    }
  }
  return most;
}

double replay(const std::vector<Request>& requests, MemoryPool& pool, cuda::StreamState* stream) {
  std::vector<StoragePtr> blocks(requests.size());
  auto start = std::chrono::steady_clock::now();
  for (const Request& request : requests) {
    StoragePtr& block = blocks[static_cast<std::size_t>(request.number)];
    block = request.nbytes < 0 ? StoragePtr() : pool.malloc(request.nbytes, stream);
  }
  std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  return time.count();
}

void measure(const std::string& pattern, const char* where, MemoryPool& pool,
             cuda::StreamState* stream) {
  std::vector<Request> requests = Requests::of(pattern);
  double first = replay(requests, pool, stream), again = replay(requests, pool, stream);
  std::int64_t asked = most_asked_at_once(requests), reserved = pool.peak_total_bytes();
  std::string more = ", \"asked_mib\": " + std::to_string(asked >> 20) +
                     ", \"used_mib\": " + std::to_string(pool.peak_used_bytes() >> 20) +
                     ", \"reserved_mib\": " + std::to_string(reserved >> 20) +
                     ", \"first_ms\": " + std::to_string(first) +
                     ", \"again_ms\": " + std::to_string(again) +
                     ", \"driver_calls\": " + std::to_string(pool.n_allocations());
  benchmarks::print_figure("fragmentation " + pattern + " rensa " + where,
                           static_cast<double>(reserved) / static_cast<double>(asked),
                           "reserved / asked", more);
}

}  // namespace

int main() {
  for (const char* pattern : {"growing", "mixed", "lifetimes"}) {
    MemoryPool counting(gpu(0), std::make_unique<benchmarks::CountingSource>());
    auto stream = std::make_shared<cuda::StreamState>(gpu(0), nullptr, false);
    measure(pattern, "counting", counting, stream.get());
    if (num_gpus() > 0) {
      auto pool = cuda::make_memory_pool(gpu(0));
      measure(pattern, "gpu", *pool, cuda::current_stream_state(gpu(0)));
    }
  }
}

// allreduce, allgather and alltoall over the ranks of a group, of arrays of so many KB on each: of
// threads of this process, or of processes that rensa-run started, on the CPU or with a GPU each.
//
//   collectives 2                     two threads
//   rensa-run -n 2 collectives        two processes
//   rensa-run -n 2 collectives gpu    two processes with a GPU each: eager and captured
#include <fmt/format.h>
#include <rensa/rensa.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/timing.h"

namespace {

using namespace rensa;

using Exchange = std::function<Variables(const Communicator&, const Variable&)>;
struct Collective {
  const char* name;
  Exchange exchange;  // of a rank's array
  Exchange recorded;  // the same, of sizes that all know
};

/// The parts of `x` that go to each rank.
Variables parts_of(const Variable& x, int ranks) {
  std::vector<Array> parts = xp::split(x.array(), ranks);
  return Variables(parts.begin(), parts.end());
}

/// So many elements of each rank.
std::vector<std::int64_t> of_each(const Communicator& c, std::int64_t elements) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(c.size()), elements);
}

Variables sum_over(const Communicator& c, const Variable& x) {
  return {Variable(c.allreduce(x.array()))};
}

const Collective kCollectives[] = {
    {"allreduce", sum_over, sum_over},
    {"allgather", [](const Communicator& c, const Variable& x) { return F::allgather(c, x); },
     [](const Communicator& c, const Variable& x) {
       return Variables{Variable(c.allgatherv(x.array(), of_each(c, x.size())))};
     }},
    {"alltoall",
     [](const Communicator& c, const Variable& x) { return F::alltoall(c, parts_of(x, c.size())); },
     [](const Communicator& c, const Variable& x) {
       std::vector<std::int64_t> counts = of_each(c, x.size() / c.size());
       return Variables{F::alltoallv(c, x, counts, counts)};
     }}};

/// Times one for an array of so many KB on each rank.
void time_one(const Communicator& c, const Collective& collective, std::int64_t kilobytes,
              const std::string& way) {
  auto print = [&](const std::string& how, double seconds) {
    if (c.rank() != 0) return;
    benchmarks::print_figure(
        fmt::format("{} {} KB, {} {} rensa", collective.name, kilobytes, c.size(), how),
        seconds * 1e6, "us");
  };
  no_backprop_mode off;
  Variable x = constant(xp::ones({kilobytes * 256}, float32, c.device()));
  int calls = static_cast<int>(std::max<std::int64_t>(2, 20000 / (kilobytes + 50)));
  auto call = [&] { (void)collective.exchange(c, x); };
  print(way, benchmarks::median_seconds(call, calls, c.device()));
  if (c.device().is_cpu()) return;
  CaptureCache cache;
  auto step = [&](const Variables& in) { return collective.recorded(c, in[0]); };
  auto replay = [&] { (void)cache.call(step, {x}); };
  print(way + ", captured,", benchmarks::median_seconds(replay, calls, c.device()));
  if (cache.stats().replays == 0) throw Error(cache.stats().last_fallback);
}

void time_all(const Communicator& c, const std::string& way) {
  DeviceScope scope(c.device());
  std::vector<std::int64_t> sizes{4, 64, 1024, 16384, 131072};
  if (c.device().is_cuda()) sizes.push_back(1048576);
  for (const Collective& collective : kCollectives) {
    for (std::int64_t kilobytes : sizes) time_one(c, collective, kilobytes, way);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    time_all(create_communicator(), "processes");
    return 0;
  }
  if (argv[1] == std::string("gpu")) {
    Communicator all = create_communicator();
    time_all(all.on(gpu(all.local_rank())), "GPUs");
    return 0;
  }
  std::vector<Communicator> ends = create_thread_communicators(std::atoi(argv[1]));
  std::vector<std::thread> threads;
  for (Communicator& end : ends) threads.emplace_back([&end] { time_all(end, "threads"); });
  for (std::thread& thread : threads) thread.join();
  return 0;
}

// allreduce over the ranks of a group: of threads of this process, or of processes that rensa-run
// started, on the CPU or with a GPU each.
//
//   collectives 2                     two threads
//   rensa-run -n 2 collectives        two processes
//   rensa-run -n 2 collectives gpu    two processes with a GPU each: eager and captured
#include <fmt/format.h>
#include <rensa/rensa.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/timing.h"

namespace {

using namespace rensa;

void print(const Communicator& c, std::int64_t kilobytes, const std::string& way, double seconds) {
  if (c.rank() != 0) return;
  benchmarks::print_figure(fmt::format("allreduce {} KB, {} {} rensa", kilobytes, c.size(), way),
                           seconds * 1e6, "us");
}

void time_allreduce(const Communicator& c, const std::string& way) {
  DeviceScope scope(c.device());
  for (std::int64_t kilobytes : {4, 64, 1024, 16384, 131072}) {
    Array x = xp::ones({kilobytes * 256}, float32, c.device());
    int calls = static_cast<int>(std::max<std::int64_t>(2, 20000 / (kilobytes + 50)));
    auto call = [&] { c.allreduce(x); };
    print(c, kilobytes, way, benchmarks::median_seconds(call, calls, c.device()));
    if (c.device().is_cpu()) continue;
    auto recorded = capture([&](const Variable& a) { return Variable(c.allreduce(a.array())); });
    Variable input = constant(x);
    auto replay = [&] { recorded(input); };
    print(c, kilobytes, way + ", captured,", benchmarks::median_seconds(replay, calls, c.device()));
    if (recorded.stats().replays == 0) throw Error(recorded.stats().last_fallback);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    time_allreduce(create_communicator(), "processes");
    return 0;
  }
  if (argv[1] == std::string("gpu")) {
    Communicator all = create_communicator();
    time_allreduce(all.on(gpu(all.local_rank())), "GPUs");
    return 0;
  }
  std::vector<Communicator> ends = create_thread_communicators(std::atoi(argv[1]));
  std::vector<std::thread> threads;
  for (Communicator& end : ends) threads.emplace_back([&end] { time_allreduce(end, "threads"); });
  for (std::thread& thread : threads) thread.join();
  return 0;
}

// allreduce over the ranks of a group: of threads of this process, or of processes that rensa-run
// started.
//
//   collectives 2                     two threads
//   rensa-run -n 2 collectives        two processes
#include <fmt/format.h>
#include <rensa/rensa.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "benchmarks/timing.h"

namespace {

using namespace rensa;

void time_allreduce(const Communicator& c, const std::string& way) {
  for (std::int64_t kilobytes : {4, 64, 1024, 16384, 131072}) {
    Array x = xp::ones({kilobytes * 256}, float32, cpu());
    int calls = static_cast<int>(std::max<std::int64_t>(2, 20000 / (kilobytes + 50)));
    double seconds = benchmarks::median_seconds([&] { c.allreduce(x); }, calls, cpu());
    if (c.rank() == 0) {
      benchmarks::print_figure(
          fmt::format("allreduce {} KB, {} {} rensa", kilobytes, c.size(), way), seconds * 1e6,
          "us");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    time_allreduce(create_communicator(), "processes");
    return 0;
  }
  std::vector<Communicator> ends = create_thread_communicators(std::atoi(argv[1]));
  std::vector<std::thread> threads;
  for (Communicator& end : ends) threads.emplace_back([&end] { time_allreduce(end, "threads"); });
  for (std::thread& thread : threads) thread.join();
  return 0;
}

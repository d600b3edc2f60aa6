// Ranks that train a model together, one of which fails in some way: the others end soon, with an
// error that names it. Each way comes once; with RENSA_TEST_FAULTS=200 so many come, of random
// kinds, one after the other.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "rensa/array/communicator.h"
#include "rensa/array/routines.h"
#include "rensa/core/environment.h"
#include "rensa/core/error.h"
#include "rensa/data/data.h"
#include "rensa/functions/functions.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/multi_node_optimizer.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/training/training.h"
#include "tests/environment.h"
#include "tests/file_size_limit.h"
#include "tests/started_ranks.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa::training {
namespace {

using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Clock = std::chrono::steady_clock;

struct Net : Chain<Net> {
  L::Linear l1, l2;
  explicit Net(std::int64_t width) : l1(width), l2(width, 1) {}
  void members(Visitor& v) override { v("l1", l1), v("l2", l2); }
  Variable operator()(const Variable& x, const Variable& t) const {
    Variable d = l2(F::relu(l1(x))) - t;
    return (d * d).mean();
  }
};

/// What a rank does at that iteration.
struct Job {
  std::string what;
  std::int64_t iteration = 0;
  std::string out;      // the folder for what it writes
  bool on_gpu = false;  // of each rank's own
};

/// One that an iteration begins or ends with.
void do_fault(const std::string& what, const Communicator& communicator) {
  static std::optional<testing::FileSizeLimit> full_disk;
  if (what == "kill") ::raise(SIGKILL);
  if (what == "stop") ::raise(SIGSTOP);
  if (what == "exit") std::exit(0);
  if (what == "throw") throw std::runtime_error("a fault");
  if (what == "call") communicator.allreduce(xp::ones({5}).to(communicator.device()));
  if (what == "disk") full_disk.emplace(100);
}

/// Of a GPU whose group has failed in that way: what it has computed since is garbage.
void expect_nothing_can_be_read(const Array& a, const CommunicationError& failure) {
  try {
    a.to(cpu());
  } catch (const CommunicationError&) {
    return;
  }
  throw std::runtime_error(
      fmt::format("memory of a GPU can be read after its group has failed: {}", failure.what()));
}

/// Trains for one epoch, which is long, and writes a snapshot now and then.
void train(const Job& job, const Communicator& group) {
  Communicator communicator = job.on_gpu ? group.on(gpu(group.local_rank())) : group;
  Net model(job.what == "other_width" ? 9 : 8);
  optimizers::MomentumSGD optimizer(0.001);
  model.to_device(communicator.device());
  optimizer.setup(model);
  create_multi_node_optimizer(optimizer, communicator);
  constexpr std::int64_t kBatch = 3;
  std::int64_t n = kBatch * (job.what == "fewer" ? job.iteration : 100000);
  datasets::TupleDataset data(xp::ones({n, job.what == "other_inputs" ? 5 : 4}), xp::zeros({n, 1}));
  StandardUpdater updater(iterators::SerialIterator(data, kBatch), optimizer,
                          {.device = communicator.device()});
  Trainer trainer(updater, {1, "epoch"}, job.out);
  trainer.extend(
      [&](Trainer& t) {
        if (t.updater().iteration() == job.iteration) do_fault(job.what, communicator);
      },
      {.name = "fault", .trigger = {1, "iteration"}, .priority = 300});
  trainer.extend(extensions::snapshot({.n_retains = 1}), {.trigger = {5, "iteration"}});
  try {
    trainer.run();
  } catch (const CommunicationError& failure) {
    // Before the first update the hosts compare what they train, and no GPU has to wait.
    if (job.on_gpu && updater.iteration() > 0) {
      expect_nothing_can_be_read(model.l1.W.array(), failure);
    }
    throw;
  }
}

/// How a rank's training ends: "ValueError: ...", "nothing".
std::string end_of(const std::function<void()>& training) {
  try {
    training();
  } catch (const CommunicationError& error) {
    return fmt::format("CommunicationError: {}", error.what());
  } catch (const ValueError& error) {
    return fmt::format("ValueError: {}", error.what());
  } catch (const std::exception& error) {
    return fmt::format("another error: {}", error.what());
  }
  return "nothing";
}

/// What a test below starts: a rank with a job, which tells how that ended.
TEST(RankFaults, Rank) {
  const char* text = testing::rank_job();
  if (!text) GTEST_SKIP() << "is run by the other tests of RankFaults";
  Job job;
  std::istringstream(text) >> job.what >> job.iteration >> job.out >> job.on_gpu;
  testing::tell_what_was_seen(end_of([&] { train(job, create_communicator()); }));
}

/// A way to fail.
struct Kind {
  const char* what;
  int timeout;         // RENSA_COMMUNICATION_TIMEOUT: only those that it finds out wait for so long
  const char* others;  // see this
  const char* itself;  // sees this; null where it cannot tell
  bool of_threads = false;  // a thread may fail so, too
};
constexpr char kEnded[] = "has ended";
constexpr char kSilent[] = "nothing came for {} s from";  // of the timeout
constexpr char kOtherCall[] = "all ranks of a group make the same calls";
constexpr char kOtherModel[] = "all ranks have to make the same model";
constexpr Kind kKinds[] = {
    {"kill", 60, kEnded, nullptr},
    {"stop", 2, kSilent, nullptr},
    {"exit", 60, kEnded, nullptr},
    {"throw", 60, kEnded, "a fault", true},
    {"call", 60, kOtherCall, kOtherCall, true},
    {"fewer", 60, kEnded, "nothing", true},
    {"other_width", 60, kOtherModel, kOtherModel, true},
    {"other_inputs", 60, kOtherModel, kOtherModel, true},  // found out at the first update
    {"disk", 60, kEnded, "cannot write"},
    // By this process, at any moment: often while the ranks meet.
    {"is killed", 2, "", nullptr},
    {"is stopped", 2, "", nullptr},
};

struct Fault {
  const Kind& kind;
  int size, victim;
  std::int64_t iteration;
  std::chrono::microseconds delay;  // of what this process does
};

Fault random_fault(const Kind& kind, std::mt19937& random) {
  int size = 2 + static_cast<int>(random() % 3);
  return {kind, size, static_cast<int>(random() % static_cast<unsigned>(size)),
          1 + static_cast<std::int64_t>(random() % 60),
          std::chrono::microseconds(random() % (random() % 2 ? 5'000 : 100'000))};
}

void expect_named(const Kind& kind, int victim, int timeout, const std::string& seen) {
  EXPECT_THAT(seen,
              StartsWith(kind.others == kOtherModel ? "ValueError: " : "CommunicationError: "));
  EXPECT_THAT(seen, HasSubstr(fmt::format(fmt::runtime(kind.others), timeout)));
  // "rank 1 (host a, process 7)", "meeting at rank 0 (127.0.0.1:29500)", "rank(s) 1 of 3 to come".
  EXPECT_THAT(seen, ContainsRegex(fmt::format("rank(\\(s\\))? {} ", victim)));
}

/// How long it took until all others had ended.
double run(const Fault& fault, bool on_gpus = false) {
  std::string what = fault.kind.what;
  SCOPED_TRACE(fmt::format("rank {} of {}: {}, iteration {}, after {} us", fault.victim, fault.size,
                           what, fault.iteration, fault.delay.count()));
  bool from_outside = what.starts_with("is ");
  testing::TemporaryFolder folder;
  std::vector<std::string> jobs;
  for (int rank = 0; rank < fault.size; ++rank) {
    bool fails = rank == fault.victim && !from_outside;
    jobs.push_back(fmt::format("{} {} {} {:d}", fails ? what : "works", fault.iteration,
                               folder / std::to_string(rank), on_gpus));
  }
  // Of GPUs NCCL connects them within it, too.
  int timeout = on_gpus ? std::max(fault.kind.timeout, 10) : fault.kind.timeout;
  testing::StartedRanks ranks("RankFaults.Rank", jobs, timeout);
  if (from_outside) {
    std::this_thread::sleep_for(fault.delay);
    ranks[fault.victim].signal(what == "is stopped" ? SIGSTOP : SIGKILL);
  }
  auto begin = Clock::now();
  std::chrono::seconds soon(on_gpus ? 60 : 30);  // on a machine with much to do
  for (int rank = 0; rank < fault.size; ++rank) {
    if (rank == fault.victim) continue;
    expect_named(fault.kind, fault.victim, timeout, ranks.saw(rank, soon));
  }
  double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (fault.kind.itself) {
    EXPECT_THAT(ranks.saw(fault.victim, soon), HasSubstr(fault.kind.itself));
  }
  return seconds;
}

TEST(RankFaults, EndTheOthersWithErrorsThatNameTheRank) {
  auto given = environment::number("RENSA_TEST_FAULTS", 1, 1000000);
  std::mt19937 random(static_cast<unsigned>(::getpid()));
  std::map<std::string, std::pair<int, double>> times;  // how many of a kind; the longest
  auto faults = static_cast<std::size_t>(given.value_or(std::size(kKinds)));
  for (std::size_t i = 0; i < faults && !HasFailure(); ++i) {
    const Kind& kind = kKinds[given ? random() % std::size(kKinds) : i];
    double seconds = run(random_fault(kind, random));
    auto& [count, longest] = times[kind.what];
    ++count, longest = std::max(longest, seconds);
  }
  for (const auto& [what, time] : times) {
    std::printf("%d x %s: the others ended within %.2f s\n", time.first, what.c_str(), time.second);
  }
}

TEST(RankFaults, OnGpus) {
  RENSA_NEEDS_GPUS(2);
  std::mt19937 random(static_cast<unsigned>(::getpid()));
  for (int turn = 0; turn < 2; ++turn) {
    for (const Kind& kind : kKinds) {
      Fault fault = random_fault(kind, random);
      fault.size = 2, fault.victim = turn;
      // While NCCL connects them, and while the GPUs work, too.
      fault.delay = std::chrono::milliseconds(turn * 3000 + static_cast<int>(random() % 3000));
      std::printf("%s: the other ended within %.2f s\n", kind.what, run(fault, true));
    }
  }
}

/// How each of three threads ends, of which one fails in that way.
std::vector<std::string> ends_of_threads(const std::string& what, int victim) {
  testing::TemporaryFolder folder;
  std::vector<Communicator> ranks = create_thread_communicators(3);
  std::vector<std::string> ends(ranks.size());
  std::vector<std::thread> threads;
  for (Communicator& own : ranks) {
    int rank = own.rank();
    Job job{rank == victim ? what : "works", 7, folder / std::to_string(rank)};
    threads.emplace_back([&ends, job, rank, own = std::move(own)] {
      ends[static_cast<std::size_t>(rank)] = end_of([&] { train(job, own); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}

TEST(RankFaults, OfThreads) {
  testing::EnvironmentScope timeout("RENSA_COMMUNICATION_TIMEOUT", "20");
  for (const Kind& kind : kKinds) {
    if (!kind.of_threads) continue;
    for (int victim = 0; victim < 3; ++victim) {
      SCOPED_TRACE(fmt::format("rank {}: {}", victim, kind.what));
      std::vector<std::string> ends = ends_of_threads(kind.what, victim);
      for (int rank = 0; rank < 3; ++rank) {
        const std::string& end = ends[static_cast<std::size_t>(rank)];
        if (rank == victim) EXPECT_THAT(end, HasSubstr(kind.itself));
        else expect_named(kind, victim, kind.timeout, end);
      }
    }
  }
}

}  // namespace
}  // namespace rensa::training

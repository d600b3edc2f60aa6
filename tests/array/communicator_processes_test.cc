// Groups of processes, some of whose ranks are killed, stopped, or do something else.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

#include "rensa/array/communicator.h"
#include "rensa/array/routines.h"
#include "rensa/communication/launch_environment.h"
#include "rensa/communication/socket.h"
#include "rensa/core/error.h"
#include "tests/started_ranks.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using communication::launch_environment;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Variables of the environment for a scope: those named here and no others of the kind.
class Variables {
 public:
  explicit Variables(const std::vector<std::pair<const char*, const char*>>& set) {
    for (const char* name : kAll) ::unsetenv(name);
    for (auto [name, value] : set) ::setenv(name, value, 1);
  }
  ~Variables() {
    for (const char* name : kAll) ::unsetenv(name);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  static constexpr const char* kAll[] = {"OMPI_COMM_WORLD_RANK",
                                         "OMPI_COMM_WORLD_SIZE",
                                         "OMPI_COMM_WORLD_LOCAL_RANK",
                                         "OMPI_COMM_WORLD_LOCAL_SIZE",
                                         "PMI_RANK",
                                         "PMI_SIZE",
                                         "RANK",
                                         "WORLD_SIZE",
                                         "LOCAL_RANK",
                                         "LOCAL_WORLD_SIZE",
                                         "MASTER_ADDR",
                                         "MASTER_PORT",
                                         "SLURM_PROCID",
                                         "SLURM_NTASKS",
                                         "SLURM_NTASKS_PER_NODE",
                                         "SLURM_LOCALID"};
};

TEST(LaunchEnvironment, OfWhatStartsProcesses) {
  {
    Variables none({});
    EXPECT_FALSE(launch_environment().has_value());
  }
  {
    Variables one({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
    EXPECT_EQ(launch_environment()->size, 1);
  }
  {
    Variables two({{"RANK", "5"},
                   {"WORLD_SIZE", "8"},
                   {"LOCAL_RANK", "1"},
                   {"LOCAL_WORLD_SIZE", "4"},
                   {"MASTER_ADDR", "node0"},
                   {"MASTER_PORT", "2900"}});
    auto e = *launch_environment();
    EXPECT_EQ(e.rank, 5);
    EXPECT_EQ(e.size, 8);
    EXPECT_EQ(e.local_rank, 1);
    EXPECT_EQ(e.local_size, 4);
    EXPECT_EQ(e.address, "node0");
    EXPECT_EQ(e.port, 2900);
  }
  {
    Variables slurm({{"SLURM_PROCID", "3"},
                     {"SLURM_NTASKS", "4"},
                     {"SLURM_LOCALID", "1"},
                     {"MASTER_ADDR", "node0"},
                     {"MASTER_PORT", "2900"}});
    EXPECT_EQ(launch_environment()->rank, 3);
    EXPECT_EQ(launch_environment()->local_rank, 1);
    // mpirun within a job of SLURM.
    ::setenv("OMPI_COMM_WORLD_RANK", "2", 1);
    ::setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
    ::setenv("OMPI_COMM_WORLD_LOCAL_RANK", "0", 1);
    EXPECT_EQ(launch_environment()->rank, 2);
    EXPECT_EQ(launch_environment()->size, 3);
    EXPECT_EQ(launch_environment()->local_rank, 0);
  }
  {
    Variables hydra(
        {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "2900"}});
    EXPECT_EQ(launch_environment()->rank, 1);
  }
}

TEST(LaunchEnvironment, WhatIsMissingOrSaysNothingSensible) {
  auto text = [](const std::vector<std::pair<const char*, const char*>>& set) {
    Variables variables(set);
    return testing::thrown<ValueError>([] { launch_environment(); });
  };
  EXPECT_THAT(text({{"RANK", "1"}}), HasSubstr("RANK is set and WORLD_SIZE is not"));
  EXPECT_THAT(text({{"RANK", "1"}, {"WORLD_SIZE", "2"}}), HasSubstr("MASTER_ADDR is not"));
  EXPECT_THAT(text({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK=\"2\""));
  EXPECT_THAT(text({{"RANK", "x"}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK=\"x\""));
}

/// What the tests below start: a rank that does what RENSA_TEST_RANK says until it fails, and
/// tells how.
TEST(GroupOfProcesses, Rank) {
  const char* job = testing::rank_job();
  if (!job) GTEST_SKIP() << "is run by the other tests of GroupOfProcesses";
  if (std::string(job) == "stays away") return;
  std::string text = "nothing";
  try {
    Communicator c = create_communicator();
    EXPECT_EQ(create_communicator().allreduce(xp::full({3}, c.rank())).to_vector<int>(),
              std::vector<int>(3, c.size() * (c.size() - 1) / 2));
    std::printf("\nis there\n");
    std::fflush(stdout);
    bool leaves = std::string(job) == "leave" && c.rank() == 1;
    for (int turn = 0; !leaves && std::string(job) != "once"; ++turn) {
      c.allreduce(xp::ones({1 + turn % 5 * 20000}));
    }
  } catch (const CommunicationError& error) {
    text = error.what();
  }
  testing::tell_what_was_seen(text);
}

/// So many ranks, all of which have the same job.
testing::StartedRanks started(int size, const std::string& job, int timeout) {
  return {"GroupOfProcesses.Rank", std::vector<std::string>(static_cast<std::size_t>(size), job),
          timeout};
}

TEST(GroupOfProcesses, WorksAndEnds) {
  testing::StartedRanks group = started(4, "once", 60);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_THAT(group.saw(rank, std::chrono::seconds(60)), HasSubstr("nothing\n"));
  }
}

TEST(GroupOfProcesses, ARankThatLeavesIsNamed) {
  testing::StartedRanks group = started(3, "leave", 60);
  for (int rank : {0, 2}) {
    std::string text = group.saw(rank, std::chrono::seconds(60));
    EXPECT_THAT(text, HasSubstr("rank 1 (host "));
    EXPECT_THAT(text, HasSubstr("has ended"));
    EXPECT_THAT(text, HasSubstr("allreduce of float32"));
  }
}

// Killed or stopped at random moments: the others end soon, and say who it was.
TEST(GroupOfProcesses, RandomFaults) {
  const char* given = std::getenv("RENSA_TEST_FAULTS");
  int faults = given ? std::atoi(given) : testing::quick() ? 2 : 10;
  std::mt19937 random(static_cast<unsigned>(::getpid()));
  for (int turn = 0; turn < faults; ++turn) {
    int victim = static_cast<int>(random() % 3);
    bool stops = random() % 2 == 0;
    SCOPED_TRACE(fmt::format("turn {}: rank {} is {}", turn, victim, stops ? "stopped" : "killed"));
    testing::StartedRanks group = started(3, "work", stops ? 2 : 60);
    for (int rank = 0; rank < 3; ++rank) {
      ASSERT_TRUE(group[rank].read_until("\nis there\n").has_value());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 50));
    group[victim].signal(stops ? SIGSTOP : SIGKILL);
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == victim) continue;
      std::string text = group.saw(rank, std::chrono::seconds(60));
      EXPECT_THAT(text, HasSubstr(fmt::format("rank {} (host ", victim)));
      EXPECT_THAT(text, HasSubstr(stops ? "nothing came for 2 s" : "has ended"));
    }
  }
}

TEST(GroupOfProcesses, WhoDoesNotComeIsNamedByAll) {
  testing::StartedRanks group("GroupOfProcesses.Rank", {"once", "once", "stays away"}, 1);
  EXPECT_THAT(group.saw(0, std::chrono::seconds(60)),
              HasSubstr("waited in vain for rank(s) 2 of 3 to come to 127.0.0.1:"));
  EXPECT_THAT(group.saw(1, std::chrono::seconds(60)),
              AllOf(HasSubstr("meeting at rank 0 (127.0.0.1:"),
                    HasSubstr("waited in vain for rank(s) 2 of 3")));
}

TEST(GroupOfProcesses, WithoutRankZero) {
  testing::StartedRanks group("GroupOfProcesses.Rank", {"stays away", "once"}, 1);
  EXPECT_THAT(group.saw(1, std::chrono::seconds(60)),
              AllOf(HasSubstr("meeting at rank 0 (127.0.0.1:"), HasSubstr("refused")));
}

TEST(Ports, AreReservedForWhoAsksForThemByNumber) {
  communication::ReservedPort port;
  EXPECT_THAT(testing::thrown<CommunicationError>([&] {
                communication::connect_to("127.0.0.1", port.port(), communication::Clock::now());
              }),
              HasSubstr("refused"));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(communication::Listener(port.port()).port(), port.port());
}

// The system gives a socket that connects a port of its own, which may be the one it connects to.
TEST(Ports, NobodyIsConnectedToHimself) {
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
  int first = 0, last = 0;
  range >> first >> last;
  int port = first + ::getpid() % ((last - first) / 2) * 2;  // ports of that kind come first
  std::string in_use;
  for (int turn = 0; turn < 5; ++turn, port += 2) {
    for (int i = first; i < last; ++i) {
      EXPECT_THROW(communication::connect_to("127.0.0.1", port, communication::Clock::now()),
                   CommunicationError);
    }
    try {
      EXPECT_EQ(communication::Listener(port).port(), port);  // nothing of it is left
      return;
    } catch (const std::exception& error) {
      in_use = error.what();  // by another program, perhaps
    }
  }
  ADD_FAILURE() << in_use;
}

}  // namespace
}  // namespace rensa

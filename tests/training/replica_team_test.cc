// ReplicaTeam: at the same time, again and again, and no hang when one fails.
#include "rensa/training/replica_team.h"

#include <atomic>
#include <set>
#include <stdexcept>

#include "rensa/core/thread_state.h"
#include "tests/testing.h"

namespace rensa::training {
namespace {

TEST(ReplicaTeam, ThreadsLastAndTheCallerIsMemberZero) {
  ReplicaTeam team(3);
  std::thread::id ids[3];
  team.run([&](int member) { ids[member] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_EQ((std::set<std::thread::id>{ids[0], ids[1], ids[2]}.size()), 3u);
  for (int i = 0; i < 50; ++i) {
    team.run([&](int member) { EXPECT_EQ(ids[member], std::this_thread::get_id()); });
  }
}

TEST(ReplicaTeam, BarriersSeparatePhases) {
  ReplicaTeam team(4);
  std::atomic<int> first{0}, second{0};
  for (int round = 1; round <= 20; ++round) {
    team.run([&](int) {
      ++first;
      team.barrier();
      EXPECT_EQ(first.load(), 4 * round);
      ++second;
      team.barrier();
      EXPECT_EQ(second.load(), 4 * round);
    });
  }
}

TEST(ReplicaTeam, AFailureReleasesTheOthersAndTheTeamGoesOn) {
  ReplicaTeam team(3);
  for (int failing = 0; failing < 3; ++failing) {
    std::atomic<int> past{0};
    try {
      team.run([&](int member) {
        if (member == failing) throw std::runtime_error("member " + std::to_string(member));
        team.barrier();
        ++past;
      });
      FAIL() << "no exception";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), "member " + std::to_string(failing));
    }
    EXPECT_EQ(past.load(), 0);
    team.run([&](int) { team.barrier(); });
  }
}

TEST(ReplicaTeam, MembersHaveTheCallersConfiguration) {
  ReplicaTeam team(2);
  for (bool train : {false, true}) {
    UsingConfig set(&Config::train, train);
    team.run([&](int) { EXPECT_EQ(config().train, train); });
  }
}

}  // namespace
}  // namespace rensa::training

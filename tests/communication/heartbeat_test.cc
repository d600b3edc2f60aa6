// Ranks that make calls of their own accord, one of which fails: the others hear of it.
#include "rensa/communication/heartbeat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "rensa/communication/communication_error.h"
#include "rensa/communication/thread_transport.h"
#include "tests/cycles.h"
#include "tests/testing.h"

namespace rensa::communication {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// One rank's end, and what the heartbeat's thread said of it.
class End {
 public:
  End(std::shared_ptr<Transport> group, seconds timeout)
      : size_(group->size()), rank_(group->rank()) {
    heartbeat_.emplace(std::move(group), timeout, [this](const std::string& text) {
      said_ = text;
      has_failed_ = true;
    });
  }
  int rank() const { return rank_; }
  /// A call in which all send each other so much.
  void call(const std::string& name, std::int64_t nbytes = 8) {
    std::vector<Outgoing> sent;
    std::vector<Incoming> received;
    for (int rank = 0; rank < size_; ++rank) {
      if (rank == rank_) continue;
      sent.push_back({rank, nullptr, nbytes});
      received.push_back({rank, nullptr, nbytes});
    }
    heartbeat_->note(Label(name, "something"), sent, received);
  }
  void send(int to, std::int64_t nbytes) {
    std::vector<Outgoing> sent{{to, nullptr, nbytes}};
    heartbeat_->note(Label("send", ""), sent, {});
  }
  void receive(int from, std::int64_t nbytes) {
    std::vector<Incoming> received{{from, nullptr, nbytes}};
    heartbeat_->note(Label("send", ""), {}, received);
  }
  void tell_failure(const std::string& text) { heartbeat_->tell_failure(text); }
  void check() const { heartbeat_->check(); }
  /// Until the group has failed; empty where it has not within so long.
  std::string failure(seconds within = seconds(20)) const {
    auto end = Clock::now() + within;
    while (!has_failed_ && Clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (!has_failed_) return "";
    EXPECT_EQ(testing::message_of<CommunicationError>([&] { check(); }), said_);
    return said_;
  }

 private:
  int size_, rank_;
  std::string said_;
  std::atomic<bool> has_failed_ = false;
  std::optional<Heartbeat> heartbeat_;
};

void run(int size, seconds timeout, const std::function<void(End&)>& job) {
  std::vector<std::thread> threads;
  for (auto& group : connect_threads(size, timeout)) {
    threads.emplace_back([&job, timeout, own = std::move(group)]() mutable {
      End end(std::move(own), timeout);
      job(end);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Heartbeat, OfRanksThatMakeTheSameCalls) {
  run(3, seconds(60), [](End& end) {
    for (int turn = 0; turn < 1000; ++turn) {
      end.call("allreduce", turn);
      if (turn % 100 == end.rank()) std::this_thread::sleep_for(std::chrono::milliseconds(30));
      // Ranks 0 and 1 alone.
      if (end.rank() == 0) end.send(1, turn);
      if (end.rank() == 1) end.receive(0, turn);
    }
    EXPECT_EQ(end.failure(seconds(1)), "");
    end.check();
  });
}

TEST(Heartbeat, OneThatMakesAnotherCallIsNamedByAll) {
  run(3, seconds(60), [](End& end) {
    end.call("allreduce");
    end.call(end.rank() == 2 ? "bcast" : "allgather");
    EXPECT_THAT(end.failure(), AllOf(HasSubstr("bcast of something"), HasSubstr("rank 2"),
                                     HasSubstr("allgather of something")));
  });
}

TEST(Heartbeat, OneThatSendsAnotherSizeIsNamedByAll) {
  run(3, seconds(60), [](End& end) {
    if (end.rank() == 0) end.send(1, 100);
    if (end.rank() == 1) end.receive(0, 99);
    EXPECT_THAT(end.failure(), AllOf(HasSubstr("100 bytes"), HasSubstr("99 bytes")));
  });
}

TEST(Heartbeat, OneThatEndsBeforeACallIsNamedByAll) {
  run(3, seconds(60), [](End& end) {
    end.call("allreduce");
    if (end.rank() == 1) return;
    end.call("barrier");
    EXPECT_THAT(end.failure(),
                AllOf(HasSubstr("barrier of something"), HasSubstr("rank 1 (a thread) has ended")));
  });
  // Who is the last one there hears of it, too.
  run(2, seconds(60), [](End& end) {
    if (end.rank() == 1) return;
    EXPECT_EQ(end.failure(seconds(1)), "");
    end.call("barrier");
    EXPECT_THAT(end.failure(), HasSubstr("rank 1 (a thread) has ended"));
  });
}

TEST(Heartbeat, OneThatCannotDoItsPartTellsTheOthersThoughItEnds) {
  run(3, seconds(60), [](End& end) {
    end.call("allreduce");  // which rank 1's GPU does not do
    if (end.rank() == 1) return end.tell_failure("an illegal address");
    EXPECT_THAT(end.failure(), HasSubstr("rank 1 (a thread): an illegal address"));
  });
}

// As where a process is killed.
TEST(Heartbeat, OneThatIsGoneIsNamedByAll) {
  auto groups = connect_threads(3, seconds(60));
  End first(std::move(groups[0]), seconds(60)), second(std::move(groups[1]), seconds(60));
  first.send(1, 8), second.receive(0, 8);
  groups.clear();
  for (End* end : {&first, &second}) {
    EXPECT_THAT(end->failure(), AllOf(HasSubstr("rank 2 (a thread) has ended"),
                                      HasSubstr("the last call was send")));
  }
}

TEST(Heartbeat, OneThatIsBehindForTooLongIsNamedByAll) {
  run(3, seconds(1), [](End& end) {
    if (end.rank() != 0) end.call("allreduce");
    EXPECT_THAT(end.failure(), AllOf(HasSubstr("allreduce of something"),
                                     HasSubstr("nothing came for 1 s from rank 0")));
  });
}

TEST(Heartbeat, LeavesNothingBehind) {
  testing::expect_nothing_is_left(
      [](int) { run(2, seconds(60), [](End& end) { end.call("allreduce"); }); });
}

}  // namespace
}  // namespace rensa::communication

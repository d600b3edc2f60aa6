// Ranks that meet, one of which is not there: the others name it.
#include "rensa/communication/socket_transport.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rensa/communication/communication_error.h"
#include "tests/testing.h"

namespace rensa::communication {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

/// What a rank does in place of meeting the others.
enum class Does { nothing, ends, has_ended };
const char* name(Does does) {
  return does == Does::nothing ? "does nothing" : does == Does::ends ? "ends" : "has ended";
}

struct Meeting {
  int size, absent;
  Does does;
  int unaware = -1;  // a rank that ended before it knew where the others are; -1: none
};

/// What the ranks that are there say.
std::vector<std::string> what_ranks_say(const Meeting& meeting) {
  auto size = static_cast<std::size_t>(meeting.size);
  std::vector<std::shared_ptr<Endpoint>> endpoints(size);
  std::vector<Address> addresses;
  for (auto& endpoint : endpoints) {
    endpoint = std::make_shared<Endpoint>(0);
    addresses.push_back({"here", "127.0.0.1", endpoint->port(), std::ssize(addresses)});
  }
  if (meeting.unaware >= 0) endpoints[static_cast<std::size_t>(meeting.unaware)] = nullptr;
  auto& of_absent = endpoints[static_cast<std::size_t>(meeting.absent)];
  if (meeting.does == Does::has_ended) of_absent = nullptr;
  std::chrono::seconds timeout(meeting.does == Does::nothing ? 1 : 60);
  std::vector<std::string> said(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < meeting.size; ++rank) {
    if (rank == meeting.absent || rank == meeting.unaware) continue;
    auto own = std::move(endpoints[static_cast<std::size_t>(rank)]);
    threads.emplace_back([&said, &addresses, rank, timeout, own = std::move(own)]() mutable {
      said[static_cast<std::size_t>(rank)] = testing::message_of<rensa::CommunicationError>([&] {
        SocketTransport({7, rank, addresses, std::move(own), timeout});
      });
    });
  }
  if (meeting.does == Does::ends) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    of_absent = nullptr;
  }
  for (std::thread& thread : threads) thread.join();
  return said;
}

TEST(SocketTransport, WhoIsNotAtTheMeetingIsNamedByTheOthers) {
  std::vector<Meeting> meetings;
  for (Does does : {Does::nothing, Does::ends, Does::has_ended}) {
    for (int size : {2, 3, 4}) {
      for (int absent = 0; absent < size; ++absent) meetings.push_back({size, absent, does});
    }
  }
  auto begin = Clock::now();
  std::vector<std::future<std::vector<std::string>>> said;  // in meetings at the same time
  for (const Meeting& meeting : meetings) {
    said.push_back(std::async(std::launch::async, what_ranks_say, meeting));
  }
  for (std::size_t i = 0; i < meetings.size(); ++i) {
    const Meeting& meeting = meetings[i];
    SCOPED_TRACE(fmt::format("rank {} of {} {}", meeting.absent, meeting.size, name(meeting.does)));
    std::vector<std::string> texts = said[i].get();
    texts.erase(texts.begin() + meeting.absent);
    EXPECT_THAT(texts, Each(HasSubstr(fmt::format("rank {} (host here", meeting.absent))));
  }
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(30));  // before the longer timeout
}

// Rank 0 told rank 1 who the others are and was gone before it told rank 2, which ended then.
TEST(SocketTransport, WhoEndedBeforeAllKnewOfTheMeetingIsNamed) {
  for (Does does : {Does::ends, Does::has_ended}) {
    std::vector<std::string> said = what_ranks_say({3, 0, does, 2});
    EXPECT_THAT(said[1], HasSubstr("rank 0 (host here"));
  }
}

}  // namespace
}  // namespace rensa::communication

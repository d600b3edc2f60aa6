// Collectives against what one rank computes alone; groups of threads, and of sockets between
// threads, which is what processes have.
#include "rensa/array/communicator.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <functional>
#include <thread>

#include "rensa/array/routines.h"
#include "rensa/communication/processes.h"
#include "rensa/communication/socket.h"
#include "rensa/communication/thread_transport.h"
#include "rensa/communication/transport.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/devices.h"
#include "tests/cycles.h"
#include "tests/testing.h"

namespace rensa {
namespace {

/// How ranks reach each other: of `gpus` each is a thread with a GPU, which is its current device.
enum class Way { threads, sockets, gpus };

const char* name_of(Way way) {
  return way == Way::threads ? "threads" : way == Way::sockets ? "sockets" : "gpus";
}

using End = std::shared_ptr<communication::Transport>;

/// Calls job on every end of a group of `size`, each in a thread of its own, once all are
/// connected: one that still connects would hear there of what goes wrong among the others.
void run_ends(Way way, int size, std::chrono::seconds timeout,
              const std::function<void(End)>& job) {
  std::vector<End> ends(static_cast<std::size_t>(size));
  if (way != Way::sockets) ends = communication::connect_threads(size, timeout);
  communication::LaunchEnvironment environment;
  environment.size = size;
  environment.address = "127.0.0.1";
  communication::ReservedPort reserved;
  environment.port = reserved.port();
  std::barrier connected(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      bool is_connected = false;
      try {
        auto& end = ends[static_cast<std::size_t>(rank)];
        if (way == Way::sockets) {
          communication::LaunchEnvironment own = environment;
          own.rank = rank;
          end = communication::connect_processes(own, timeout);
        }
        is_connected = true;
        connected.arrive_and_wait();
        job(std::move(end));
      } catch (const std::exception& error) {
        if (!is_connected) connected.arrive_and_drop();
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void run_group(Way way, int size, std::chrono::seconds timeout,
               const std::function<void(const Communicator&)>& job) {
  run_ends(way, size, timeout, [&](End end) {
    Communicator ranks(std::move(end));
    if (way != Way::gpus) return job(ranks);
    DeviceScope scope(gpu(ranks.rank()));
    job(ranks.on(gpu(ranks.rank())));
  });
}

class Communicators : public ::testing::TestWithParam<std::tuple<Way, int>> {
 protected:
  void run(const std::function<void(const Communicator&)>& job, int seconds = 60) {
    auto [way, size] = GetParam();
    if (way == Way::gpus) RENSA_NEEDS_GPUS(size);
    run_group(way, size, std::chrono::seconds(seconds), job);
  }
};

/// What a rank of that rank gives: other numbers than any other rank.
Array numbers(int rank, const Shape& shape, Dtype dtype = float32) {
  return (xp::arange(shape.total(), float64).reshape(shape) * 0.25 + rank).astype(dtype);
}

TEST_P(Communicators, Reductions) {
  for (Dtype dtype : {float16, bfloat16, float32, float64, int32, int64, uint8, complex64}) {
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{0}, Shape{7, 11}, Shape{2, 3, 500}}) {
      run([&](const Communicator& c) {
        std::vector<Array> all;
        for (int r = 0; r < c.size(); ++r) all.push_back(numbers(r, shape, dtype));
        Array x = all[static_cast<std::size_t>(c.rank())];
        Array stacked = xp::stack(all);
        Array sum = c.allreduce(x);
        EXPECT_TRUE(xp::array_equal(sum, xp::sum(stacked, {.axis = 0, .dtype = dtype})));
        EXPECT_EQ(sum.dtype(), dtype);
        EXPECT_EQ(sum.shape(), shape);
        if (dtype_kind(dtype) == 'f' || dtype_kind(dtype) == 'c') {
          EXPECT_TRUE(
              xp::array_equal(c.allreduce(x, ReduceOp::mean), xp::mean(stacked, {.axis = 0})));
        }
        if (dtype_kind(dtype) != 'c') {
          EXPECT_TRUE(xp::array_equal(c.allreduce(x, ReduceOp::max), xp::max(stacked, 0)));
          EXPECT_TRUE(xp::array_equal(c.allreduce(x, ReduceOp::min), xp::min(stacked, 0)));
        }
        int root = c.size() - 1;
        Array at_root = c.reduce(x, root);
        EXPECT_EQ(at_root.defined(), c.rank() == root);
        if (at_root.defined()) {
          EXPECT_TRUE(xp::array_equal(at_root, sum));
        }
      });
    }
  }
}

TEST_P(Communicators, ViewsAndBigArrays) {
  run([&](const Communicator& c) {
    Array x = numbers(c.rank(), {300, 2000});
    Array sum = c.allreduce(x), turned = c.allreduce(x.transpose());
    EXPECT_TRUE(xp::array_equal(turned, sum.transpose()));
    EXPECT_TRUE(xp::array_equal(c.allreduce(x[Slice(0, 300, 3)]), sum[Slice(0, 300, 3)]));
  });
}

TEST_P(Communicators, PartsOfASum) {
  run([&](const Communicator& c) {
    std::vector<std::int64_t> counts;  // 0, 1, 2, ...
    std::int64_t total = 0, begin = 0;
    for (int r = 0; r < c.size(); ++r) {
      if (r == c.rank()) begin = total;
      counts.push_back(r), total += r;
    }
    for (Dtype dtype : {float32, float16, int32}) {
      for (ReduceOp op : {ReduceOp::sum, ReduceOp::mean, ReduceOp::max}) {
        if (op == ReduceOp::mean && dtype == int32) continue;
        Array x = numbers(c.rank(), {total}, dtype);
        Array whole = total > 0 ? c.allreduce(x, op) : x;
        Array own = c.reduce_scatter(x, counts, op);
        EXPECT_EQ(own.dtype(), dtype);
        EXPECT_TRUE(xp::array_equal(own, whole[Slice(begin, begin + c.rank())]));
        EXPECT_TRUE(xp::array_equal(c.allgatherv(own, counts), whole));
      }
    }
  });
}

TEST_P(Communicators, PartsForEachRank) {
  run([&](const Communicator& c) {
    std::vector<std::int64_t> sent, received;  // r elements more for the rank behind
    std::vector<Array> parts;
    for (int r = 0; r < c.size(); ++r) {
      sent.push_back(c.rank() + r), received.push_back(r + c.rank());
      parts.push_back(numbers(10 * c.rank() + r, {c.rank() + r}));
    }
    Array x = xp::concatenate(parts), got = c.alltoallv(x, sent, received);
    std::vector<Array> want = c.alltoall(parts);
    EXPECT_TRUE(xp::array_equal(got, xp::concatenate(want)));
    EXPECT_EQ(got.dtype(), x.dtype());
    EXPECT_EQ(got.device(), x.device());
  });
}

TEST_P(Communicators, ArraysGoRound) {
  run([&](const Communicator& c) {
    int next = (c.rank() + 1) % c.size(), root = c.size() / 2;
    // Other shapes and dtypes on each rank.
    Array own = numbers(c.rank(), {c.rank() + 1, 2}, c.rank() % 2 ? float64 : int32);
    Array from_root = c.bcast(c.rank() == root ? own : Array(), root);
    EXPECT_TRUE(
        xp::array_equal(from_root, numbers(root, {root + 1, 2}, root % 2 ? float64 : int32)));
    std::vector<Array> gathered = c.gather(own, root), all = c.allgather(own);
    EXPECT_EQ(gathered.size(), c.rank() == root ? static_cast<std::size_t>(c.size()) : 0u);
    for (int r = 0; r < c.size(); ++r) {
      Array want = numbers(r, {r + 1, 2}, r % 2 ? float64 : int32);
      EXPECT_TRUE(xp::array_equal(all[static_cast<std::size_t>(r)], want));
      EXPECT_EQ(all[static_cast<std::size_t>(r)].dtype(), want.dtype());
      if (c.rank() == root) {
        EXPECT_TRUE(xp::array_equal(gathered[static_cast<std::size_t>(r)], want));
      }
    }
    EXPECT_TRUE(xp::array_equal(c.scatter(gathered, root), own));
    std::vector<Array> given;
    for (int r = 0; r < c.size(); ++r) given.push_back(xp::full({r + 1}, 10 * c.rank() + r));
    std::vector<Array> got = c.alltoall(given);
    for (int r = 0; r < c.size(); ++r) {
      EXPECT_TRUE(xp::array_equal(got[static_cast<std::size_t>(r)],
                                  xp::full({c.rank() + 1}, 10 * r + c.rank())));
    }
    if (c.size() > 1) {
      // Around the ring: who sends first has someone to receive.
      int before = (c.rank() + c.size() - 1) % c.size();
      Array come;
      if (c.rank() == 0) c.send(own, next), come = c.recv(before);
      else come = c.recv(before), c.send(own, next);
      EXPECT_TRUE(xp::array_equal(come, all[static_cast<std::size_t>(before)]));
    }
    EXPECT_EQ(c.bcast_bytes(c.rank() == root ? "a text" : "", root), "a text");
    std::vector<std::string> texts =
        c.allgather_bytes(std::string(static_cast<std::size_t>(c.rank()), 'x'));
    for (int r = 0; r < c.size(); ++r) {
      EXPECT_EQ(texts[static_cast<std::size_t>(r)].size(), static_cast<std::size_t>(r));
    }
  });
}

TEST_P(Communicators, Barriers) {
  std::atomic<int> come{0};
  run([&](const Communicator& c) {
    for (int turn = 1; turn <= 20; ++turn) {
      ++come;
      c.barrier();
      EXPECT_GE(come.load(), turn * c.size());
      c.barrier();
    }
  });
}

TEST_P(Communicators, Split) {
  run([&](const Communicator& c) {
    for (int turn = 0; turn < 3; ++turn) {
      // Odd and even ones, in turned order.
      Communicator part = c.split(c.rank() % 2, -c.rank());
      int others = (c.size() + 1 - c.rank() % 2) / 2;
      EXPECT_EQ(part.size(), others);
      EXPECT_EQ(part.rank(), others - 1 - c.rank() / 2);
      double sum = 0;
      for (int r = c.rank() % 2; r < c.size(); r += 2) sum += r;
      EXPECT_EQ(part.allreduce(xp::full({2}, c.rank(), float64)).to_vector<double>(),
                std::vector<double>(2, sum));
      Communicator alone = part.split(c.rank(), 0);
      EXPECT_EQ(alone.size(), 1);
      EXPECT_EQ(c.allreduce(xp::full({1}, 1, int64)).item<int>(), c.size());
    }
    EXPECT_THROW(c.split(-1, 0), ValueError);
  });
}

TEST_P(Communicators, ResultsAreWhereWhatWasGivenIs) {
  run([&](const Communicator& c) {
    for (Device device : {c.device(), cpu()}) {
      Array x = numbers(c.rank(), {6}).to(device);
      EXPECT_EQ(c.allreduce(x).device(), device);
      EXPECT_EQ(c.allgather(x).back().device(), device);
      EXPECT_EQ(c.bcast(c.rank() == 0 ? x : Array(), 0).device(), device);
      EXPECT_EQ(c.bcast(c.rank() == 0 ? x : x.to(cpu()), 0).device(),
                c.rank() == 0 ? device : cpu());
      Communicator part = c.split(0, 0);
      EXPECT_EQ(part.device(), c.device());
      EXPECT_EQ(part.allreduce(x).device(), device);
    }
    EXPECT_EQ(c.local_rank(), c.rank());
  });
}

/// Two elements from itself, one from each other.
std::vector<std::int64_t> many_to_itself(const Communicator& c) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(c.size()), 1);
  counts[static_cast<std::size_t>(c.rank())] = 2;
  return counts;
}

TEST_P(Communicators, WhatOneCanTellAloneIsRefusedBeforeAnythingIsSent) {
  run([&](const Communicator& c) {
    Array x = xp::ones({3});
    EXPECT_THROW(c.bcast(x, c.size()), IndexError);
    EXPECT_THROW(c.reduce(x, -1), IndexError);
    EXPECT_THROW(c.send(x, c.rank()), ValueError);
    EXPECT_THROW(c.recv(c.rank()), ValueError);
    EXPECT_THROW(c.alltoall(std::vector<Array>(static_cast<std::size_t>(c.size() + 1), x)),
                 ShapeError);
    EXPECT_THROW(c.allreduce(Array()), ValueError);
    EXPECT_THROW(c.allreduce(x.astype(int32), ReduceOp::mean), DtypeError);
    EXPECT_THROW(c.allreduce(x.astype(complex64), ReduceOp::max), DtypeError);
    std::vector<std::int64_t> counts(static_cast<std::size_t>(c.size()), 1), many = counts;
    many.push_back(0);
    EXPECT_THROW(c.reduce_scatter(xp::ones({c.size() + 1}), counts), ShapeError);
    EXPECT_THROW(c.reduce_scatter(xp::ones({c.size()}), many), ShapeError);
    EXPECT_THROW(c.reduce_scatter(xp::ones({c.size(), 1}), counts), ShapeError);
    EXPECT_THROW(c.allgatherv(xp::ones({2}), counts), ShapeError);
    EXPECT_THROW(c.allgatherv(Array(), counts), ValueError);
    EXPECT_THROW(c.alltoallv(Array(), counts, counts), ValueError);
    EXPECT_THROW(c.alltoallv(xp::ones({c.size() + 1}), counts, counts), ShapeError);
    EXPECT_THROW(c.alltoallv(xp::ones({c.size()}), counts, many), ShapeError);
    EXPECT_THROW(c.alltoallv(xp::ones({c.size()}), counts, many_to_itself(c)), ShapeError);
    EXPECT_EQ(c.allreduce(x).to_vector<int>(), std::vector<int>(3, c.size()));
  });
}

INSTANTIATE_TEST_SUITE_P(Groups, Communicators,
                         ::testing::Combine(::testing::Values(Way::threads, Way::sockets,
                                                              Way::gpus),
                                            ::testing::Values(1, 2, 3, 4)),
                         [](const auto& info) {
                           return fmt::format("{}_{}", name_of(std::get<0>(info.param)),
                                              std::get<1>(info.param));
                         });

// All ranks throw the same, and the group goes on.
TEST(CommunicatorOn, ADeviceThatSomeRankHasNot) {
  for (Way way : {Way::threads, Way::sockets}) {
    run_group(way, 3, std::chrono::seconds(60), [&](const Communicator& c) {
      Device absent = gpu(num_gpus());
      std::string text =
          testing::message_of<DeviceError>([&] { (void)c.on(c.rank() == 1 ? absent : cpu()); });
      EXPECT_THAT(text, ::testing::HasSubstr("on: rank 1 ("));
      EXPECT_EQ(c.on(cpu()).allreduce(xp::ones({1})).item<int>(), 3);
    });
  }
  EXPECT_THROW((void)create_thread_communicators(1)[0].on(gpu(num_gpus())), DeviceError);
}

TEST(CommunicatorOn, TheSameGpuForTwoRanks) {
  RENSA_NEEDS_GPUS(1);
  run_group(Way::threads, 2, std::chrono::seconds(60), [&](const Communicator& c) {
    EXPECT_THAT(testing::message_of<DeviceError>([&] { (void)c.on(gpu(0)); }),
                ::testing::HasSubstr("rank 0 (a thread) and rank 1 (a thread) have the same GPU"));
    EXPECT_THAT(
        testing::message_of<DeviceError>([&] { (void)c.on(c.rank() == 0 ? gpu(0) : cpu()); }),
        ::testing::HasSubstr("rank 0 (a thread) has a GPU and rank 1 (a thread) the CPU"));
  });
}

// The error is the next call's, or that of a wait for the GPU.
TEST(CommunicatorOn, ARankThatFailsEndsTheWaitsOfTheOthersGpus) {
  RENSA_NEEDS_GPUS(2);
  for (const char* how : {"ends", "other call", "other size"}) {
    SCOPED_TRACE(how);
    run_group(Way::gpus, 2, std::chrono::seconds(60), [&](const Communicator& c) {
      Array x = xp::ones({1000});
      EXPECT_EQ(c.allreduce(x).sum().item<int>(), 2000);
      bool other = c.rank() == 1;
      if (other && how == std::string("ends")) return;
      std::string text = testing::message_of<CommunicationError>([&] {
        for (;;) {
          if (other && how == std::string("other call")) c.reduce(x, 0);
          else if (other) c.allreduce(x[Slice(0, 500)]);
          else c.allreduce(x);
          c.device().synchronize();
        }
      });
      EXPECT_THAT(text, ::testing::HasSubstr("allreduce of float32 (1000,), sum"));
      EXPECT_THAT(text, ::testing::HasSubstr("rank 1"));
      EXPECT_THROW(c.allreduce(x), CommunicationError);
      for (int i = 0; i < 2; ++i) EXPECT_THROW(c.device().synchronize(), CommunicationError);
      EXPECT_THROW(x.to(cpu()), CommunicationError);
    });
    for (int i = 0; i < 2; ++i) EXPECT_NO_THROW(gpu(i).synchronize());
  }
}

class FailingGroups : public ::testing::TestWithParam<Way> {};

TEST_P(FailingGroups, RanksThatDisagree) {
  std::vector<std::string> texts(3);
  run_group(GetParam(), 3, std::chrono::seconds(60), [&](const Communicator& c) {
    std::string& text = texts[static_cast<std::size_t>(c.rank())];
    text = testing::message_of<CommunicationError>(
        [&] { c.allreduce(xp::ones({c.rank() == 1 ? 30 : 31})); });
    // The group is of no use any more, and says why again.
    EXPECT_EQ(testing::message_of<CommunicationError>([&] { c.barrier(); }), text);
  });
  for (const std::string& text : texts) {
    EXPECT_THAT(text, ::testing::HasSubstr("allreduce of float32 (30,), sum"));
    EXPECT_THAT(text, ::testing::HasSubstr("allreduce of float32 (31,), sum"));
    EXPECT_THAT(text, ::testing::HasSubstr("rank 1"));
  }
  run_group(GetParam(), 2, std::chrono::seconds(60), [&](const Communicator& c) {
    std::string text = testing::message_of<CommunicationError>([&] {
      if (c.rank() == 0) c.barrier();
      else c.allreduce(xp::ones({4}));
    });
    EXPECT_THAT(text, ::testing::HasSubstr("barrier"));
    EXPECT_THAT(text, ::testing::HasSubstr("allreduce"));
  });
  run_group(GetParam(), 2, std::chrono::seconds(60), [&](const Communicator& c) {
    std::string text = testing::message_of<CommunicationError>(
        [&] { c.allreduce(xp::ones({4}), ReduceOp::sum, c.rank() == 0 ? "losses" : "gradients"); });
    EXPECT_THAT(text, ::testing::HasSubstr("losses"));
    EXPECT_THAT(text, ::testing::HasSubstr("gradients"));
  });
}

TEST_P(FailingGroups, ARankThatEndsIsNamedByAll) {
  std::vector<std::string> texts(4);
  run_group(GetParam(), 4, std::chrono::seconds(60), [&](const Communicator& c) {
    c.barrier();
    if (c.rank() == 2) return;
    texts[static_cast<std::size_t>(c.rank())] = testing::message_of<CommunicationError>([&] {
      for (;;) c.allreduce(xp::ones({100000}));
    });
  });
  for (int rank : {0, 1, 3}) {
    EXPECT_THAT(texts[static_cast<std::size_t>(rank)],
                ::testing::HasSubstr("allreduce of float32"));
    EXPECT_THAT(texts[static_cast<std::size_t>(rank)], ::testing::HasSubstr("rank 2"));
    EXPECT_THAT(texts[static_cast<std::size_t>(rank)], ::testing::HasSubstr("has ended"));
  }
}

TEST_P(FailingGroups, ARankThatKeepsOthersWaiting) {
  std::atomic<int> waiting{2};
  run_group(GetParam(), 3, std::chrono::seconds(1), [&](const Communicator& c) {
    c.barrier();
    if (c.rank() == 2) {
      while (waiting) std::this_thread::yield();
      return;
    }
    std::string text = testing::message_of<CommunicationError>([&] { c.allreduce(xp::ones({5})); });
    EXPECT_THAT(text, ::testing::HasSubstr("nothing came for 1 s"));
    EXPECT_THAT(text, ::testing::HasSubstr("RENSA_COMMUNICATION_TIMEOUT"));
    --waiting;
  });
}

TEST_P(FailingGroups, RanksThatWaitForEachOther) {
  run_group(GetParam(), 2, std::chrono::seconds(1), [&](const Communicator& c) {
    std::string text = testing::message_of<CommunicationError>([&] { (void)c.recv(1 - c.rank()); });
    EXPECT_THAT(text, ::testing::HasSubstr("send and recv of any array"));
    EXPECT_THAT(text, ::testing::HasSubstr("rank "));
  });
}

TEST_P(FailingGroups, LeaveNothingOfTheSystemsBehind) {
  testing::expect_nothing_is_left([&](int i) {
    run_group(GetParam(), 2 + i % 3, std::chrono::seconds(60), [&](const Communicator& c) {
      bool fails = i % 2 == 1;  // for rank 1 ends before the others
      auto work = [&] {
        Communicator part = c.split(c.rank() % 2, 0);
        if (!fails || c.rank() != 1) c.allreduce(xp::ones({100}));
      };
      if (fails && c.rank() != 1) EXPECT_THROW(work(), CommunicationError);
      else work();
    });
  });
}

INSTANTIATE_TEST_SUITE_P(Ways, FailingGroups, ::testing::Values(Way::threads, Way::sockets),
                         [](const auto& info) {
                           return info.param == Way::threads ? "threads" : "sockets";
                         });

// Rank 0 finds out that rank 2 has ended in the middle of a long message to rank 1, which has to
// hear of it from him: it wants nothing of rank 2. A word from it to rank 0 is never read.
TEST(Transports, WhoIsInTheMiddleOfAMessageIsToldToo) {
  std::string text;
  std::vector<char> sent(64 << 20), come(sent.size());
  auto nbytes = std::ssize(sent);
  run_ends(Way::sockets, 3, std::chrono::seconds(60), [&](const End& end) {
    communication::Label label("a long message", "");
    char word = 0;
    std::vector<communication::Incoming> from_0{{0, come.data(), nbytes}}, from_2{{2, &word, 1}};
    std::vector<communication::Outgoing> to_0{{0, &word, 1}}, to_1{{1, sent.data(), nbytes}};
    if (end->rank() == 0) {
      EXPECT_THROW(end->exchange(label, to_1, from_2), CommunicationError);
    } else if (end->rank() == 1) {
      end->exchange(label, to_0, {});
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      text = testing::message_of<CommunicationError>([&] {
        for (;;) end->exchange(label, {}, from_0);
      });
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  EXPECT_THAT(text, ::testing::HasSubstr("rank 2 ("));
  EXPECT_THAT(text, ::testing::HasSubstr("has ended"));
}

// Though something that came to it is unread.
TEST(Transports, WhatARankSendsLastArrives) {
  std::vector<char> sent(8 << 20, 'x'), come(sent.size());
  run_ends(Way::sockets, 2, std::chrono::seconds(60), [&](const End& end) {
    communication::Label label("the last message", "");
    char word = 0;
    std::vector<communication::Outgoing> to_0{{0, &word, 1}};
    std::vector<communication::Outgoing> to_1{{1, sent.data(), std::ssize(sent)}};
    std::vector<communication::Incoming> from_0{{0, come.data(), std::ssize(come)}};
    if (end->rank() == 0) {
      end->exchange(label, to_1, {});
      return;
    }
    end->exchange(label, to_0, {});
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    end->exchange(label, {}, from_0);
  });
  EXPECT_EQ(come, sent);
}

}  // namespace
}  // namespace rensa

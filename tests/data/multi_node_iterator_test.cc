// Iterators of several ranks.
#include "rensa/data/multi_node_iterator.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/data/converter.h"
#include "rensa/data/multithread_iterator.h"
#include "rensa/serializers/npz.h"
#include "tests/ranks.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using iterators::create_multi_node_iterator;
using iterators::create_synchronized_iterator;
using iterators::MultithreadIterator;
using iterators::SerialIterator;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Numbers = std::vector<std::int64_t>;

/// Something random beside a number.
Dataset drawn(std::int64_t n) {
  return Dataset(n, [](std::int64_t i, RandomStream& random) {
    return Columns{xp::array({static_cast<double>(i), random.uniform()}, cpu()),
                   xp::array(i, cpu())};
  });
}

/// All that an iterator says of its next `count` batches.
std::vector<std::string> said_by(const Iterator& iterator, int count) {
  std::vector<std::string> said;
  for (int k = 0; k < count; ++k) {
    std::optional<Batch> batch = iterator.next();
    if (!batch) {
      said.emplace_back("the end");
      continue;
    }
    std::string text;
    for (const Array& column : concat_examples(*batch)) {
      text += fmt::format("{} {}\n", dtype_name(column.dtype()), column.str());
    }
    for (std::int64_t i = 0; i < batch->size(); ++i) text += fmt::format("{} ", batch->seed(i));
    said.push_back(fmt::format("{}{} {} {} {} {}", text, batch->indices().str(), iterator.epoch(),
                               iterator.is_new_epoch(), iterator.epoch_detail(),
                               iterator.previous_epoch_detail().value_or(-1)));
  }
  return said;
}

template <class F> std::vector<std::vector<std::string>> by_rank(int size, F f) {
  std::vector<std::vector<std::string>> said(static_cast<std::size_t>(size));
  testing::run_ranks(
      size, [&](const Communicator& c) { said[static_cast<std::size_t>(c.rank())] = f(c); });
  return said;
}

TEST(SynchronizedIterator, GoesThroughRank0sOrder) {
  auto of = [](bool threads, std::uint64_t seed) -> Iterator {
    if (threads) return MultithreadIterator(drawn(11), 3, {.seed = seed, .n_threads = 2});
    return SerialIterator(drawn(11), 3, {.seed = seed});
  };
  for (bool threads : {false, true}) {
    Iterator alone = of(threads, 4);
    (void)said_by(alone, 2);
    std::vector<std::string> want = said_by(alone, 9);
    auto said = by_rank(3, [&](const Communicator& c) {
      Iterator own = of(threads, 4 + static_cast<std::uint64_t>(c.rank()));
      (void)said_by(own, c.rank() == 0 ? 2 : 5);  // where it was does not matter
      return said_by(create_synchronized_iterator(own, c), 9);
    });
    for (const auto& of_rank : said) EXPECT_EQ(of_rank, want);
  }
}

TEST(SynchronizedIterator, OnesThatDiffer) {
  using Make = Iterator (*)(int rank);
  const std::vector<std::pair<Make, const char*>> pairs = {
      {[](int r) -> Iterator { return SerialIterator(drawn(11 + r), 3); }, "over 12 examples"},
      {[](int r) -> Iterator { return SerialIterator(drawn(11), 3 + r); }, "in batches of 4"},
      {[](int r) -> Iterator { return SerialIterator(drawn(11), 3, {.shuffle = r == 0}); },
       "in order"},
      {[](int r) -> Iterator { return SerialIterator(drawn(11), 3, {.repeat = r == 0}); },
       ", once"},
      {[](int r) -> Iterator {
         if (r == 0) return SerialIterator(drawn(11), 3);
         return MultithreadIterator(drawn(11), 3);
       },
       "MultithreadIterator"},
  };
  for (const auto& [make, what] : pairs) {
    testing::run_ranks(2, [&, make = make, what = what](const Communicator& c) {
      EXPECT_THAT(
          testing::thrown<ValueError>([&] { create_synchronized_iterator(make(c.rank()), c); }),
          AllOf(HasSubstr("create_synchronized_iterator"), HasSubstr("rank 1"), HasSubstr(what)));
    });
  }
}

TEST(MultiNodeIterator, AllHaveTheMastersBatches) {
  for (bool threads : {false, true}) {
    for (bool repeat : {true, false}) {
      for (int master : {0, 2}) {
        auto make = [&]() -> Iterator {
          if (threads) {
            return MultithreadIterator(drawn(7), 3, {.repeat = repeat, .seed = 5, .n_threads = 2});
          }
          return SerialIterator(drawn(7), 3, {.repeat = repeat, .seed = 5});
        };
        std::vector<std::string> want = said_by(make(), 6);
        EXPECT_EQ(want[4] == "the end", !repeat);
        auto said = by_rank(3, [&](const Communicator& c) {
          Iterator own = c.rank() == master ? create_multi_node_iterator(make(), c, master)
                                            : create_multi_node_iterator(c, master);
          EXPECT_EQ(own.dataset().size(), 7);
          EXPECT_EQ(own.repeats(), repeat);
          return said_by(own, 6);
        });
        for (const auto& of_rank : said) EXPECT_EQ(of_rank, want);
      }
    }
  }
}

TEST(MultiNodeIterator, ColumnsOfAnyShape) {
  // One of arrays, with an element of none; and examples of several lengths.
  datasets::TupleDataset table(xp::arange(24, float16, cpu()).reshape({6, 2, 2}),
                               xp::arange(6, int64, cpu()), xp::zeros({6, 0}, bool_, cpu()));
  Dataset ragged(6, [](std::int64_t i) { return Columns{xp::arange(i + 1, int32, cpu())}; });
  for (const Dataset& dataset : {Dataset(table), ragged}) {
    SerialIterator alone(dataset, 4, {.shuffle = false});
    Batch want = *alone.next();
    testing::run_ranks(2, [&](const Communicator& c) {
      SerialIterator same(dataset, 4, {.shuffle = false});
      Iterator own =
          c.rank() == 0 ? create_multi_node_iterator(same, c) : create_multi_node_iterator(c);
      Batch batch = *own.next();
      ASSERT_EQ(batch.size(), want.size());
      for (std::int64_t k = 0; k < batch.size(); ++k) {
        Columns got = batch.example(k), wanted = want.example(k);
        ASSERT_EQ(got.size(), wanted.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
          EXPECT_EQ(got[i].dtype(), wanted[i].dtype());
          EXPECT_EQ(got[i].shape(), wanted[i].shape());
          EXPECT_TRUE(xp::array_equal(got[i], wanted[i]));
        }
      }
    });
  }
}

TEST(MultiNodeIterator, ResetAndFiles) {
  auto make = [] { return SerialIterator(drawn(7), 3, {.seed = 5}); };
  SerialIterator alone = make();
  (void)said_by(alone, 4);
  std::vector<std::string> want = said_by(alone, 3);
  alone.reset();
  std::vector<std::string> again = said_by(alone, 3);
  auto said = by_rank(2, [&](const Communicator& c) {
    auto of_rank = [&] {
      return c.rank() == 0 ? create_multi_node_iterator(SerialIterator(drawn(7), 3), c)
                           : create_multi_node_iterator(c);
    };
    Iterator first = c.rank() == 0 ? create_multi_node_iterator(make(), c) : of_rank();
    (void)said_by(first, 4);
    serializers::NpzContent file(first);
    Iterator rest = of_rank();
    serializers::load_npz("a file", file, rest);
    EXPECT_EQ(rest.epoch(), first.epoch());
    EXPECT_EQ(rest.epoch_detail(), first.epoch_detail());
    EXPECT_EQ(rest.previous_epoch_detail(), first.previous_epoch_detail());
    std::vector<std::string> texts = said_by(rest, 3);
    rest.reset();
    EXPECT_EQ(rest.epoch_detail(), 0);
    EXPECT_EQ(rest.previous_epoch_detail(), std::nullopt);
    for (const std::string& text : said_by(rest, 3)) texts.push_back(text);
    return texts;
  });
  want.insert(want.end(), again.begin(), again.end());
  for (const auto& of_rank : said) EXPECT_EQ(of_rank, want);
}

/// As docs/guide_multi_gpu.md shows them.
TEST(MultiNodeIterator, BesideOneThatIsSynchronized) {
  auto said = by_rank(2, [&](const Communicator& comm) {
    SerialIterator own(drawn(7), 3);
    Iterator same = iterators::create_synchronized_iterator(own, comm);  // rank 0's order for all
    Iterator sent = comm.rank() == 0 ? iterators::create_multi_node_iterator(own, comm)
                                     : iterators::create_multi_node_iterator(comm);  // no data
    std::vector<std::string> texts = said_by(sent, 4);
    // On rank 0 it was the same iterator that went on.
    if (comm.rank() != 0) (void)said_by(same, 4);
    for (const std::string& text : said_by(same, 4)) texts.push_back(text);
    return texts;
  });
  EXPECT_EQ(said[1], said[0]);
}

TEST(MultiNodeIterator, Errors) {
  Dataset faulty(6, [](std::int64_t i) {
    if (i == 1) throw IndexError("example one");
    return Columns{xp::array(i, cpu()).astype(i == 3 ? float32 : int64)};
  });
  testing::run_ranks(2, [&](const Communicator& c) {
    SerialIterator master(faulty, 2, {.shuffle = false});
    Iterator own =
        c.rank() == 0 ? create_multi_node_iterator(master, c) : create_multi_node_iterator(c);
    EXPECT_EQ(testing::thrown<Error>([&] { (void)own.next(); }), "example one");
    EXPECT_THAT(testing::thrown<Error>([&] { (void)own.next(); }),
                HasSubstr("column 0 of examples 2 and 3 is int64 and float32"));
    EXPECT_EQ(own.next()->indices().to_vector<std::int64_t>(), (Numbers{4, 5}));  // the next one
    if (c.rank() == 1) {
      EXPECT_THROW((void)own.dataset()[0], ValueError);
    }
  });
  testing::run_ranks(2, [&](const Communicator& c) {
    EXPECT_THAT(testing::thrown<ValueError>([&] { (void)create_multi_node_iterator(c, 1); }),
                HasSubstr("rank 1"));
    EXPECT_THROW((void)create_multi_node_iterator(c, 2), IndexError);
  });
}

}  // namespace
}  // namespace rensa

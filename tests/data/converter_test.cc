// Datasets and the converter: every way from a batch to arrays gives the same values.
#include "rensa/data/converter.h"

#include <gmock/gmock.h>

#include <thread>

#include "rensa/core/error.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using ::testing::HasSubstr;

Columns sample_columns(std::int64_t n) {
  return {xp::arange(n * 6, float32, cpu()).reshape({n, 2, 3}), xp::arange(n, int32, cpu())};
}

Dataset by_example(std::int64_t n) {
  return Dataset(n, [columns = sample_columns(n)](std::int64_t i) {
    return Columns{columns[0][i], columns[1][i]};
  });
}

void expect_batch(const Columns& columns, const Batch& batch, Device device) {
  ASSERT_EQ(columns.size(), 2u);
  Columns all = sample_columns(batch.dataset().size());
  for (std::size_t c = 0; c < 2; ++c) {
    EXPECT_EQ(columns[c].device(), device);
    EXPECT_TRUE(xp::array_equal(columns[c].to(cpu()), xp::take(all[c], batch.indices(), 0)));
  }
}

TEST(TupleDataset, RowsAndErrors) {
  datasets::TupleDataset set(xp::arange(6, float32, cpu()).reshape({3, 2}),
                             xp::arange(3, int32, cpu()));
  EXPECT_EQ(set.size(), 3);
  EXPECT_EQ(set[1][0].to_vector<float>(), (std::vector<float>{2, 3}));
  EXPECT_EQ(set[1][1].item<int>(), 1);
  EXPECT_THROW(set[3], IndexError);
  EXPECT_THROW(set[-1], IndexError);
  EXPECT_THROW(datasets::TupleDataset(xp::zeros({3, 2}), xp::zeros({4})), ShapeError);
  EXPECT_THROW(datasets::TupleDataset(xp::zeros({})), ValueError);
  EXPECT_THROW(datasets::TupleDataset(Columns{}), ValueError);
}

TEST(Converter, EveryWayGivesTheSame) {
  for (Device device : testing::test_devices()) {
    std::vector<Dataset> sets{datasets::TupleDataset(sample_columns(10)), by_example(10),
                              datasets::TupleDataset(sample_columns(10)).to(device)};
    for (const Dataset& set : sets) {
      for (std::int64_t limit : {std::int64_t{0}, 1_GiB}) {
        Converter convert({.resident_limit = limit});
        iterators::SerialIterator it(set, 3, {.seed = 1});
        for (int i = 0; i < 40; ++i) {
          Batch batch = *it.next();
          expect_batch(convert(batch, device), batch, device);
          expect_batch(convert(batch.strided(1, 2), device), batch.strided(1, 2), device);
        }
        Batch batch = *it.next();
        expect_batch(concat_examples(batch, device), batch, device);
        expect_batch(convert(batch, cpu()), batch, cpu());
      }
    }
  }
}

TEST(Converter, ArraysThatAreHeldAreNotWrittenAgain) {
  for (Device device : testing::test_devices()) {
    Converter convert({.resident_limit = 0});
    iterators::SerialIterator it(datasets::TupleDataset(sample_columns(50)), 4, {.seed = 1});
    std::vector<std::pair<Batch, Columns>> held;
    for (int i = 0; i < 50; ++i) {
      Batch batch = *it.next();
      held.emplace_back(batch, convert(batch, device));
    }
    for (const auto& [batch, columns] : held) expect_batch(columns, batch, device);
  }
}

TEST(Converter, AShortLastBatch) {
  for (Device device : testing::test_devices()) {
    Converter convert({.resident_limit = 0});
    iterators::SerialIterator it(by_example(10), 4, {.repeat = false});
    for (int run = 0; run < 3; ++run, it.reset()) {
      while (auto batch = it.next()) expect_batch(convert(*batch, device), *batch, device);
    }
  }
}

TEST(Converter, ExamplesThatDoNotMatchAreNamed) {
  Dataset ragged(
      4, [](std::int64_t i) { return Columns{xp::zeros({i == 2 ? 5 : 4}, float32, cpu())}; });
  iterators::SerialIterator it(ragged, 4, {.shuffle = false});
  try {
    concat_examples(*it.next());
    FAIL();
  } catch (const ShapeError& error) {
    EXPECT_THAT(error.what(), HasSubstr("example 2"));
    EXPECT_THAT(error.what(), HasSubstr("(5,)"));
    EXPECT_THAT(error.what(), HasSubstr("(4,)"));
  }
  Dataset uneven(4, [](std::int64_t i) {
    return i ? Columns{xp::zeros({1}), xp::zeros({1})} : Columns{xp::zeros({1})};
  });
  EXPECT_THROW(concat_examples(*iterators::SerialIterator(uneven, 4).next()), ShapeError);
}

/// Chainer's example: two columns, of lengths 2, 1, 0 and 1, 0, 1.
Dataset ragged() {
  return Dataset(3, [](std::int64_t i) {
    return Columns{xp::arange(1, 3 - i, 1, int64, cpu()),
                   xp::full({i == 1 ? 0 : 1}, 10.0 + static_cast<double>(i), float32, cpu())};
  });
}

TEST(Converter, PaddingFillsUpToTheLargest) {
  Batch batch = *iterators::SerialIterator(ragged(), 3, {.shuffle = false}).next();
  for (Device device : testing::test_devices()) {
    for (int way = 0; way < 2; ++way) {
      auto convert = [&](const Padding& padding) {
        return way ? Converter({.padding = padding})(batch, device)
                   : concat_examples(batch, device, padding);
      };
      for (const Padding& padding : {Padding{100}, Padding{100, 200}}) {
        Columns columns = convert(padding);
        EXPECT_EQ(columns[0].dtype(), int64);
        EXPECT_EQ(columns[0].shape(), (Shape{3, 2}));
        EXPECT_EQ(columns[0].to_vector<std::int64_t>(),
                  (std::vector<std::int64_t>{1, 2, 1, 100, 100, 100}));
        EXPECT_EQ(columns[1].shape(), (Shape{3, 1}));
        EXPECT_EQ(columns[1].to_vector<float>(),
                  (std::vector<float>{10, padding.size() == 1 ? 100.f : 200.f, 12}));
      }
      EXPECT_THAT(testing::thrown<ShapeError>([&] { convert({}); }), HasSubstr("padding"));
      EXPECT_THROW(convert({100, std::nullopt}), ShapeError);
      EXPECT_THAT(testing::thrown<ValueError>([&] {
                    convert({1, 2, 3});
                  }),
                  HasSubstr("3 values of padding for examples of 2 columns"));
    }
  }
}

TEST(Converter, PaddingIsToTheLargestOfEachAxis) {
  Dataset planes(2, [](std::int64_t i) {
    Shape shape = i == 0 ? Shape{1, 3} : Shape{2, 2};
    return Columns{xp::full(shape, static_cast<double>(i + 1), float32, cpu()),
                   xp::array(i, cpu())};
  });
  Batch batch = *iterators::SerialIterator(planes, 2, {.shuffle = false}).next();
  Columns columns = concat_examples(batch, cpu(), {-1});
  EXPECT_EQ(columns[0].shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(columns[0].to_vector<float>(),
            (std::vector<float>{1, 1, 1, -1, -1, -1, 2, 2, -1, 2, 2, -1}));
  EXPECT_EQ(columns[1].to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, 1}));
  Dataset axes(2, [](std::int64_t i) {
    return Columns{i == 0 ? xp::zeros({2}, float32, cpu()) : xp::zeros({2, 2}, float32, cpu())};
  });
  Batch uneven = *iterators::SerialIterator(axes, 2).next();
  EXPECT_THROW(concat_examples(uneven, cpu(), {0}), ShapeError);
}

// As replicas of one model that share a GPU do.
TEST(Converter, ThreadsHaveRingsOfTheirOwn) {
  for (Device device : testing::test_devices()) {
    Converter converter;
    Dataset set = by_example(12);
    auto convert = [&](std::int64_t first) {
      for (int i = 0; i < 200; ++i) {
        Batch batch(set, xp::arange(first, first + 6, 1, int64, cpu()));
        expect_batch(converter(batch, device), batch, device);
      }
    };
    std::thread other([&] { convert(6); });
    convert(0);
    other.join();
  }
}

TEST(Converter, SteadyLoopsAllocateNothingAndWaitForNothing) {
  RENSA_NEEDS_GPUS(1);
  Converter convert;
  iterators::SerialIterator it(datasets::TupleDataset(sample_columns(1000)), 100);
  for (int i = 0; i < 15; ++i) convert(*it.next(), gpu(0));
  cuda::synchronize(gpu(0));
  std::int64_t device = cuda::memory_pool(gpu(0)).n_allocations();
  std::int64_t pinned = cuda::pinned_memory_pool().n_allocations(), waits = cuda::sync_count();
  for (int i = 0; i < 100; ++i) convert(*it.next(), gpu(0));
  EXPECT_EQ(cuda::sync_count(), waits);
  EXPECT_EQ(cuda::memory_pool(gpu(0)).n_allocations(), device);
  EXPECT_EQ(cuda::pinned_memory_pool().n_allocations(), pinned);
}

}  // namespace
}  // namespace rensa

// A trainer's file that an earlier version wrote, and one of a later version.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <optional>

#include "rensa/array/npy.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/ufuncs/ufuncs.h"
#include "rensa/core/error.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/training.h"
#include "tests/replace_entry.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"
#include "tests/training/models.h"

namespace rensa::training {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Mlp : Chain<Mlp> {
  L::Linear l1{L::Linear(3, 4)}, l2{L::Linear(4, 2)};
  Mlp() {
    for (L::Linear* layer : {&l1, &l2}) {
      Array w = layer->W.array();
      w.set((xp::arange(w.size(), cpu()).astype(float32).reshape(w.shape()) - 5.f) * 0.1f);
    }
  }
  void members(Visitor& v) override { v("l1", l1), v("l2", l2); }
  Variable operator()(const Variable& x, const Variable& t) const {
    Variable d = l2(F::dropout(F::tanh(l1(x)), 0.25)) - t;
    Variable loss = (d * d).mean();
    report({{"loss", loss}}, *this);
    return loss;
  }
};

/// Ten examples in batches of three, in another order each epoch: 5 iterations end in the second.
struct Training {
  Mlp model;
  optimizers::Adam optimizer{0.01};
  std::optional<Trainer> trainer;

  explicit Training(const std::string& out) {
    optimizer.setup(model);
    Array x = xp::sin(xp::arange(30, cpu()).astype(float32)).reshape({10, 3});
    Array t = xp::cos(xp::arange(20, cpu()).astype(float32)).reshape({10, 2});
    iterators::SerialIterator iterator(datasets::TupleDataset(x, t), 3, {.seed = 5});
    trainer.emplace(StandardUpdater(iterator, optimizer), Trigger(12, "iteration"), out);
    trainer->extend(extensions::LogReport({.trigger = {2, "iteration"}}));
  }
  extensions::LogReport& log() const {
    return static_cast<extensions::LogReport&>(trainer->get_extension("LogReport"));
  }
  /// The losses of the log and all weights.
  std::vector<double> values() const {
    std::vector<double> all;
    for (const extensions::LogEntry& entry : log().log()) {
      all.push_back(entry.values.at("main/loss"));
    }
    for (const ParameterRef& p : model.params()) {
      for (double value : p.array().to_vector<double>()) all.push_back(value);
    }
    return all;
  }
};

std::vector<double> stored_values() {
  std::ifstream file(testing::data_file("trainer_format_1.txt"));
  std::vector<double> all;
  for (double value = 0; file >> value;) all.push_back(value);
  return all;
}

/// RENSA_TEST_WRITE_SNAPSHOT names a folder where a new format's files are to be written; those of
/// the formats before stay as they are.
TEST(OldSnapshot, AFileOfFormat1GoesOn) {
  testing::TemporaryFolder folder;
  if (const char* to = std::getenv("RENSA_TEST_WRITE_SNAPSHOT")) {
    xp::random::seed(3);
    Training whole(folder / "whole");
    whole.trainer->extend(
        [path = to + std::string("/trainer_format_1.npz")](Trainer& trainer) {
          if (trainer.updater().iteration() == 5) serializers::save_npz(path, trainer);
        },
        {.name = "save", .priority = -100});
    whole.trainer->run();
    std::ofstream values(to + std::string("/trainer_format_1.txt"));
    for (double value : whole.values()) values << fmt::format("{:.9g}\n", value);
  }
  xp::random::seed(4);
  Training rest(folder / "rest");
  rest.trainer->extend([](Trainer&) {}, {.name = "save", .priority = -100});
  serializers::load_npz(testing::data_file("trainer_format_1.npz"), *rest.trainer);
  EXPECT_EQ(rest.trainer->updater().iteration(), 5);
  EXPECT_EQ(rest.trainer->updater().epoch(), 1);
  EXPECT_NEAR(rest.trainer->updater().epoch_detail(), 1.5, 1e-12);
  EXPECT_EQ(rest.optimizer.t(), 5);
  EXPECT_EQ(rest.log().log().size(), 2u);
  std::vector<double> expected = stored_values();
  ASSERT_EQ(expected.size(), 6u + 12 + 4 + 8 + 2);
  EXPECT_NEAR(rest.values().at(0), expected[0], 1e-6);
  rest.trainer->run();
  EXPECT_EQ(rest.trainer->updater().iteration(), 12);
  EXPECT_THAT(rest.values(), ::testing::Pointwise(::testing::DoubleNear(2e-6), expected));
}

TEST(OldSnapshot, AFileOfALaterFormatIsRefused) {
  testing::TemporaryFolder folder;
  Training run(folder / "out"), other(folder / "other");
  run.trainer->run();
  serializers::save_npz(folder / "a.npz", *run.trainer);
  testing::replace_entry(folder / "a.npz", "_format.npy", format_npy(xp::array(2, cpu())));
  std::vector<double> before = other.values();
  EXPECT_THAT(testing::thrown<SerializationError>(
                  [&] { serializers::load_npz(folder / "a.npz", *other.trainer); }),
              AllOf(HasSubstr("a.npz: Trainer: a file of format 2, made by a newer version"),
                    HasSubstr("reads those up to 1")));
  EXPECT_EQ(other.values(), before);
  // The number is looked at before the names, which may be other ones there.
  other.trainer->extend([](Trainer&) {}, {.name = "more"});
  EXPECT_THAT(testing::thrown<SerializationError>(
                  [&] { serializers::load_npz(folder / "a.npz", *other.trainer); }),
              HasSubstr("newer version"));
  // The model alone is read out of it.
  serializers::load_npz(folder / "a.npz", other.model, {.path = "updater/model:main"});
  EXPECT_NE(other.values(), before);
}

}  // namespace
}  // namespace rensa::training

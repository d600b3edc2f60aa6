// Files of trainers and iterators that hold what none can have come to: they are refused.
#include <gmock/gmock.h>

#include <cmath>

#include "rensa/array/npy.h"
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

using ::testing::HasSubstr;

TEST(ResumeRefuses, AnOrderThatIsNone) {
  testing::TemporaryFolder folder;
  iterators::SerialIterator iterator(testing::line_data(4), 2);
  std::int64_t zero = 0;
  bool no = false;
  double before = -1;
  Array order;
  auto read = [&](const Array& given) {
    order = given;
    std::int64_t epoch = 0;
    serializers::save_npz(folder / "a.npz", [&](Visitor& v) {
      v("current_position", zero), v("epoch", epoch), v("is_new_epoch", no);
      v("previous_epoch_detail", before), v("order", order);
    });
    serializers::load_npz(folder / "a.npz", iterator);
  };
  for (const Array& wrong : {xp::array({0, 1, 2}, cpu()), xp::array({0, 1, 2, 2}, cpu()),
                             xp::array({0, 1, 2, 4}, cpu()), xp::array({0., 1., 2., 3.}, cpu())}) {
    EXPECT_THAT(testing::thrown<SerializationError>([&] { read(wrong); }), HasSubstr("order"));
  }
  read(xp::array({3, 1, 0, 2}, cpu()));
  EXPECT_EQ(iterator.next()->indices().to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(iterator.next()->indices().to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{0, 2}));
}

/// What a log says is what it holds: no fraction becomes a count, and no truth a number.
TEST(ResumeRefuses, ALogOfOtherThanNumbers) {
  testing::TemporaryFolder folder;
  iterators::SerialIterator iterator(testing::line_data(4), 2);
  testing::Line model;
  optimizers::Adam optimizer;
  optimizer.setup(model);
  Trainer trainer(StandardUpdater(iterator, optimizer), {1, "iteration"}, folder / "out");
  trainer.extend(extensions::LogReport());
  trainer.run();
  auto read = [&](const std::string& log) {
    serializers::save_npz(folder / "a.npz", trainer);
    testing::replace_entry(folder / "a.npz", "extensions/LogReport/_log.npy", format_npy_text(log));
    serializers::load_npz(folder / "a.npz", trainer);
    return static_cast<extensions::LogReport&>(trainer.get_extension("LogReport")).log();
  };
  const std::vector<std::pair<std::string, std::string>> faults = {
      {R"([{"iteration": 1.5}])", "\"iteration\" is no count: 1.5"},
      {R"([{"iteration": -1}])", "\"iteration\" is no count: -1"},
      {R"([{"epoch": true}])", "\"epoch\" is no count: true"},
      {R"([{"epoch": 18446744073709551615}])", "\"epoch\" is no count: 18446744073709551615"},
      {R"([{"main/loss": "low"}])", "\"main/loss\" is no number: \"low\""},
      {R"([{"elapsed_time": false}])", "\"elapsed_time\" is no number: false"},
      {R"([7])", "an entry is no object: 7"},
      {R"({"epoch": 1})", "no list"},
  };
  for (const auto& [log, what] : faults) {
    EXPECT_THAT(testing::thrown<SerializationError>([&, text = log] { read(text); }),
                AllOf(HasSubstr("LogReport"), HasSubstr(what)));
  }
  auto log = read(R"([{"main/loss": null, "epoch": 2, "iteration": 7, "elapsed_time": 1}])");
  ASSERT_EQ(log.size(), 1U);
  EXPECT_EQ(log[0].epoch, 2);
  EXPECT_EQ(log[0].iteration, 7);
  EXPECT_EQ(log[0].elapsed_time, 1);
  EXPECT_TRUE(std::isnan(log[0].values.at("main/loss")));
}

}  // namespace
}  // namespace rensa::training

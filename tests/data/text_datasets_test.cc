// Lines of text files, runs of tokens, the Penn Treebank's words.
#include "rensa/data/text_datasets.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/data/converter.h"
#include "rensa/data/iterator.h"
#include "rensa/data/ptb.h"
#include "tests/environment.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa::datasets {
namespace {

using ::testing::ElementsAre;
using testing::EnvironmentScope;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::thrown;

/// The number of letters of each file's line.
Columns lengths(const TextDataset::Lines& lines) {
  std::vector<std::int32_t> sizes;
  for (const std::string& line : lines) sizes.push_back(static_cast<std::int32_t>(line.size()));
  return {xp::array(sizes, int32, cpu())};
}

TEST(TextDataset, GivesTheLinesOfEachFile) {
  TemporaryFolder folder;
  testing::write_file(folder / "en", "one\n\nthree words here\r\nlast");
  testing::write_file(folder / "fr", "un\ndeux\n\nfin\n");
  TextDataset text({folder / "en", folder / "fr"}, lengths);
  ASSERT_EQ(text.size(), 4);
  EXPECT_THAT(text.lines(0), ElementsAre("one", "un"));
  EXPECT_THAT(text.lines(1), ElementsAre("", "deux"));
  EXPECT_THAT(text.lines(2), ElementsAre("three words here", ""));
  EXPECT_THAT(text.lines(3), ElementsAre("last", "fin"));
  EXPECT_THAT(text[2][0].to_vector<int>(), ElementsAre(16, 0));
  EXPECT_THROW(text[4], IndexError);
  EXPECT_THROW(text.lines(-1), IndexError);
}

TEST(TextDataset, LeavesOutWhatTheFilterRefuses) {
  TemporaryFolder folder;
  testing::write_file(folder / "text", "a\n\nbb\n\nccc\n");
  TextDataset text({folder / "text"}, lengths,
                   [](const TextDataset::Lines& lines) { return !lines[0].empty(); });
  ASSERT_EQ(text.size(), 3);
  EXPECT_THAT(text.lines(1), ElementsAre("bb"));
  TextDataset none({folder / "text"}, lengths, [](const TextDataset::Lines&) { return false; });
  EXPECT_EQ(none.size(), 0);
}

TEST(TextDataset, IsBatchedAsAnyOther) {
  TemporaryFolder folder;
  testing::write_file(folder / "text", "a\nbb\nccc\n");
  iterators::SerialIterator batches(TextDataset({folder / "text"}, lengths), 2,
                                    {.repeat = false, .shuffle = false});
  EXPECT_THAT(concat_examples(*batches.next())[0].to_vector<int>(), ElementsAre(1, 2));
}

TEST(TextDataset, SaysWhatIsWrongWithItsFiles) {
  TemporaryFolder folder;
  testing::write_file(folder / "two", "1\n2\n");
  testing::write_file(folder / "empty", "");
  EXPECT_EQ(TextDataset({folder / "empty"}, lengths).size(), 0);
  EXPECT_THAT(thrown<ValueError>([&] {
                TextDataset({folder / "two", folder / "empty"}, lengths);
              }),
              HasSubstr("two has 2 lines, "));
  EXPECT_THAT(thrown<ValueError>([] { TextDataset({}, lengths); }), HasSubstr("no files"));
  EXPECT_THAT(thrown<SerializationError>([&] { TextDataset({folder / "not there"}, lengths); }),
              HasSubstr("not there"));
}

TEST(NGrams, AreAllRunsAndViews) {
  Array tokens = xp::arange(6, int32, cpu()) * 10;
  TupleDataset runs = ngrams(tokens, 3);
  ASSERT_EQ(runs.size(), 4);
  EXPECT_THAT(runs[1][0].to_vector<int>(), ElementsAre(10, 20));
  EXPECT_EQ(runs[1][1].item<int>(), 30);
  tokens.fill(7);
  EXPECT_EQ(runs[3][1].item<int>(), 7);  // nothing was copied
  EXPECT_THROW((void)ngrams(tokens, 1), ValueError);
  EXPECT_THAT(thrown<ShapeError>([&] { (void)ngrams(tokens, 7); }), HasSubstr("6 tokens"));
  EXPECT_THROW((void)ngrams(tokens.reshape({2, 3}), 2), ShapeError);
}

TEST(TokenSequences, AreFollowedByWhatComesNext) {
  Array tokens = xp::arange(8, int32, cpu());
  TupleDataset sequences = token_sequences(tokens, 3);
  ASSERT_EQ(sequences.size(), 2);
  EXPECT_THAT(sequences[1][0].to_vector<int>(), ElementsAre(3, 4, 5));
  EXPECT_THAT(sequences[1][1].to_vector<int>(), ElementsAre(4, 5, 6));
  EXPECT_EQ(token_sequences(tokens, 3, 2).size(), 3);
  EXPECT_THAT(token_sequences(tokens, 3, 2)[2][1].to_vector<int>(), ElementsAre(5, 6, 7));
  EXPECT_EQ(token_sequences(tokens, 7).size(), 1);
  EXPECT_THROW((void)token_sequences(tokens, 8), ShapeError);
  EXPECT_THROW((void)token_sequences(tokens, 0), ValueError);
  EXPECT_THROW((void)token_sequences(tokens, 2, -1), ValueError);
}

void expect_batches_on(Device device) {
  iterators::SerialIterator batches(token_sequences(xp::arange(100, int32, device), 5), 3,
                                    {.repeat = false, .shuffle = false});
  Columns columns = concat_examples(*batches.next(), device);
  EXPECT_EQ(columns[0].shape(), (Shape{3, 5}));
  EXPECT_THAT(columns[1].to_vector<int>(),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}

TEST(TokenSequences, AreGatheredInBatches) { expect_batches_on(cpu()); }

TEST(TokenSequences, AreGatheredInBatchesOnAGpu) {
  RENSA_NEEDS_GPUS(1);
  expect_batches_on(gpu(0));
}

class PtbTest : public ::testing::Test {
 protected:
  TemporaryFolder root_, cache_;
  EnvironmentScope a_{"RENSA_DATASET_ROOT", root_.str()}, b_{"XDG_CACHE_HOME", cache_.str()};
};

TEST_F(PtbTest, NumbersWordsAsTheyComeFirst) {
  std::filesystem::create_directories(root_ / "ptb");
  testing::write_file(root_ / "ptb/ptb.train.txt", " a b <unk> \n b c \n");
  testing::write_file(root_ / "ptb/ptb.valid.txt", " c d\n");
  testing::write_file(root_ / "ptb/ptb.test.txt", " a");
  PtbWords words = get_ptb_words();
  EXPECT_EQ(words.train.dtype(), int32);
  EXPECT_THAT(words.train.to_vector<int>(), ElementsAre(0, 1, 2, 3, 1, 4, 3));
  EXPECT_THAT(words.valid.to_vector<int>(), ElementsAre(4, 5, 3));
  EXPECT_THAT(words.test.to_vector<int>(), ElementsAre(0, 3));
  EXPECT_THAT(get_ptb_words_vocabulary(), ElementsAre("a", "b", "<unk>", "<eos>", "c", "d"));
}

}  // namespace
}  // namespace rensa::datasets

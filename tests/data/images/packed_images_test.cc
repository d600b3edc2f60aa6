// Packed pictures: the examples that were packed, and files that are damaged anywhere.
#include "rensa/data/images/packed_images.h"

#include <gmock/gmock.h>

#include <fmt/format.h>
#include <filesystem>

#include "rensa/core/error.h"
#include "rensa/data/converter.h"
#include "rensa/data/images/packed_index.h"
#include "rensa/data/multithread_iterator.h"
#include "tests/data/images/pictures.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa::datasets {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::plain_png;
using testing::read_file;
using testing::thrown;
using testing::write_file;

class PackedImagesTest : public testing::ImageTest {
 protected:
  /// Seven pictures of different sizes, packed.
  void pack(std::int64_t max_file_bytes = 1 << 20) {
    for (int i = 0; i < 7; ++i) {
      pairs_.emplace_back(std::to_string(i) + ".png", i % 3);
      write_file(folder_ / pairs_.back().first,
                 plain_png(3 + static_cast<unsigned>(i), 4, static_cast<char>(10 * i)));
    }
    files_ = pack_images(pairs_, prefix_,
                         {.root = folder_.str(),
                          .max_file_bytes = max_file_bytes,
                          .classes = {"ant", "bee", "cat"}});
  }
  testing::TemporaryFolder folder_;
  std::string prefix_ = folder_ / "set";
  std::vector<LabeledPath> pairs_;
  std::vector<std::string> files_;
};

TEST_F(PackedImagesTest, GiveWhatWasPacked) {
  for (std::int64_t most : {1 << 20, 300, 1}) {
    pairs_.clear();
    pack(most);
    EXPECT_GE(files_.size(), most == 1 ? 7U : most == 300 ? 2U : 1U);
    EXPECT_LE(files_.size(), most == 1 ? 7U : most == 300 ? 5U : 1U);
    EXPECT_EQ(files_.back(), fmt::format("{}-{:05}.images", prefix_, files_.size() - 1));
    LabeledImageDataset want(pairs_, {.root = folder_.str()});
    PackedImageDataset got(prefix_);
    EXPECT_THAT(got.classes(), ElementsAre("ant", "bee", "cat"));
    ASSERT_EQ(got.size(), 7);
    for (std::int64_t i = 0; i < 7; ++i) {
      EXPECT_EQ(got[i][0].shape(), (Shape{1, 4, 3 + i}));
      EXPECT_EQ(got[i][0].dtype(), float32);
      EXPECT_EQ(got[i][0].to_vector<float>(), want[i][0].to_vector<float>());
      EXPECT_EQ(got[i][1].dtype(), int32);
      EXPECT_EQ(got[i][1].item<int>(), i % 3);
    }
  }
}

TEST_F(PackedImagesTest, OptionsAreThoseOfFiles) {
  pairs_.clear();
  write_file(folder_ / "a.jpg", testing::picture("large.jpg"));
  pack_images({{folder_ / "a.jpg", -300}}, prefix_);
  PackedImageDataset dataset(
      prefix_,
      {.dtype = uint8, .label_dtype = int16, .read = {.mode = images::Mode::gray, .min_size = 50}});
  EXPECT_EQ(dataset[0][0].shape(), (Shape{1, 71, 103}));
  EXPECT_EQ(dataset[0][0].dtype(), uint8);
  EXPECT_EQ(dataset[0][1].item<int>(), -300);
  EXPECT_TRUE(dataset.classes().empty());
  EXPECT_THAT(thrown<ValueError>([&] { PackedImageDataset(prefix_, {.label_dtype = int8}); }),
              AllOf(HasSubstr("-300"), HasSubstr("int8")));
}

TEST_F(PackedImagesTest, ThreadsGiveTheSameBatches) {
  write_file(folder_ / "a.jpg", testing::picture("rgb.jpg"));
  write_file(folder_ / "b.jpg", testing::picture("rgb_444.jpg"));
  std::vector<LabeledPath> pairs;
  for (int i = 0; i < 20; ++i) pairs.emplace_back(i % 2 ? "a.jpg" : "b.jpg", i);
  pack_images(pairs, prefix_, {.root = folder_.str(), .max_file_bytes = 5000});
  PackedImageDataset dataset(prefix_);
  iterators::SerialIterator serial(dataset, 6, {.seed = 1});
  iterators::MultithreadIterator threads(dataset, 6, {.seed = 1, .n_threads = 3});
  for (int batch = 0; batch < 7; ++batch) {
    Columns want = concat_examples(*serial.next()), got = concat_examples(*threads.next());
    EXPECT_EQ(got[0].to_vector<float>(), want[0].to_vector<float>());
    EXPECT_EQ(got[1].to_vector<int>(), want[1].to_vector<int>());
  }
}

TEST_F(PackedImagesTest, WhatCannotBePacked) {
  write_file(folder_ / "text.jpg", "no picture");
  write_file(folder_ / "cut.jpg", testing::picture("rgb.jpg").substr(0, 900));
  for (const char* name : {"text.jpg", "cut.jpg", "none.jpg"}) {
    EXPECT_THAT(thrown<SerializationError>([&] {
                  pack_images({{folder_ / name, 0}}, prefix_);
                }),
                HasSubstr(folder_ / name));
    EXPECT_FALSE(std::filesystem::exists(prefix_ + "-00000.images"));
  }
  EXPECT_THROW(pack_images({}, prefix_), ValueError);
  write_file(folder_ / "a.png", plain_png(1, 1, 1));
  const std::vector<LabeledPath> one = {{folder_ / "a.png", 1}};
  EXPECT_THROW(pack_images(one, prefix_, {.max_file_bytes = 0}), ValueError);
  EXPECT_THAT(thrown<ValueError>([&] { pack_images(one, prefix_, {.classes = {"ant"}}); }),
              AllOf(HasSubstr("the label 1"), HasSubstr("a.png")));
}

TEST_F(PackedImagesTest, DamagedBytesAreFound) {
  pack();
  const std::string whole = read_file(files_[0]);
  const std::size_t index = whole.size() - 48 - 7 * 32 - 3 * 7;
  for (std::size_t place = 0; place<whole.size(); place += place> 16 && place < index ? 9 : 1) {
    std::string damaged = whole;
    damaged[place] = static_cast<char>(damaged[place] ^ (1 << place % 8));
    write_file(files_[0], damaged);
    // Three fields of four bytes have no meaning yet.
    bool unused =
        (place >= 12 && place < 16) || (place >= whole.size() - 12 && place < whole.size() - 8);
    std::string message = testing::message_of<SerializationError>([&] {
      PackedImageDataset dataset(prefix_);
      for (std::int64_t i = 0; i < dataset.size(); ++i) dataset[i];
    });
    if (unused) continue;
    EXPECT_THAT(message, AllOf(HasSubstr(files_[0]), HasSubstr("byte"))) << "byte " << place;
  }
  for (std::size_t size = 0; size < whole.size(); size += size < 100 ? 1 : 13) {
    write_file(files_[0], whole.substr(0, size));
    EXPECT_THAT(thrown<SerializationError>([&] { PackedImageDataset dataset(prefix_); }),
                HasSubstr(files_[0]))
        << size;
  }
}

TEST_F(PackedImagesTest, FilesOfOtherSetsAndMissingOnes) {
  pack(1);
  std::filesystem::copy(files_[1], folder_ / "kept");
  std::filesystem::remove(files_[1]);
  EXPECT_THAT(thrown<SerializationError>([&] { PackedImageDataset dataset(prefix_); }),
              HasSubstr(files_[1]));
  std::filesystem::copy(files_[2], files_[1]);
  EXPECT_THAT(thrown<SerializationError>([&] { PackedImageDataset dataset(prefix_); }),
              AllOf(HasSubstr(files_[1]), HasSubstr("another set")));
}

/// A file that ends in `index` with right checksums, after 100 bytes of pictures.
std::string file_of(const PackedIndex& index) {
  return packed_header() + std::string(100, 'x') + packed_end(index, 116);
}

TEST(PackedIndex, EntriesLieWithinTheirFile) {
  auto failure = [](const PackedIndex& index) {
    return thrown<SerializationError>([&] { read_packed_index(file_of(index), "set"); });
  };
  PackedIndex good;
  good.entries = {{16, 100, 1, 0}, {115, 1, 0, 0}};
  good.classes = {"a", ""};
  PackedIndex read = read_packed_index(file_of(good), "set");
  EXPECT_EQ(read.entries[1].offset, 115U);
  EXPECT_THAT(read.classes, ElementsAre("a", ""));
  const std::uint64_t most = ~std::uint64_t{0};
  using Entry = PackedIndex::Entry;
  for (const Entry& entry :
       {Entry{15, 1, 0, 0}, Entry{16, 101, 0, 0}, Entry{116, 1, 0, 0}, Entry{16, 0, 0, 0},
        Entry{16, most, 0, 0}, Entry{most, 2, 0, 0}, Entry{100, most - 50, 0, 0}}) {
    PackedIndex bad = good;
    bad.entries.push_back(entry);
    EXPECT_THAT(failure(bad), AllOf(HasSubstr("set"), HasSubstr("byte 180: picture 2 has")));
  }
  for (std::int64_t label : {std::int64_t{2}, std::int64_t{-1}}) {
    PackedIndex bad = good;
    bad.entries[0].label = label;
    EXPECT_THAT(failure(bad), HasSubstr("byte 116: picture 0 has the label"));
  }
}

TEST(PackedIndex, CountsAreBounded) {
  PackedIndex index;
  index.classes = {"one"};
  const std::string whole = file_of(index);
  // Numbers of the end, written again with the sum over them.
  auto failure = [&](std::size_t at, const std::string& bytes) {
    std::string file = whole;
    std::size_t end = file.size() - 48;
    file.replace(end + at, bytes.size(), bytes);
    std::uint32_t sum = packed_sum(std::string_view(file).substr(end, 32));
    for (int i = 0; i < 4; ++i)
      file[end + 32 + static_cast<std::size_t>(i)] = static_cast<char>(sum >> 8 * i);
    return thrown<SerializationError>([&] { read_packed_index(file, "set"); });
  };
  const std::string huge(8, '\xff');
  EXPECT_THAT(failure(0, huge), HasSubstr("an index at byte 18446744073709551615"));
  EXPECT_THAT(failure(8, huge), HasSubstr("no room for 18446744073709551615 pictures"));
  EXPECT_THAT(failure(8, std::string("\1", 1)), HasSubstr("no room for 1 pictures"));
  EXPECT_THAT(failure(16, huge.substr(4)), HasSubstr("no room for 4294967295 classes"));
  EXPECT_THAT(failure(16, std::string(1, '\0')), HasSubstr("more than the classes' names"));
  std::string later = whole;
  later[8] = 2;
  EXPECT_THAT(thrown<SerializationError>([&] { read_packed_index(later, "set"); }),
              HasSubstr("byte 8: version 2; this build of Rensa reads version 1"));
  EXPECT_THAT(thrown<SerializationError>([&] { read_packed_index("JPEG", "set"); }),
              HasSubstr("does not begin as one"));
}

}  // namespace
}  // namespace rensa::datasets

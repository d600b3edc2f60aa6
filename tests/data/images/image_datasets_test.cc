// Datasets of pictures: paths, list files, folders of classes; batches by threads.
#include "rensa/data/images/image_datasets.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/data/converter.h"
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
using testing::thrown;
using testing::write_file;

class ImageDatasetTest : public testing::ImageTest {
 protected:
  ImageDatasetTest() {
    std::filesystem::create_directories(folder_ / "b");
    write_file(folder_ / "dark.png", plain_png(3, 2, 1));
    write_file(folder_ / "b/light.png", plain_png(3, 2, '\xfe'));
  }
  testing::TemporaryFolder folder_;
};

TEST_F(ImageDatasetTest, PathsBelowTheRoot) {
  ImageDataset dataset({"dark.png", "b/light.png"}, {.root = folder_.str()});
  ASSERT_EQ(dataset.size(), 2);
  Columns example = dataset[1];
  ASSERT_EQ(example.size(), 1U);
  EXPECT_EQ(example[0].shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(example[0].dtype(), float32);
  EXPECT_EQ(example[0].min().item<float>(), 254);
  EXPECT_EQ(dataset[0][0].max().item<float>(), 1);
  EXPECT_THROW(dataset[2], IndexError);

  ImageDataset colours(
      {"dark.png"}, {.root = folder_.str(), .dtype = uint8, .read = {.mode = images::Mode::rgb}});
  EXPECT_EQ(colours[0][0].shape(), (Shape{3, 2, 3}));
  EXPECT_EQ(colours[0][0].dtype(), uint8);
  std::vector<std::string> absolute = {folder_ / "dark.png"};
  EXPECT_EQ(ImageDataset(absolute, {.root = "elsewhere"})[0][0].max().item<float>(), 1);
}

TEST_F(ImageDatasetTest, TheConfigurationsDtype) {
  UsingConfig<DefaultDtype> half(&Config::dtype, float16);
  EXPECT_EQ(ImageDataset({"dark.png"}, {.root = folder_.str()})[0][0].dtype(), float16);
}

TEST_F(ImageDatasetTest, ListFiles) {
  write_file(folder_ / "list.txt", " dark.png \n\nb/light.png\r\n");
  ImageDataset images(folder_ / "list.txt", {.root = folder_.str()});
  ASSERT_EQ(images.size(), 2);
  EXPECT_EQ(images[1][0].min().item<float>(), 254);

  std::filesystem::copy(folder_ / "dark.png", folder_ / "a name.png");
  write_file(folder_ / "pairs.txt", "dark.png 7\nb/light.png\t-1\n\n  a name.png   3");
  LabeledImageDataset labeled(folder_ / "pairs.txt", {.root = folder_.str()});
  ASSERT_EQ(labeled.size(), 3);
  EXPECT_EQ(labeled[0][1].shape(), Shape{});
  EXPECT_EQ(labeled[0][1].dtype(), int32);
  EXPECT_EQ(labeled[0][1].item<int>(), 7);
  EXPECT_EQ(labeled[1][1].item<int>(), -1);
  EXPECT_EQ(labeled[2][0].max().item<float>(), 1);
  EXPECT_EQ(labeled[2][1].item<int>(), 3);

  for (const char* line : {"dark.png", "dark.png x", "dark.png 1x", "7", "dark.png 1e3",
                           "dark.png 99999999999999999999"}) {
    write_file(folder_ / "bad.txt", std::string("dark.png 1\n\n") + line + "\n");
    EXPECT_THAT(thrown<SerializationError>([&] { LabeledImageDataset(folder_ / "bad.txt"); }),
                AllOf(HasSubstr("bad.txt:3: no path and label"), HasSubstr(line)));
  }
  EXPECT_THROW(ImageDataset(folder_ / "none.txt"), SerializationError);
}

TEST_F(ImageDatasetTest, LabelsFitTheirDtype) {
  std::vector<LabeledPath> pairs = {{"dark.png", 255}, {"b/light.png", 256}};
  LabeledImageDataset wide(pairs, {.root = folder_.str(), .label_dtype = int64});
  EXPECT_EQ(wide[1][1].dtype(), int64);
  EXPECT_EQ(wide[1][1].item<std::int64_t>(), 256);
  EXPECT_THAT(
      thrown<ValueError>([&] { LabeledImageDataset(pairs, {.label_dtype = uint8}); }),
      AllOf(HasSubstr("LabeledImageDataset"), HasSubstr("256 of example 1"), HasSubstr("uint8")));
  EXPECT_EQ(LabeledImageDataset({{"dark.png", 2}}, {.root = folder_.str()})[0][1].item<int>(), 2);
  EXPECT_EQ(LabeledImageDataset(std::vector<LabeledPath>{}).size(), 0);
}

TEST_F(ImageDatasetTest, AnExampleThatCannotBeReadIsNamed) {
  write_file(folder_ / "b/light.png", "text");
  ImageDataset dataset({"dark.png", "b/light.png"}, {.root = folder_.str()});
  EXPECT_EQ(dataset[0][0].size(), 6);
  EXPECT_THAT(thrown<SerializationError>([&] { dataset[1]; }), HasSubstr(folder_ / "b/light.png"));
}

TEST_F(ImageDatasetTest, FoldersAreClasses) {
  for (const char* name : {"set/zebra/deep", "set/ant"}) {
    std::filesystem::create_directories(folder_ / name);
  }
  write_file(folder_ / "set/zebra/b.png", plain_png(1, 1, 3));
  write_file(folder_ / "set/zebra/deep/a.PNG", plain_png(1, 1, 4));
  write_file(folder_ / "set/zebra/notes.txt", "no picture");
  write_file(folder_ / "set/ant/x.png", plain_png(1, 1, 5));
  write_file(folder_ / "set/beside.png", plain_png(1, 1, 6));
  ImageFolder dataset(folder_ / "set", {.root = "is passed over"});
  EXPECT_THAT(dataset.classes(), ElementsAre("ant", "zebra"));
  ASSERT_EQ(dataset.size(), 3);
  std::vector<int> values, labels;
  for (std::int64_t i = 0; i < 3; ++i) {
    values.push_back(static_cast<int>(dataset[i][0].max().item<float>()));
    labels.push_back(dataset[i][1].item<int>());
  }
  EXPECT_THAT(values, ElementsAre(5, 3, 4));
  EXPECT_THAT(labels, ElementsAre(0, 1, 1));
  EXPECT_EQ(dataset.pairs()[1].first, folder_ / "set/zebra/b.png");

  std::filesystem::create_directories(folder_ / "set/none");
  EXPECT_THAT(thrown<SerializationError>([&] { ImageFolder(folder_ / "set"); }),
              HasSubstr("none has no picture"));
  EXPECT_THAT(thrown<SerializationError>([&] { ImageFolder(folder_ / "set/ant"); }),
              HasSubstr("no subfolders"));
  EXPECT_THAT(thrown<SerializationError>([&] { ImageFolder(folder_ / "nowhere"); }),
              HasSubstr(folder_ / "nowhere"));
}

TEST_F(ImageDatasetTest, ThreadsGiveTheSameBatches) {
  std::vector<LabeledPath> pairs;
  for (int i = 0; i < 40; ++i) {
    pairs.emplace_back(std::to_string(i) + ".png", i);
    write_file(folder_ / pairs.back().first, plain_png(5, 4, static_cast<char>(i)));
  }
  LabeledImageDataset dataset(pairs, {.root = folder_.str()});
  iterators::SerialIterator serial(dataset, 7, {.seed = 1});
  iterators::MultithreadIterator threads(dataset, 7, {.seed = 1, .n_threads = 3});
  for (int batch = 0; batch < 12; ++batch) {
    Columns want = concat_examples(*serial.next()), got = concat_examples(*threads.next());
    EXPECT_EQ(got[0].shape(), (Shape{7, 1, 4, 5}));
    EXPECT_EQ(got[0].to_vector<float>(), want[0].to_vector<float>());
    EXPECT_EQ(got[1].to_vector<int>(), want[1].to_vector<int>());
    Array corner = got[0][{Slice(), 0, 0, 0}].astype(int32);
    EXPECT_EQ(corner.to_vector<int>(), got[1].to_vector<int>());
  }
}

}  // namespace
}  // namespace rensa::datasets

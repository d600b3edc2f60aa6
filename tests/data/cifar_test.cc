// CIFAR's binary version, unpacked and in its archive; archives that are damaged; sets that are
// laid out as MNIST is.
#include "rensa/data/cifar.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "rensa/core/error.h"
#include "rensa/data/tar.h"
#include "tests/data/published_files.h"
#include "tests/environment.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa::datasets {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::EnvironmentScope;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Pair;
using testing::TemporaryFolder;
using testing::write_gz;

/// A record of CIFAR-10, or with two labels of CIFAR-100.
std::string record(const std::string& labels, char pixel) {
  return labels + std::string(3 * 32 * 32, pixel);
}

/// A tar archive of one file, without its end.
std::string tar(const std::string& name, const std::string& content, char kind = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  std::string size = fmt::format("{:011o}", content.size());
  header.replace(124, size.size(), size);
  header[156] = kind;
  header.replace(148, 8, 8, ' ');
  int sum = 0;
  for (unsigned char c : header) sum += c;
  header.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}
const std::string kEnd(1024, '\0');

class CifarTest : public ::testing::Test {
 protected:
  TemporaryFolder root_, cache_;
  EnvironmentScope a_{"RENSA_DATASET_ROOT", root_.str()}, b_{"XDG_CACHE_HOME", cache_.str()};
};

void expect_small_cifar10(const TrainTest& sets) {
  ASSERT_EQ(sets.train.size(), 6);
  EXPECT_EQ(sets.train[0][0].shape(), (Shape{3, 32, 32}));
  EXPECT_THAT((*sets.train.columns())[1].to_vector<int>(), ElementsAre(3, 9, 0, 0, 0, 0));
  EXPECT_EQ((*sets.train.columns())[1].dtype(), int32);
  EXPECT_EQ(sets.train[1][0].max().item<float>(), 1);
  EXPECT_EQ(sets.train[2][0].max().item<float>(), 0);
  ASSERT_EQ(sets.test.size(), 1);
  EXPECT_EQ(sets.test[0][1].item<int>(), 7);
}

const std::string kFirst = record("\x03", '\x33') + record("\x09", '\xff');
const std::string kSecond = record(std::string(1, '\0'), '\0');
const std::string kTest = record("\x07", '\1');

TEST_F(CifarTest, ReadsWhatWasUnpacked) {
  for (const char* folder : {"cifar10/", "", "cifar10/cifar-10-batches-bin/"}) {
    std::filesystem::create_directories(root_ / folder);
    testing::write_file(root_ / folder + "data_batch_1.bin", kFirst);
    for (const char* name : {"2", "3", "4"}) {
      testing::write_file(root_ / folder + "data_batch_" + name + ".bin", kSecond);
    }
    testing::write_file(root_ / folder + "data_batch_5.bin", kSecond);
    testing::write_file(root_ / folder + "test_batch.bin", kTest);
    expect_small_cifar10(get_cifar10());
    for (const auto& entry : std::filesystem::directory_iterator(root_.str())) {
      std::filesystem::remove_all(entry.path());
    }
  }
}

TEST_F(CifarTest, ReadsTheArchive) {
  std::string archive = tar("cifar-10-batches-bin/", "", '5') + tar("a/README", "read me");
  for (const char* name : {"2", "4", "5"}) {
    archive += tar(std::string("a/data_batch_") + name + ".bin", kSecond);
  }
  archive += tar("a/data_batch_1.bin", kFirst) + tar("a/data_batch_3.bin", kSecond);
  write_gz(root_ / "cifar-10-binary.tar.gz", archive + tar("a/test_batch.bin", kTest) + kEnd);
  auto [train, test] = get_cifar10(true, 1, 255);
  EXPECT_THAT((*train.columns())[1].to_vector<int>(), ElementsAre(3, 9, 0, 0, 0, 0));
  EXPECT_EQ(train[0][0].shape(), (Shape{3072}));
  EXPECT_EQ(train[0][0].max().item<float>(), 0x33);
  EXPECT_EQ(test.size(), 1);

  write_gz(root_ / "cifar-10-binary.tar.gz", archive + kEnd);
  EXPECT_THAT(message_of<SerializationError>([] { get_cifar10(); }), HasSubstr("lacks some of"));
}

TEST_F(CifarTest, TheHundredClassesAreTheFineOnes) {
  std::filesystem::create_directories(root_ / "cifar100");
  testing::write_file(root_ / "cifar100/train.bin", record("\x01\x63", '\xff'));
  testing::write_file(root_ / "cifar100/test.bin", record("\x02\x05", '\xff'));
  auto [train, test] = get_cifar100();
  EXPECT_EQ(train[0][1].item<int>(), 99);
  EXPECT_EQ(test[0][1].item<int>(), 5);
  EXPECT_EQ(train[0][0].min().item<float>(), 1);
  EXPECT_EQ(get_cifar100(false).train.columns()->size(), 1U);
}

TEST_F(CifarTest, BadFilesAreNamed) {
  std::filesystem::create_directories(root_ / "cifar10");
  for (const char* name : {"2", "3", "4", "5"}) {
    testing::write_file(root_ / "cifar10/data_batch_" + name + ".bin", kSecond);
  }
  testing::write_file(root_ / "cifar10/data_batch_1.bin", kFirst.substr(1));
  testing::write_file(root_ / "cifar10/test_batch.bin", kTest);
  EXPECT_THAT(message_of<SerializationError>([] { get_cifar10(); }),
              AllOf(HasSubstr(root_ / "cifar10"),
                    HasSubstr("data_batch_1.bin has 6145 bytes, which is no multiple of 3073")));
  testing::write_file(root_ / "cifar10/data_batch_1.bin", record("\x0a", 'x'));
  EXPECT_THAT(message_of<SerializationError>([] { get_cifar10(); }),
              HasSubstr("a label of 10, of 10 classes"));
  EXPECT_THROW(get_cifar10(true, 2), ValueError);
}

TEST_F(CifarTest, SomeOfTheFilesAndOthersOfTheirNamesArePassedBy) {
  testing::write_file(root_ / "data_batch_1.bin", kFirst);
  testing::write_file(root_ / "test_batch.bin", kTest);
  std::string archive;
  for (const char* name : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
                           "data_batch_5", "test_batch"}) {
    archive += tar(std::string("a/") + name + ".bin", kSecond);
  }
  write_gz(root_ / "cifar-10-binary.tar.gz", archive + kEnd);
  EXPECT_EQ(get_cifar10().train.size(), 5);

  testing::write_file(root_ / "train.bin", "of somebody else");
  testing::write_file(root_ / "test.bin", "of somebody else");
  std::filesystem::create_directories(root_ / "cifar-100-binary");
  testing::write_file(root_ / "cifar-100-binary/train.bin", record("\x01\x63", '\xff'));
  testing::write_file(root_ / "cifar-100-binary/test.bin", record("\x02\x05", '\xff'));
  EXPECT_EQ(get_cifar100().train[0][1].item<int>(), 99);
}

class TarTest : public ::testing::Test {
 protected:
  std::map<std::string, std::string> read_packed() {
    return read_tar_gz(folder_ / "a.tar.gz",
                       [](std::string_view name) { return name != "passed"; });
  }
  std::map<std::string, std::string> read(const std::string& archive) {
    write_gz(folder_ / "a.tar.gz", archive);
    return read_packed();
  }
  std::string failure(const std::string& archive) {
    return message_of<SerializationError>([&] { read(archive); });
  }
  TemporaryFolder folder_;
};

TEST_F(TarTest, RegularFilesThatAreWanted) {
  std::string archive = tar("folder/", "", '5') + tar("folder/a", "aa") + tar("link", "", '2') +
                        tar("passed", std::string(1300, 'x')) + tar("empty", "") +
                        tar("whole", std::string(512, 'y'));
  EXPECT_THAT(read(archive + kEnd), ElementsAre(Pair("empty", ""), Pair("folder/a", "aa"),
                                                Pair("whole", std::string(512, 'y'))));
}

TEST_F(TarTest, DamagedArchives) {
  const std::string good = tar("a", "content"), passed = tar("passed", std::string(1300, 'x'));
  EXPECT_THAT(failure(good), HasSubstr("it has no end"));
  EXPECT_THAT(failure(""), HasSubstr("it has no end"));
  EXPECT_THAT(failure(good.substr(0, 515)), HasSubstr("ends within a file"));
  EXPECT_THAT(failure(passed.substr(0, 1000)), HasSubstr("ends within a file"));
  for (std::size_t place : {0U, 124U, 130U, 148U, 156U}) {
    std::string damaged = good + kEnd;
    damaged[place] ^= 1;
    EXPECT_THAT(failure(damaged), HasSubstr("damaged header")) << place;
  }
  EXPECT_THAT(message_of<SerializationError>(
                  [&] { read_tar_gz(folder_ / "none", [](std::string_view) { return true; }); }),
              HasSubstr("cannot be opened"));
}

TEST_F(TarTest, DamagedGzip) {
  std::string content(100000, ' ');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * i >> 3);
  read(tar("a", content) + kEnd);
  const std::string packed = testing::read_file(folder_ / "a.tar.gz");
  for (std::size_t cut : {packed.size() - 1, packed.size() / 2}) {
    testing::write_file(folder_ / "a.tar.gz", packed.substr(0, cut));
    EXPECT_NE(message_of<SerializationError>([&] { read_packed(); }), testing::kNothingThrown)
        << cut;
  }
  for (std::size_t place : {packed.size() - 6, packed.size() / 2}) {  // the sum; the data
    std::string damaged = packed;
    damaged[place] ^= 1;
    testing::write_file(folder_ / "a.tar.gz", damaged);
    EXPECT_NE(message_of<SerializationError>([&] { read_packed(); }), testing::kNothingThrown)
        << place;
  }
}

TEST_F(CifarTest, FashionMnistIsNotMnist) {
  testing::write_small_mnist(root_.str());
  EXPECT_EQ(get_mnist().train.size(), 2);
  testing::write_small_mnist(root_ / "fashion-mnist");
  testing::write_small_mnist(root_ / "kuzushiji-mnist");
  EXPECT_EQ(get_fashion_mnist(true, 3).train[0][0].shape(), (Shape{1, 28, 28}));
  EXPECT_EQ(get_kuzushiji_mnist().test.size(), 1);
  EXPECT_THAT(message_of<ValueError>([] { get_fashion_mnist(true, 0); }),
              HasSubstr("get_fashion_mnist"));
}

}  // namespace
}  // namespace rensa::datasets

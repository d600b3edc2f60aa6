// idx files, good and bad; where get_mnist looks; downloads; the generated digits.
#include "rensa/data/mnist.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include <cstdlib>

#include "rensa/core/error.h"
#include "rensa/core/sha256.h"
#include "rensa/core/thread_pool.h"
#include "rensa/data/download.h"
#include "rensa/data/idx.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;

std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

std::string idx(std::uint32_t magic, std::initializer_list<std::uint32_t> shape,
                const std::string& data) {
  std::string bytes = big_endian(magic);
  for (std::uint32_t extent : shape) bytes += big_endian(extent);
  return bytes + data;
}

void write_gz(const std::string& path, const std::string& content) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
}

template <class F> std::string message_of(F f) {
  try {
    f();
  } catch (const SerializationError& error) {
    return error.what();
  }
  return "no SerializationError";
}

class IdxTest : public ::testing::Test {
 protected:
  std::string read(const std::string& content) {
    write_gz(folder_ / "a.gz", content);
    return message_of([&] { read_idx_gz(folder_ / "a.gz", 1); });
  }
  TemporaryFolder folder_;
};

TEST_F(IdxTest, ReadsAllDimensions) {
  write_gz(folder_ / "a.gz", idx(2051, {2, 1, 3}, "abcdef"));
  Array a = read_idx_gz(folder_ / "a.gz", 3);
  EXPECT_EQ(a.shape(), (Shape{2, 1, 3}));
  EXPECT_EQ(a.to_vector<int>(), (std::vector<int>{'a', 'b', 'c', 'd', 'e', 'f'}));
}

TEST_F(IdxTest, BadFilesAreNamed) {
  EXPECT_THAT(read(idx(2051, {2}, "ab")), HasSubstr("magic number is 2051, not 2049"));
  EXPECT_THAT(read(idx(2049, {5}, "abc")), HasSubstr("declares 5 bytes, 3 are there"));
  EXPECT_THAT(read(idx(2049, {2}, "abc")), HasSubstr("goes on after"));
  EXPECT_THAT(read("ab"), HasSubstr("within the idx header"));
  EXPECT_THAT(message_of([&] { read_idx_gz(folder_ / "none.gz", 1); }),
              HasSubstr("cannot be opened"));
}

TEST_F(IdxTest, TakesNoMemoryForSizesThatTheFileCannotHold) {
  EXPECT_THAT(read(idx(2049, {0xfffffff0}, "ab")), HasSubstr("compressed bytes can hold"));
  write_gz(folder_ / "b.gz", idx(2051, {0xffffffff, 0xffffffff, 0xffffffff}, "ab"));
  EXPECT_THAT(message_of([&] { read_idx_gz(folder_ / "b.gz", 3); }), HasSubstr("can hold"));
}

TEST_F(IdxTest, DamagedGzip) {
  write_gz(folder_ / "a.gz", idx(2049, {1000}, std::string(1000, 'x')));
  std::string bytes = testing::read_file(folder_ / "a.gz");
  testing::write_file(folder_ / "a.gz", bytes.substr(0, bytes.size() - 12));
  EXPECT_NE(message_of([&] { read_idx_gz(folder_ / "a.gz", 1); }), "no SerializationError");
}

/// Sets an environment variable for a scope.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~Environment() {
    if (old_.empty()) ::unsetenv(name_);
    else ::setenv(name_, old_.c_str(), 1);
  }

 private:
  const char* name_;
  std::string old_;
};

void write_small_mnist(const std::string& folder) {
  std::filesystem::create_directories(folder);
  std::string pixels(28 * 28, '\xff');
  write_gz(folder + "/train-images-idx3-ubyte.gz", idx(2051, {2, 28, 28}, pixels + pixels));
  write_gz(folder + "/train-labels-idx1-ubyte.gz", idx(2049, {2}, std::string("\x03\x09", 2)));
  write_gz(folder + "/t10k-images-idx3-ubyte.gz", idx(2051, {1, 28, 28}, pixels));
  write_gz(folder + "/t10k-labels-idx1-ubyte.gz", idx(2049, {1}, std::string("\x07", 1)));
}

TEST(Mnist, IsFoundInTheDatasetRootAndInTheCache) {
  TemporaryFolder root, cache;
  Environment a("RENSA_DATASET_ROOT", root.str()), b("XDG_CACHE_HOME", cache.str());
  EXPECT_EQ(datasets::find_mnist(), "");
  write_small_mnist(cache / "rensa/mnist");
  EXPECT_EQ(datasets::find_mnist(), cache / "rensa/mnist");
  write_small_mnist(root.str());
  EXPECT_EQ(datasets::find_mnist(), root.str());
  write_small_mnist(root / "mnist");
  EXPECT_EQ(datasets::find_mnist(), root / "mnist");
}

TEST(Mnist, ShapesScaleAndLabels) {
  TemporaryFolder root;
  Environment a("RENSA_DATASET_ROOT", root.str());
  write_small_mnist(root / "mnist");
  auto [train, test] = datasets::get_mnist();
  EXPECT_EQ(train.size(), 2);
  EXPECT_EQ(test.size(), 1);
  EXPECT_EQ((*train.columns())[0].shape(), (Shape{2, 784}));
  EXPECT_EQ((*train.columns())[0].dtype(), float32);
  EXPECT_NEAR((*train.columns())[0].max().item<double>(), 1.0, 1e-6);
  EXPECT_EQ((*train.columns())[1].dtype(), int32);
  EXPECT_EQ((*train.columns())[1].to_vector<int>(), (std::vector<int>{3, 9}));
  auto images = datasets::get_mnist(false, 3, 255.f);
  EXPECT_EQ(images.test.columns()->size(), 1u);
  EXPECT_EQ(images.test[0][0].shape(), (Shape{1, 28, 28}));
  EXPECT_NEAR(images.test[0][0].max().item<double>(), 255.0, 1e-4);
  EXPECT_THROW(datasets::get_mnist(true, 4), ValueError);
}

TEST(Mnist, ImagesAndLabelsOfDifferentCounts) {
  TemporaryFolder root;
  Environment a("RENSA_DATASET_ROOT", root.str());
  write_small_mnist(root / "mnist");
  write_gz(root / "mnist/train-labels-idx1-ubyte.gz", idx(2049, {1}, "a"));
  EXPECT_THAT(message_of([] { datasets::get_mnist(); }), HasSubstr("2 images"));
}

std::string sha256_of(const std::string& text) {
  Sha256 hash;
  hash.update(text.data(), text.size());
  return hash.hex_digest();
}

TEST(Download, PassesOverWrongMirrorsAndGoesOnWithWhatIsThere) {
  TemporaryFolder folder;
  std::string content(5000, 'q');
  testing::write_file(folder / "wrong", "something else");
  testing::write_file(folder / "right", content);
  std::vector<std::string> urls{"file://" + (folder / "missing"), "file://" + (folder / "wrong"),
                                "file://" + (folder / "right")};
  download(urls, sha256_of(content), folder / "a");
  EXPECT_EQ(testing::read_file(folder / "a"), content);
  testing::write_file(folder / "b.part", content.substr(0, 3000));
  download(std::vector<std::string>{urls[2]}, sha256_of(content), folder / "b");
  EXPECT_EQ(testing::read_file(folder / "b"), content);
  EXPECT_FALSE(std::filesystem::exists(folder / "b.part"));
  testing::write_file(folder / "c.part", "of another file");
  download(std::vector<std::string>{urls[2]}, sha256_of(content), folder / "c");
  EXPECT_EQ(testing::read_file(folder / "c"), content);
}

TEST(Download, SaysWhatEachAddressAnswered) {
  TemporaryFolder folder;
  testing::write_file(folder / "wrong", "something else");
  std::vector<std::string> urls{"file://" + (folder / "missing"), "file://" + (folder / "wrong")};
  std::string message = message_of([&] { download(urls, sha256_of("x"), folder / "a"); });
  EXPECT_THAT(message, HasSubstr("missing: "));
  EXPECT_THAT(message, HasSubstr("wrong: its SHA-256 is not"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
}

TEST(SyntheticDigits, AreTheSameOnAnyNumberOfThreads) {
  auto first = datasets::get_synthetic_digits(300, 20, 7);
  int threads = num_threads();
  set_num_threads(threads + 2);
  auto second = datasets::get_synthetic_digits(300, 20, 7);
  set_num_threads(threads);
  for (int c : {0, 1}) {
    EXPECT_TRUE(xp::array_equal((*first.train.columns())[c], (*second.train.columns())[c]));
    EXPECT_TRUE(xp::array_equal((*first.test.columns())[c], (*second.test.columns())[c]));
  }
  auto other = datasets::get_synthetic_digits(300, 20, 8);
  EXPECT_FALSE(xp::array_equal((*first.train.columns())[0], (*other.train.columns())[0]));
}

TEST(SyntheticDigits, LookLikeDigits) {
  auto [train, test] = datasets::get_synthetic_digits(2000, 10);
  const Array &x = (*train.columns())[0], &t = (*train.columns())[1];
  EXPECT_EQ(x.shape(), (Shape{2000, 784}));
  EXPECT_EQ(test.size(), 10);
  EXPECT_GE(x.min().item<float>(), 0.f);
  EXPECT_LE(x.max().item<float>(), 1.f);
  EXPECT_NEAR(x.mean().item<double>(), 0.13, 0.06);  // MNIST's is 0.13
  std::vector<int> counts(10);
  for (int label : t.to_vector<int>()) ++counts.at(static_cast<std::size_t>(label));
  EXPECT_GT(*std::min_element(counts.begin(), counts.end()), 140);
}

}  // namespace
}  // namespace rensa

// SVHN, and the MAT-files that it comes in.
#include "rensa/data/svhn.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/data/mat_file.h"
#include "tests/environment.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa::datasets {
namespace {

using ::testing::ElementsAre;
using testing::EnvironmentScope;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::TemporaryFolder;
using testing::thrown;

std::string u32(std::uint32_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
template <class T> std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
std::string element(std::uint32_t type, const std::string& data) {
  std::string padding((8 - data.size() % 8) % 8, '\0');
  return u32(type) + u32(static_cast<std::uint32_t>(data.size())) + data + padding;
}

constexpr std::uint32_t kUint8 = 2, kInt32 = 5, kUint32 = 6, kDouble = 9, kMatrix = 14;
constexpr std::uint32_t kUint8Class = 9, kDoubleClass = 6;

/// `type` is how the numbers are stored.
std::string matrix(const std::string& name, std::uint32_t flags,
                   const std::vector<std::int32_t>& shape, std::uint32_t type,
                   const std::string& numbers) {
  return element(kMatrix, element(kUint32, u32(flags) + u32(0)) + element(kInt32, bytes_of(shape)) +
                              element(1, name) + element(type, numbers));
}

std::string compressed(const std::string& content) {
  uLongf size = compressBound(static_cast<uLong>(content.size()));
  std::string packed(size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(content.data()), static_cast<uLong>(content.size()));
  packed.resize(size);
  return u32(15) + u32(static_cast<std::uint32_t>(size)) + packed;
}

std::string mat_file(const std::string& elements) {
  std::string header(128, ' ');
  header.replace(124, 4, std::string("\0\1IM", 4));
  return header + elements;
}

class MatFile : public ::testing::Test {
 protected:
  std::map<std::string, Array> read(const std::string& content) {
    testing::write_file(folder_ / "numbers.mat", content);
    return read_mat(folder_ / "numbers.mat");
  }
  std::string fault(const std::string& content) {
    return thrown<SerializationError>([&] { read(content); });
  }
  TemporaryFolder folder_;
};

TEST_F(MatFile, HoldsArraysByColumns) {
  std::string numbers = bytes_of<double>({1, 2, 3, 4, 5, 6});
  std::string a = matrix("a", kDoubleClass, {2, 3}, kDouble, numbers);
  auto arrays = read(mat_file(a + compressed(matrix("b", kDoubleClass, {3, 1}, kUint8, "\1\2\3"))));
  ASSERT_THAT(arrays, SizeIs(2));
  EXPECT_EQ(arrays.at("a").dtype(), float64);
  EXPECT_EQ(arrays.at("a").shape(), (Shape{2, 3}));
  EXPECT_THAT(arrays.at("a").to_vector<double>(), ElementsAre(1, 3, 5, 2, 4, 6));
  EXPECT_EQ(arrays.at("b").dtype(), float64);  // stored in fewer bytes
  EXPECT_THAT(arrays.at("b").to_vector<double>(), ElementsAre(1, 2, 3));
}

TEST_F(MatFile, PassesOverWhatIsNoArrayOfRealNumbers) {
  constexpr std::uint32_t text = 4, complex = 0x800;
  auto arrays = read(mat_file(matrix("t", text, {1, 1}, kUint8, "t") + element(kMatrix, "") +
                              matrix("c", kDoubleClass | complex, {1, 1}, kUint8, "c") +
                              matrix("n", kUint8Class, {1, 1}, kUint8, "\5")));
  ASSERT_THAT(arrays, SizeIs(1));
  EXPECT_EQ(arrays.at("n").item<int>(), 5);
}

TEST_F(MatFile, ThatIsDamagedSaysSo) {
  std::string good = matrix("n", kUint8Class, {2, 2}, kUint8, "abcd");
  EXPECT_THAT(fault("MATLAB 7.3"), HasSubstr("numbers.mat: no MAT-file"));
  EXPECT_THAT(fault(mat_file(good.substr(0, good.size() - 9))), HasSubstr("truncated"));
  EXPECT_THAT(fault(mat_file(matrix("n", kUint8Class, {2, 3}, kUint8, "abcd"))),
              HasSubstr("(2, 3) uint8 with 4 bytes"));
  EXPECT_THAT(fault(mat_file(matrix("n", kUint8Class, {-2, -2}, kUint8, "abcd"))),
              HasSubstr("with 4 bytes"));
  EXPECT_THAT(fault(mat_file(matrix("n", kUint8Class, {1 << 30, 1 << 30, 16}, kUint8, ""))),
              HasSubstr("with 0 bytes"));
  EXPECT_THAT(fault(mat_file(matrix("n", kUint8Class, {1, 1}, 99, "a"))), HasSubstr("type 99"));
  EXPECT_THAT(fault(mat_file(matrix("n", kUint8Class, {1, 1}, kDouble, bytes_of<double>({1e300})))),
              HasSubstr("an array of uint8 that is stored as float64"));
  std::string packed = compressed(good);
  packed[packed.size() / 2] ^= 0x55;
  EXPECT_THAT(fault(mat_file(packed)), HasSubstr("damaged"));
  std::string bomb = compressed(u32(kMatrix) + u32(0xfffffff0u));
  EXPECT_THAT(fault(mat_file(bomb)), HasSubstr("damaged"));
}

class SvhnTest : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) {
    std::filesystem::create_directories(root_ / "svhn");
    testing::write_file(root_ / "svhn/" + name, content);
  }
  TemporaryFolder root_, cache_;
  EnvironmentScope a_{"RENSA_DATASET_ROOT", root_.str()}, b_{"XDG_CACHE_HOME", cache_.str()};
};

/// Images of which each has one red pixel of 255 in row 3, column 1.
std::string images(std::int32_t n) {
  std::string pixels(static_cast<std::size_t>(n) * 3072, '\0');
  for (std::int32_t i = 0; i < n; ++i) pixels[static_cast<std::size_t>(i) * 3072 + 32 + 3] = '\xff';
  return matrix("X", kUint8Class, {32, 32, 3, n}, kUint8, pixels);
}

TEST_F(SvhnTest, GivesImagesAndDigits) {
  write("train_32x32.mat",
        mat_file(compressed(images(2)) + matrix("y", kUint8Class, {2, 1}, kUint8, "\x0a\x03")));
  write("test_32x32.mat",
        mat_file(images(1) + matrix("y", kDoubleClass, {1, 1}, kDouble, bytes_of<double>({9}))));
  TrainTest sets = get_svhn();
  ASSERT_EQ(sets.train.size(), 2);
  Array x = sets.train[1][0];
  EXPECT_EQ(x.shape(), (Shape{3, 32, 32}));
  EXPECT_EQ((x[{0, 3, 1}].item<float>()), 1);
  EXPECT_EQ(x.sum().item<float>(), 1);
  EXPECT_THAT((*sets.train.columns())[1].to_vector<int>(), ElementsAre(0, 3));
  EXPECT_EQ(sets.test[0][1].item<int>(), 9);
  TrainTest rows = get_svhn(false, 1, 255);
  EXPECT_THAT(*rows.test.columns(), SizeIs(1));
  EXPECT_EQ(rows.test[0][0].shape(), (Shape{3072}));
  EXPECT_EQ(rows.test[0][0][3 * 32 + 1].item<float>(), 255);
  EXPECT_THROW(get_svhn(true, 2), ValueError);
}

TEST_F(SvhnTest, SaysWhatItsFilesLack) {
  std::string labels = matrix("y", kUint8Class, {1, 1}, kUint8, "\x01");
  write("test_32x32.mat", mat_file(images(1) + labels));
  auto fault = [&](const std::string& train) {
    write("train_32x32.mat", mat_file(train));
    return thrown<SerializationError>([] { get_svhn(); });
  };
  EXPECT_THAT(fault(labels), HasSubstr("train_32x32.mat: it has no array X"));
  EXPECT_THAT(fault(images(2) + labels), HasSubstr("2 images and 1 labels"));
  EXPECT_THAT(fault(images(1) + matrix("y", kUint8Class, {1, 1}, kUint8, "\x0b")),
              HasSubstr("a label"));
  EXPECT_THAT(fault(matrix("X", kUint8Class, {4, 1}, kUint8, "abcd") + labels),
              HasSubstr("not (32, 32, 3, n)"));
}

}  // namespace
}  // namespace rensa::datasets

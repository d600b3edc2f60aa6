// Models and trainers through HDF5 files, those of Chainer and h5py, and files that are not what
// they should be. What is written is held to h5py and Chainer by tests/answers/check_hdf5.py.
#include "rensa/serializers/hdf5.h"

#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/training/training.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"
#include "tests/training/models.h"

/// Asked by the leak sanitizer: HDF5 1.10 loses memory of headers whose sums are wrong, and says at
/// the program's end "infinite loop closing library".
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }

namespace rensa {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

struct Net : Chain<Net> {
  L::Linear l1{L::Linear(3, 2)};
  L::BatchNormalization bn{2};
  L::Linear l2{4};
  void members(Visitor& v) override { v("l1", l1), v("bn", bn), v("l2", l2); }
};

/// An array of each dtype, scalars, empty ones and texts.
struct Everything {
  std::vector<Array> arrays;
  Array scalar = xp::array(2.5, cpu()), empty = xp::empty({0, 3}, float32, cpu()), none;
  std::string text = "größer\n", nothing;
  std::int64_t number = -(std::int64_t{1} << 60);
  double real = 0.1;
  bool flag = true;
  explicit Everything(int value) {
    for (int i = 0; i < kNumDtypes; ++i) {
      arrays.push_back(
          (xp::arange(6, cpu()) * value % 7).astype(static_cast<Dtype>(i)).reshape({2, 3}));
    }
  }
  void members(Visitor& v) {
    for (int i = 0; i < kNumDtypes; ++i) {
      v(dtype_name(static_cast<Dtype>(i)), arrays[static_cast<std::size_t>(i)]);
    }
    v("more/scalar", scalar), v("more/empty", empty), v("more/none", none), v("more/text", text);
    v("more/nothing", nothing), v("number", number), v("real", real), v("flag", flag);
  }
};

struct One {
  Array x = xp::zeros({2}, float32, cpu());
  void members(Visitor& v) { v("x", x); }
};

#if RENSA_TEST_HDF5

class Hdf5Test : public ::testing::Test {
 protected:
  /// In a folder that lasts, for the script that looks at the files, where it is named.
  std::string path_of(const std::string& name) const {
    const char* kept = std::getenv("RENSA_TEST_HDF_FOLDER");
    return kept ? std::string(kept) + "/" + name : folder_ / name;
  }
  std::string error_of(const std::string& path, const Members& what) const {
    return testing::thrown<SerializationError>(
        [&] { serializers::load_hdf5(path, [&](Visitor& v) { what.show(v); }); });
  }
  TemporaryFolder folder_;
};

void fill(Net& net, double value) {
  if (!net.l2.W.is_initialized()) net.l2.W.initialize({4, 2});
  for (ParameterRef& p : net.params()) p.array().fill(value);
  net.bn.avg_var.fill(value);
}

TEST_F(Hdf5Test, AModelComesBackIntoTheSameMemory) {
  for (Device device : testing::test_devices()) {
    for (int compression : {0, 1, 4, 9}) {
      Net source, target, waiting;
      for (Net* net : {&source, &target, &waiting}) net->to_device(device);
      fill(source, 7), fill(target, 1);
      serializers::save_hdf5(path_of("model.h5"), source, {.compression = compression});
      Array before = target.l1.W.array();
      for (Net* net : {&target, &waiting}) {
        serializers::load_hdf5(path_of("model.h5"), *net);
        EXPECT_EQ(net->l1.W.array().to_vector<float>(), std::vector<float>(6, 7));
        EXPECT_EQ(net->l2.W.array().to_vector<float>(), std::vector<float>(8, 7));
        EXPECT_EQ(net->bn.avg_var.to_vector<float>(), std::vector<float>(2, 7));
      }
      EXPECT_EQ(target.l1.W.array().data(), before.data());
    }
  }
}

TEST_F(Hdf5Test, EveryDtypeComesBackAsItWas) {
  Everything source(1), target(3);
  target.scalar.fill(0), target.text = "no", target.nothing = "no";
  target.number = 0, target.real = 0, target.flag = false;
  serializers::save_hdf5(path_of("everything.h5"), source);
  serializers::load_hdf5(path_of("everything.h5"), target);
  for (std::size_t i = 0; i < source.arrays.size(); ++i) {
    EXPECT_EQ(target.arrays[i].dtype(), static_cast<Dtype>(i));
    EXPECT_TRUE(xp::array_equal(target.arrays[i], source.arrays[i])) << source.arrays[i].dtype();
  }
  EXPECT_EQ(target.scalar.item<double>(), 2.5);
  EXPECT_EQ(target.empty.shape(), (Shape{0, 3}));
  EXPECT_FALSE(target.none.defined());
  EXPECT_EQ(target.text, source.text);
  EXPECT_EQ(target.nothing, "");
  EXPECT_EQ(target.number, source.number);
  EXPECT_EQ(target.real, 0.1);
  EXPECT_TRUE(target.flag);
}

TEST_F(Hdf5Test, ArraysOfManyChunksAndOfOtherLayouts) {
  One source, target;
  for (const Array& x :
       {xp::ones({3, 1, 400000}, int8, cpu()), xp::arange(700000, cpu()).reshape({7, 100000}).T(),
        xp::arange(1000003, cpu()).astype(float64)}) {
    source.x = x;
    target.x = xp::zeros(x.shape(), x.dtype(), cpu());
    serializers::save_hdf5(path_of("many.h5"), source);
    EXPECT_LT(fs::file_size(path_of("many.h5")), static_cast<std::uintmax_t>(x.nbytes()));
    serializers::load_hdf5(path_of("many.h5"), target);
    EXPECT_TRUE(xp::array_equal(target.x, x));
  }
}

TEST_F(Hdf5Test, APartOfAFileAndAFileOfAnotherModel) {
  Net source;
  fill(source, 3);
  serializers::save_hdf5(path_of("a.h5"), source);
  L::Linear layer(2, 4), other(3, 2);
  serializers::load_hdf5(path_of("a.h5"), layer, {.path = "l2/"});
  EXPECT_EQ(layer.W.array().to_vector<float>(), std::vector<float>(8, 3));
  EXPECT_THAT(error_of(path_of("a.h5"), other),
              AllOf(HasSubstr("it lacks [W, b]"), HasSubstr("l1/W, l1/b, l2/W, l2/b")));
  serializers::load_hdf5(path_of("a.h5"), other, {.strict = false});
}

TEST_F(Hdf5Test, WhatDoesNotFitNamesTheKeyAndChangesNothing) {
  Net source, target;
  fill(source, 3);
  serializers::save_hdf5(path_of("a.h5"), source);
  target.l2.W.initialize({4, 5});
  fill(target, 1);
  EXPECT_THAT(testing::thrown<ShapeError>([&] { serializers::load_hdf5(path_of("a.h5"), target); }),
              HasSubstr("a.h5: l2/W: the file has shape (4, 2), the model (4, 5)"));
  EXPECT_EQ(target.l1.W.array().to_vector<float>(), std::vector<float>(6, 1));
  One complex, real;
  complex.x = xp::zeros({2}, complex64, cpu());
  serializers::save_hdf5(path_of("a.h5"), complex);
  EXPECT_THAT(error_of(path_of("a.h5"), real),
              HasSubstr("a.h5: x: the file has complex64, which does not convert"));
  std::string text;
  EXPECT_THAT(error_of(path_of("a.h5"), [&](Visitor& v) { v("x", text); }),
              HasSubstr("a.h5: x: it is no text"));
  serializers::save_hdf5(path_of("a.h5"), [&](Visitor& v) { v("x", text); });
  EXPECT_THAT(error_of(path_of("a.h5"), real), HasSubstr("a.h5: x: it is a text"));
}

TEST_F(Hdf5Test, NamesThatHdf5WouldTakeForOthersLeaveTheFileAsItIs) {
  Array x = xp::zeros({2}, float32, cpu());
  auto save = [&](const std::vector<std::string>& names) {
    serializers::save_hdf5(path_of("a.h5"), [&](Visitor& v) {
      for (const std::string& name : names) v(name, x);
    });
  };
  save({"x"});
  std::string before = testing::read_file(path_of("a.h5"));
  for (const char* wrong : {"", "/x", "x/", "a//b", ".", "a/./b"}) {
    EXPECT_THROW(save({wrong}), ValueError) << wrong;
  }
  EXPECT_THROW(save({std::string("a\0b", 3)}), ValueError);
  Array y = x.copy();
  EXPECT_THAT(testing::thrown<ValueError>([&] {
                serializers::save_hdf5(path_of("a.h5"),
                                       [&](Visitor& v) { v("a/b", x), v("a", y); });
              }),
              HasSubstr("\"a\" is a value"));
  EXPECT_THROW(serializers::save_hdf5(path_of("a.h5"), One(), {.compression = 10}), ValueError);
  EXPECT_EQ(testing::read_file(path_of("a.h5")), before);
}

TEST_F(Hdf5Test, TheSameValuesAreTheSameBytes) {
  Everything source(2);
  serializers::save_hdf5(path_of("a.h5"), source);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // a tick of HDF5's clock
  serializers::save_hdf5(path_of("b.h5"), source);
  EXPECT_EQ(testing::read_file(path_of("a.h5")), testing::read_file(path_of("b.h5")));
}

TEST_F(Hdf5Test, FromSeveralThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int turn = 0; turn < 20; ++turn) {
        One source, target;
        source.x.fill(i);
        std::string path = path_of(std::to_string(i) + ".h5");
        serializers::save_hdf5(path, source);
        serializers::load_hdf5(path, target);
        right += xp::array_equal(target.x, source.x);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 80);
}

TEST_F(Hdf5Test, FilesThatAreNoneOrCannotBeWritten) {
  One one;
  EXPECT_THAT(error_of(path_of("none.h5"), one), HasSubstr("none.h5: No such file"));
  EXPECT_THAT(error_of(folder_.str(), one), HasSubstr("Is a directory"));
  testing::write_file(path_of("text"), "x = 1\n");
  EXPECT_THAT(error_of(path_of("text"), one), HasSubstr("text: it is no HDF5 file"));
  testing::write_file(path_of("empty"), "");
  EXPECT_THAT(error_of(path_of("empty"), one), HasSubstr("empty: it is no HDF5 file"));
  auto save = [&](const std::string& path) {
    return testing::thrown<SerializationError>([&] { serializers::save_hdf5(path, one); });
  };
  EXPECT_THAT(save(path_of("no/a.h5")), HasSubstr("no/a.h5: No such file"));
  EXPECT_THAT(save(path_of("text/a.h5")), HasSubstr("text/a.h5: Not a directory"));
  fs::create_symlink("/dev/full", folder_ / "full");
  EXPECT_THAT(save(folder_ / "full"), HasSubstr("full: No space left on device"));
  ::testing::internal::CaptureStderr();
  testing::write_file(path_of("text"), std::string("\x89HDF\r\n\x1a\n", 8) + std::string(600, 'x'));
  EXPECT_THAT(error_of(path_of("text"), one), HasSubstr("text: HDF5: "));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");  // HDF5 prints nothing by itself
}

TEST_F(Hdf5Test, DamagedFilesAreErrorsAtEveryByte) {
  Net source;
  fill(source, 3);
  serializers::save_hdf5(path_of("a.h5"), source);
  const std::string whole = testing::read_file(path_of("a.h5"));
  auto is_refused = [&](const std::string& bytes) {
    fs::remove(path_of("b.h5"));  // some file systems flush what is written over
    testing::write_file(path_of("b.h5"), bytes);
    Net target;
    try {
      serializers::load_hdf5(path_of("b.h5"), target);
    } catch (const Error&) {
      EXPECT_FALSE(target.l2.W.is_initialized());
      return true;
    }
    // What it says without a sum over it does no harm.
    for (ParameterRef& p : target.params()) EXPECT_TRUE((p.array() == 3).all().item<bool>());
    return false;
  };
  std::size_t step = testing::quick() ? 97 : 5;
  for (std::size_t size = 0; size < whole.size(); size += step) {
    EXPECT_TRUE(is_refused(whole.substr(0, size))) << size;
  }
  std::size_t refused = 0, tried = 0;
  for (std::size_t at = 0; at < whole.size(); at += step, ++tried) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    refused += is_refused(damaged);
  }
  EXPECT_GT(refused, tried / 2);
}

TEST_F(Hdf5Test, FilesOfH5py) {
  Array floats, halves, numbers, flags, roots, packed;
  std::string text, fixed;
  serializers::load_hdf5(testing::data_file("hdf5/read.h5"), [&](Visitor& v) {
    v("floats", floats), v("halves", halves), v("numbers", numbers), v("flags", flags);
    v("roots", roots), v("packed", packed), v("text", text), v("fixed", fixed);
  });
  double infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(xp::array_equal(floats, xp::array({1.5, -2, infinity, 0}, cpu()).reshape({2, 2})));
  EXPECT_EQ(halves.dtype(), float16);
  EXPECT_TRUE(xp::array_equal(halves, xp::array({0.5, -3}, cpu())));
  EXPECT_EQ(numbers.to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{1, std::int64_t{1} << 40}));
  EXPECT_EQ(flags.to_vector<bool>(), (std::vector<bool>{true, false}));
  EXPECT_EQ(roots.dtype(), complex128);
  EXPECT_EQ(roots.imag().item<double>(), 2);
  EXPECT_TRUE(xp::array_equal(packed, xp::arange(2000, cpu())));
  EXPECT_EQ(text, "größer");
  EXPECT_EQ(fixed, "abc");
}

TEST_F(Hdf5Test, FilesOfH5pyThatAreRefused) {
  const std::vector<std::pair<const char*, const char*>> all = {
      {"long_double", "x: arrays have no such dtype"},
      {"lzf", "x: it is packed by \"lzf\""},
      {"texts", "x: it is a text"},
      {"never_written", "x: it is to have 4398046511104 bytes, and 0 are in the file"},
      {"never_packed", "x: it is to have 4398046511104 bytes, and 0 are in the file"},
      {"soft_link", "x: it is a link that leads elsewhere"},
      {"two_names", "x: it is a group that has two names"},
      {"external_link", "x: it is a link that leads elsewhere"},
      {"external", "x: its values lie in other files"},
      {"virtual", "x: its values lie in other files"},
  };
  for (const auto& [name, message] : all) {
    One one;
    EXPECT_THAT(error_of(testing::data_file(std::string("hdf5/") + name + ".h5"), one),
                HasSubstr(message));
  }
  std::string text;
  EXPECT_THAT(error_of(testing::data_file("hdf5/texts.h5"), [&](Visitor& v) { v("x", text); }),
              HasSubstr("x: it is more than one text"));
}

TEST_F(Hdf5Test, AModelOfChainers) {
  for (Device device : testing::test_devices()) {
    Net net;
    net.to_device(device);
    serializers::load_hdf5(testing::data_file("hdf5/chainer_model.h5"), net);
    EXPECT_EQ(net.l1.W.array().to_vector<float>(), (std::vector<float>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(net.bn.avg_var.to_vector<float>(), (std::vector<float>{1, 1}));
    EXPECT_FALSE(net.l2.W.is_initialized());
  }
}

/// After 6 of its 8 iterations.
TEST_F(Hdf5Test, ARunOfChainersGoesOn) {
  for (Device device : testing::test_devices()) {
    std::string path = testing::data_file("hdf5/chainer_trainer.h5");
    for (std::int64_t begun : {6, 7}) {
      testing::Line model;
      optimizers::Adam optimizer(0.1);
      optimizer.setup(model);
      iterators::SerialIterator iterator(testing::line_data(12), 3);
      training::Trainer trainer(training::StandardUpdater(iterator, optimizer, {.device = device}),
                                {2, "epoch"}, folder_ / "out");
      trainer.extend(
          [&](training::Trainer& t) { serializers::save_hdf5(path_of("trainer.h5"), t); },
          {.name = "save", .trigger = {7, "iteration"}, .priority = -100});
      serializers::load_hdf5(path, trainer);
      EXPECT_EQ(trainer.updater().iteration(), begun);
      trainer.run();
      EXPECT_NEAR(model.w.item<double>(), 0.721404492855072, 1e-5);
      path = path_of("trainer.h5");
    }
  }
}

TEST_F(Hdf5Test, NamesOfOthers) {
  L::Linear source(3, 2), target(3, 2);
  serializers::save_hdf5(path_of("a.h5"), source, {.names = serializers::pytorch_names()});
  EXPECT_THAT(error_of(path_of("a.h5"), target), HasSubstr("[bias, weight]"));
  serializers::load_hdf5(path_of("a.h5"), target, {.names = serializers::pytorch_names()});
  EXPECT_TRUE(xp::array_equal(target.W.array(), source.W.array()));
}

#else

TEST(Hdf5, IsNotInThisBuild) {
  One one;
  Net net;
  Everything everything(1);
  testing::TemporaryFolder folder;
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { serializers::save_hdf5(folder / "a.h5", one); },
           [&] { serializers::save_hdf5(folder / "a.h5", net); },
           [&] { serializers::load_hdf5(folder / "a.h5", everything); }}) {
    EXPECT_THAT(testing::thrown<NotImplementedError>(call), HasSubstr("libhdf5-dev"));
  }
  EXPECT_FALSE(fs::exists(folder / "a.h5"));
}

#endif

}  // namespace
}  // namespace rensa

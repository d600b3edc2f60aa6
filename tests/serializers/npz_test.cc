// Models and optimizers through npz files, and files that are not what they should be.
#include "rensa/serializers/npz.h"

#include <gmock/gmock.h>

#include "rensa/array/npy.h"
#include "rensa/array/random.h"
#include "rensa/array/zip.h"
#include "rensa/core/error.h"
#include "rensa/device/stream.h"
#include "rensa/links/links.h"
#include "tests/replace_entry.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;

struct Layer : Chain<Layer> {
  Parameter W, b;
  Layer() : W(Initializer(1.0)), b(Initializer(0.5), {3}) {}
  void members(Visitor& v) override {
    v("W", W);
    v("b", b);
  }
};

struct Net : Chain<Net> {
  Layer l1, l2;
  Persistent mean{xp::zeros({3}, float32, cpu())};
  std::int64_t count = 0;
  void members(Visitor& v) override {
    v("l1", l1);
    v("l2", l2);
    v("mean", mean);
    v("N", count);
  }
  void fill(double value) {
    for (ParameterRef& p : params()) p.array().fill(value);
    mean.fill(value);
    count = static_cast<std::int64_t>(value);
  }
};

void initialize(Net& net) {
  net.l1.W.initialize({3, 2});
  net.l2.W.initialize({3, 3});
}

class NpzTest : public ::testing::Test {
 protected:
  std::string path_of(const std::string& name) const { return folder_ / name; }
  TemporaryFolder folder_;
};

TEST_F(NpzTest, KeysAreChainers) {
  Net net;
  initialize(net);
  serializers::save_npz(path_of("a.npz"), net);
  FileReader file(path_of("a.npz"));
  EXPECT_EQ(ZipReader(file).names(),
            (std::vector<std::string>{"N.npy", "l1/W.npy", "l1/b.npy", "l2/W.npy", "l2/b.npy",
                                      "mean.npy"}));
}

TEST_F(NpzTest, ComesBackIntoTheSameMemory) {
  for (Device device : testing::test_devices()) {
    for (bool compression : {true, false}) {
      Net source, target;
      initialize(source);
      initialize(target);
      source.fill(7);
      source.to_device(device);
      target.to_device(device);
      serializers::save_npz(path_of("a.npz"), source, {.compression = compression});
      Array before = target.l1.W.array();
      serializers::load_npz(path_of("a.npz"), target);
      EXPECT_EQ(target.l1.W.array().data(), before.data());
      EXPECT_EQ(before.to_vector<float>(), std::vector<float>(6, 7));
      EXPECT_EQ(target.mean.to_vector<float>(), std::vector<float>(3, 7));
      EXPECT_EQ(target.count, 7);
    }
  }
}

TEST_F(NpzTest, ShapesComeFromTheFile) {
  Net source, target;
  initialize(source);
  source.fill(3);
  serializers::save_npz(path_of("a.npz"), source);
  EXPECT_FALSE(target.l1.W.is_initialized());
  serializers::load_npz(path_of("a.npz"), target);
  EXPECT_EQ(target.l1.W.shape(), (Shape{3, 2}));
  EXPECT_EQ(target.l2.W.array().to_vector<float>(), std::vector<float>(9, 3));
}

TEST_F(NpzTest, AParameterWithoutShapeIsNone) {
  Net source, target;
  source.l1.W.initialize({3, 2});
  serializers::save_npz(path_of("a.npz"), source);
  initialize(target);
  target.fill(4);
  serializers::load_npz(path_of("a.npz"), target);
  EXPECT_EQ(target.l1.W.array().to_vector<float>(), std::vector<float>(6, 1));
  EXPECT_EQ(target.l2.W.array().to_vector<float>(), std::vector<float>(9, 4));  // left alone
}

TEST_F(NpzTest, AFileOfAnotherModelListsTheKeysOfBoth) {
  Layer layer;
  layer.W.initialize({3, 2});
  serializers::save_npz(path_of("a.npz"), layer);
  Net net;
  initialize(net);
  net.fill(5);
  std::string message = testing::message_of<SerializationError>(
      [&] { serializers::load_npz(path_of("a.npz"), net); });
  EXPECT_THAT(message, HasSubstr("l1/W, l1/b, l2/W, l2/b, mean, N"));
  EXPECT_THAT(message, HasSubstr("[W, b]"));
  serializers::load_npz(path_of("a.npz"), net, {.strict = false});
  EXPECT_EQ(net.l1.W.array().to_vector<float>(), std::vector<float>(6, 5));
}

TEST_F(NpzTest, APartOfAFile) {
  Net net;
  initialize(net);
  net.fill(6);
  serializers::save_npz(path_of("a.npz"), net);
  Layer layer;
  serializers::load_npz(path_of("a.npz"), layer, {.path = "l2/"});
  EXPECT_EQ(layer.W.array().to_vector<float>(), std::vector<float>(9, 6));
}

TEST_F(NpzTest, AWrongShapeNamesTheParameterAndChangesNothing) {
  Net source, target;
  initialize(source);
  source.fill(2);
  target.l1.W.initialize({3, 2});
  target.l2.W.initialize({3, 4});
  target.fill(5);
  serializers::save_npz(path_of("a.npz"), source);
  std::string message =
      testing::message_of<ShapeError>([&] { serializers::load_npz(path_of("a.npz"), target); });
  EXPECT_THAT(message, HasSubstr("l2/W: the file has shape (3, 3), the model (3, 4)"));
  EXPECT_EQ(target.l1.W.array().to_vector<float>(), std::vector<float>(6, 5));
}

TEST_F(NpzTest, DtypesAreConvertedWithinTheirKind) {
  Layer layer;
  layer.W.initialize({2});
  auto write = [&](const Array& w) {
    FileWriter file(path_of("a.npz"));
    ZipWriter zip(file);
    zip.add("W.npy", {format_npy(w)}, true);
    zip.add("b.npy", {format_npy(xp::zeros({3}, float64, cpu()))}, true);
    zip.finish();
    file.finish();
  };
  write(xp::array({1.5, 2.5}, cpu()));
  serializers::load_npz(path_of("a.npz"), layer);
  EXPECT_EQ(layer.W.dtype(), float32);
  EXPECT_EQ(layer.W.array().to_vector<float>(), (std::vector<float>{1.5f, 2.5f}));
  write(xp::zeros({2}, complex64, cpu()));
  EXPECT_THAT(testing::message_of<SerializationError>(
                  [&] { serializers::load_npz(path_of("a.npz"), layer); }),
              HasSubstr("complex64"));
}

TEST_F(NpzTest, DamagedFilesAreErrorsAtEveryByte) {
  Layer source;
  source.W.initialize({2, 2});
  serializers::save_npz(path_of("a.npz"), source);
  const std::string whole = testing::read_file(path_of("a.npz"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    testing::write_file(path_of("b.npz"), whole.substr(0, size));
    Layer target;
    EXPECT_THROW(serializers::load_npz(path_of("b.npz"), target), SerializationError) << size;
  }
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    testing::write_file(path_of("b.npz"), damaged);
    Layer target;
    try {
      serializers::load_npz(path_of("b.npz"), target);  // a date or an attribute does no harm
      EXPECT_EQ(target.W.array().to_vector<float>(), std::vector<float>(4, 1)) << at;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, static_cast<int>(whole.size() / 2));
  EXPECT_THROW(serializers::load_npz(path_of("none.npz"), source), SerializationError);
  EXPECT_THROW(serializers::load_npz(folder_.str(), source), SerializationError);
}

TEST_F(NpzTest, SizesThatTheFileCannotHoldTakeNoMemory) {
  Layer source;
  source.W.initialize({2, 2});
  serializers::save_npz(path_of("a.npz"), source);
  std::string file = testing::read_file(path_of("a.npz"));
  // The zip64 field of the first entry in the directory: its uncompressed size.
  std::size_t entry = file.find("PK\x01\x02"), field = entry + 46 + std::string("W.npy").size() + 4;
  for (int i = 0; i < 6; ++i) file[field + static_cast<std::size_t>(i)] = '\xff';
  testing::write_file(path_of("b.npz"), file);
  Layer target;
  EXPECT_THAT(testing::message_of<SerializationError>(
                  [&] { serializers::load_npz(path_of("b.npz"), target); }),
              HasSubstr("can hold"));
}

TEST_F(NpzTest, TheFileIsReplacedAsAWhole) {
  Layer layer;
  layer.W.initialize({2});
  serializers::save_npz(path_of("a.npz"), layer);
  std::string before = testing::read_file(path_of("a.npz"));
  {
    FileWriter unfinished(path_of("a.npz"));
    ZipWriter(unfinished).add("x", {"abc"}, true);
  }
  EXPECT_EQ(testing::read_file(path_of("a.npz")), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.str()), {}), 1);
  EXPECT_THROW(serializers::save_npz(path_of("no/such/folder.npz"), layer), SerializationError);
}

struct NamedLayer : Chain<NamedLayer> {
  explicit NamedLayer(std::string n) : name(std::move(n)), W(Initializer(1.0), {2}) {}
  void members(Visitor& v) override { v(name.c_str(), W); }
  std::string name;
  Parameter W;
};

TEST_F(NpzTest, NamesThatNoArchiveHoldsLeaveTheFileAsItIs) {
  NamedLayer layer("W");
  serializers::save_npz(path_of("a.npz"), layer);
  std::string before = testing::read_file(path_of("a.npz"));
  NamedLayer too_long(std::string(70000, 'x')), no_text("\xff");
  EXPECT_THAT(
      testing::message_of<ValueError>([&] { serializers::save_npz(path_of("a.npz"), too_long); }),
      HasSubstr("65535"));
  EXPECT_THAT(
      testing::message_of<ValueError>([&] { serializers::save_npz(path_of("a.npz"), no_text); }),
      HasSubstr("UTF-8"));
  EXPECT_EQ(testing::read_file(path_of("a.npz")), before);
}

TEST_F(NpzTest, TheModeOfTheFileStays) {
  NamedLayer layer("W");
  serializers::save_npz(path_of("a.npz"), layer);
  namespace fs = std::filesystem;
  fs::permissions(path_of("a.npz"), fs::perms::owner_read | fs::perms::owner_write);
  serializers::save_npz(path_of("a.npz"), layer);
  EXPECT_EQ(fs::status(path_of("a.npz")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

/// Its persistents are made by the first call, as is its weight.
struct MadeAtFirst : Chain<MadeAtFirst> {
  Parameter W{Initializer(1)};
  Persistent mean, count;
  void members(Visitor& v) override { v("W", W), v("mean", mean), v("count", count); }
  void call(Device device) {
    W.initialize({2});
    mean = xp::full({2}, 0.5, float32, device);
    count = xp::full({}, 7, int64, device);
  }
};

TEST_F(NpzTest, APersistentMadeAtTheFirstCallComesBack) {
  for (Device device : testing::test_devices()) {
    MadeAtFirst called, waiting, read;
    for (Link* model : std::initializer_list<Link*>{&called, &waiting, &read}) model->to(device);
    called.call(device);
    serializers::save_npz(path_of("called.npz"), called);
    serializers::save_npz(path_of("waiting.npz"), waiting);
    serializers::load_npz(path_of("called.npz"), read);
    ASSERT_TRUE(read.mean.defined() && read.count.defined());
    EXPECT_EQ(read.mean.device(), device);
    EXPECT_EQ(read.mean.to_vector<float>(), (std::vector<float>{0.5, 0.5}));
    EXPECT_EQ(read.count.dtype(), int64);
    EXPECT_EQ(read.count.item<std::int64_t>(), 7);
    Array memory = read.mean;
    serializers::load_npz(path_of("called.npz"), read);
    EXPECT_EQ(read.mean.data(), memory.data());
    serializers::load_npz(path_of("waiting.npz"), read);
    EXPECT_FALSE(read.mean.defined());
    serializers::load_npz(path_of("called.npz"), read);
    EXPECT_EQ(read.mean.device(), device);
  }
}

TEST_F(NpzTest, SavingWaitsForTheDevice) {
  for (Device device : testing::test_devices()) {
    L::Linear layer(3, 2);
    layer.to(device);
    auto save = [&] { serializers::save_npz(path_of("a.npz"), layer); };
    cuda::ForbidSync strict;
    if (device.is_cuda()) EXPECT_THROW(save(), SyncError);
    else EXPECT_NO_THROW(save());
  }
}

TEST_F(NpzTest, ReadingDrawsNoRandomNumbers) {
  L::Linear source(3, 2), target(2);
  serializers::save_npz(path_of("a.npz"), source);
  xp::random::GeneratorState before = xp::random::get_random_state(cpu());
  serializers::load_npz(path_of("a.npz"), target);
  EXPECT_EQ(xp::random::get_random_state(cpu()), before);
  EXPECT_TRUE(xp::array_equal(target.W.array(), source.W.array()));
}

/// What is shown after the parts that can fail only once their values are made of the file's.
struct Whole {
  Net net;
  xp::random::Generator generator = xp::random::default_rng(1, cpu());
  DictSummary summary;
  std::string text = "before";
  int taken = 0;
  Whole() {
    initialize(net);
    net.fill(1);
  }
  void members(Visitor& v) {
    v("net", net), v("generator", generator), v("summary", summary);
    v.computed(
        "text", [this] { return text; },
        [this](const std::string& t) {
          if (t == "broken") throw ValueError("cannot be read");
          return [this, t] { text = t, ++taken; };
        });
  }
};

TEST_F(NpzTest, AValueThatCannotBeTakenChangesNothing) {
  Whole source;
  source.net.fill(9);
  source.text = "after";
  source.summary.add({{"loss", xp::ones({}, float32, cpu())}});
  (void)source.generator.random({3});
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"text.npy", format_npy_text("broken")},
      {"generator.npy", format_npy(xp::ones({2}, uint8, cpu()))},
      {"generator.npy", format_npy(xp::ones({3}, uint64, cpu()))},
      {"summary/_names.npy", format_npy_text("[\"loss\", \"more\"]")},
      {"summary/_names.npy", format_npy_text("[")},
      {"summary/_summaries/0/_x.npy", format_npy(xp::ones({2}, float32, cpu()))},
  };
  for (const auto& [name, bytes] : faults) {
    SCOPED_TRACE(name);
    serializers::save_npz(path_of("a.npz"), source);
    testing::replace_entry(path_of("a.npz"), name, bytes);
    Whole target;
    std::string text;
    try {
      serializers::load_npz(path_of("a.npz"), target);
    } catch (const SerializationError& error) {
      text = error.what();
    } catch (const ShapeError& error) {
      text = error.what();
    }
    EXPECT_THAT(text, HasSubstr(name.substr(0, name.size() - 4)));
    EXPECT_EQ(target.net.l1.W.array().to_vector<float>(), std::vector<float>(6, 1));
    EXPECT_EQ(target.net.mean.to_vector<float>(), std::vector<float>(3, 1));
    EXPECT_EQ(target.net.count, 1);
    EXPECT_EQ(target.text, "before");
    EXPECT_EQ(target.taken, 0);
    EXPECT_TRUE(target.summary.compute_mean().empty());
    EXPECT_EQ(target.generator.get_state(), Whole().generator.get_state());
  }
  serializers::save_npz(path_of("a.npz"), source);
  Whole target;
  serializers::load_npz(path_of("a.npz"), target);
  EXPECT_EQ(target.text, "after");
  EXPECT_EQ(target.summary.compute_mean().at("loss"), 1);
}

}  // namespace
}  // namespace rensa

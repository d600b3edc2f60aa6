// Models and arrays through safetensors files, names of others, and files that are not what they
// should be.
#include "rensa/serializers/safetensors.h"

#include <gmock/gmock.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "rensa/array/creation.h"
#include "rensa/array/io.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/core/thread_state.h"
#include "rensa/links/links.h"
#include "rensa/serializers/npz.h"
#include "tests/links/models/drawn.h"
#include "tests/recorded.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using ::testing::HasSubstr;
using Values = std::vector<float>;

struct Net : Chain<Net> {
  L::Linear l1{3, 2};
  L::BatchNormalization bn{2};
  std::string title = "überall";
  double rate = 0.25;
  bool on = true;
  void members(Visitor& v) override {
    v("l1", l1), v("bn", bn), v("title", title), v("rate", rate), v("on", on);
  }
};

class SafetensorsTest : public ::testing::Test {
 protected:
  std::string path_of(const std::string& name) const { return folder_ / name; }
  /// A file of that header and so many bytes behind it.
  std::string file_of(const std::string& header, std::size_t bytes) const {
    std::uint64_t length = header.size();
    std::string content(reinterpret_cast<const char*>(&length), sizeof length);
    detail::write_whole_file(path_of("bad"), content + header + std::string(bytes, '\1'));
    return path_of("bad");
  }
  testing::TemporaryFolder folder_;
};

TEST_F(SafetensorsTest, AModelComesBackIntoTheSameMemory) {
  for (Device device : testing::test_devices()) {
    Net source, target;
    source.to(device), target.to(device);
    source.l1.W.array().fill(7), source.bn.avg_var.fill(3), source.bn.N += 5;
    target.title = "other", target.rate = 0, target.on = false;
    serializers::save_safetensors(path_of("a"), source);
    Array before = target.l1.W.array();
    serializers::load_safetensors(path_of("a"), target);
    EXPECT_EQ(target.l1.W.array().data(), before.data());
    EXPECT_EQ(before.to_vector<float>(), Values(6, 7));
    EXPECT_EQ(target.bn.avg_var.to_vector<float>(), Values(2, 3));
    EXPECT_EQ(target.bn.N.value(), 5);
    EXPECT_EQ(target.title, "überall");
    EXPECT_EQ(target.rate, 0.25);
    EXPECT_TRUE(target.on);
  }
}

TEST_F(SafetensorsTest, ArraysOfAllDtypes) {
  std::map<std::string, Array> arrays = {
      {"empty", xp::zeros({0, 3}, float32, cpu())},
      {"scalar", xp::array(2.5, cpu())},
      {"turned", xp::arange(6).reshape({2, 3}).T()},
  };
  for (Dtype dtype : {bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16,
                      bfloat16, float32, float64}) {
    arrays.emplace("of " + std::string(dtype_name(dtype)), xp::array({0, 1, 1}).astype(dtype));
  }
  serializers::save_safetensors(path_of("a"), arrays, {{"format", "pt"}});
  auto got = serializers::load_safetensors(path_of("a"));
  ASSERT_EQ(got.size(), arrays.size());
  for (const auto& [name, array] : arrays) {
    EXPECT_EQ(got.at(name).dtype(), array.dtype()) << name;
    EXPECT_EQ(got.at(name).shape(), array.shape()) << name;
    EXPECT_EQ(got.at(name).str(), array.str()) << name;
  }
  std::string content = detail::read_whole_file(path_of("a"));
  std::uint64_t length = 0;
  std::memcpy(&length, content.data(), sizeof length);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_THAT(content, HasSubstr(R"({"__metadata__":{"format":"pt"},"of float64":)"));
  auto text = testing::thrown<DtypeError>([&] {
    serializers::save_safetensors(path_of("a"), {{"c", xp::zeros({2}, complex64, cpu())}});
  });
  EXPECT_THAT(text, HasSubstr("\"c\" is complex64"));
  EXPECT_EQ(detail::read_whole_file(path_of("a")), content);
}

TEST_F(SafetensorsTest, NamesAreThoseOfTheRule) {
  Net source, target;
  source.l1.W.array().assign(xp::arange(6.f).reshape({2, 3}));
  serializers::Naming turned = {[](const std::string& key) {
    return serializers::StoredName("net." + serializers::pytorch_name(key), key == "l1/W");
  }};
  serializers::save_safetensors(path_of("a"), source, {.names = turned});
  auto arrays = serializers::load_safetensors(path_of("a"));
  EXPECT_EQ(arrays.at("net.l1.weight").to_vector<float>(), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(arrays.count("net.bn.running_var"), 1u);
  EXPECT_EQ(arrays.at("net.bn.num_batches_tracked").shape(), Shape());
  serializers::load_safetensors(path_of("a"), target, {.names = turned});
  EXPECT_EQ(target.l1.W.array().to_vector<float>(), source.l1.W.array().to_vector<float>());
  // The same rule below a path, and of npz files.
  serializers::Naming plain = {[](const std::string& key) {
    return serializers::StoredName(serializers::pytorch_name(key), key == "l1/W");
  }};
  Net below, of_npz;
  serializers::load_safetensors(path_of("a"), below, {.path = "net", .names = plain});
  EXPECT_EQ(below.l1.W.array().to_vector<float>(), source.l1.W.array().to_vector<float>());
  serializers::save_npz(path_of("a.npz"), source, {.names = plain});
  EXPECT_EQ(xp::load_npz(path_of("a.npz"))["l1.weight"].shape(), Shape({3, 2}));
  serializers::load_npz(path_of("a.npz"), of_npz, {.names = plain});
  EXPECT_EQ(of_npz.l1.W.array().to_vector<float>(), source.l1.W.array().to_vector<float>());
  serializers::Naming one = {[](const std::string&) { return "all"; }};
  auto text = testing::thrown<ValueError>(
      [&] { serializers::save_safetensors(path_of("a"), source, {.names = one}); });
  EXPECT_THAT(text, HasSubstr("\"l1/W\" and \"l1/b\" are both named \"all\""));
}

TEST_F(SafetensorsTest, NothingChangesWhereAFileDoesNotFit) {
  Net source, target;
  target.l1.W.array().fill(4);
  serializers::Naming names = serializers::pytorch_names();
  serializers::save_safetensors(path_of("a"), source);
  auto text = testing::thrown<SerializationError>(
      [&] { serializers::load_safetensors(path_of("a"), target, {.names = names}); });
  EXPECT_THAT(text, HasSubstr("it lacks [l1.weight, l1.bias, "));
  EXPECT_THAT(text, HasSubstr("has [bn/N, bn/avg_mean"));
  auto arrays = serializers::load_safetensors(path_of("a"));
  arrays["bn/gamma"] = xp::ones({3});
  serializers::save_safetensors(path_of("b"), arrays);
  text = testing::thrown<ShapeError>([&] { serializers::load_safetensors(path_of("b"), target); });
  EXPECT_THAT(text, HasSubstr("bn/gamma: the file has shape (3,), the model (2,)"));
  arrays["bn/gamma"] = xp::ones({2});
  arrays["title"] = xp::ones({2});
  serializers::save_safetensors(path_of("b"), arrays);
  text = testing::thrown<SerializationError>(
      [&] { serializers::load_safetensors(path_of("b"), target); });
  EXPECT_THAT(text, HasSubstr("\"title\": it is no text"));
  EXPECT_EQ(target.l1.W.array().to_vector<float>(), Values(6, 4));
  L::Linear waiting(none, 2);
  text = testing::thrown<ValueError>([&] { serializers::save_safetensors(path_of("c"), waiting); });
  EXPECT_THAT(text, HasSubstr("\"W\" has no values yet"));
  text = testing::thrown<ValueError>([&] {
    serializers::save_safetensors(path_of("c"), {{"\xff", xp::ones({2})}});
  });
  EXPECT_THAT(text, HasSubstr("names are UTF-8"));
  serializers::save_safetensors(path_of("c"), {{"a.W", xp::ones({2})}, {"a/W", xp::ones({2})}});
  text = testing::thrown<ValueError>(
      [&] { serializers::load_safetensors(path_of("c"), waiting, {.path = "a"}); });
  EXPECT_THAT(text, HasSubstr("are one name, \"W\", below \"a\""));
}

TEST_F(SafetensorsTest, DamagedFilesSayWhatIsWrong) {
  auto text_of = [](const std::string& path) {
    return testing::thrown<SerializationError>([&] { (void)serializers::load_safetensors(path); });
  };
  auto entry = [](const char* dtype, const char* shape, const char* place) {
    return std::string(R"({"a":{"dtype":")") + dtype + R"(","shape":)" + shape +
           R"(,"data_offsets":)" + place + "}}";
  };
  struct Row {
    std::string header;
    std::size_t bytes;
    const char* says;
  };
  const Row rows[] = {
      {"[1]", 0, "no JSON object"},
      {R"({"a":)", 0, "not JSON"},
      {R"({"a":3})", 0, "tensor \"a\": it has no \"dtype\""},
      {R"({"a":{"dtype":"F32","shape":[]}})", 4, "tensor \"a\": it has no \"data_offsets\""},
      {entry("F8_E4M3", "[1]", "[0,1]"), 1, "no dtype F8_E4M3"},
      {entry("F32", "[-1]", "[0,4]"), 4, "no whole number"},
      {entry("F32", "[1.5]", "[0,4]"), 4, "no whole number"},
      {entry("F32", "3", "[0,4]"), 4, "\"shape\" is no list"},
      {entry("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, "9 axes"},
      {entry("F32", "[4611686018427387904,4]", "[0,0]"), 0, "overflows"},
      {entry("F32", "[18446744073709551615,0]", "[0,0]"), 0, "overflows"},
      {entry("F32", "[2]", "[0,4]"), 4, "F32 (2,) has 8 bytes, not 4"},
      {entry("F32", "[2]", "[0,8]"), 4, "it lies from 0 to 8, of 4 bytes"},
      {entry("F32", "[0]", "[8,0]"), 8, "it lies from 8 to 0"},
      {entry("F32", "[1]", "[0]"), 4, "not a begin and an end"},
      {entry("F32", "[1]", "[4,8]"), 8, "begins at byte 4, the one before it ends at 0"},
      {entry("F32", "[1]", "[0,4]"), 8, "have 4 bytes and 8 are there"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
       R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       3, "tensor \"b\": it begins at byte 1"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
       R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
       1, "it is there twice"},
  };
  for (const Row& row : rows) {
    std::string path = file_of(row.header, row.bytes), text = text_of(path);
    EXPECT_THAT(text, HasSubstr(row.says)) << row.header;
    EXPECT_THAT(text, HasSubstr(path));
  }
  detail::write_whole_file(path_of("bad"), "\1\2\3");
  EXPECT_THAT(text_of(path_of("bad")), HasSubstr("shorter than the 8 bytes"));
  detail::write_whole_file(path_of("bad"), std::string(8, '\x7f') + "{}");
  EXPECT_THAT(text_of(path_of("bad")), HasSubstr("and 2 are there"));
  detail::write_whole_file(path_of("bad"), "");
  text_of(path_of("bad"));
  text_of(path_of("none"));
  std::string bools = file_of(entry("BOOL", "[2]", "[0,2]"), 2);
  EXPECT_EQ(serializers::load_safetensors(bools).at("a").to_vector<bool>(),
            (std::vector<bool>{true, true}));
  std::string content = detail::read_whole_file(bools);
  content.back() = 2;
  detail::write_whole_file(bools, content);
  EXPECT_THAT(text_of(bools), HasSubstr("a BOOL is neither 0 nor 1"));
}

TEST_F(SafetensorsTest, NoChangedByteEscapes) {
  serializers::save_safetensors(path_of("a"), {{"ab", xp::arange(6.f).reshape({2, 3})},
                                               {"on", xp::array({0, 1, 1}).astype(bool_)},
                                               {"n", xp::array(std::int64_t{3}, cpu())}});
  const std::string content = detail::read_whole_file(path_of("a"));
  int refused = 0;
  auto check = [&] {
    try {
      for (const auto& [name, array] : serializers::load_safetensors(path_of("a"))) {
        (void)array.sum().str();  // all of it can be read
      }
    } catch (const SerializationError&) {
      ++refused;
    }
  };
  {
    std::fstream file(path_of("a"), std::ios::binary | std::ios::in | std::ios::out);
    auto put = [&](std::size_t i, char byte) {
      file.seekp(static_cast<std::streamoff>(i)).put(byte).flush();
    };
    for (std::size_t i = 0; i < content.size(); ++i) {
      for (char byte : {'0', '9', '[', '{', '"', '-', '\0', '\xff'}) put(i, byte), check();
      put(i, content[i]);
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_EQ(detail::read_whole_file(path_of("a")), content);
  refused = 0;
  for (std::size_t size = content.size(); size-- > 0; check()) {
    std::filesystem::resize_file(path_of("a"), size);
  }
  EXPECT_EQ(refused, static_cast<int>(content.size()));
}

TEST_F(SafetensorsTest, ArraysAreTheFilesPages) {
  serializers::save_safetensors(path_of("a"), {{"x", xp::arange(1 << 16).astype(float32)}});
  std::string before = detail::read_whole_file(path_of("a"));
  {
    Array x = serializers::load_safetensors(path_of("a")).at("x");
    // What another writes into the file is seen, as no page was touched.
    std::fstream file(path_of("a"), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(-4, std::ios::end).write("\0\0\x80\x3f", 4).flush();
    EXPECT_EQ(x[-1].item<float>(), 1);
    x.fill(5);  // stays here
    EXPECT_EQ(xp::sum(x).item<float>(), 5 * (1 << 16));
  }
  std::string after = before.substr(0, before.size() - 4) + std::string("\0\0\x80\x3f", 4);
  EXPECT_EQ(detail::read_whole_file(path_of("a")), after);
  // Elements that do not lie as those of arrays.
  std::string odd = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  odd += std::string((9 - odd.size() % 8) % 8, ' ');
  ASSERT_EQ(odd.size() % 4, 1u);
  Array one = serializers::load_safetensors(file_of(odd, 4)).at("a");
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one.data()) % 4, 0u);
  EXPECT_EQ(one.nbytes(), 4);
}

TEST_F(SafetensorsTest, WhatIsLargeIsCutIntoFiles) {
  std::map<std::string, Array> arrays;
  for (int i = 0; i < 5; ++i) arrays["t" + std::to_string(i)] = xp::full({10}, i, float32, cpu());
  std::string path = path_of("m.safetensors"), index = path + ".index.json";
  serializers::save_safetensors(path, arrays);
  serializers::save_safetensors(path, arrays, {{"format", "pt"}}, 80);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(detail::read_whole_file(index), R"({
  "metadata": {
    "total_size": 200
  },
  "weight_map": {
    "t0": "m-00001-of-00003.safetensors",
    "t1": "m-00001-of-00003.safetensors",
    "t2": "m-00002-of-00003.safetensors",
    "t3": "m-00002-of-00003.safetensors",
    "t4": "m-00003-of-00003.safetensors"
  }
}
)");
  for (const std::string& from : {path, index}) {
    auto got = serializers::load_safetensors(from);
    ASSERT_EQ(got.size(), 5u);
    for (const auto& [name, array] : arrays) EXPECT_EQ(got.at(name).str(), array.str());
  }
  EXPECT_EQ(serializers::load_safetensors(path_of("m-00003-of-00003.safetensors")).size(), 1u);
  serializers::save_safetensors(path, arrays, {}, 200);  // one file has room for all
  EXPECT_FALSE(std::filesystem::exists(index));
  EXPECT_EQ(serializers::load_safetensors(path).size(), 5u);
  EXPECT_THROW(serializers::save_safetensors(path, arrays, {}, -1), ValueError);

  Net source, target;
  source.l1.W.array().fill(7), target.title = "other";
  serializers::save_safetensors(path, source, {.max_shard_size = 1});  // each its own
  serializers::load_safetensors(path, target);
  EXPECT_EQ(target.l1.W.array().to_vector<float>(), Values(6, 7));
  EXPECT_EQ(target.title, source.title);
}

TEST_F(SafetensorsTest, IndexesThatDoNotFitTheirFiles) {
  std::string index = path_of("m.index.json");
  serializers::save_safetensors(path_of("one"), {{"a", xp::ones({2})}, {"b", xp::ones({2})}});
  serializers::save_safetensors(path_of("two"), {{"a", xp::ones({2})}});
  auto text_of = [&](const std::string& content) {
    detail::write_whole_file(index, content);
    return testing::thrown<SerializationError>([&] { (void)serializers::load_safetensors(index); });
  };
  const std::pair<const char*, const char*> rows[] = {
      {"[]", "no object \"weight_map\""},
      {"{", "not JSON"},
      {R"({"weight_map": 3})", "no object \"weight_map\""},
      {R"({"weight_map": {}, "weight_map": {}})", "\"weight_map\" is there twice"},
      {R"({"weight_map": {"a": 1}})", "tensor \"a\" is in no file beside the index"},
      {R"({"weight_map": {"a": "../one"}})", "tensor \"a\" is in no file beside the index"},
      {R"({"weight_map": {"a": ".."}})", "tensor \"a\" is in no file beside the index"},
      {R"({"weight_map": {"c": "one"}})", "tensor \"c\" is not in one"},
      {R"({"weight_map": {"a": "one"}})", "does not say that tensor \"b\" is in one"},
      {R"({"weight_map": {"a": "two", "b": "one"}})", "does not say that tensor \"a\" is in one"},
  };
  for (const auto& [content, says] : rows) {
    std::string text = text_of(content);
    EXPECT_THAT(text, HasSubstr(says)) << content;
    EXPECT_THAT(text, HasSubstr(index)) << content;
  }
  EXPECT_THAT(text_of(R"({"weight_map": {"a": "none"}})"), HasSubstr(path_of("none")));
  EXPECT_THAT(text_of(R"({"weight_map": {"a": "m.index.json"}})"), HasSubstr("safetensors file?"));
}

// --- Files of others (tests/answers/links/networks.py) ---

Array recorded(const std::string& wanted) {
  for (auto& [name, array] : testing::recorded_arrays("links/networks.npz")) {
    if (name == wanted) return array;
  }
  ADD_FAILURE() << wanted;
  return {};
}

void expect_scores(const Variable& y, const Array& want) {
  Array got = y.array().to_cpu();
  ASSERT_EQ(got.shape(), want.shape());
  EXPECT_TRUE(xp::allclose(got.astype(float64), want.astype(float64), 1e-5, 1e-5)) << got.str();
}

L::ResNetLayers narrow(L::ResNetOptions options) {
  options.width = 2, options.classes = 10;
  return {{2, 1, 1, 1}, true, options};
}
Variable images(Device device) {
  return constant((testing::drawn("x", {2, 3, 40, 40}) * 2.0 - 1.0).astype(float32).to(device));
}

TEST_F(SafetensorsTest, ReadsAndWritesTorchvisionsResNet) {
  UsingConfig<bool> off(&Config::train, false);
  auto names = serializers::torchvision_resnet_names();
  std::string path = testing::data_file("torchvision_resnet.safetensors");
  Array want = recorded("ResNetLayers narrow|y,fc6");
  for (Device device : testing::test_devices()) {
    L::ResNetLayers net = narrow(L::ResNetOptions::torchvision()), again(net);
    net.to(device);
    serializers::load_safetensors(path, net, {.names = names});
    expect_scores(net(images(device)), want);
    serializers::save_safetensors(path_of("a"), net, {.names = names});
    auto theirs = serializers::load_safetensors(path),
         ours = serializers::load_safetensors(path_of("a"));
    ASSERT_EQ(ours.size(), theirs.size());
    for (const auto& [name, array] : theirs) EXPECT_EQ(ours.at(name).str(), array.str()) << name;
  }
  L::ResNetLayers other = narrow({});
  EXPECT_THAT(testing::thrown<SerializationError>(
                  [&] { serializers::load_safetensors(path, other, {.names = names}); }),
              HasSubstr("it lacks [conv1.bias]"));
}

TEST_F(SafetensorsTest, ReadsAPublishedGPT2) {
  UsingConfig<bool> off(&Config::train, false);
  Array want = recorded("GPT2 narrow|y,scores");
  for (Device device : testing::test_devices()) {
    L::GPT2 net({.vocab_size = 11, .n_positions = 7, .n_embd = 8, .n_layer = 2, .n_head = 2});
    net.to(device);
    serializers::load_safetensors(testing::data_file("gpt2.safetensors"), net,
                                  {.path = "transformer", .names = serializers::gpt2_names()});
    Array tokens = (testing::drawn("x", {2, 5}) * 11.0).astype(int32).to(device);
    expect_scores(net(constant(tokens)), want);
  }
}

TEST_F(SafetensorsTest, ChainersFileOfAResNet) {
  UsingConfig<bool> off(&Config::train, false);
  std::string path = testing::data_file("chainer_resnet.npz");
  for (Device device : testing::test_devices()) {
    L::ResNetLayers net = narrow({});
    net.to(device);
    serializers::load_npz(path, net, {.path = "model"});
    expect_scores(net(images(device)), xp::load_npz(path)["y"]);
  }
}

TEST(Naming, OfPyTorchAndItsNetworks) {
  using serializers::pytorch_name;
  EXPECT_EQ(pytorch_name("l1/W"), "l1.weight");
  EXPECT_EQ(pytorch_name("W"), "weight");
  EXPECT_EQ(pytorch_name("h/0/ln_1/beta"), "h.0.ln_1.bias");
  EXPECT_EQ(pytorch_name("a/scale"), "a.scale");
  EXPECT_EQ(pytorch_name("h/attn/in_proj/W"), "h.attn.in_proj_weight");
  EXPECT_EQ(pytorch_name("in_proj/b"), "in_proj_bias");
  EXPECT_EQ(pytorch_name("main_proj/b"), "main_proj.bias");
  auto resnet = serializers::torchvision_resnet_names().name;
  EXPECT_EQ(resnet("res4/b12/bn3/avg_var").name, "layer3.12.bn3.running_var");
  EXPECT_EQ(resnet("res3/a/conv4/W").name, "layer2.0.downsample.0.weight");
  EXPECT_EQ(resnet("fc6/b").name, "fc.bias");
  EXPECT_EQ(resnet("residual/W").name, "residual.weight");
  EXPECT_EQ(resnet("res2/of/W").name, "res2.of.weight");
  EXPECT_EQ(serializers::torchvision_vgg_names(19).name("conv5_4/b").name, "features.34.bias");
  EXPECT_THROW(serializers::torchvision_vgg_names(11), ValueError);
}

}  // namespace
}  // namespace rensa

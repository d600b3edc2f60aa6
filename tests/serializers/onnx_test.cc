// Models through ONNX files, and files that are not what they should be.
// tests/answers/check_onnx.py holds the same files against onnxruntime.
#include "rensa/serializers/onnx.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rensa/array/common_ufuncs.h"
#include "rensa/array/creation.h"
#include "rensa/array/io.h"
#include "rensa/array/routines.h"
#include "rensa/core/environment.h"
#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "rensa/links/links.h"
#include "rensa/serializers/onnx_graph.h"
#include "rensa/serializers/protobuf.h"
#include "tests/links/models/drawn.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using serializers::OnnxFunction;
using ::testing::HasSubstr;

struct MLP : Chain<MLP> {
  L::Linear l1{6, 5}, l2{5, 4}, l3{4, 3};
  void members(Visitor& v) override { v("l1", l1), v("l2", l2), v("l3", l3); }
  Variable operator()(const Variable& x) const { return l3(F::tanh(l2(F::relu(l1(x))))); }
};

/// Gives parameters and floating persistents numbers that their names make.
class Fill final : public PathVisitor {
 public:
  void parameter(std::string_view name, Parameter& p) override {
    p.array().assign(testing::drawn_value(path(name), p.shape()).astype(p.dtype()));
  }
  void persistent(std::string_view name, Persistent& p) override {
    if (dtype_kind(p.dtype()) != 'f') return;
    static_cast<Array&>(p).assign(testing::drawn_value(path(name), p.shape()).astype(p.dtype()));
  }
};

struct Net {
  const char* name;
  std::function<std::shared_ptr<Link>()> make;
  Shape x;
  std::int64_t tokens = 0;  // as many kinds of them; 0: x is floating
};

template <class T, class... Args> auto making(const Args&... args) {
  return [args...]() -> std::shared_ptr<Link> { return std::make_shared<T>(args...); };
}

std::vector<Net> nets() {
  L::ResNetOptions resnet = L::ResNetOptions::torchvision();
  resnet.width = 4, resnet.classes = 10;
  L::VGGOptions vgg{
      .batch_norm = true, .classes = 10, .hidden = {12}, .image_size = 32, .width = 4};
  L::GPT2Options gpt2{.vocab_size = 23, .n_positions = 9, .n_embd = 8, .n_layer = 2, .n_head = 2};
  return {
      {"mlp", making<MLP>(), {2, 6}},
      {"alexnet",
       making<L::AlexNet>(L::AlexNetOptions{.classes = 10, .hidden = 16, .width = 12}),
       {2, 3, 67, 67}},
      {"nin", making<L::NIN>(L::NINOptions{.classes = 10}), {2, 3, 67, 67}},
      {"vgg16", making<L::VGG16Layers>(vgg), {2, 3, 32, 32}},
      {"googlenet", making<L::GoogLeNet>(L::GoogLeNetOptions{.classes = 10}), {2, 3, 224, 224}},
      {"resnet18", making<L::ResNet18Layers>(resnet), {2, 3, 64, 64}},
      {"resnet50",
       making<L::ResNet50Layers>(L::ResNetOptions{.classes = 10, .width = 4}),
       {2, 3, 64, 64}},
      {"gpt2", making<L::GPT2>(gpt2), {2, 7}, 23},
  };
}

Array example(const Net& net, const Shape& shape) {
  Array u = testing::drawn(net.name, shape);
  if (net.tokens == 0) return (u * 2.0 - 1.0).astype(float32);
  return (u * static_cast<double>(net.tokens)).astype(int64);
}

double farthest(const Variable& a, const Variable& b) {
  EXPECT_EQ(a.shape(), b.shape());
  return xp::absolute(a.array().astype(float64) - b.array().astype(float64)).max().item<double>();
}

class OnnxTest : public ::testing::Test {
 protected:
  /// Where check_onnx.py wants the files, else a folder that goes with the test.
  std::string path_of(const std::string& name) const {
    auto kept = environment::text("RENSA_TEST_ONNX_FOLDER");
    return kept ? *kept + "/" + name : folder_ / name;
  }
  std::string load_error(const std::string& content) const {
    detail::write_whole_file(folder_ / "bad.onnx", content);
    return testing::message_of<Error>([&] { serializers::load_onnx(folder_ / "bad.onnx"); });
  }
  testing::TemporaryFolder folder_;
};

TEST_F(OnnxTest, NetworksComeBackAsTheyWere) {
  UsingConfig infer(&Config::train, false);
  for (const Net& net : nets()) {
    SCOPED_TRACE(net.name);
    auto link = net.make();
    const Link& model = *link;
    Array x = example(net, net.x);
    (void)model.invoke({x});
    Fill fill;
    link->members(fill);
    std::string path = path_of(std::string(net.name) + ".onnx");
    serializers::export_onnx(path, model, {x},
                             {.input_names = {"x"}, .output_names = {"y"}, .dynamic_batch = true});
    auto loaded = serializers::load_onnx(path);
    EXPECT_EQ(loaded.input_names(), std::vector<std::string>{"x"});
    EXPECT_EQ(loaded.output_names(), std::vector<std::string>{"y"});
    for (std::int64_t batch : {2, 1, 3}) {
      Shape shape = net.x;
      shape[0] = batch;
      Array given = example(net, shape);
      Variable y = model.invoke({given});
      EXPECT_LE(farthest(loaded(given), y), 1e-5 * std::max(1.0, farthest(y, y * 0.0))) << batch;
      std::string stem = path_of(std::string(net.name) + std::to_string(batch));
      xp::save(stem + "_x.npy", given), xp::save(stem + "_y.npy", y.array());
    }
  }
}

TEST_F(OnnxTest, ParametersHaveTheirNamesAndCanBeTrained) {
  MLP model;
  Variable x(xp::ones({2, 6}, float32));
  serializers::export_onnx(folder_ / "a.onnx", model, {x});
  auto loaded = serializers::load_onnx(folder_ / "a.onnx");
  std::vector<std::string> names;
  for (const auto& [name, parameter] : loaded.parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"l1.W", "l1.b", "l2.W", "l2.b", "l3.W", "l3.b"}));
  EXPECT_EQ(loaded.count_params(), model.count_params());
  F::sum(loaded(x)).backward(), F::sum(model(x)).backward();
  EXPECT_EQ(farthest(loaded.parameters().at("l1.W").grad(), model.l1.W.grad()), 0);
  auto copy = loaded.copy(CopyMode::copy);
  copy.parameters().at("l1.W").array().fill(0);
  EXPECT_NE(loaded.parameters().at("l1.W").array().max().item<float>(), 0);
  EXPECT_THROW(loaded(Variable(xp::ones({2, 5}, float32))), ShapeError);
  EXPECT_THROW(loaded(Variable(xp::ones({3, 6}, float32))), ShapeError) << "no dynamic_batch";
  EXPECT_THROW(loaded(Variable(xp::ones({2, 6}, float64))), DtypeError);
  EXPECT_THROW(loaded(Variables{x, x}), ValueError);
}

/// Functions that the networks do not have, each in a way of its own.
TEST_F(OnnxTest, FunctionsComeBackAsTheyWere) {
  using V = const Variable&;
  const std::map<std::string, std::function<Variable(V)>> functions = {
      {"numbers_first", [](V x) { return 2.0 - 1.0 / (x * x + 1.5); }},
      {"numbers_last", [](V x) { return (x + 3.0) / 4.0 - 0.25; }},
      {"between", [](V x) { return F::maximum(F::minimum(x, -x), F::sin(x) * F::cos(x)); }},
      {"pow", [](V x) { return F::sqrt(F::pow(F::absolute(x) + 1.0, 1.5)); }},
      {"logs", [](V x) { return F::log_softmax(x, 2) - F::log(F::exp(x) + 1.0); }},
      {"activations",
       [](V x) { return F::silu(x) + F::gelu(x) + F::elu(x, 0.5) + F::leaky_relu(x, 0.3); }},
      {"sigmoid", [](V x) { return F::sigmoid(x) * F::erf(x); }},
      {"matmul", [](V x) { return F::matmul(x, x, true, false); }},
      {"matmul_trans", [](V x) { return F::matmul(x, x, false, true); }},
      {"slices",
       [](V x) {
         return x[{Slice(), Slice(none, none, -2), Slice(1, 3)}];
       }},
      {"split",
       [](V x) {
         Variables parts = F::split_axis(x, 2, 2);
         return F::concat({parts[1], F::broadcast_to(parts[0], parts[0].shape())}, 1);
       }},
      {"cast", [](V x) { return F::cast(F::cast(x, float64) * 2.0, float32); }},
  };
  Array x = testing::drawn("x", {2, 3, 4}).astype(float32) * 4.0 - 2.0;
  for (const auto& [name, function] : functions) {
    SCOPED_TRACE(name);
    std::string path = path_of("function_" + name + ".onnx");
    auto call = [&](const Variables& given) { return Variables{function(given[0])}; };
    serializers::export_onnx(path, call, Members(MLP()), {x}, {.opset = 21});
    Variable y = function(x);
    EXPECT_LE(farthest(serializers::load_onnx(path)(x), y), 1e-6);
    xp::save(path_of("function_" + name + "2_x.npy"), x);
    xp::save(path_of("function_" + name + "2_y.npy"), y.array());
  }
}

TEST_F(OnnxTest, DtypesComeBackAsTheyWere) {
  for (Dtype dtype : {float16, bfloat16, float64}) {
    std::string stem = path_of("dtype_" + std::string(dtype_name(dtype)) + "_");
    UsingConfig made(&Config::dtype, DefaultDtype(dtype));
    MLP model;
    Array x = testing::drawn("x", {2, 6}).astype(dtype);
    serializers::export_onnx(stem + ".onnx", model, {x});
    auto loaded = serializers::load_onnx(stem + ".onnx");
    EXPECT_EQ(loaded(x).dtype(), dtype);
    EXPECT_EQ(farthest(loaded(x), model(x)), 0);
    if (dtype == bfloat16) continue;  // NumPy has none
    xp::save(stem + "2_x.npy", x), xp::save(stem + "2_y.npy", model(x).array());
  }
}

TEST_F(OnnxTest, WhatHasNoCounterpartIsRefused) {
  struct Row {
    const char* name;
    std::function<Variable(const Variable&)> function;
    const char* text;
  };
  const Row rows[] = {
      {"no emitter", [](const Variable& x) { return F::relu(F::cumsum(x, 0)); },
       "function 1 of the model, \"cumsum\", in front of all parameters"},
      {"values", [](const Variable& x) { return x * F::floor(x); }, "depends on the examples'"},
      {"unused", [](const Variable& x) { return constant(x.array() * 2.0); }, "\"input0\""},
      {"numbers",
       [](const Variable& x) {
         return x * x.array()[{0, 0}].item<double>();
       },
       "depends on the examples'"},
  };
  Variable x(testing::drawn("x", {3, 2}).astype(float32) * 4.0);
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    auto call = [&](const Variables& given) { return Variables{row.function(given[0])}; };
    EXPECT_THAT(testing::thrown<NotImplementedError>([&] {
                  serializers::export_onnx(folder_ / "a.onnx", call, Members(MLP()), {x});
                }),
                HasSubstr(row.text));
  }
}

TEST_F(OnnxTest, OptionsAreChecked) {
  MLP model;
  Variable x(xp::ones({2, 6}, float32));
  std::string path = folder_ / "a.onnx";
  EXPECT_THROW(serializers::export_onnx(path, model, {x}, {.opset = 16}), ValueError);
  EXPECT_THROW(serializers::export_onnx(path, model, {x}, {.opset = 22}), ValueError);
  EXPECT_THROW(serializers::export_onnx(path, model, {x}, {.input_names = {"a", "b"}}), ValueError);
  EXPECT_THROW(serializers::export_onnx(path, model, {x}, {.output_names = {"l1.W"}}), ValueError);
  EXPECT_THROW(serializers::export_onnx(path, model, {Variable(xp::ones({0, 6}, float32))}),
               ValueError);
}

/// A graph of one node that is right but for what `change` does to it.
std::string file_with(const std::function<void(serializers::OnnxGraph&)>& change) {
  serializers::OnnxGraph graph;
  graph.inputs = {{"x", float32, {std::int64_t{2}}}};
  graph.outputs = {{"y", float32, {std::int64_t{2}}}};
  graph.nodes = {{"Relu", "node", {"x"}, {"y"}}};
  change(graph);
  return encode_onnx(graph);
}

TEST_F(OnnxTest, OtherFilesAreRefused) {
  using Graph = serializers::OnnxGraph;
  struct Row {
    const char* name;
    std::function<void(Graph&)> change;
    const char* text;
  };
  const Row rows[] = {
      {"right", [](Graph&) {}, testing::kNothingThrown},
      {"operator", [](Graph& g) { g.nodes[0].op = "Einsum"; }, "node \"node\" (Einsum)"},
      {"old opset", [](Graph& g) { g.opset = 16; }, "opset 16"},
      {"new opset", [](Graph& g) { g.opset = 22; }, "opset 22"},
      {"attribute", [](Graph& g) { g.nodes[0].attributes["to"] = std::int64_t{1}; }, "\"to\""},
      {"type of an attribute",
       [](Graph& g) { g.nodes[0].op = "Softmax", g.nodes[0].attributes["axis"] = 1.0f; },
       "of another type"},
      {"unknown name", [](Graph& g) { g.nodes[0].inputs = {"z"}; }, "\"z\""},
      {"name given twice", [](Graph& g) { g.nodes[0].outputs = {"x"}; }, "\"x\""},
      {"output that nobody gives", [](Graph& g) { g.outputs[0].name = "w"; }, "\"w\""},
      {"number of inputs",
       [](Graph& g) {
         g.nodes[0].inputs = {"x", "x"};
       },
       "2 inputs"},
      {"shape that is computed",
       [](Graph& g) {
         g.nodes[0].op = "Reshape", g.nodes[0].inputs = {"x", "x"};
       },
       "constant"},
      {"pads",
       [](Graph& g) {
         g.nodes[0].op = "MaxPool";
         g.nodes[0].attributes["kernel_shape"] = std::vector<std::int64_t>{2};
         g.nodes[0].attributes["pads"] = std::vector<std::int64_t>{1};
       },
       "do not fit"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_THAT(load_error(file_with(row.change)), HasSubstr(row.text));
  }
}

/// Cut off anywhere, and with any byte another one, a file is refused or read, and nothing else.
TEST_F(OnnxTest, DamagedFilesDoNoHarm) {
  MLP model;
  serializers::export_onnx(folder_ / "a.onnx", model, {Variable(xp::ones({2, 6}, float32))});
  std::string whole = detail::read_whole_file(folder_ / "a.onnx");
  for (std::size_t size = 0; size < whole.size(); size += size < 200 ? 1 : 37) {
    EXPECT_NE(load_error(whole.substr(0, size)), testing::kNothingThrown) << size;
  }
  for (std::size_t at = 0; at < whole.size(); at += at < 300 ? 1 : 29) {
    for (int bit : {0, 3, 7}) {
      std::string bad = whole;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      (void)load_error(bad);
    }
  }
}

TEST(ProtobufTest, WhatIsCutOffOrUnknownIsRefused) {
  using serializers::ProtobufField, serializers::ProtobufReader;
  struct Row {
    const char* name;
    std::string message;
    const char* text;
  };
  using namespace std::string_literals;
  const Row rows[] = {
      {"right", "\x08\x96\x01"s, testing::kNothingThrown},
      {"number cut off", "\x08\x96"s, "within a number"},
      {"number too long", "\x08"s + std::string(10, '\xFF'), "more than ten"},
      {"bytes cut off",
       "\x0A\x05"
       "abcd"s,
       "longer than the message"},
      {"length of 2^63", "\x0A"s + std::string(9, '\x80') + "\x01", "longer than the message"},
      {"fixed number cut off", "\x0D\x01\x02\x03"s, "longer than the message"},
      {"field 0", "\x00\x01"s, "no number"},
      {"group", "\x0B\x01"s, "wire type"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_THAT(testing::message_of<SerializationError>([&] {
                  ProtobufReader reader(row.message, "file");
                  for (ProtobufField field; reader.next(field);) {}
                }),
                HasSubstr(row.text));
  }
}

TEST(ProtobufTest, NumbersComeBack) {
  for (std::int64_t number : {std::int64_t{0}, std::int64_t{-1}, INT64_MIN, INT64_MAX}) {
    serializers::ProtobufWriter writer;
    writer.integer(5, number), writer.real(7, 0.5f), writer.bytes(300, "text");
    serializers::ProtobufReader reader(writer.text(), "file");
    serializers::ProtobufField field;
    ASSERT_TRUE(reader.next(field));
    EXPECT_EQ(field.number(), 5);
    EXPECT_EQ(field.integer(), number);
    EXPECT_THROW(field.bytes(), SerializationError);
    ASSERT_TRUE(reader.next(field));
    EXPECT_EQ(field.real(), 0.5f);
    ASSERT_TRUE(reader.next(field));
    EXPECT_EQ(field.number(), 300);
    EXPECT_EQ(field.bytes(), "text");
    EXPECT_FALSE(reader.next(field));
  }
}

}  // namespace
}  // namespace rensa

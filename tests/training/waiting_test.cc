// docs/waiting.md: every row of its table of networks.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>

#include "rensa/array/random_basics.h"
#include "rensa/autograd/computational_graph.h"
#include "rensa/autograd/function_hooks.h"
#include "rensa/data/data.h"
#include "rensa/functions/functions.h"
#include "rensa/links/links.h"
#include "rensa/links/summary.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "rensa/serializers/onnx.h"
#include "rensa/serializers/safetensors.h"
#include "rensa/training/training.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa::training {
namespace {

/// The second table's first two columns.
std::map<std::string, bool> documented() {
  std::ifstream page(testing::data_file("waiting.md"));
  std::map<std::string, bool> rows;
  bool here = false;
  for (std::string line; std::getline(page, line);) {
    here = here || line == "## Networks";
    if (!here || line.rfind("| `", 0) != 0) continue;
    auto end = line.find("` |", 3);
    rows[line.substr(3, end - 3)] = line.compare(end + 4, 3, "yes") == 0;
  }
  return rows;
}

/// A model in training, after two iterations.
struct Things {
  Device device;
  testing::TemporaryFolder folder;
  L::Classifier<L::Linear> model{L::Linear(10)};
  optimizers::Adam optimizer;
  Variable x, t;
  datasets::TrainTest data = datasets::get_synthetic_digits(40, 10, 3);
  std::unique_ptr<Trainer> trainer;
  std::string path, tensors;

  explicit Things(Device on)
      : device(on), path(folder / "a.npz"), tensors(folder / "b.safetensors") {
    model.to(device);
    optimizer.setup(model).use_fp32_update().loss_scaling();
    optimizer.add_hook(optimizer_hooks::GradientClipping(1));
    iterators::SerialIterator train(data.train, 10), test(data.test, 10, {.repeat = false});
    trainer = std::make_unique<Trainer>(StandardUpdater(train, optimizer, {.device = device}),
                                        Trigger(2, "iteration"), folder / "out");
    trainer->extend(extensions::Evaluator(test, model));
    trainer->extend(extensions::LogReport({.trigger = {1, "iteration"}}));
    trainer->run();
    x = constant(xp::random::normal(0, 1, model.predictor.W.shape(), float32, device));
    t = constant(xp::zeros({10}, int32, device));
    serializers::save_npz(path, model);
    serializers::save_safetensors(tensors, model);
    serializers::export_onnx(folder / "c.onnx", model.predictor, {x});
  }
};

using Call = std::function<void(Things&)>;

std::map<std::string, Call> calls() {
  return {
      {"model(x)", [](Things& a) { (void)a.model(a.x, a.t); }},
      {"loss.backward()", [](Things& a) { a.model(a.x, a.t).backward(); }},
      {"F::classification_summary(y, t)",
       [](Things& a) { (void)F::classification_summary(a.model.predictor(a.x), a.t); }},
      {"F::classification_summary(y, t, 10)",
       [](Things& a) { (void)F::classification_summary(a.model.predictor(a.x), a.t, 10); }},
      {"F::to_coo(x)", [](Things& a) { (void)F::to_coo(a.x.array()); }},
      {"F::sparse_matmul(F::CooMatrix(data, row, col, 10, 10), x)",
       [](Things& a) {
         F::CooMatrix matrix(xp::ones({10}, float32, a.device), a.t.array(), a.t.array(), 10, 10);
         (void)F::sparse_matmul(matrix, constant(a.x.array()));
       }},
      {"x[rows]",
       [](Things& a) {
         Variable x(a.x.array());
         F::sum(F::topk(x[a.t.array()], 3).first).backward();
       }},
      {"x[mask]", [](Things& a) { (void)a.x[xp::ones({a.x.shape(0)}, bool_, a.device)]; }},
      {"F::convolution_2d(x, W)",
       [](Things& a) {
         Variable x(a.x.array().reshape({1, 1, 10, -1})),
             W(xp::ones({2, 1, 3, 3}, float32, a.device));
         F::sum(F::convolution_2d(x, W)).backward();
       }},
      {"optimizer.update(model, x, t)",
       [](Things& a) { (void)a.optimizer.update(a.model, a.x, a.t); }},
      {"optimizer.loss_scale()", [](Things& a) { (void)a.optimizer.loss_scale(); }},
      {"updater.update()", [](Things& a) { Updater(a.trainer->updater()).update(); }},
      {"model.copy()", [](Things& a) { (void)a.model.copy(); }},
      {"model.to(cpu())", [](Things& a) { a.model.to(cpu()), a.model.to(a.device); }},
      {"L::fold_batch_normalization(model, x)",
       [](Things& a) {
         Sequential net(L::Linear(4), L::BatchNormalization(4));
         net.to(a.device);
         EXPECT_EQ(L::fold_batch_normalization(net, a.x).folded.size(), 1u);
       }},
      {"stream << model", [](Things& a) { std::ostringstream() << a.model; }},
      {"serializers::save_npz(path, model)",
       [](Things& a) { serializers::save_npz(a.path, a.model); }},
      {"serializers::load_npz(path, model)",
       [](Things& a) { serializers::load_npz(a.path, a.model); }},
      {"serializers::save_npz(path, trainer)",
       [](Things& a) { serializers::save_npz(a.folder / "trainer.npz", *a.trainer); }},
      {"serializers::save_safetensors(path, model)",
       [](Things& a) { serializers::save_safetensors(a.folder / "a.safetensors", a.model); }},
      {"serializers::load_safetensors(path, model)",
       [](Things& a) { serializers::load_safetensors(a.tensors, a.model); }},
      {"serializers::export_onnx(path, model, {x})",
       [](Things& a) { serializers::export_onnx(a.folder / "d.onnx", a.model.predictor, {a.x}); }},
      {"serializers::load_onnx(path)",
       [](Things& a) { (void)serializers::load_onnx(a.folder / "c.onnx"); }},
      {"FunctionHookScope scope(timer)",
       [](Things& a) {
         function_hooks::TimerHook timer;
         function_hooks::MemoryProfileHook memory;
         FunctionHookScope timed(timer), profiled(memory);
         a.model(a.x, a.t).backward();
       }},
      {"timer.summary()",
       [](Things& a) {
         // Work that is not done when the summary is asked for.
         Array m = xp::ones({a.device.is_cuda() ? 4096 : 64, 64}, float32, a.device);
         Variable x = constant(xp::matmul(m, m.T()));
         function_hooks::TimerHook timer;
         FunctionHookScope timed(timer);
         for (int i = 0; i < (a.device.is_cuda() ? 20 : 1); ++i) (void)F::matmul(x, x);
         EXPECT_EQ(timer.summary().size(), 1u);
       }},
      {"summary(model, x)", [](Things& a) { (void)summary(a.model.predictor, a.x).str(); }},
      {"computational_graph::build_computational_graph({loss})",
       [](Things& a) {
         (void)computational_graph::build_computational_graph({a.model(a.x, a.t)}).dump();
       }},
      {"VariableStatisticsPlot",
       [](Things& a) {
         extensions::VariableStatisticsPlot(a.model, {.trigger = {1, "iteration"}})(*a.trainer);
       }},
      {"Evaluator", [](Things& a) { a.trainer->get_extension("validation")(*a.trainer); }},
      {"LogReport",
       [](Things& a) {
         Updater(a.trainer->updater()).update();  // its interval is an iteration
         a.trainer->observation()["main/loss"] = a.model(a.x, a.t).array();
         auto& report = dynamic_cast<extensions::LogReport&>(a.trainer->get_extension("LogReport"));
         std::size_t entries = report.log().size();
         report(*a.trainer);
         EXPECT_EQ(report.log().size(), entries + 1);
       }},
      {"TensorBoardReport",
       [](Things& a) {
         extensions::TensorBoardReport report({.trigger = {1, "iteration"}});
         report.initialize(*a.trainer);
         Updater(a.trainer->updater()).update();
         a.trainer->observation()["main/loss"] = a.model(a.x, a.t).array();
         report(*a.trainer);
       }},
      {"writer.add_histogram(\"W\", x)",
       [](Things& a) { SummaryWriter(a.folder / "runs").add_histogram("W", a.x.array()); }},
      {"writer.add_graph(graph)",
       [](Things& a) {
         SummaryWriter(a.folder / "runs")
             .add_graph(computational_graph::build_computational_graph({a.model(a.x, a.t)}));
       }},
      {"extensions::snapshot()", [](Things& a) { extensions::snapshot()(*a.trainer); }},
      {"MaxValueTrigger",
       [](Things& a) {
         triggers::MaxValueTrigger trigger("main/loss", {1, "iteration"});
         a.trainer->observation()["main/loss"] = a.model(a.x, a.t).array();
         EXPECT_TRUE(trigger(*a.trainer));
       }},
      {"FailOnNonNumber", [](Things& a) { extensions::FailOnNonNumber()(*a.trainer); }},
      {"model.to(gpu(0))",
       [](Things& a) {
         L::Linear fresh(10, 10);
         fresh.to(a.device);
       }},
  };
}

TEST(WaitingOfNetworks, EveryRowHasItsCheckAndEveryCheckItsRow) {
  std::map<std::string, bool> rows = documented();
  for (const auto& [name, waits] : rows) EXPECT_EQ(calls().count(name), 1u) << name;
  for (const auto& [name, call] : calls()) EXPECT_EQ(rows.count(name), 1u) << name;
}

TEST(WaitingOfNetworks, EachCallDoesWhatItsRowSays) {
  std::map<std::string, bool> rows = documented();
  for (Device device : testing::test_devices()) {
    for (const auto& [name, call] : calls()) {
      SCOPED_TRACE(name + " on " + device.str());
      Things things(device);
      std::int64_t before = cuda::sync_count();
      call(things);
      EXPECT_EQ(cuda::sync_count() > before, device.is_cuda() && rows.at(name));
    }
  }
}

}  // namespace
}  // namespace rensa::training

// MNIST with an updater of one's own: sharpness-aware minimization (Foret et al.,
// "Sharpness-aware minimization for efficiently improving generalization"). The gradient is taken
// a step uphill of the parameters, so that they go where the loss is low all around.
#include <iostream>

#include "net.h"
#include "options.h"

using namespace rensa;

class SharpnessAwareUpdater final : public training::UpdaterBody {
 public:
  SharpnessAwareUpdater(Iterator iterator, Optimizer optimizer, const Options& options)
      : UpdaterBody(std::move(iterator), std::move(optimizer)),
        device_(options.device()),
        capture_(options.capture) {}
  const CaptureStats& capture_stats() const { return cache_.stats(); }

 protected:
  /// One iteration. What the Trainer, its extensions and snapshots need is UpdaterBody's.
  void update_core() override {
    Columns columns = convert_(next_batch(), device_);
    auto step = [this](const Variables& in) {
      update_by(in);
      return Variables();
    };
    Variables in = {constant(columns[0]), constant(columns[1])};
    if (capture_) cache_.call(step, in);
    else step(in);
  }

 private:
  void update_by(const Variables& in) const {
    constexpr double kRadius = 0.05;
    Link& model = optimizer().target();
    model.cleargrads();
    model.invoke(in).backward();

    Array square = xp::zeros({}, float32, device_);
    for (const ParameterRef& p : model.params()) square += xp::square(p.grad()).sum();
    Array scale = kRadius / (xp::sqrt(square) + 1e-12);
    std::vector<Array> before;
    for (const ParameterRef& p : model.params()) {
      before.push_back(p.array().copy());
      p.array() += scale.astype(p.dtype()) * p.grad();
    }
    model.cleargrads();
    optimizer().backward(model.invoke(in));
    auto there = before.begin();
    for (const ParameterRef& p : model.params()) xp::copyto(p.array(), *there++);
    optimizer().update();
  }

  Device device_;
  bool capture_;
  Converter convert_;
  CaptureCache cache_;
};

static void train(const Options& options, const datasets::TrainTest& data) {
  Device device = options.device();
  auto model = L::Classifier(MLP(options.unit, 10));
  model.to_device(device);
  Optimizer optimizer = make_optimizer(options.optimizer);
  options.setup(optimizer, model);

  iterators::SerialIterator train_iter(data.train, options.batchsize);
  iterators::SerialIterator test_iter(data.test, options.batchsize,
                                      {.repeat = false, .shuffle = false});
  auto updater = std::make_shared<SharpnessAwareUpdater>(train_iter, optimizer, options);
  training::Trainer trainer(training::Updater(updater), options.stop(), options.out);
  trainer.extend(extensions::Evaluator(test_iter, model, device));
  trainer.extend(extensions::LogReport());
  trainer.extend(
      extensions::PrintReport({"epoch", "main/loss", "validation/main/loss", "main/accuracy",
                               "validation/main/accuracy", "elapsed_time"}));
  options.extend(trainer);
  trainer.run();
  options.print_replays(updater->capture_stats());
}

int main(int argc, char** argv) {
  return run_example(argc, argv,
                     {.description = "Trains a network on MNIST by an updater of its own"}, train);
}

// MNIST with the Trainer.
#include <iostream>

#include "net.h"
#include "options.h"

using namespace rensa;

static int train(const Options& options, const std::vector<Device>& devices,
                 const datasets::TrainTest& data) {
  Device device = devices[0];
  auto model = L::Classifier(MLP(options.unit, 10));
  model.to_device(device);
  Optimizer optimizer = make_optimizer(options.optimizer);
  optimizer.setup(model);

  iterators::SerialIterator train_iter(data.train, options.batchsize);
  iterators::SerialIterator test_iter(data.test, options.batchsize,
                                      {.repeat = false, .shuffle = false});
  training::StandardUpdater updater(train_iter, optimizer,
                                    {.device = device, .capture = options.capture});
  training::Trainer trainer(updater, {options.epoch, "epoch"}, options.out);
  trainer.extend(extensions::Evaluator(test_iter, model, device));
  trainer.extend(extensions::LogReport());
  trainer.extend(
      extensions::PrintReport({"epoch", "main/loss", "validation/main/loss", "main/accuracy",
                               "validation/main/accuracy", "elapsed_time"}));
  trainer.extend(extensions::PlotReport({"main/loss", "validation/main/loss"},
                                        {.x_key = "epoch", .filename = "loss.png"}));
  trainer.extend(extensions::PlotReport({"main/accuracy", "validation/main/accuracy"},
                                        {.x_key = "epoch", .filename = "accuracy.png"}));
  trainer.extend(extensions::ProgressBar());
  if (options.resume) {
    trainer.extend(extensions::snapshot({.writer = extensions::snapshot_writers::ThreadWriter(),
                                         .n_retains = 2,
                                         .autoload = true}));
  }
  trainer.run();
  serializers::save_npz(options.out + "/model.npz", model);
  if (options.capture) {
    const CaptureStats& stats = updater.capture_stats();
    std::cout << "captured: " << stats.recordings << " recordings, " << stats.replays
              << " replays, " << stats.fallbacks << " fallbacks" << std::endl;
  }
  return 0;
}

int main(int argc, char** argv) {
  return run_example(argc, argv,
                     {.description = "Trains a network on MNIST", .capture = true, .resume = true},
                     train);
}

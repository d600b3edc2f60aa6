// MNIST with the Trainer.
#include <iostream>

#include "net.h"
#include "options.h"

using namespace rensa;

static void train(const Options& options, const datasets::TrainTest& data) {
  Device device = options.device();
  auto model = L::Classifier(MLP(options.unit, 10));
  model.to_device(device);
  Optimizer optimizer = make_optimizer(options.optimizer);
  options.setup(optimizer, model);

  iterators::SerialIterator train_iter(data.train, options.batchsize);
  iterators::SerialIterator test_iter(data.test, options.batchsize,
                                      {.repeat = false, .shuffle = false});
  training::StandardUpdater updater(train_iter, optimizer,
                                    {.device = device, .capture = options.capture});
  training::Trainer trainer(updater, options.stop(), options.out);
  trainer.extend(extensions::Evaluator(test_iter, model, device));
  trainer.extend(extensions::LogReport());
  trainer.extend(
      extensions::PrintReport({"epoch", "main/loss", "validation/main/loss", "main/accuracy",
                               "validation/main/accuracy", "elapsed_time"}));
  trainer.extend(extensions::PlotReport({"main/loss", "validation/main/loss"},
                                        {.x_key = "epoch", .filename = "loss.png"}));
  trainer.extend(extensions::PlotReport({"main/accuracy", "validation/main/accuracy"},
                                        {.x_key = "epoch", .filename = "accuracy.png"}));
  options.extend(trainer);
  trainer.run();
  serializers::save_npz(options.out + "/model.npz", model);
  options.print_replays(updater.capture_stats());
}

int main(int argc, char** argv) {
  return run_example(argc, argv, {.description = "Trains a network on MNIST"}, train);
}

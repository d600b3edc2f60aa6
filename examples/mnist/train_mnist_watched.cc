// MNIST, watched: curves as pictures, the parameters' statistics, TensorBoard, the GPU.
#include "net.h"
#include "options.h"

using namespace rensa;

static void train(const Options& options, const datasets::TrainTest& data) {
  Device device = options.device();
  auto model = L::Classifier(MLP(options.unit, 10));
  model.to_device(device);
  Optimizer optimizer = make_optimizer(options.optimizer);
  options.setup(optimizer, model);

  iterators::MultithreadIterator train_iter(data.train, options.batchsize);
  iterators::SerialIterator test_iter(data.test, options.batchsize,
                                      {.repeat = false, .shuffle = false});
  training::Trigger stop = triggers::EarlyStoppingTrigger(
      {.monitor = "validation/main/loss", .patience = 5, .max_trigger = options.stop()});
  training::StandardUpdater updater(train_iter, optimizer,
                                    {.device = device, .capture = options.capture});
  training::Trainer trainer(updater, stop, options.out);

  // What is observed beside the loss and the accuracy that the model reports.
  trainer.extend(extensions::Evaluator(test_iter, model, device));
  trainer.extend(extensions::observe_lr());
  trainer.extend(extensions::FailOnNonNumber());
  if (device.is_cuda()) trainer.extend(extensions::GpuMonitor());

  // Where it can be seen: a log, a table, pictures, TensorBoard.
  trainer.extend(extensions::LogReport());
  trainer.extend(extensions::PrintReport(
      {"epoch", "main/loss", "validation/main/loss", "validation/main/accuracy", "elapsed_time"}));
  trainer.extend(extensions::PlotReport({"main/loss", "validation/main/loss"},
                                        {.x_key = "epoch", .filename = "loss.png"}));
  trainer.extend(extensions::PlotReport({"main/accuracy", "validation/main/accuracy"},
                                        {.x_key = "epoch", .filename = "accuracy.png"}));
  trainer.extend(extensions::VariableStatisticsPlot(model));
  if (device.is_cuda()) {
    trainer.extend(extensions::PlotReport({"gpu0/utilization", "gpu0/memory_utilization"},
                                          {.x_key = "epoch", .filename = "gpu.png"}));
  }
  trainer.extend(extensions::TensorBoardReport({.histogram_trigger = {1, "epoch"}}));
  options.extend(trainer);
  trainer.run();
}

int main(int argc, char** argv) {
  return run_example(
      argc, argv,
      {.description = "Trains a network on MNIST until it learns no more, and draws it"}, train);
}

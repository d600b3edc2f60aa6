// MNIST with one network that lies on two devices.
#include "net.h"
#include "options.h"

using namespace rensa;

/// Two halves, one per device, that exchange what they have in the middle.
struct ParallelMLP : Chain<ParallelMLP> {
  Device device0, device1;
  MLP mlp1_gpu0, mlp1_gpu1, mlp2_gpu0, mlp2_gpu1;
  ParallelMLP(std::int64_t units, std::int64_t out, Device d0, Device d1)
      : device0(d0),
        device1(d1),
        mlp1_gpu0(units, units * 2),
        mlp1_gpu1(units, units * 2),
        mlp2_gpu0(units, out),
        mlp2_gpu1(units, out) {
    mlp1_gpu0.to_device(d0);
    mlp1_gpu1.to_device(d1);
    mlp2_gpu0.to_device(d0);
    mlp2_gpu1.to_device(d1);
  }
  void members(Visitor& v) override {
    v("mlp1_gpu0", mlp1_gpu0);
    v("mlp1_gpu1", mlp1_gpu1);
    v("mlp2_gpu0", mlp2_gpu0);
    v("mlp2_gpu1", mlp2_gpu1);
  }
  Variable operator()(const Variable& x) const {  // x is on device0
    auto z0 = mlp1_gpu0(x), z1 = mlp1_gpu1(F::copy(x, device1));
    auto h0 = F::relu(z0 + F::copy(z1, device0)), h1 = F::relu(z1 + F::copy(z0, device1));
    return mlp2_gpu0(h0) + F::copy(mlp2_gpu1(h1), device0);
  }
};

static void train(const Options& options, const datasets::TrainTest& data) {
  auto model = L::Classifier(ParallelMLP(options.unit, 10, options.devices[0], options.devices[1]));
  Optimizer optimizer = make_optimizer(options.optimizer);
  options.setup(optimizer, model);

  iterators::SerialIterator train_iter(data.train, options.batchsize);
  iterators::SerialIterator test_iter(data.test, options.batchsize,
                                      {.repeat = false, .shuffle = false});
  training::StandardUpdater updater(train_iter, optimizer, {.input_device = options.devices[0]});
  training::Trainer trainer(updater, options.stop(), options.out);
  trainer.extend(extensions::Evaluator(test_iter, model, options.devices[0]));
  trainer.extend(extensions::LogReport());
  trainer.extend(
      extensions::PrintReport({"epoch", "main/loss", "validation/main/loss", "main/accuracy",
                               "validation/main/accuracy", "elapsed_time"}));
  options.extend(trainer);
  trainer.run();
}

int main(int argc, char** argv) {
  return run_example(argc, argv,
                     {.description = "Trains a network on MNIST that lies on two devices",
                      .num_gpus = 2,
                      .capture = false},
                     train);
}

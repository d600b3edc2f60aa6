// MNIST with several processes, each with a replica of the network and a part of the data:
//   rensa-run -n 2 train_mnist_multi_process                a GPU for each
//   rensa-run -n 2 train_mnist_multi_process --device cpu
#include "net.h"
#include "options.h"

using namespace rensa;

static void train(const Options& options, const datasets::TrainTest& data) {
  Communicator comm = create_communicator();
  Device device = options.device().is_cpu() ? cpu() : gpu(comm.local_rank());
  comm = comm.on(device);  // gradients go from GPU to GPU
  auto model = L::Classifier(MLP(options.unit, 10));
  model.to_device(device);
  Optimizer optimizer = make_optimizer(options.optimizer);
  options.setup(optimizer, model);
  create_multi_node_optimizer(optimizer, comm);  // updates by the means of all gradients

  auto train_part = datasets::scatter_dataset(data.train, comm, {.shuffle = true, .seed = 1});
  auto test_part = datasets::scatter_dataset(data.test, comm);
  iterators::SerialIterator train_iter(train_part, options.batchsize);
  iterators::SerialIterator test_iter(test_part, options.batchsize,
                                      {.repeat = false, .shuffle = false});
  training::StandardUpdater updater(train_iter, optimizer, {.device = device});
  training::Trainer trainer(updater, options.stop(), options.out);
  trainer.extend(
      extensions::MultiNodeEvaluator(extensions::Evaluator(test_iter, model, device), comm));
  if (comm.rank() == 0) {  // one of them tells and writes
    trainer.extend(extensions::LogReport());
    trainer.extend(
        extensions::PrintReport({"epoch", "main/loss", "validation/main/loss", "main/accuracy",
                                 "validation/main/accuracy", "elapsed_time"}));
  }
  if (options.resume) {
    trainer.extend(extensions::multi_node_snapshot(comm, {.n_retains = 2, .autoload = true}));
  }
  trainer.run();
  if (comm.rank() == 0) serializers::save_npz(options.out + "/model.npz", model);
}

int main(int argc, char** argv) {
  return run_example(
      argc, argv,
      {.description = "Trains a network on MNIST with several processes", .capture = false}, train);
}

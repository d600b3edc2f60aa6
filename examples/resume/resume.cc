// A run that can be stopped at any time: each epoch ends with a snapshot, as does Ctrl-C, and the
// program goes on from the latest one.
#include <rensa/rensa.h>

#include <iostream>
#include <optional>

#include "arguments.h"

using namespace rensa;

/// An extension of one's own that keeps something: the best accuracy so far.
struct Best {
  std::optional<double> accuracy;
  void operator()(training::Trainer& trainer) {
    double now = trainer.observation().at("validation/main/accuracy").item<double>();
    if (!accuracy || now > *accuracy) accuracy = now;
    std::cout << "best accuracy so far: " << *accuracy << std::endl;
  }
  void members(Visitor& v) { v("accuracy", accuracy); }
};

int main(int argc, char** argv) {
  std::int64_t epochs = 5;
  std::string folder = "resume_result";
  Arguments arguments("Trains on generated digits, and goes on where an earlier run ended.");
  arguments.number("epochs", &epochs, "sweeps in all").text("folder", &folder, "of the snapshot");
  Device device = arguments.parse(argc, argv)[0];

  // 1. The model, and an optimizer that is set up on it.
  auto model = L::Classifier(Sequential(L::Linear(50), F::relu, L::Linear(10)));
  model.to(device);
  optimizers::Adam optimizer;
  optimizer.setup(model);

  // 2. The trainer and all its extensions: the same ones under the same names in each run.
  auto data = datasets::get_synthetic_digits(1000, 200);
  iterators::SerialIterator train(data.train, 100), test(data.test, 100, {.repeat = false});
  training::StandardUpdater updater(train, optimizer, {.device = device});
  training::Trainer trainer(updater, {epochs, "epoch"}, folder);
  trainer.extend(extensions::Evaluator(test, model));
  trainer.extend(extensions::LogReport());
  trainer.extend(Best(), {.name = "best", .trigger = {1, "epoch"}});

  // 3. What writes a file after each epoch, and reads the latest one where there is one.
  trainer.extend(extensions::snapshot({.n_retains = 2, .autoload = true}));

  // 4. The run. After Ctrl-C or SIGTERM it has left a file, and throws.
  try {
    trainer.run();
  } catch (const training::Interrupted& interrupted) {
    std::cerr << interrupted.what() << std::endl;
    return 128 + interrupted.signal();
  }
  std::cout << "iterations in all: " << updater.iteration() << std::endl;
}

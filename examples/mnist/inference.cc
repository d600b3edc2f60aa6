// The network that train_mnist has trained, at work: it names the test digits.
#include <iostream>

#include "net.h"
#include "options.h"

using namespace rensa;

/// A row of 784 pixels in [0, 1] as text.
static std::string draw(const Array& pixels) {
  std::vector<float> ink = pixels.astype(float32).to_vector<float>();
  std::string text;
  for (std::size_t row = 0; row < 28; row += 2) {  // letters are twice as high as wide
    for (std::size_t column = 0; column < 28; ++column) {
      float grey = (ink[row * 28 + column] + ink[(row + 1) * 28 + column]) / 2;
      text += " .:-=+*#%@"[static_cast<std::size_t>(std::min(grey, 0.99f) * 10)];
    }
    text += '\n';
  }
  return text;
}

static void infer(const Options& options, const datasets::TrainTest& data) {
  MLP model(options.unit, 10);
  model.to_device(options.device());
  // The trained model is a classifier, whose predictor this is.
  serializers::load_npz(options.out + "/model.npz", model, {.path = "predictor"});

  UsingConfig not_training(&Config::train, false);
  no_backprop_mode no_graph;
  auto predict = [&](const Variable& x) { return F::softmax(model(x)); };
  auto captured = capture(predict);

  iterators::SerialIterator batches(data.test, options.batchsize,
                                    {.repeat = false, .shuffle = false});
  Converter convert;
  Array right = xp::zeros({}, int64, options.device());
  bool first = true;
  while (auto batch = batches.next()) {
    Columns columns = convert(*batch, options.device());
    Variable x = constant(columns[0]);
    Array probabilities = (options.capture ? captured(x) : predict(x)).array();
    right += xp::equal(probabilities.argmax(1), columns[1]).sum();
    for (std::int64_t i = 0; first && i < std::min<std::int64_t>(3, batch->size()); ++i) {
      auto digit = probabilities[i].argmax().item<std::int64_t>();
      std::cout << draw(columns[0][i]) << "a " << digit << ", with probability "
                << probabilities[{i, digit}].item<float>() << " (it is a "
                << columns[1][i].item<int>() << ")" << std::endl;
    }
    first = false;
  }
  std::cout << right.item<std::int64_t>() << " of " << data.test.size() << " digits are right"
            << std::endl;
  options.print_replays(captured.stats());
}

int main(int argc, char** argv) {
  return run_example(argc, argv,
                     {.description = "Names digits by the model that train_mnist has left in --out",
                      .resume = false,
                      .iterations = false,
                      .epoch = false},
                     infer);
}

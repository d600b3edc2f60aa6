// Networks and devices: a network computes where its parameters are, and training takes GPUs where
// they are wanted and there.
#include <rensa/rensa.h>

#include <algorithm>
#include <iostream>

#include "arguments.h"

using namespace rensa;

/// A trainer in the manner of the chapter: the model and each batch go to the first of its GPUs.
class GpuTrainer {
 public:
  /// No more GPUs than there are; none of them leaves everything on the CPU.
  GpuTrainer(int max_epochs, int num_gpus = 0, double gradient_clip_val = 0)
      : max_epochs_(max_epochs), gradient_clip_val_(gradient_clip_val) {
    for (int i = 0; i < std::min(num_gpus, rensa::num_gpus()); ++i) gpus_.push_back(gpu(i));
  }
  const std::vector<Device>& gpus() const { return gpus_; }
  Device device() const { return gpus_.empty() ? cpu() : gpus_[0]; }

  void prepare_model(Link& model) const { model.to(device()); }
  Columns prepare_batch(const Batch& batch) const { return convert_(batch, device()); }

  /// Trains by the mean squared error; returns that of each epoch.
  std::vector<float> fit(Sequential& model, const Dataset& data) const {
    prepare_model(model);
    optimizers::SGD optimizer(0.1);
    optimizer.setup(model);
    if (gradient_clip_val_ > 0) {
      optimizer.add_hook(optimizer_hooks::GradientClipping(gradient_clip_val_));
    }
    auto loss_of = [&](const Variable& x, const Variable& t) {
      return F::mean_squared_error(model(x), t);
    };
    iterators::SerialIterator iterator(data, 32);
    Array log = xp::zeros({max_epochs_}, float32, device());  // losses stay where they are computed
    for (int epoch = 0; epoch < max_epochs_; ++epoch) {
      int batches = 0;
      for (; iterator.epoch() == epoch; ++batches) {
        Columns columns = prepare_batch(*iterator.next());
        log[epoch] += optimizer.update(loss_of, columns[0], columns[1]).array();
      }
      log[epoch] /= batches;
    }
    return log.to_vector<float>();  // the one wait
  }

 private:
  int max_epochs_;
  double gradient_clip_val_;
  std::vector<Device> gpus_;
  Converter convert_;
};

int main(int argc, char** argv) {
  Device device = Arguments("Networks and devices").parse(argc, argv)[0];
  xp::random::seed(0);

  // The network is sent before its size is known: the parameters are made on that device.
  Sequential net(L::Linear(1));
  net.to(device);
  Array X = xp::ones({2, 3}, float32, device);
  Variable y = net(X);
  std::cout << "net(X) on " << y.device() << ":\n" << y << "\n";
  auto& layer = net[0].as<L::Linear>();
  std::cout << "net[0].W of shape " << layer.W.shape().str() << " on " << layer.W.device() << "\n";

  // Training. Without a GPU, or when none is wanted, the same lines train on the CPU.
  Array x = xp::random::normal(0, 1, {1000, 3}, float32, cpu());
  Array t = xp::matmul(x, xp::array({{2.f}, {-3.f}, {0.5f}}, cpu())) + 4;
  GpuTrainer trainer(5, device.is_cuda() ? 1 : 0, 1.0);
  std::vector<float> losses = trainer.fit(net, datasets::TupleDataset(x, t));
  std::cout << trainer.gpus().size() << " GPUs; losses of the epochs:";
  for (float loss : losses) std::cout << " " << loss;
  std::cout << "\nW is on " << layer.W.device() << ": " << layer.W << "\n";

  bool clamped = GpuTrainer(1, 100).gpus().size() == static_cast<std::size_t>(num_gpus());
  bool in_place = layer.W.device() == device && y.device() == device;
  return clamped && in_place && losses.back() < 0.1f * losses.front() ? 0 : 1;
}

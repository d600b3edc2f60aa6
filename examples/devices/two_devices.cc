// One network over two devices, in two ways: layers cut in halves that exchange what they have, and
// two whole networks whose losses are added. As in a report of 2015, and with what each way copies.
#include <rensa/rensa.h>

#include <cstdio>

#include "arguments.h"

using namespace rensa;

struct MLP : Chain<MLP> {
  L::Linear l1, l2, l3;
  MLP(std::int64_t in, std::int64_t units, std::int64_t out)
      : l1(in, units), l2(units, units), l3(units, out) {}
  void members(Visitor& v) override { v("l1", l1), v("l2", l2), v("l3", l3); }
  Variable operator()(const Variable& x) const { return l3(F::relu(l2(F::relu(l1(x))))); }
};

/// Model-parallel: halves of the layers lie on each device, and exchange what they have twice.
struct ParallelMLP : Chain<ParallelMLP> {
  Device device0, device1;
  MLP first0, first1, second0, second1;
  ParallelMLP(std::int64_t in, std::int64_t units, std::int64_t out, Device d0, Device d1)
      : device0(d0),
        device1(d1),
        first0(in, units / 2, units),
        first1(in, units / 2, units),
        second0(units, units / 2, out),
        second1(units, units / 2, out) {
    first0.to(d0), first1.to(d1), second0.to(d0), second1.to(d1);
  }
  void members(Visitor& v) override {
    v("first0", first0), v("first1", first1), v("second0", second0), v("second1", second1);
  }
  Variable operator()(const Variable& x) const {  // x is on device0
    Variable z0 = first0(x), z1 = first1(F::copy(x, device1));
    Variable h0 = z0 + F::copy(z1, device0), h1 = z1 + F::copy(z0, device1);
    Variable y0 = second0(F::relu(h0)), y1 = second1(F::relu(h1));
    return y0 + F::copy(y1, device0);
  }
};

/// A network in network: convolutions whose outputs go through small dense layers at each place.
struct NIN : Chain<NIN> {
  L::MLPConvolution2D mlpconv1, mlpconv2, mlpconv3, mlpconv4;
  Variable accuracy;
  NIN(std::int64_t w, std::int64_t classes)
      : mlpconv1(none, {w, w, w}, 11, {.stride = 4}),
        mlpconv2(none, {2 * w, 2 * w, 2 * w}, 5, {.pad = 2}),
        mlpconv3(none, {4 * w, 4 * w, 4 * w}, 3, {.pad = 1}),
        mlpconv4(none, {8 * w, 8 * w, classes}, 3, {.pad = 1}) {}
  void members(Visitor& v) override {
    v("mlpconv1", mlpconv1), v("mlpconv2", mlpconv2);
    v("mlpconv3", mlpconv3), v("mlpconv4", mlpconv4);
  }
  Variable operator()(const Variable& x, const Variable& t) {
    Variable h = F::max_pooling_2d(F::relu(mlpconv1(x)), 3, 2);
    h = F::max_pooling_2d(F::relu(mlpconv2(h)), 3, 2);
    h = F::max_pooling_2d(F::relu(mlpconv3(h)), 3, 2);
    h = F::mean(mlpconv4(F::dropout(h)), {2, 3});
    accuracy = F::accuracy(h, t);
    return F::softmax_cross_entropy(h, t);
  }
};

/// Two networks that both see the whole batch; training code takes it for one.
struct ParallelNIN : Chain<ParallelNIN> {
  static constexpr std::int64_t insize = 227;
  Device device0, device1;
  NIN first0, first1;
  Variable loss, accuracy;  // of the last call; keeping them waits for nothing
  ParallelNIN(std::int64_t width, std::int64_t classes, Device d0, Device d1)
      : device0(d0), device1(d1), first0(width, classes), first1(width, classes) {
    first0.to(d0), first1.to(d1);
  }
  void members(Visitor& v) override { v("first0", first0), v("first1", first1); }
  Variable operator()(const Variable& x, const Variable& t) {
    Variable z0 = first0(x, t), z1 = first1(F::copy(x, device1), F::copy(t, device1));
    loss = z0 + F::copy(z1, device0);
    accuracy = first0.accuracy;
    return loss;
  }
};

/// Copies between devices that some work takes, in whichever direction.
template <class F> static long long copies_of(F&& work) {
  auto count = [] {
    cuda::TransferStats all = cuda::transfer_stats();
    return all.host_to_device.transfers + all.device_to_host.transfers + all.peer.transfers;
  };
  std::int64_t before = count();
  work();
  return static_cast<long long>(count() - before);
}

int main(int argc, char** argv) {
  std::int64_t images = 2, width = 96;
  std::vector<Device> devices = Arguments("One network over two devices", 2)
                                    .number("images", &images, 16, 2, "pictures of a batch")
                                    .number("width", &width, 96, 8, "channels of the first layer")
                                    .parse(argc, argv);
  devices[0].use();  // what is made without a device is made there
  xp::random::seed(0);
  bool right = true;

  ParallelMLP split(784, 1000, 10, devices[0], devices[1]);
  ParallelMLP whole(784, 1000, 10, devices[0], devices[0]);
  whole.copyparams(split);
  Variable x(xp::random::uniform(0, 1, {100, 784}), false), y;
  long long copies = copies_of([&] { y = split(x); });
  right &= y.device() == devices[0] && xp::allclose(y.array(), whole(x).array(), 1e-4, 1e-5);
  right &= copies == (devices[0] == devices[1] ? 0 : 4);
  std::printf("halves of an MLP: y of shape %s on %s, %lld copies between devices\n",
              y.shape().str().c_str(), y.device().str().c_str(), copies);

  ParallelNIN pair(width, 10, devices[0], devices[1]);
  optimizers::MomentumSGD optimizer(0.01);
  optimizer.setup(pair);
  Array pictures = xp::random::normal(0, 1, {images, 3, pair.insize, pair.insize});
  Array labels = xp::arange(images, int32) % 10;
  std::printf("two NINs, each of the whole batch; losses:");
  for (int i = 0; i < 3; ++i) {
    optimizer.update(pair, pictures, labels);
    std::printf(" %.4f", static_cast<double>(pair.loss.item<float>()));
  }
  std::printf("\n");
  right &= pair.accuracy.device() == devices[0] && xp::isfinite(pair.loss.array()).item<bool>();
  return right ? 0 : 1;
}

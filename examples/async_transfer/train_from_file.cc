// Training on data that stay in a file: batches are read from it as they are needed, sent, and
// trained on. Sent the plain way, on the current stream, copies and kernels take turns; the
// Converter sends a batch on a stream of its own while the GPU is still at the one before. Beside
// them: the same data on the device from the start, where they have room, and the whole training on
// the CPU.
#include <rensa/rensa.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "arguments.h"

using namespace rensa;

struct Result {
  double microseconds = 0;  // a step
  float loss = 0;           // the last one
};

/// Trains a small network from one start, on batches that `columns_of` makes.
static Result train(const Dataset& data, std::int64_t batchsize, std::int64_t steps, Device device,
                    const std::function<Columns(const Batch&)>& columns_of) {
  xp::random::seed(1);
  auto model = L::Classifier(Sequential(L::Linear(100), F::relu, L::Linear(10)));
  model.to(device);
  optimizers::SGD optimizer(0.1);
  optimizer.setup(model);
  iterators::SerialIterator iterator(data, batchsize, {.shuffle = false});
  Variable loss;
  auto step = [&] {
    Columns columns = columns_of(*iterator.next());
    loss = optimizer.update(model, columns[0], columns[1]);
  };
  for (int i = 0; i < 3; ++i) step();  // kernels are loaded and memory is pooled from here on
  device.synchronize();
  auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < steps; ++i) step();
  device.synchronize();
  std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - start;
  return {taken.count() / static_cast<double>(steps), loss.item<float>()};
}

/// A folder of its own, gone with it.
struct TemporaryFolder {
  std::filesystem::path path = std::filesystem::temp_directory_path() /
                               ("rensa_train_from_file_" + std::to_string(::getpid()));
  TemporaryFolder() { std::filesystem::create_directories(path); }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

static void write_examples(const std::string& folder, std::int64_t count) {
  xp::random::seed(0);
  Array x = xp::random::uniform(-1, 1, {count, 784}, float32, cpu());
  xp::save(folder + "/x.npy", x);
  xp::save(folder + "/t.npy", x[{Slice(), Slice(0, 10)}].argmax(1).astype(int32));
}

int main(int argc, char** argv) {
  std::int64_t count = 0, batchsize = 1000, steps = 0;
  Device device = Arguments("Training on data that stay in a file")
                      .number("count", &count, 200'000, 20'000, "examples in the file")
                      .number("steps", &steps, 1000, 20, "steps of each training")
                      .number("batchsize", &batchsize, "examples of a step")
                      .parse(argc, argv)[0];
  TemporaryFolder folder;
  write_examples(folder.path.string(), count);

  // The file's elements are read when they are touched; it may be larger than any memory.
  Array x = xp::load((folder.path / "x.npy").string(), {.mmap_mode = "r"});
  Array t = xp::load((folder.path / "t.npy").string(), {.mmap_mode = "r"});
  datasets::TupleDataset data(x, t);
  Converter ahead({.resident_limit = 0});  // no copy of all the data on the device
  std::printf("%lld examples in %s, %.0f MB; batches of %lld, on %s\n",
              static_cast<long long>(count), folder.path.c_str(),
              1e-6 * static_cast<double>(x.nbytes() + t.nbytes()),
              static_cast<long long>(batchsize), device.str().c_str());

  auto run = [&](const char* what, const Dataset& from, Device where, auto&& columns_of) {
    Result result = train(from, batchsize, steps, where, columns_of);
    std::printf("%-28s %9.1f us a step, %9.1f steps/s, loss %.4f\n", what, result.microseconds,
                1e6 / result.microseconds, static_cast<double>(result.loss));
    std::fflush(stdout);
    return result;
  };
  Result waited = run("sent when it is needed", data, device,
                      [&](const Batch& b) { return concat_examples(b, device); });
  Result sent = run("sent ahead", data, device, [&](const Batch& b) { return ahead(b, device); });
  Result there = run("on the device already", data.to(device), device,
                     [&](const Batch& b) { return ahead(b, device); });
  if (device.is_cuda()) {
    std::printf("sending ahead: %.2f times as fast, %.2f of what data on the device would be\n",
                waited.microseconds / sent.microseconds, there.microseconds / sent.microseconds);
    Result host =
        run("all of it on the CPU", data, cpu(), [&](const Batch& b) { return ahead(b, cpu()); });
    std::printf("the CPU takes %.2f times as long as the GPU that waits for its batches\n",
                host.microseconds / waited.microseconds);
  }
  // The batches are the same ones, so the losses are.
  return waited.loss == sent.loss && sent.loss == there.loss && std::isfinite(sent.loss) ? 0 : 1;
}

// Pictures read for training, from a folder of JPEGs (a subfolder for each class): decoded whole,
// and as training takes them, a random part of 224 x 224, turned and normalized, in batches. Beside
// peers/image_loader.py, which makes such a folder, too.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <ctime>
#include <string>

#include "benchmarks/timing.h"
#include "rensa/rensa.h"

using namespace rensa;

namespace {

Columns augment(const Columns& in, RandomStream& random) {
  Array x = transforms::resize(transforms::random_sized_crop(in[0], random), {224, 224});
  x = transforms::random_flip(x, random, {.x_random = true});
  return {transforms::normalize(x, {123.675f, 116.28f, 103.53f}, {58.395f, 57.12f, 57.375f}),
          in[1]};
}

/// Reads whole epochs, as batches where those are of several pictures. Prints the rate of the best
/// one, and what a picture takes of all cores together, which others' work changes little.
void measure(const std::string& name, const Dataset& dataset, std::int64_t batch, int threads) {
  Converter convert;
  double best = 1e30, cpu_best = 1e30;
  for (int turn = 0; turn < 5; ++turn) {
    iterators::MultithreadIterator it(dataset, batch,
                                      {.repeat = false, .seed = 1, .n_threads = threads});
    auto start = std::chrono::steady_clock::now();
    std::clock_t cpu_start = std::clock();
    while (auto next = it.next()) {
      if (batch > 1) convert(*next, cpu());
    }
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::min(best, seconds.count());
    cpu_best = std::min(cpu_best, static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC);
  }
  auto n = static_cast<double>(dataset.size());
  benchmarks::print_figure("image_loader: " + name + " rensa", n / best, "pictures/s",
                           fmt::format(", \"cpu_us\": {:.0f}", cpu_best / n * 1e6));
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder, packed;
  int threads = 1;
  CLI::App app("Pictures read for training.");
  app.add_option("folder", folder, "a folder whose subfolders are the classes")->required();
  app.add_option("--packed", packed, "where to pack them; not measured where it is left out");
  app.add_option("--threads", threads, "threads that fetch")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  datasets::ImageDatasetOptions options{.dtype = uint8, .read = {.mode = images::Mode::rgb}};
  datasets::ImageFolder pictures(folder, options);
  measure("decoded", pictures, 1, threads);
  measure("for training", datasets::TransformDataset(pictures, augment), 32, threads);
  if (!packed.empty()) {
    datasets::pack_images(pictures.pairs(), packed, {.classes = pictures.classes()});
    datasets::PackedImageDataset whole(packed, options);
    measure("packed, for training", datasets::TransformDataset(whole, augment), 32, threads);
  }
  return 0;
}

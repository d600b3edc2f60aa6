// Packs a folder of pictures, a subfolder for each class, into few files, and reads an epoch of
// batches from them as a training run does: pack_images FOLDER OUT makes OUT-00000.images and so
// on.
#include <rensa/rensa.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "arguments.h"

using namespace rensa;

/// A part of the picture, turned at random and in other light, as a network wants it.
Columns augment(const Columns& in, RandomStream& random, int64_t size) {
  Array x = transforms::random_sized_crop(in[0], random);
  x = transforms::resize(x, {size, size});
  x = transforms::random_flip(x, random, {.x_random = true});
  x = transforms::color_jitter(x, random, {.brightness = 0.4, .contrast = 0.4, .saturation = 0.4});
  return {transforms::normalize(x, {123.7f, 116.3f, 103.5f}, {58.4f, 57.1f, 57.4f}), in[1]};
}

int main(int argc, char** argv) {
  std::string folder, out = "packed";
  int64_t batchsize = 32, size = 224;
  Arguments arguments("Packs pictures, and reads batches of what was packed.");
  arguments.text("folder", &folder, "a folder whose subfolders are the classes")
      .text("out", &out, "what the packed files' names begin with")
      .number("--batchsize", &batchsize, "pictures in a batch")
      .number("--size", &size, "height and width of the parts that a network is given");
  Device device = arguments.parse(argc, argv)[0];
  if (folder.empty()) {
    std::cerr << "pack_images: give a folder of pictures, a subfolder for each class\n";
    return 2;
  }

  datasets::ImageFolder pictures(folder);
  auto files = datasets::pack_images(pictures.pairs(), out, {.classes = pictures.classes()});
  std::cout << pictures.size() << " pictures of " << pictures.classes().size() << " classes in "
            << files.size() << " files\n";

  datasets::PackedImageDataset packed(out, {.dtype = uint8, .read = {.mode = images::Mode::rgb}});
  datasets::TransformDataset augmented(packed, [size](const Columns& in, RandomStream& random) {
    return augment(in, random, size);
  });
  batchsize = std::min(batchsize, packed.size());
  iterators::MultithreadIterator batches(augmented, batchsize, {.repeat = false});
  Converter convert;
  auto start = std::chrono::steady_clock::now();
  int64_t read = 0;
  while (auto batch = batches.next()) {
    Columns columns = convert(*batch, device);
    read += columns[0].shape(0);
  }
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::cout << read << " pictures read, " << static_cast<double>(read) / seconds.count()
            << " a second\n";
  return read == pictures.size() ? 0 : 1;
}

// Classifies photos with ResNet-50 and torchvision's weights:
//   import numpy, PIL.Image, safetensors.torch, torchvision
//   safetensors.torch.save_file(torchvision.models.resnet50(weights="DEFAULT").state_dict(),
//                               "resnet50.safetensors")
//   image = PIL.Image.open("photo.jpg").convert("RGB").resize((224, 224))
//   numpy.save("photos.npy", [numpy.asarray(image)])
// in Python, then: classify resnet50.safetensors photos.npy
#include <rensa/rensa.h>

#include <iostream>

#include "arguments.h"

using namespace rensa;

int main(int argc, char** argv) {
  std::string weights, photos, scores;
  Arguments arguments("Classifies photos with ResNet-50.");
  arguments.text("weights", &weights, "a safetensors file; without one they are random")
      .text("photos", &photos, "an .npy of (n, h, w, 3), RGB as uint8; without one, noise")
      .text("scores", &scores, "an .npy to write the scores to");
  Device device = arguments.parse(argc, argv)[0];

  L::ResNet50Layers model(L::ResNetOptions::torchvision());
  model.to(device);
  if (!weights.empty()) {
    serializers::load_safetensors(weights, model,
                                  {.names = serializers::torchvision_resnet_names()});
  }

  Array images = photos.empty() ? xp::random::integers(0, 256, {1, 64, 64, 3}) : xp::load(photos);
  Array x = images.to(device).astype(float32) / 255.f;
  x = (x - xp::array({0.485f, 0.456f, 0.406f}, device)) /
      xp::array({0.229f, 0.224f, 0.225f}, device);

  UsingConfig<bool> inference(&Config::train, false);
  no_backprop_mode no_graph;
  Variable y = model(x.transpose({0, 3, 1, 2}).ascontiguous());
  if (!scores.empty()) xp::save(scores, y.array());

  Array order = xp::argsort(-y.array(), 1).to(cpu()), prob = F::softmax(y).array().to(cpu());
  for (int64_t i = 0; i < order.shape(0); ++i) {
    std::cout << "photo " << i << ":";
    for (int64_t k = 0; k < 5; ++k) {
      auto label = order[{i, k}].item<int64_t>();
      std::cout << " " << label << " (" << prob[{i, label}].item<float>() << ")";
    }
    std::cout << "\n";
  }
}

// Exercise 2: reading and writing a model's parameters where they are.
#include <rensa/rensa.h>

#include <filesystem>
#include <iostream>

#include "arguments.h"

using namespace rensa;

int main(int argc, char** argv) {
  Device device = Arguments("Reading and writing a model's parameters").parse(argc, argv)[0];
  L::Linear layer(3, 2);
  layer.to(device);

  // Reading: the parameter's array is on its device; printing or to_vector() brings it to the host.
  for (const NamedParameter& p : layer.namedparams()) {
    std::cout << p.path << " " << p.parameter.shape().str() << " on " << p.parameter.device()
              << "\n";
  }
  std::cout << "W\n" << layer.W.array() << "\n";

  // Writing in place, through views and expressions: the parameter stays the same memory.
  void* memory = layer.W.array().data();
  layer.W.array().fill(0.5);
  layer.W.array()[{0, Slice()}] = 2;
  Array w = layer.W.array();
  w *= 3;
  std::cout << "W, written\n" << layer.W.array() << "\n";

  // From the host: to() moves the values, assign() writes them into the parameter.
  w.assign(xp::array({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}).to(device));
  std::cout << "sum of W: " << w.sum().item<float>() << "\n";
  Array host = w.get();  // a copy in main memory
  host *= 2;
  w.set(host);  // and back, of the same shape and dtype
  L::Linear other(3, 2);
  other.to(device);
  other.W.copydata(layer.W);  // one parameter; other.copyparams(layer) copies all, across devices
  std::cout << "sum of the other's W: " << other.W.array().sum().item<float>() << "\n";

  // To a file and back.
  auto path = (std::filesystem::temp_directory_path() / "rensa_example_parameters.npz").string();
  serializers::save_npz(path, layer);
  w.fill(0);
  serializers::load_npz(path, layer);
  std::filesystem::remove(path);
  std::cout << "sum of W, read back: " << layer.W.array().sum().item<float>() << "\n";
  bool kept = layer.W.array().data() == memory;
  std::cout << "still the same memory: " << std::boolalpha << kept << "\n";
  return kept ? 0 : 1;
}

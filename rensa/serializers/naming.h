// Naming: what members are called in files of others.
#pragma once

#include <functional>
#include <string>
#include <utility>

namespace rensa::serializers {

/// Where a file has a member.
struct StoredName {
  StoredName(std::string stored, bool is_transposed = false)
      : name(std::move(stored)), transposed(is_transposed) {}
  StoredName(const char* stored) : name(stored) {}

  std::string name;  // in the file
  bool transposed;   // the axes lie there in the opposite order
};

/// How a file calls what a model has; given to load_npz, load_safetensors and those that save.
///
///   serializers::load_safetensors(path, model, {.names = serializers::pytorch_names()});
///   serializers::load_safetensors(path, model, {.names = {[](const std::string& key) {
///     return serializers::pytorch_name("net/" + key);
///   }}});
struct Naming {
  /// The name of the member with that key, "l1/W". Left out: the key itself.
  std::function<StoredName(const std::string& key)> name = {};
  /// Whether a file may have that name though the model has nothing of it.
  std::function<bool(const std::string& name)> surplus = {};
};

/// PyTorch's name of the member that Chainer calls `key`: "l1.weight" of "l1/W", and of "l1/gamma";
/// "l1.bias" of "l1/b" and "l1/beta"; "running_mean", "running_var" and "num_batches_tracked" of
/// "avg_mean", "avg_var" and "N"; "attn.in_proj_weight" of "attn/in_proj/W".
std::string pytorch_name(const std::string& key);
/// That of every member: of a model whose links are named as PyTorch's modules are.
Naming pytorch_names();

/// torchvision's names for L::ResNet18Layers to L::ResNet152Layers, which its weights want made
/// with L::ResNetOptions::torchvision().
Naming torchvision_resnet_names();
/// torchvision's names for L::VGG16Layers and L::VGG19Layers; of a net with batch normalization
/// those of vgg16_bn. Throws ValueError for other numbers of layers.
Naming torchvision_vgg_names(int n_layers, bool batch_norm = false);
/// The published names for L::GPT2, without the "transformer." that some files have in front (give
/// .path = "transformer"). The weights of its products lie transposed there; masks and a copy of
/// the head, which is wte, are passed by.
Naming gpt2_names();

}  // namespace rensa::serializers

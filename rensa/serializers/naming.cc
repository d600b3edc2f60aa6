// What members are called in PyTorch's files.
#include "rensa/serializers/naming.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <regex>
#include <string_view>

#include "rensa/core/error.h"

namespace rensa::serializers {

namespace {

/// The last part of a key, and what is in front of it, with the slash.
std::pair<std::string, std::string> parted(const std::string& key) {
  std::size_t at = key.rfind('/') + 1;  // 0 without one
  return {key.substr(0, at), key.substr(at)};
}

/// "layer1.0.downsample.0" of "res2/a/conv4".
std::string torchvision_resnet_name(const std::string& key) {
  if (key.starts_with("fc6/")) return pytorch_name("fc/" + key.substr(4));
  static const std::regex of_block("res[2-5]/(a|b[0-9]{1,4})/.*");
  if (!std::regex_match(key, of_block)) return pytorch_name(key);
  auto [link, leaf] = parted(key);
  int stage = 0, block = 0;
  std::string rest;
  for (std::size_t begin = 0, part = 0; begin < link.size(); ++part) {
    std::size_t end = link.find('/', begin);
    std::string name = link.substr(begin, end - begin);
    if (part == 0) stage = std::stoi(name.substr(3)) - 1;
    else if (part == 1) block = name == "a" ? 0 : std::stoi(name.substr(1));
    else rest = name == "conv4" ? "downsample/0" : name == "bn4" ? "downsample/1" : name;
    begin = end + 1;
  }
  return pytorch_name(fmt::format("layer{}/{}/{}/{}", stage, block, rest, leaf));
}

}  // namespace

std::string pytorch_name(const std::string& key) {
  static const std::map<std::string, std::string, std::less<>> leaves = {
      {"W", "weight"},
      {"b", "bias"},
      {"gamma", "weight"},
      {"beta", "bias"},
      {"avg_mean", "running_mean"},
      {"avg_var", "running_var"},
      {"N", "num_batches_tracked"}};
  auto [link, leaf] = parted(key);
  auto known = leaves.find(leaf);
  // The joint weights of nn.MultiheadAttention are its own, not a module's: "in_proj_weight".
  if (link == "in_proj/" || link.ends_with("/in_proj/")) link.back() = '_';
  std::string name = link + (known == leaves.end() ? leaf : known->second);
  std::ranges::replace(name, '/', '.');
  return name;
}

Naming pytorch_names() { return {pytorch_name}; }

Naming torchvision_resnet_names() { return {torchvision_resnet_name}; }

Naming torchvision_vgg_names(int n_layers, bool batch_norm) {
  if (n_layers != 16 && n_layers != 19) {
    throw ValueError(fmt::format("torchvision_vgg_names: 16 or 19 layers, not {}", n_layers));
  }
  // Places in a list of all layers: behind each convolution its normalization and relu, behind each
  // of five parts a pooling.
  std::map<std::string, std::string> modules;
  int place = 0, last = n_layers == 16 ? 3 : 4;
  for (int part = 1; part <= 5; ++part, ++place) {
    for (int i = 1; i <= (part <= 2 ? 2 : last); ++i) {
      modules[fmt::format("conv{}_{}", part, i)] = fmt::format("features/{}", place++);
      if (batch_norm)
        modules[fmt::format("bn{}_{}", part, i)] = fmt::format("features/{}", place++);
      ++place;
    }
  }
  for (int i = 0; i < 3; ++i)
    modules[fmt::format("fc{}", 6 + i)] = fmt::format("classifier/{}", 3 * i);
  return {[modules](const std::string& key) {
    std::size_t end = key.find('/');
    auto known = modules.find(key.substr(0, end));
    if (known == modules.end() || end == std::string::npos) return pytorch_name(key);
    return pytorch_name(known->second + key.substr(end));
  }};
}

Naming gpt2_names() {
  auto ends = [](std::string_view name, const auto& endings) {
    return std::ranges::any_of(endings, [&](std::string_view end) { return name.ends_with(end); });
  };
  auto name = [ends](const std::string& key) {
    static constexpr std::array<std::string_view, 3> products = {"c_attn/W", "c_proj/W", "c_fc/W"};
    return StoredName(pytorch_name(key), ends(key, products));
  };
  auto surplus = [ends](const std::string& name) {
    static constexpr std::array<std::string_view, 3> passed = {".attn.bias", ".attn.masked_bias",
                                                               "lm_head.weight"};
    return ends(name, passed);
  };
  return {name, surplus};
}

}  // namespace rensa::serializers

// When cuDNN computes what the library has kernels for too.
#pragma once

namespace rensa {

/// chainer.config.use_cudnn, of attention on a GPU (convolutions are always cuDNN's).
enum class UseCudnn : unsigned char {
  always,     // NotImplementedError, which says why, for what cuDNN does not compute
  automatic,  // where it does, and is taken to be faster: docs/design.md, Attention
  never,
};

}  // namespace rensa

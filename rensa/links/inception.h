// L::Inception and L::InceptionBN, modules of GoogLeNet: convolutions of several sizes side by
// side.
#pragma once

#include <cstdint>
#include <optional>

#include "rensa/links/convolution_links.h"
#include "rensa/links/normalization_links.h"

namespace rensa {
namespace links {

struct InceptionOptions {
  Initializer conv_init = {};  // LeCunNormal when left out
  Initializer bias_init = {};  // 0 when left out
};

/// Of x (n, in, h, w), the relu of what lies along axis 1: a convolution of 1 x 1, one of 1 x 1 and
/// one of 3 x 3 behind it, likewise of 5 x 5, and the greatest of 3 x 3 with a convolution of 1 x 1
/// behind it; (n, out1 + out3 + out5 + proj_pool, h, w). proj3 and proj5 are the channels in
/// between (Szegedy et al., "Going deeper with convolutions"). `in` may be none: found at the first
/// call.
class Inception : public Chain<Inception> {
 public:
  Inception(std::optional<std::int64_t> in, std::int64_t out1, std::int64_t proj3,
            std::int64_t out3, std::int64_t proj5, std::int64_t out5, std::int64_t proj_pool,
            const InceptionOptions& options = {});
  Inception(None, std::int64_t out1, std::int64_t proj3, std::int64_t out3, std::int64_t proj5,
            std::int64_t out5, std::int64_t proj_pool, const InceptionOptions& options = {});
  void members(Visitor& v) override;

  Variable operator()(const Variable& x) const;

  /// By the names of Chainer's: of 1 x 1, 3 x 3, 5 x 5 and behind the pooling.
  Convolution2D conv1, proj3, conv3, proj5, conv5, projp;
};

struct InceptionBNOptions {
  std::int64_t stride = 1;
  Initializer conv_init = {};  // LeCunNormal when left out
};

enum class PoolType : unsigned char { max, avg };  // what a pooling takes of its window

/// As Inception, with two convolutions of 3 x 3 in a row for the one of 5 x 5, batch normalization
/// and relu behind each convolution, and no bias (Ioffe and Szegedy, "Batch normalization"). With a
/// stride, out1 has to be 0: there is no convolution of 1 x 1 then. Without proj_pool what is
/// pooled has all channels of x. Throws ValueError for an out1 with a stride or without proj_pool.
class InceptionBN : public Chain<InceptionBN> {
 public:
  InceptionBN(std::optional<std::int64_t> in, std::int64_t out1, std::int64_t proj3,
              std::int64_t out3, std::int64_t proj33, std::int64_t out33, PoolType pooltype,
              std::optional<std::int64_t> proj_pool = {}, const InceptionBNOptions& options = {});
  InceptionBN(None, std::int64_t out1, std::int64_t proj3, std::int64_t out3, std::int64_t proj33,
              std::int64_t out33, PoolType pooltype, std::optional<std::int64_t> proj_pool = {},
              const InceptionBNOptions& options = {});
  void members(Visitor& v) override;

  Variable operator()(const Variable& x) const;

  /// Proj...: the convolutions of 1 x 1 in front of the others.
  Convolution2D proj3, conv3, proj33, conv33a, conv33b;
  /// Behind the convolution of that name.
  BatchNormalization proj3n, conv3n, proj33n, conv33an, conv33bn;
  std::optional<Convolution2D> conv1, poolp;         // none with a stride; none without proj_pool
  std::optional<BatchNormalization> conv1n, poolpn;  // behind the convolution of that name

 private:
  std::int64_t stride_;
  PoolType pooltype_;
};

}  // namespace links

namespace L = links;

}  // namespace rensa

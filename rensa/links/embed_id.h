// L::EmbedID: a row of its weight for each integer.
#pragma once

#include <cstdint>
#include <optional>

#include "rensa/links/link_hook.h"

namespace rensa {
namespace links {

struct EmbedIDOptions {
  Initializer initialW = {};                      // N(0, 1) when left out
  std::optional<std::int64_t> ignore_label = {};  // of this integer the row is zeros
};

/// y = W[x]: W is (in, out), x integers (...), y (..., out).
class EmbedID : public Chain<EmbedID>, public Hookable<EmbedID> {
 public:
  EmbedID(std::int64_t in, std::int64_t out, const EmbedIDOptions& options = {});
  void members(Visitor& v) override { v("W", W), hook_members(v); }

  /// Throws as F::embed_id.
  Variable operator()(const Variable& x) const;

  Parameter W;
  std::optional<std::int64_t> ignore_label;
};

}  // namespace links

// Made once, in embed_id.cc: what users' files would compile again for each of their own.
extern template class Chain<links::EmbedID>;

namespace L = links;

}  // namespace rensa

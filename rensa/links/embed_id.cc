// L::EmbedID.
#include "rensa/links/embed_id.h"

#include <fmt/format.h>

#include "rensa/core/error.h"
#include "rensa/functions/connection.h"
#include "rensa/links/initializers.h"

namespace rensa::links {

EmbedID::EmbedID(std::int64_t in, std::int64_t out, const EmbedIDOptions& options)
    : W(options.initialW ? options.initialW : Initializer(initializers::Normal{1})),
      ignore_label(options.ignore_label) {
  if (in < 0 || out < 0) throw ValueError(fmt::format("EmbedID: in size {}, out size {}", in, out));
  W.initialize({in, out});
  W.body()->name = "W";
}

Variable EmbedID::operator()(const Variable& x) const {
  return hooked(x, [&] { return F::embed_id(x, W, {.ignore_label = ignore_label}); });
}

}  // namespace rensa::links

namespace rensa {
template class Chain<links::EmbedID>;
}  // namespace rensa

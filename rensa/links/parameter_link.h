// L::Parameter. Behind this header, Parameter in namespace rensa::links is this link, and the
// member of links rensa::Parameter.
#pragma once

#include "rensa/links/link.h"

namespace rensa {
namespace links {

/// A link that is one parameter, of the given values, and gives it when it is called.
class Parameter : public Chain<Parameter> {
 public:
  explicit Parameter(const Array& array);
  void members(Visitor& v) override { v("W", W); }

  Variable operator()() const { return W; }

  rensa::Parameter W;  // the one parameter
};

}  // namespace links

namespace L = links;

}  // namespace rensa

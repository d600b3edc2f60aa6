// L::Parameter.
#include "rensa/links/parameter_link.h"

namespace rensa::links {

Parameter::Parameter(const Array& array) : W(Initializer(array)) {
  W.body()->name = "W";
  W.to(array.device());
}

}  // namespace rensa::links

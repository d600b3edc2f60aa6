// Text for XML, such as SVG pictures.
#pragma once

#include <string>

namespace rensa::detail {

/// `text` as the content of an element or the value of an attribute; control characters are blanks.
std::string xml_escaped(const std::string& text);

}  // namespace rensa::detail

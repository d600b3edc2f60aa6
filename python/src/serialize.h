// What objects of Python's keep in files, by Chainer's `serialize(serializer)`.
#pragma once

#include "convert.h"
#include "rensa/links/visitor.h"

namespace rensa::python {

/// Shows what the object's serialize(serializer) hands to serializer(key, value), where it has such
/// a method: numbers, texts, arrays and None. When a file is read, the method is called once more,
/// after all of the file has been found to fit, and the serializer gives what the file has.
void show_serialized(Visitor& v, nb::handle object);

void bind_serialize(nb::module_& m);

}  // namespace rensa::python

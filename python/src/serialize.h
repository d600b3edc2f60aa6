// What objects of Python's keep in files, by Chainer's `serialize(serializer)`.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "convert.h"
#include "rensa/links/visitor.h"

namespace rensa::python {

/// What is shown without the object, by name, and given to it when a file has been read.
using ShownAlready = std::map<std::string, std::function<nb::object()>>;

/// Shows what the object's serialize(serializer) hands to serializer(key, value), where it has such
/// a method: numbers, texts, arrays and None. When a file is read, the method is called once more,
/// after all of the file has been found to fit, and the serializer gives what the file has.
void show_serialized(Visitor& v, nb::handle object, ShownAlready already = {});

/// A flag, an integer, a number or a text as files hold it; nothing for what is none of these.
std::optional<Visitor::Value> plain_value_of(nb::handle value);

void bind_serialize(nb::module_& m);

}  // namespace rensa::python

// Hooks of links, as Python holds them.
#pragma once

#include <memory>

#include "rensa/links/link_hook.h"

namespace rensa::python {

/// A hook, while Python's `with` lasts too; links are given copies.
struct AnyLinkHook {
  std::shared_ptr<LinkHook> hook;
  bool replaces_parameters = false;
  std::shared_ptr<LinkHookScope> scope = {};
};

}  // namespace rensa::python

// AnyLink: a link of any class, as a value.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include "rensa/links/link.h"

namespace rensa {

/// Holds a link whose class is not known where it is held: what lists of links are made of. Moving
/// it leaves the link where it is; copying it copies the link, as the current CopyModeScope says.
/// members() shows it like the link that it holds.
class AnyLink {
 public:
  /// None: walks pass it by.
  AnyLink() = default;
  template <std::derived_from<Link> L>
  requires(!std::is_abstract_v<L>) AnyLink(L link) : link_(std::make_unique<L>(std::move(link))) {}
  AnyLink(std::unique_ptr<Link> link) : link_(std::move(link)) {}
  AnyLink(const AnyLink& other);
  AnyLink& operator=(const AnyLink& other);
  AnyLink(AnyLink&&) noexcept;
  AnyLink& operator=(AnyLink&&) noexcept;
  ~AnyLink();

  explicit operator bool() const { return link_ != nullptr; }
  /// Throws ValueError where there is none.
  Link& operator*() { return *checked(); }
  const Link& operator*() const { return *checked(); }
  Link* operator->() { return checked(); }
  const Link* operator->() const { return checked(); }
  /// The link as one of a class. Throws ValueError, with its own class, where it is none of that.
  template <std::derived_from<Link> L> L& as() {
    if (auto* link = dynamic_cast<L*>(checked())) return *link;
    throw_is_another();
  }
  template <std::derived_from<Link> L> const L& as() const {
    if (const auto* link = dynamic_cast<const L*>(checked())) return *link;
    throw_is_another();
  }

  /// Link::invoke.
  template <std::convertible_to<Variable>... V> Variable operator()(const V&... x) {
    return checked()->invoke({Variable(x)...});
  }
  template <std::convertible_to<Variable>... V> Variable operator()(const V&... x) const {
    return std::as_const(*checked()).invoke({Variable(x)...});
  }

 private:
  Link* checked() const;
  [[noreturn]] void throw_is_another() const;
  std::unique_ptr<Link> link_;
};

}  // namespace rensa

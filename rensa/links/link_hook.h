// LinkHook: what is called before and after a link's forward, and may change its parameters for the
// time of a call. link_hooks.h has spectral normalization and weight standardization.
//
//   layer.add_hook(link_hooks::SpectralNormalization());
//
// Links that take hooks derive from Hookable: Linear, EmbedID, BatchNormalization, and the
// convolutions and deconvolutions. One of your own does so by
//   class Mine : public Chain<Mine>, public Hookable<Mine>
// shows its hooks' members, hook_members(v), and computes within hooked(x, [&] { ... }).
#pragma once

#include <atomic>
#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rensa/links/link.h"

namespace rensa {

/// A link that has hooks, and the axis of its weights along which its outputs lie.
struct HookedLink {
  const Link& link;
  int out_axis = 0;  // the axis of W

  /// A parameter of the link's own.
  struct Named {
    std::string name;      // as members() names it
    Parameter* parameter;  // the link's
  };
  /// The link's own.
  std::vector<Named> parameters() const;
};

/// One call of a link. Who calls one link from several threads at once gives it no hook that
/// replaces parameters.
class HookedCall {
 public:
  HookedCall(const HookedLink& link, const Variables& x);
  ~HookedCall();
  HookedCall(const HookedCall&) = delete;
  HookedCall& operator=(const HookedCall&) = delete;

  const HookedLink& link() const { return link_; }
  const Variables& x() const { return x_; }  // what the link is called with
  /// What the link computes with as its parameter of that name: what an earlier hook put there,
  /// else the parameter. Throws ValueError where the link has none.
  Variable parameter(std::string_view name) { return place(name); }
  /// Puts `value` there until the call ends.
  void replace(std::string_view name, const Variable& value);

 private:
  struct Replaced {
    Parameter* parameter;
    Variable original;
  };
  Parameter& place(std::string_view name);

  const HookedLink& link_;
  const Variables& x_;
  std::vector<HookedLink::Named> parameters_;  // from before any was replaced
  std::vector<Replaced> replaced_;
};

/// Chainer's LinkHook. A value: a copy of a link has copies of its hooks.
class LinkHook {
 public:
  virtual ~LinkHook() = default;
  /// Unique among a link's hooks; the part of paths that its members have.
  virtual std::string name() const = 0;
  virtual std::unique_ptr<LinkHook> clone() const = 0;  // a copy, for a copy of the link
  /// What lasts of the hook: part of the link's members, and so of its files.
  virtual void members(Visitor&) {}
  /// Called as a link gets the hook; throws where it cannot have it.
  virtual void added(const HookedLink&) {}
  virtual void deleted(const HookedLink&) {}       // called as a link loses it
  virtual void forward_preprocess(HookedCall&) {}  // called before the link's forward
  /// Called after it, with what it gave.
  virtual void forward_postprocess(HookedCall&, const Variable& /*y*/) {}
  /// In its place where the forward throws.
  virtual void forward_failed(HookedCall&) noexcept {}

 protected:
  LinkHook() = default;
  LinkHook(const LinkHook&) = default;
  LinkHook& operator=(const LinkHook&) = default;
};

/// The hooks of a link, in the order in which they were added.
class LinkHooks {
 public:
  LinkHooks() = default;
  LinkHooks(const LinkHooks& other);
  LinkHooks& operator=(const LinkHooks& other);
  LinkHooks(LinkHooks&&) noexcept;
  LinkHooks& operator=(LinkHooks&&) noexcept;
  ~LinkHooks();

  bool empty() const { return hooks_.empty(); }  // whether there is none
  std::vector<std::string> names() const;        // in the order in which they were added
  void members(Visitor& v);
  /// Throws ValueError for a second one of a name.
  void add(std::unique_ptr<LinkHook> hook, const HookedLink& link);
  /// Throws ValueError where there is none of that name.
  void remove(std::string_view name, const HookedLink& link);
  Variable call(const HookedLink& link, const Variables& x,  // forward(), between what the hooks do
                const std::function<Variable()>& forward) const;

 private:
  std::vector<std::unique_ptr<LinkHook>> hooks_;
};

/// Chainer's `with hook:`. While it lives, `hook` is called around the forward of every link that
/// takes hooks, on this thread, before the hooks that the link has itself; of several scopes the
/// outer one's comes first. It is not added to the links: added() and members() are not called. A
/// captured step (graph/capture.h) that is called in the scope runs eagerly; one that has the scope
/// in it records what the hook does, and replays call no hooks.
class [[nodiscard]] LinkHookScope {
 public:
  [[nodiscard]] explicit LinkHookScope(LinkHook& hook);
  ~LinkHookScope();
  LinkHookScope(const LinkHookScope&) = delete;
  LinkHookScope& operator=(const LinkHookScope&) = delete;

  /// Whether a thread has one: one branch where none has.
  static bool any() { return count_.load(std::memory_order_relaxed) > 0; }
  /// Whether the calling thread is in one.
  static bool is_open();

 private:
  static constinit std::atomic<int> count_;
};

/// What links that take hooks are to those that do not know their class.
class HasHooks {
 public:
  virtual ~HasHooks() = default;
  /// In the order in which they were added.
  std::vector<std::string> hook_names() const { return hooks_.names(); }
  /// As Hookable's.
  void add_hook(std::unique_ptr<LinkHook> hook) { hooks_.add(std::move(hook), hooked_link()); }
  void delete_hook(std::string_view name) { hooks_.remove(name, hooked_link()); }

 protected:
  HasHooks() = default;
  HasHooks(const HasHooks&) = default;
  HasHooks& operator=(const HasHooks&) = default;
  HasHooks(HasHooks&&) = default;
  HasHooks& operator=(HasHooks&&) = default;

  void hook_members(Visitor& v) { hooks_.members(v); }
  virtual HookedLink hooked_link() const = 0;
  LinkHooks hooks_;
};

/// The base of a link that takes hooks.
template <class Derived> class Hookable : public HasHooks {
 public:
  /// Chainer's Link.add_hook. To be called before an optimizer's setup where the hook has
  /// parameters.
  template <std::derived_from<LinkHook> Hook> Derived& add_hook(Hook hook) {
    HasHooks::add_hook(std::make_unique<Hook>(std::move(hook)));
    return static_cast<Derived&>(*this);
  }
  Derived& delete_hook(std::string_view name) {
    HasHooks::delete_hook(name);
    return static_cast<Derived&>(*this);
  }

 protected:
  /// forward(), between what the hooks do. Parameters that wait for x's shape have it by then.
  template <class F> Variable hooked(const Variable& x, const F& forward) const {
    if (hooks_.empty() && !LinkHookScope::any()) return forward();
    return hooks_.call(hooked_link(), {x}, forward);
  }

 private:
  HookedLink hooked_link() const override {
    const auto& link = static_cast<const Derived&>(*this);
    if constexpr (requires { Derived::kOutAxis; }) return {link, Derived::kOutAxis};
    else return {link};
  }
};

}  // namespace rensa

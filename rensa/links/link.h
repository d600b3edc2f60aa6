// Link and Chain: models. A model is a value: moving keeps it the same model (an optimizer set up
// on it follows), copying gives an independent deep copy. Its members are named once, in
// members(Visitor&) (links/visitor.h); names, devices, copies, gradients and files all derive from
// that list.
//
//   struct MLP : Chain<MLP> {
//     L::Linear l1, l2, l3;
//     MLP(int64_t units, int64_t out) : l1(units), l2(units), l3(out) {}
//     void members(Visitor& v) { v("l1", l1); v("l2", l2); v("l3", l3); }
//     Variable operator()(const Variable& x) const { return l3(F::relu(l2(F::relu(l1(x))))); }
//   };
#pragma once

#include <concepts>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/links/visitor.h"

namespace rensa {

/// How the holder of a reference to a model finds it: follows a move of the model, null once it is
/// destroyed, fresh in a copy.
struct LinkAnchor {
  Link* link;  // null once it is destroyed
};

/// A named parameter: "/l1/W".
struct NamedParameter {
  std::string path;  // from the model on, "/" between
  ParameterRef parameter;
};

class Sequential;

/// What a model is to those that do not know its class: updaters, lists of links, files. A class of
/// one's own derives from Chain; one that has to be made without a template (for another language)
/// from Link, and overrides members, invoke, clone and, where the language has classes of its own,
/// type_name.
/// Names parameters, children and what else a file keeps (links/visitor.h).
class Link {
 public:
  Link() = default;
  Link(const Link&) {}  // the copy gets an anchor of its own
  Link& operator=(const Link&) { return *this; }
  Link(Link&& other) noexcept;
  Link& operator=(Link&& other) noexcept;
  virtual ~Link();

  virtual void members(Visitor& v) = 0;
  /// rensa::check_members of this link.
  void check_members() const { rensa::check_members(Members(*this)); }

  /// Calls the model, for those that know it as a Link: updaters and evaluators. Chain forwards to
  /// the derived operator() of that many Variables; throws NotImplementedError where there is none.
  /// A const model is called by an operator() that is const.
  virtual Variable invoke(const Variables& x) { return std::as_const(*this).invoke(x); }
  virtual Variable invoke(const Variables& x) const { throw_not_callable(x, 0, 0); }
  /// A copy on the heap, as the current CopyModeScope says, on which an override calls
  /// finish_copy(). Throws NotImplementedError for a model that cannot be copied.
  virtual std::unique_ptr<Link> clone() const;
  /// `n` copies, one after the other; each starts anew from its initializers (unless `mode` says
  /// otherwise). Throws ValueError for n < 0, and as clone() does. Defined in links/sequential.h.
  Sequential repeat(std::int64_t n, CopyMode mode = CopyMode::init) const;

  /// All parameters below this link, in the order of their sorted paths, as in Chainer.
  /// Handles: of a const link too they can be written through.
  std::vector<ParameterRef> params() const;
  std::vector<NamedParameter> namedparams() const;
  /// This link, as "/", and all links below it: "/predictor", "/predictor/l1".
  std::vector<std::pair<std::string, Link*>> namedlinks();
  std::vector<std::pair<std::string, const Link*>> namedlinks() const;
  /// Elements of all initialized parameters.
  std::int64_t count_params() const;
  /// describe(), and a table: name, shape, dtype and number of elements of all parameters and
  /// persistents.
  std::string str() const;
  /// The class: "Classifier<MLP>".
  virtual std::string type_name() const;
  /// One line of what it is: the class, of a Sequential with its layers.
  virtual std::string describe() const { return type_name(); }

  // Moving: the model's own parameters and persistents go there, and it returns itself (in its own
  // type where that is a Chain). to_device() is Chainer's word for to(); to_gpu() means the current
  // device, or GPU 0 where that is the CPU.
  Link& to(Device device) { return move_to(device), *this; }
  Link& to_device(Device device) { return to(device); }
  Link& to_gpu() { return to(current_gpu()); }
  Link& to_gpu(int index) { return to(gpu(index)); }
  Link& to_cpu() { return to(cpu()); }
  /// What to() does: moves what this link has itself and, by their own move_to(), all links below.
  /// An override goes on with Link::move_to().
  virtual void move_to(Device device);
  void cleargrads();  // drops the gradients of all parameters below this link
  /// Lets optimizers update all parameters below this link, or leaves them as they are (frozen).
  void enable_update();
  void disable_update();
  /// Clears what calls have left for the next ones: the States of this link and, by their own
  /// reset_state(), of all links below. An override goes on with Link::reset_state().
  virtual void reset_state();
  /// Adds the gradients of `other`, a link of the same structure, across devices.
  void addgrads(const Link& other);
  /// Copies parameters (initializing whichever side is not) from `other`, a link of the same
  /// structure, and, unless told otherwise, what copy_persistents() does.
  void copyparams(const Link& other, bool copy_persistent = true);
  /// Copies what is saved of `other` beside its parameters: persistents, counters, numbers,
  /// generators.
  void copy_persistents(const Link& other);

  std::shared_ptr<LinkAnchor> anchor() const;  // of this link; made when first asked for

  /// Called on a copy: parameters that members() ties are one again (every walk does that), random
  /// generators draw on from where the model's are.
  void finish_copy();

 protected:
  /// Throws NotImplementedError: an operator() for x.size() Variables is not there, or not on a
  /// const model. The bits 1 << n of `taken` say for which numbers one is, those of
  /// `taken_if_not_const` for which one would be.
  [[noreturn]] void throw_not_callable(const Variables& x, unsigned taken,
                                       unsigned taken_if_not_const) const;
  /// Throws NotImplementedError where this is of a class derived from `known`, as which it would be
  /// copied.
  void check_is(const std::type_info& known) const;

 private:
  mutable std::shared_ptr<LinkAnchor> anchor_;
};

/// link.str().
std::ostream& operator<<(std::ostream& os, const Link& link);

namespace detail {
/// A model that gives a Variable when it is called with these.
template <class Self, class... V>
concept CalledWith = requires(Self& self, const V&... x) {
  { self(x...) } -> std::convertible_to<Variable>;
};
}  // namespace detail

/// The base of a user's model. Forgetting members() does not compile.
template <class Derived> class Chain : public Link {
 public:
  Chain() {
    static_assert(!std::is_same_v<decltype(&Derived::members), void (Link::*)(Visitor&)>,
                  "a Chain names its parameters and children in members(Visitor&)");
  }
  Derived& to(Device device) { return Link::to(device), self(); }
  Derived& to_device(Device device) { return to(device); }
  Derived& to_gpu() { return to(current_gpu()); }
  Derived& to_gpu(int index) { return to(gpu(index)); }
  Derived& to_cpu() { return to(cpu()); }
  /// Chainer's Link.copy: `share` shares arrays until one side is moved to another device, `copy`
  /// is deep (as C++'s own copy is), `init` starts anew from the initializers.
  [[nodiscard]] Derived copy(CopyMode mode = CopyMode::share) const {
    CopyModeScope scope(mode);
    Derived made(static_cast<const Derived&>(*this));
    made.finish_copy();
    return made;
  }

  Variable invoke(const Variables& x) override { return call(self(), x); }
  Variable invoke(const Variables& x) const override {
    return call(static_cast<const Derived&>(*this), x);
  }
  std::unique_ptr<Link> clone() const override {
    check_is(typeid(Derived));
    if constexpr (std::is_copy_constructible_v<Derived>) {
      // Held as a Link, so that a model costs no class of pointers of its own to compile.
      std::unique_ptr<Link> made(new Derived(static_cast<const Derived&>(*this)));
      made->finish_copy();
      return made;
    } else {
      return Link::clone();
    }
  }

 private:
  Derived& self() { return static_cast<Derived&>(*this); }
  // The numbers of Variables that an operator() takes, as bits.
  template <class Self> static constexpr unsigned callable_with() {
    using V = Variable;
    return detail::CalledWith<Self, V> * 2u | detail::CalledWith<Self, V, V> * 4u |
           detail::CalledWith<Self, V, V, V> * 8u;
  }
  template <class Self> static Variable call(Self& self, const Variables& x) {
    using V = Variable;
    if constexpr (detail::CalledWith<Self, V>) {
      if (x.size() == 1) return self(x[0]);
    }
    if constexpr (detail::CalledWith<Self, V, V>) {
      if (x.size() == 2) return self(x[0], x[1]);
    }
    if constexpr (detail::CalledWith<Self, V, V, V>) {
      if (x.size() == 3) return self(x[0], x[1], x[2]);
    }
    self.throw_not_callable(x, callable_with<Self>(), callable_with<Derived>());
  }
};

}  // namespace rensa

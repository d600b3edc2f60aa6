// Visitor: one walk over all that lasts. A link, an optimizer, an iterator, an extension, or a
// struct of one's own, names its members once, in members(Visitor&); parameters, devices, copies,
// checks and files derive from it.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "rensa/array/array.h"
#include "rensa/autograd/parameter.h"
#include "rensa/autograd/state.h"

namespace rensa {

class Link;
class Visitor;
namespace xp::random {
class Generator;
}

template <class T>
concept HasMembers = requires(T& object, Visitor& v) {
  object.members(v);
};

/// A reference to something with members, or to a function that shows some.
class Members {
 public:
  /// members() is not const, so that one function shows what is read and what is written: this is
  /// the only place that takes the const away. Who walks over what is const changes nothing there.
  template <HasMembers T>
  Members(const T& object)
      : object_(place_of(object)), show_([](const void* place, Visitor& v) {
          const_cast<T&>(object_at<T>(place)).members(v);
        }) {}
  template <std::invocable<Visitor&> F>
  Members(const F& show)
      : object_(&show),
        show_([](const void* place, Visitor& v) { (*static_cast<const F*>(place))(v); }) {}
  void show(Visitor& v) const { show_(object_, v); }
  /// Where it stands; of a link, as a Link.
  const void* place() const { return object_; }

 private:
  template <class T> static const void* place_of(const T& object) {
    if constexpr (std::derived_from<T, Link>) return static_cast<const Link*>(&object);
    else return &object;
  }
  template <class T> static const T& object_at(const void* place) {
    if constexpr (std::derived_from<T, Link>) {
      return static_cast<const T&>(*static_cast<const Link*>(place));
    } else {
      return *static_cast<const T*>(place);
    }
  }
  const void* object_;
  void (*show_)(const void*, Visitor&);
};

/// What members() shows its members to, each under a name; names are copied where they are kept. A
/// walk is a class that overrides what it looks at: everything else is passed by, and what has
/// members itself is walked into.
class Visitor {
 public:
  /// What one member holds, as files know it.
  using Value = std::variant<std::int64_t, double, bool, std::string, Array>;
  /// A member that is one value.
  struct Access {
    std::function<Value()> get;
    /// Takes what get() gives: another number, an array of the same shape.
    std::function<void(const Value&)> set;
    /// Where it stands; null where functions compute it: then an array may have any shape.
    const void* place = nullptr;
  };
  /// The file that a walk reads. Names are those of members of what is being walked over.
  class Reading {
   public:
    virtual ~Reading() = default;
    /// Whether there is a value of that name, or one below it.
    virtual bool contains(std::string_view name) const = 0;
    /// The number of that name; 0 where there is none.
    virtual std::int64_t number(std::string_view name) const = 0;
    /// Whether the walk has met this parameter, which waits for its shape, and the file has values
    /// for it.
    virtual bool initializes(const ParameterRef& parameter) const = 0;
    /// `action` is called when all values have been set, and not where the file does not fit.
    virtual void then(std::function<void()> action) = 0;
  };

  virtual ~Visitor() = default;

  /// Shows a member:
  ///  - a Parameter (one that is undefined or tied is passed by), a Persistent, a State;
  ///  - a Link, or what else has members(Visitor&);
  ///  - a Counter, a number, a flag, a string, a random Generator, an Array (a link's that moves
  ///  and
  ///    is copied with it is a Persistent);
  ///  - what points to one of these, or holds none: std::optional, std::unique_ptr, AnyLink;
  ///  - a range of them, such as a std::vector of links: they are named "0", "1", ...
  /// A number that calls change is a Counter: captured steps count on.
  template <class T> void operator()(std::string_view name, T& member) {
    if constexpr (std::derived_from<T, Parameter>) {
      if (member.defined() && !member.is_tied()) parameter(name, member);
    } else if constexpr (std::derived_from<T, Link>) {
      link(name, member);
    } else if constexpr (std::derived_from<T, Persistent>) {
      persistent(name, member);
    } else if constexpr (std::derived_from<T, State>) {
      state(name, member);
    } else if constexpr (std::derived_from<T, Counter>) {
      (*this)(name, member.stored());
    } else if constexpr (std::same_as<T, bool> || std::same_as<T, std::string>) {
      value(name, access<T>(member));
    } else if constexpr (std::integral<T>) {
      value(name, access<std::int64_t>(member));
    } else if constexpr (std::floating_point<T>) {
      value(name, access<double>(member));
    } else if constexpr (std::same_as<T, Array>) {
      array(name, member);
    } else if constexpr (std::derived_from<T, xp::random::Generator>) {
      generator(name, member);
    } else if constexpr (HasMembers<T>) {
      group(name, Members(member));
    } else if constexpr (requires { static_cast<bool>(member), *member; }) {
      if (static_cast<bool>(member)) (*this)(name, *member);
    } else {
      static_assert(std::ranges::range<T>,
                    "members(Visitor&): a member of this type is not known; give its class a "
                    "members(Visitor&), or show it by v.computed(name, get, set)");
      group(name, [&](Visitor& v) {
        std::int64_t i = 0;
        for (auto& element : member) v(std::to_string(i++), element);
      });
    }
  }

  /// Shows a value (int64, double, bool, std::string or Array) that functions give and take:
  /// v.computed("log", [&] { return text(); }, [&](const std::string& t) { parse(t); }).
  template <std::invocable Get, class Set> void computed(std::string_view name, Get get, Set set) {
    using T = std::invoke_result_t<Get&>;
    value(name, {std::move(get), [set = std::move(set)](const Value& v) { set(std::get<T>(v)); }});
  }

  /// Shows a member that a file may lack: it then stays as it is.
  template <class T> void optional(std::string_view name, T& member) {
    if (reads(name)) (*this)(name, member);
  }
  /// Whether a member of that name takes part: false while a file is read that has none.
  bool reads(std::string_view name) {
    Reading* file = reading();
    return !file || file->contains(name);
  }

  /// `parameter`, which another link has, is `owner` as well: one parameter, listed, updated and
  /// saved under the owner's name alone. To be said before the link that has `parameter` is shown,
  ///   v.tied(out.W, embed.W), v("embed", embed), v("out", out);
  /// A copy of the model is tied anew when it is first walked over: by setup, params, to, files.
  void tied(Parameter& parameter, const Parameter& owner) { parameter.tie(owner); }

  /// The file that is being read; null for every other walk.
  virtual Reading* reading() { return nullptr; }

  // What a walk overrides. By default children are walked into, and the rest is passed by.
  virtual void parameter(std::string_view, Parameter&) {}
  /// Saved, moved and copied with the model, not optimized.
  virtual void persistent(std::string_view, Persistent&) {}
  /// What one call leaves for the next: moved with the model, cleared by reset_state(), not saved.
  virtual void state(std::string_view, State&) {}
  virtual void value(std::string_view, const Access&) {}
  virtual void link(std::string_view name, Link& child);
  virtual void group(std::string_view name, const Members& members);

 private:
  template <class As, class T> static Access access(T& member) {
    return {[&member] { return Value(static_cast<As>(member)); },
            [&member](const Value& v) { member = static_cast<T>(std::get<As>(v)); }, &member};
  }
  void array(std::string_view name, Array& member);
  void generator(std::string_view name, xp::random::Generator& member);
};

/// A walk that knows where it is.
class PathVisitor : public Visitor {
 public:
  explicit PathVisitor(std::string prefix = {}) : prefix_(std::move(prefix)) {}
  void link(std::string_view name, Link& child) override;
  void group(std::string_view name, const Members& members) override;

 protected:
  /// "l1/W" of "W".
  std::string path(std::string_view name) const { return prefix_ + std::string(name); }

 private:
  std::string prefix_;  // "l1/"
};

/// Throws ValueError, with the paths, where two members have one name, or a link or a parameter is
/// shown twice: it would be updated and saved twice. Optimizer::setup and files ask.
void check_members(const Members& members);

/// Writes values into the array where it lies, so that whoever holds it sees them. Throws
/// ShapeError.
void write_values(const Array& target, const Array& values);

}  // namespace rensa

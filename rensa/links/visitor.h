// Visitor: one walk over all that lasts. A link, an optimizer, an iterator, an extension, or a
// struct of one's own, names its members once, in members(Visitor&); parameters, devices, copies,
// checks and files derive from it.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/autograd/parameter.h"
#include "rensa/autograd/state.h"

namespace rensa {

class Link;
class Visitor;
namespace xp::random {
class Generator;
}

/// A class with members(Visitor&).
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
        }) {
    if constexpr (std::derived_from<T, Link>) link_ = &object;
  }
  template <std::invocable<Visitor&> F>
  Members(const F& show)
      : object_(&show),
        show_([](const void* place, Visitor& v) { (*static_cast<const F*>(place))(v); }) {}
  void show(Visitor& v) const { show_(object_, v); }  // shows them to a walk
  /// The link; null for what is none.
  const Link* link() const { return link_; }

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
  const Link* link_ = nullptr;
};

namespace detail {
/// What files hold as one value.
template <class T>
concept OneValue = std::is_arithmetic_v<T> || std::same_as<T, std::string>;
/// What a loop goes over, and what it has. (Users compile <ranges> for 50 ms.)
template <class T>
concept Range = requires(T& range) {
  std::begin(range), std::end(range);
};
template <Range T> using RangeValue = std::iter_value_t<decltype(std::begin(std::declval<T&>()))>;
/// A list of numbers or flags that grows: one array of files.
template <class T>
concept NumberList =
    Range<T> && std::is_arithmetic_v<RangeValue<T>> && !std::same_as<T, std::string> &&
    requires(T & list) {
  list.resize(1);
};
template <class T>
concept SharedPointer = requires(T& pointer) {
  typename T::element_type;
  pointer.use_count();
};
template <class T>
concept LinkOrPointerToOne = std::derived_from<T, Link> ||
    std::derived_from<std::remove_cvref_t<decltype(*std::declval<T&>())>, Link>;
}  // namespace detail

/// What members() shows its members to, each under a name; names are copied where they are kept. A
/// walk is a class that overrides what it looks at: everything else is passed by, and what has
/// members itself is walked into.
class Visitor {
 public:
  /// What one member holds, as files know it; None is an undefined Array.
  using Value = std::variant<std::int64_t, double, bool, std::string, Array>;
  /// Puts in place what was read.
  using Commit = std::function<void()>;
  /// A member that is one value.
  struct Access {
    /// What get() gives, and take() wants, where it is not None: a value of this alternative.
    std::size_t kind;
    std::function<Value()> get;  // what the member holds
    /// Checks and converts another value, and gives what puts it in place, later and without fail:
    /// a file changes nothing unless all of it fits. Throws where the value cannot be taken.
    std::function<Commit(const Value&)> take;
    /// Where it stands: an array there keeps its shape. Null where functions compute it, and for
    /// a list of numbers.
    const void* place = nullptr;

    void set(const Value& value) const { take(value)(); }  // take(value), in place at once
  };
  /// The alternative of Value that holds a T.
  template <class T> static constexpr std::size_t kind_of() {
    // Without a Value, which all who see this would compile.
    constexpr bool is[] = {std::same_as<T, std::int64_t>, std::same_as<T, double>,
                           std::same_as<T, bool>, std::same_as<T, std::string>,
                           std::same_as<T, Array>};
    static_assert(is[0] || is[1] || is[2] || is[3] || is[4]);
    return is[0] ? 0 : is[1] ? 1 : is[2] ? 2 : is[3] ? 3 : 4;
  }

  /// The file that a walk reads. Names are those of members of what is being walked over.
  class Reading {
   public:
    virtual ~Reading() = default;
    /// Whether there is a value of that name, or one below it.
    virtual bool contains(std::string_view name) const = 0;
    /// The number of that name; 0 where there is none.
    virtual std::int64_t number(std::string_view name) const = 0;
    /// The shape that the file gives to a parameter which waits for its own, where the walk has
    /// met it.
    virtual std::optional<Shape> shape_for(const ParameterRef& parameter) const = 0;
    /// `action` is called when all values have been set, and not where the file does not fit.
    virtual void then(std::function<void()> action) = 0;
  };

  Visitor() = default;
  Visitor(const Visitor&) = delete;
  Visitor& operator=(const Visitor&) = delete;
  virtual ~Visitor() = default;

  /// Shows a member:
  ///  - a Parameter (one that is undefined or tied is passed by), a Persistent, a State;
  ///  - a Link, or what else has members(Visitor&);
  ///  - a Counter, a number, a flag, a string, a list of numbers, a random Generator, an Array
  ///    (one of a link that moves and is copied with it is a Persistent);
  ///  - what holds one of these, or none: std::optional, std::unique_ptr, AnyLink;
  ///  - a range of them, such as a std::vector of links: they are named "0", "1", ...
  /// A number that calls change is a Counter: captured steps count on.
  template <class T> void operator()(std::string_view name, T& member) {
    if constexpr (std::derived_from<T, Parameter>) {
      if (member.defined()) show(name, member);
    } else if constexpr (std::derived_from<T, Link>) {
      link(name, member);
    } else if constexpr (std::derived_from<T, Persistent>) {
      persistent(name, member);
    } else if constexpr (std::derived_from<T, State>) {
      state(name, member);
    } else if constexpr (std::derived_from<T, Counter>) {
      counter(name, member);
    } else if constexpr (detail::OneValue<T>) {
      value(name, access<T>(member, &member));
    } else if constexpr (detail::NumberList<T>) {
      value(name, access<T>(member, nullptr));
    } else if constexpr (std::same_as<T, Array>) {
      array(name, member);
    } else if constexpr (std::derived_from<T, xp::random::Generator>) {
      generator(name, member);
    } else if constexpr (HasMembers<T>) {
      group(name, Members(member));
    } else if constexpr (std::is_pointer_v<T> || detail::SharedPointer<T>) {
      static_assert(sizeof(T) == 0,
                    "members(Visitor&): a copy of the model would share what this pointer points "
                    "to; hold it as a value, a std::unique_ptr or an AnyLink, or, where it is to "
                    "be shared, show what it points to");
    } else if constexpr (requires { static_cast<bool>(member), *member; }) {
      pointed(name, member);
    } else {
      static_assert(detail::Range<T>,
                    "members(Visitor&): a member of this type is not known; give its class a "
                    "members(Visitor&), or show it by v.computed(name, get, set)");
      using Element = detail::RangeValue<T>;
      static_assert(std::is_copy_constructible_v<Element> || !detail::LinkOrPointerToOne<Element>,
                    "members(Visitor&): this list of links cannot be copied with its model; make "
                    "it a ChainList or a std::vector<AnyLink>");
      group(name, [&](Visitor& v) {
        std::int64_t i = 0;
        for (auto& element : member) v(std::to_string(i++), element);
      });
    }
  }

  /// Shows a value (int64, double, bool, std::string or Array) that functions give and take:
  ///   v.computed("log", [&] { return text(); }, [&](const std::string& t) { log_ = t; }).
  /// A `set` that may fail gives what it has made of the value in a function that puts it in
  /// place, so that files change all or nothing:
  ///   [&](const std::string& t) { return [this, log = parse(t)] { log_ = log; }; }
  template <std::invocable Get, class Set> void computed(std::string_view name, Get get, Set set) {
    using T = std::remove_cvref_t<std::invoke_result_t<Get&>>;
    auto take = [set = std::move(set)](const Value& v) -> Commit {
      if (is_none(v)) return [] {};
      if constexpr (std::is_void_v<std::invoke_result_t<const Set&, const T&>>) {
        return [set, given = std::get<T>(v)] { set(given); };
      } else {
        return set(std::get<T>(v));
      }
    };
    value(name, {kind_of<T>(), std::move(get), std::move(take)});
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
  /// The tie is the walk's: a link that leaves the model has its parameter as any other. Throws
  /// ValueError for an `owner` that is tied itself, and as Parameter::tie does.
  void tied(Parameter& parameter, const Parameter& owner);

  /// The file that is being read; null for every other walk.
  virtual Reading* reading() { return nullptr; }

  // What a walk overrides. By default children are walked into, and the rest is passed by.
  virtual void parameter(std::string_view, Parameter&) {}
  /// Saved, moved and copied with the model, not optimized.
  virtual void persistent(std::string_view, Persistent&) {}
  /// What one call leaves for the next: moved with the model, cleared by reset_state(), not saved.
  virtual void state(std::string_view, State&) {}
  virtual void value(std::string_view, const Access&) {}  // a member that is one value
  /// By default a value.
  virtual void counter(std::string_view name, Counter& counter);
  virtual void link(std::string_view name, Link& child);  // a child that is a link
  /// A child with members that is no link.
  virtual void group(std::string_view name, const Members& members);

 protected:
  /// A walk within a walk: what is tied in one is tied in both. The outer one outlives it.
  explicit Visitor(const Visitor* outer) : ties_(outer ? outer->ties_ : &own_ties_) {}
  /// Whether this walk has met `parameter` as one that is tied to another.
  bool is_tied(const Parameter& parameter) const;
  const std::vector<const Parameter*>& ties() const { return *ties_; }
  virtual void generator(std::string_view name, xp::random::Generator& member);

 private:
  static bool is_none(const Value& v) {
    const auto* array = std::get_if<Array>(&v);
    return array && !array->defined();
  }
  /// What files keep a scalar T as.
  template <class T>
  using Stored =
      std::conditional_t<std::same_as<T, bool> || std::same_as<T, std::string>, T,
                         std::conditional_t<std::is_integral_v<T>, std::int64_t, double>>;
  template <class T> static T narrowed(const Stored<T>& stored) {
    if constexpr (std::same_as<T, Stored<T>>) {
      return stored;
    } else {
      T value = static_cast<T>(stored);
      bool fits = true;
      if constexpr (std::is_integral_v<T>) fits = static_cast<Stored<T>>(value) == stored;
      else fits = std::isfinite(value) || !std::isfinite(stored);
      if (!fits) throw_too_large(std::to_string(stored), sizeof(T));
      return value;
    }
  }
  [[noreturn]] static void throw_too_large(const std::string& stored, std::size_t bytes);
  // A list as the array of files, and back. Throws ShapeError where it is not one-dimensional.
  template <class S> static Array array_of(const std::vector<S>& list);
  template <class S> static std::vector<S> list_of(const Array& array);
  /// Numbers of lists: what std::vector can hold side by side.
  template <class T>
  using Element = std::conditional_t<std::same_as<T, bool>, std::uint8_t, Stored<T>>;

  template <class T> static constexpr std::size_t kind() {
    if constexpr (detail::NumberList<T>) return kind_of<Array>();
    else return kind_of<Stored<T>>();
  }
  template <class T> static Value stored(const T& member) {
    if constexpr (detail::NumberList<T>) {
      using S = Element<detail::RangeValue<T>>;
      std::vector<S> list;
      for (auto element : member) list.push_back(static_cast<S>(element));
      return array_of<S>(list);
    } else {
      return static_cast<Stored<T>>(member);
    }
  }
  template <class T> static T restored(const Value& v) {
    if constexpr (detail::NumberList<T>) {
      using E = detail::RangeValue<T>;
      T list;
      for (const auto& element : list_of<Element<E>>(std::get<Array>(v))) {
        list.resize(list.size() + 1);
        if constexpr (std::same_as<E, bool>) list.back() = element != 0;
        else list.back() = narrowed<E>(element);
      }
      return list;
    } else {
      return narrowed<T>(std::get<Stored<T>>(v));
    }
  }
  template <class T> static Access access(T& member, const void* place);
  /// Of a value that may be none: None in files.
  template <class T> static Access access(std::optional<T>& member);
  template <class T> void pointed(std::string_view name, T& member) {
    if (static_cast<bool>(member)) (*this)(name, *member);
  }
  template <class T>
  requires(detail::OneValue<T> || detail::NumberList<T>) void pointed(std::string_view name,
                                                                      std::optional<T>& member) {
    value(name, access(member));
  }

  void show(std::string_view name, Parameter& member);
  void array(std::string_view name, Array& member);

  std::vector<const Parameter*> own_ties_;
  std::vector<const Parameter*>* ties_ = &own_ties_;
};

// Outside of the class, as what is inline would be compiled by all who see it.
template <class T> Visitor::Access Visitor::access(T& member, const void* place) {
  auto take = [&member](const Value& v) -> Commit {
    if (is_none(v)) return [] {};
    return [&member, read = restored<T>(v)] { member = read; };
  };
  return {kind<T>(), [&member] { return stored(member); }, take, place};
}
template <class T> Visitor::Access Visitor::access(std::optional<T>& member) {
  auto take = [&member](const Value& v) -> Commit {
    if (is_none(v)) return [&member] { member.reset(); };
    return [&member, read = restored<T>(v)] { member = read; };
  };
  return {kind<T>(), [&member] { return member ? stored(*member) : Value(Array()); }, take};
}
// Made once, in visitor.cc, for what most links and triggers show.
extern template Visitor::Access Visitor::access<bool>(bool&, const void*);
extern template Visitor::Access Visitor::access<int>(int&, const void*);
extern template Visitor::Access Visitor::access<std::int64_t>(std::int64_t&, const void*);
extern template Visitor::Access Visitor::access<double>(double&, const void*);
extern template Visitor::Access Visitor::access<std::string>(std::string&, const void*);

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
/// What write_values(target, values) does: all that can fail now, the writing when called.
Visitor::Commit writing(const Array& target, const Array& values);

}  // namespace rensa

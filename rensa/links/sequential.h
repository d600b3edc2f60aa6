// ChainList: links in a list. Sequential: links and functions, called one after the other.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rensa/array/index.h"
#include "rensa/links/any_link.h"

namespace rensa {

/// Links of any classes, named by their numbers: "0", "1". A member of a model; links
/// of one class are as well kept in a std::vector.
///
///   ChainList layers(L::Linear(100), L::Linear(10));
///   layers.append(L::Classifier(MLP(32, 4)));
class ChainList : public Chain<ChainList> {
 public:
  ChainList() = default;
  template <class... Links>
  requires(std::constructible_from<AnyLink, Links>&&...) explicit ChainList(Links... links) {
    (append(std::move(links)), ...);
  }
  void members(Visitor& v) override;

  /// The number of links.
  std::int64_t size() const { return static_cast<std::int64_t>(links_.size()); }
  void append(AnyLink link);
  /// From the end where i < 0. Throws IndexError.
  AnyLink& operator[](std::int64_t i);
  const AnyLink& operator[](std::int64_t i) const;
  auto begin() { return links_.begin(); }  // over the links
  auto end() { return links_.end(); }      // behind the last link
  auto begin() const { return links_.begin(); }
  auto end() const { return links_.end(); }

 private:
  std::vector<AnyLink> links_;
};

/// A function with members(Visitor&) as a link: what it shows lasts with the model.
template <class F> class FunctionLink final : public Chain<FunctionLink<F>> {
 public:
  FunctionLink(std::string name, F function)
      : function_(std::move(function)), name_(std::move(name)) {}
  void members(Visitor& v) override { function_.members(v); }
  Variable operator()(const Variable& x) { return function_(x); }
  Variable operator()(
      const Variable& x) const requires std::is_invocable_r_v<Variable, const F&, const Variable&> {
    return function_(x);
  }
  std::string describe() const override { return name_; }

 private:
  F function_;
  std::string name_;
};

/// Links and functions (of one Variable, which give one), each called with what the one before
/// gave; the first may take several Variables.
///
///   Sequential model(L::Linear(100), F::relu, L::Linear(10));
///   Sequential::Layer pool("pool", [](const Variable& x) { return F::max(x, 1); });
///
/// Links are named by their numbers among the links, as in Chainer: "0", "1" above; a function with
/// members(Visitor&) counts as one. A value, like every model: what is given is copied, or moved,
/// into it (Chainer's would hold the same links), and Sequential(other) is a copy of the other;
/// Sequential(Sequential::Layer(other)) has it as its layer.
class Sequential : public Chain<Sequential> {
 public:
  /// What a layer may be in place of a link.
  using Function = std::function<Variable(const Variable&)>;

  /// A link or a function. Throws ValueError for an AnyLink or a std::function that is empty.
  class Layer {
   public:
    template <class L>
    requires std::constructible_from<AnyLink, L> Layer(L link) : link_(std::move(link)) { check(); }
    template <class F>
    requires(!std::constructible_from<AnyLink, F> && !std::same_as<F, Layer> &&
             std::is_invocable_r_v<Variable, F&, const Variable&>) Layer(F function)
        : Layer("function", std::move(function)) {}
    /// A function that says its name when printed.
    Layer(std::string name, Function function);
    template <HasMembers F>
    requires(!std::derived_from<F, Link> && std::is_invocable_r_v<Variable, F&, const Variable&>)
        Layer(std::string name, F function)
        : link_(FunctionLink<F>(std::move(name), std::move(function))) {}

    bool is_link() const { return static_cast<bool>(link_); }  // or a function
    /// Throws ValueError for a function.
    AnyLink& link();
    const AnyLink& link() const;
    /// The link, as one of class L. Throws as link() and AnyLink::as() do.
    template <std::derived_from<Link> L> L& as() { return link().as<L>(); }
    template <std::derived_from<Link> L> const L& as() const { return link().as<L>(); }
    /// "Linear", "function".
    std::string str() const;
    Variable operator()(const Variables& x);
    Variable operator()(const Variables& x) const;

   private:
    void check() const;
    Variable call(const Variables& x) const;
    AnyLink link_;  // or none, and a function
    Function function_;
    std::string name_;
  };

  Sequential() = default;
  template <class... Layers>
  requires(std::constructible_from<Layer, Layers>&&...) explicit Sequential(Layers... layers) {
    (append(std::move(layers)), ...);
  }
  void members(Visitor& v) override;

  template <std::convertible_to<Variable>... V> Variable operator()(const V&... x) {
    return invoke({Variable(x)...});
  }
  template <std::convertible_to<Variable>... V> Variable operator()(const V&... x) const {
    return invoke({Variable(x)...});
  }
  /// Throws ValueError where several variables come to a function, or to a Sequential without
  /// layers.
  Variable invoke(const Variables& x) override;
  Variable invoke(const Variables& x) const override;

  /// The number of layers.
  std::int64_t size() const { return static_cast<std::int64_t>(layers_.size()); }
  void append(Layer layer);  // behind the last one
  /// Before layer i; i == size() appends. Throws IndexError.
  void insert(std::int64_t i, Layer layer);
  /// The other's layers: a copy, as of all that is given; those of extend(other.copy()) share their
  /// arrays with the other's.
  void extend(Sequential other);
  /// Takes layer i out. Throws IndexError.
  Layer pop(std::int64_t i = -1);
  /// From the end where i < 0. Throws IndexError.
  Layer& operator[](std::int64_t i);
  const Layer& operator[](std::int64_t i) const;
  /// Some layers: copies that share their arrays with these, as copy() makes them.
  Sequential operator[](const Slice& slice) const;
  /// With the layers of Sequentials among the layers in place of these; shared as with a slice.
  Sequential flatten() const;
  auto begin() { return layers_.begin(); }  // over the layers
  auto end() { return layers_.end(); }      // behind the last layer
  auto begin() const { return layers_.begin(); }
  auto end() const { return layers_.end(); }

  /// "Sequential(Linear, function, Linear)".
  std::string describe() const override;

 private:
  std::vector<Layer> layers_;
};

}  // namespace rensa

// AnyLink, ChainList and Sequential.
#include "rensa/links/sequential.h"

#include <fmt/format.h>

#include "rensa/core/error.h"

namespace rensa {

namespace {

/// The element i of a list, counted from the end where i < 0.
template <class List> auto& element(const char* operation, List& list, std::int64_t i) {
  auto n = static_cast<std::int64_t>(list.size());
  if (i < -n || i >= n) {
    throw IndexError(fmt::format("{}: number {} of {}", operation, i, n));
  }
  return list[static_cast<std::size_t>(i < 0 ? i + n : i)];
}

template <class Layers> Variable run(Layers& layers, const Variables& x) {
  if (layers.empty() && x.size() != 1) {
    throw ValueError(fmt::format(
        "Sequential: without layers it gives what it is given, one variable, not {}", x.size()));
  }
  if (layers.empty()) return x[0];
  Variable y = layers[0](x);
  for (std::size_t i = 1; i < layers.size(); ++i) y = layers[i]({y});
  return y;
}

}  // namespace

AnyLink::AnyLink(const AnyLink& other) : link_(other.link_ ? other.link_->clone() : nullptr) {}
AnyLink& AnyLink::operator=(const AnyLink& other) { return *this = AnyLink(other); }
AnyLink::AnyLink(AnyLink&&) noexcept = default;
AnyLink& AnyLink::operator=(AnyLink&&) noexcept = default;
AnyLink::~AnyLink() = default;

Link* AnyLink::checked() const {
  if (link_) return link_.get();
  throw ValueError("AnyLink: there is no link (default-constructed, or moved from)");
}

void AnyLink::throw_is_another() const {
  throw ValueError(fmt::format("as: the link is a {}", link_->type_name()));
}

void ChainList::members(Visitor& v) {
  std::int64_t i = 0;
  for (AnyLink& link : links_) v(std::to_string(i++), link);
}

void ChainList::append(AnyLink link) {
  if (!link) throw ValueError("ChainList.append: there is no link");
  links_.push_back(std::move(link));
}

AnyLink& ChainList::operator[](std::int64_t i) { return element("ChainList", links_, i); }
const AnyLink& ChainList::operator[](std::int64_t i) const {
  return element("ChainList", links_, i);
}

void Sequential::Layer::check() const {
  if (link_ || function_) return;
  throw ValueError("Sequential: a layer is a link or a function; this one is empty");
}

AnyLink& Sequential::Layer::link() {
  if (is_link()) return link_;
  throw ValueError("Sequential: the layer is a function, not a link");
}
const AnyLink& Sequential::Layer::link() const { return const_cast<Layer*>(this)->link(); }

std::string Sequential::Layer::str() const { return is_link() ? link_->describe() : name_; }

Variable Sequential::Layer::call(const Variables& x) const {
  if (x.size() == 1) return function_(x[0]);
  throw ValueError(
      fmt::format("Sequential: the function {} takes one variable, not {}", name_, x.size()));
}

Variable Sequential::Layer::operator()(const Variables& x) {
  return is_link() ? link_->invoke(x) : call(x);
}
Variable Sequential::Layer::operator()(const Variables& x) const {
  return is_link() ? link_->invoke(x) : call(x);
}

void Sequential::members(Visitor& v) {
  std::int64_t i = 0;
  for (Layer& layer : layers_) {
    if (layer.is_link()) v(std::to_string(i++), layer.link());
  }
}

Variable Sequential::invoke(const Variables& x) { return run(layers_, x); }
Variable Sequential::invoke(const Variables& x) const { return run(layers_, x); }

void Sequential::insert(std::int64_t i, Layer layer) {
  std::int64_t n = size();
  if (i < -n || i > n) {
    throw IndexError(fmt::format("Sequential.insert: before number {} of {}", i, n));
  }
  layers_.insert(layers_.begin() + (i < 0 ? i + n : i), std::move(layer));
}

void Sequential::extend(Sequential other) {
  for (Layer& layer : other.layers_) append(std::move(layer));
}

Sequential::Layer Sequential::pop(std::int64_t i) {
  auto at = layers_.begin() + (&element("Sequential.pop", layers_, i) - layers_.data());
  Layer layer = std::move(*at);
  layers_.erase(at);
  return layer;
}

Sequential::Layer& Sequential::operator[](std::int64_t i) {
  return element("Sequential", layers_, i);
}
const Sequential::Layer& Sequential::operator[](std::int64_t i) const {
  return element("Sequential", layers_, i);
}

Sequential Sequential::operator[](const Slice& slice) const {
  CopyModeScope shared(CopyMode::share);
  Slice::Range range = slice.over(size());
  Sequential part;
  for (std::int64_t i = 0; i < range.count; ++i) part.append((*this)[range.start + i * range.step]);
  return part;
}

Sequential Sequential::flatten() const {
  CopyModeScope shared(CopyMode::share);
  Sequential flat;
  for (const Layer& layer : layers_) {
    const auto* nested =
        layer.is_link() ? dynamic_cast<const Sequential*>(&*layer.link()) : nullptr;
    if (!nested) flat.append(layer);
    else
      for (Layer& inner : nested->flatten().layers_) flat.append(std::move(inner));
  }
  return flat;
}

std::string Sequential::describe() const {
  std::string layers;
  for (const Layer& layer : layers_) layers += (layers.empty() ? "" : ", ") + layer.str();
  return type_name() + "(" + layers + ")";
}

Sequential Link::repeat(std::int64_t n, CopyMode mode) const {
  if (n < 0) throw ValueError(fmt::format("repeat: {} times", n));
  CopyModeScope scope(mode);
  Sequential copies;
  for (std::int64_t i = 0; i < n; ++i) copies.append(clone());
  return copies;
}

Sequential::Layer::Layer(std::string name, Function function)
    : function_(std::move(function)), name_(std::move(name)) {
  check();
}

void Sequential::append(Layer layer) { layers_.push_back(std::move(layer)); }

}  // namespace rensa

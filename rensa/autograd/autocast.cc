// The table of autocast, the casts, and parameters that have been cast.
#include "rensa/autograd/autocast.h"

#include <fmt/format.h>

#include <bit>
#include <memory>
#include <unordered_map>
#include <utility>

#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"

namespace rensa {

namespace autograd {

namespace {

constexpr AutocastRow kRows[] = {
#define RENSA_AUTOCAST(name, kind) {#name, AutocastKind::kind},
#include "rensa/autograd/autocast.def"
#undef RENSA_AUTOCAST
};

AutocastKind kind_of(std::string_view name) {
  static const auto* kinds = [] {
    auto* all = new std::unordered_map<std::string_view, AutocastKind>;
    for (const AutocastRow& row : kRows) all->emplace(row.name, row.kind);
    return all;
  }();
  auto found = kinds->find(name);
  return found == kinds->end() ? AutocastKind::as_given : found->second;
}

bool is_half(Dtype dtype) { return dtype == Dtype::float16 || dtype == Dtype::bfloat16; }

/// A parameter's values in another dtype, and what they were when they were cast.
struct Cast {
  std::weak_ptr<VariableBody> parameter;
  StoragePtr storage;
  std::uint32_t version, updates;
  Variable values;

  bool is_of(const Variable& p) const {
    return parameter.lock() == p.body() && storage == p.array().storage() &&
           version == storage->version() && updates == storage->updates() &&
           (values.creator() || !config().enable_backprop);
  }
};
using Casts = std::unordered_map<const VariableBody*, Cast>;

thread_local Casts casts;

Variable cast_to(const Variable& v, Dtype dtype) {
  if (!v.body()->parameter) return v.astype(dtype);
  if (std::has_single_bit(casts.size())) {  // now and then
    std::erase_if(casts, [](const auto& cast) { return cast.second.parameter.expired(); });
  }
  Cast& known = casts[v.body().get()];
  if (!known.values.defined() || known.values.dtype() != dtype || !known.is_of(v)) {
    StoragePtr storage = v.array().storage();
    known = {v.body(), storage, storage->version(), storage->updates(), v.astype(dtype)};
  }
  return known.values;
}

/// What the inputs of 16 bits, and of float32 too where that is narrow, become; none for as they
/// are.
std::optional<Dtype> target_of(AutocastKind kind, const Variables& inputs) {
  bool wider = false, differ = false;
  std::optional<Dtype> first;
  for (const Variable& v : inputs) {
    if (!v.defined()) continue;
    Dtype dtype = v.dtype();
    if (dtype_kind(dtype) == 'c') return std::nullopt;
    if (dtype_kind(dtype) != 'f') continue;
    wider |= dtype == Dtype::float64;
    differ |= first && *first != dtype;
    first = dtype;
  }
  switch (kind) {
    case AutocastKind::narrow: return wider ? std::nullopt : config().autocast;
    case AutocastKind::wide: return Dtype::float32;
    case AutocastKind::widest:
      if (!differ) return std::nullopt;
      return wider ? Dtype::float64 : Dtype::float32;
    case AutocastKind::as_given: break;
  }
  return std::nullopt;
}

}  // namespace

std::span<const AutocastRow> autocast_rows() { return kRows; }

Variables autocast(std::string_view name, const Variables& inputs) {
  if (!config().autocast) return inputs;
  AutocastKind kind = kind_of(name);
  std::optional<Dtype> to = target_of(kind, inputs);
  if (!to) return inputs;
  UsingConfig off(&Config::autocast, std::nullopt);
  Variables used;
  used.reserve(inputs.size());
  for (const Variable& v : inputs) {
    bool concerned =
        v.defined() && v.dtype() != *to &&
        (is_half(v.dtype()) || (v.dtype() == Dtype::float32 && kind != AutocastKind::wide));
    used.push_back(concerned ? cast_to(v, *to) : v);
  }
  return used;
}

FreshCasts::FreshCasts() { casts.clear(); }
FreshCasts::~FreshCasts() { casts.clear(); }

}  // namespace autograd

Autocast::Autocast(Dtype dtype) : previous_(config().autocast) {
  if (!autograd::is_half(dtype)) {
    throw DtypeError(
        fmt::format("Autocast: {}, which is neither float16 nor bfloat16", dtype_name(dtype)));
  }
  config().autocast = dtype;
}

Autocast::Autocast(None) : previous_(std::exchange(config().autocast, std::nullopt)) {}

Autocast::~Autocast() {
  std::optional<Dtype> was = std::exchange(config().autocast, previous_);
  if (was && !previous_) autograd::casts.clear();
}

}  // namespace rensa

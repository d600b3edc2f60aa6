// summary(): hooks of links and functions that note what a call of a model does.
#include "rensa/links/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <ostream>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "rensa/autograd/function_hook.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/text_table.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/pool_options.h"
#include "rensa/links/link_hook.h"

namespace rensa {

namespace {

using Row = ModelSummary::Row;

/// Whether a function gives its input in another form, so that what it makes of a parameter stands
/// for that.
bool changes_form(std::string_view function) {
  for (const char* name : {"cast", "join_weights", "reshape", "transpose"}) {
    if (function == name) return true;
  }
  return false;
}

/// What a call of the model does, as it does it.
class Notes {
 public:
  Notes(const Link& model, bool with_functions) : with_functions_(with_functions) {
    for (const auto& [path, link] : model.namedlinks()) paths_.emplace(link, path);
    for (const NamedParameter& named : model.namedparams()) {
      std::size_t end = named.path.rfind('/');
      parameters_.emplace(named.parameter.body().get(), end == 0 ? "/" : named.path.substr(0, end));
    }
  }

  // --- links that take hooks ---

  void enter(const Link& link) {
    auto found = paths_.find(&link);
    running_.push_back(found == paths_.end() ? "" : found->second);
  }
  void leave(const Shape& shape) {
    if (!running_.back().empty()) finish(row_of(running_.back()), shape);
    running_.pop_back();
  }
  void fail() { running_.pop_back(); }

  // --- functions ---

  void begin() {
    if (!is_outer_.empty()) is_outer_.back() = true;
    is_outer_.push_back(false);
  }
  void result(const FunctionNode& function, const Variables& inputs, const Arrays& outputs) {
    Arrays arrays;
    for (const Variable& input : inputs) arrays.push_back(input.array());
    std::int64_t work = function.multiply_adds(arrays, outputs);
    multiply_adds += work;
    bool in_link = !running_.empty() && !running_.back().empty();
    std::string link = in_link ? running_.back() : link_of(inputs);
    if (!in_link && !link.empty() && changes_form(function.name())) {
      for (const Array& made : outputs)
        formed_.insert_or_assign(made.storage().get(), Formed{made.storage(), link});
      return;
    }
    if (is_outer_.back()) return;  // what it has applied has been noted
    if (!link.empty()) {
      Row& row = row_of(link);
      row.multiply_adds += work;
      if (!in_link && !outputs.empty()) finish(row, outputs[0].shape());
    } else if (with_functions_) {
      rows.push_back(
          {"", function.name(), 1, outputs.empty() ? Shape() : outputs[0].shape(), 0, work});
    }
  }
  void end() { is_outer_.pop_back(); }

  /// The row of a link, made where it has none yet.
  Row& row_of(const std::string& path) {
    auto [known, fresh] = places_.try_emplace(path, rows.size());
    if (fresh) rows.push_back({path, "", 0, {}, 0, 0});
    return rows[known->second];
  }

  std::vector<Row> rows;
  std::int64_t multiply_adds = 0;

 private:
  static void finish(Row& row, const Shape& shape) {
    row.output_shape = shape;
    ++row.calls;
  }
  /// The link of the first parameter among `inputs`, or of what was made of one.
  std::string link_of(const Variables& inputs) const {
    for (const Variable& input : inputs) {
      if (auto found = parameters_.find(input.body().get()); found != parameters_.end()) {
        return found->second;
      }
      auto formed = formed_.find(input.array().storage().get());
      if (formed != formed_.end()) return formed->second.link;
    }
    return "";
  }

  struct Formed {
    StoragePtr storage;  // so that no other memory takes its address
    std::string link;
  };
  bool with_functions_;
  std::unordered_map<const Link*, std::string> paths_;
  std::unordered_map<const VariableBody*, std::string> parameters_;
  std::unordered_map<const Storage*, Formed> formed_;
  std::vector<std::string> running_;  // paths of the links that are being called
  std::vector<bool> is_outer_;        // of the functions: whether it has applied others
  std::map<std::string, std::size_t> places_;
};

struct OfLinks final : LinkHook {
  explicit OfLinks(Notes& n) : notes(n) {}
  std::string name() const override { return "summary"; }
  std::unique_ptr<LinkHook> clone() const override { return std::make_unique<OfLinks>(*this); }
  void forward_preprocess(HookedCall& call) override { notes.enter(call.link().link); }
  void forward_postprocess(HookedCall&, const Variable& y) override { notes.leave(y.shape()); }
  void forward_failed(HookedCall&) noexcept override { notes.fail(); }
  Notes& notes;
};

struct OfFunctions final : FunctionHook {
  explicit OfFunctions(Notes& n) : notes(n) {}
  void forward_preprocess(const FunctionNode&, const Variables&) override { notes.begin(); }
  void forward_result(const FunctionNode& function, const Variables& inputs,
                      const Arrays& outputs) override {
    notes.result(function, inputs, outputs);
  }
  void forward_postprocess(const FunctionNode&, const Variables&) override { notes.end(); }
  Notes& notes;
};

/// Nobody is told what is reported.
class Unreported {
 public:
  Unreported() : reporter_(std::exchange(ThreadState::current().reporter, nullptr)) {}
  ~Unreported() { ThreadState::current().reporter = std::move(reporter_); }
  Unreported(const Unreported&) = delete;
  Unreported& operator=(const Unreported&) = delete;

 private:
  std::shared_ptr<Reporter> reporter_;
};

void call(Link& model, const Variables& x, Notes& notes) {
  UsingConfig<bool> test(&Config::train, false);
  no_backprop_mode off;
  Unreported unreported;
  OfLinks of_links(notes);
  OfFunctions of_functions(notes);
  LinkHookScope links(of_links);
  FunctionHookScope functions(of_functions);
  (void)model.invoke(x);
}

void count_parameters(const Link& model, Notes& notes, ModelSummary& made) {
  std::map<std::string, std::string> types;
  for (const auto& [path, link] : model.namedlinks()) types.emplace(path, link->type_name());
  for (const NamedParameter& named : model.namedparams()) {
    std::size_t end = named.path.rfind('/');
    Row& row = notes.row_of(end == 0 ? "/" : named.path.substr(0, end));
    const ParameterRef& parameter = named.parameter;
    if (!parameter.is_initialized()) continue;
    row.parameters += parameter.size();
    made.parameters += parameter.size();
    if (parameter.update_enabled()) made.trained_parameters += parameter.size();
    made.parameter_bytes += parameter.array().nbytes();
  }
  for (Row& row : notes.rows) {
    auto type = types.find(row.path);
    if (!row.path.empty() && type != types.end()) row.type = type->second;
  }
}

/// "1,234,567".
std::string grouped(std::int64_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

}  // namespace

ModelSummary summary(Link& model, const Variables& x, const SummaryOptions& options) {
  Notes notes(model, options.functions);
  call(model, x, notes);
  ModelSummary made;
  made.type = model.describe();
  for (const Variable& input : x) made.input_shapes.push_back(input.shape());
  count_parameters(model, notes, made);
  made.rows = std::move(notes.rows);
  made.multiply_adds = notes.multiply_adds;
  return made;
}

ModelSummary summary(Link& model, const Variable& x, const SummaryOptions& options) {
  return summary(model, Variables{x}, options);
}

ModelSummary summary(Link& model, const Shape& shape, const SummaryOptions& options) {
  std::vector<ParameterRef> parameters = model.params();
  Device device = parameters.empty() ? cpu() : parameters[0].device();
  return summary(model, Variables{constant(xp::zeros(shape, float32, device))}, options);
}

std::string ModelSummary::str() const {
  std::vector<std::vector<std::string>> lines{
      {"link", "class", "output shape", "parameters", "multiply-adds"}};
  std::int64_t shown = 0;
  for (const Row& row : rows) {
    std::string times = row.calls > 1 ? fmt::format(", {} times", row.calls) : "";
    lines.push_back({row.path, row.type + times,
                     row.calls == 0 ? "not called" : row.output_shape.str(),
                     row.path.empty() ? "" : grouped(row.parameters), grouped(row.multiply_adds)});
    shown += row.multiply_adds;
  }
  if (shown != multiply_adds) {
    lines.push_back({"functions without parameters", "", "", "", grouped(multiply_adds - shown)});
  }
  lines.push_back({"total", "", "", grouped(parameters), grouped(multiply_adds)});
  std::vector<std::string> shapes;
  for (const Shape& shape : input_shapes) shapes.push_back(shape.str());
  return fmt::format("{} of {}\n{}\n{} of {} parameters are trained; they take {}\n", type,
                     fmt::join(shapes, ", "), text_table(lines, "<<<>>"),
                     grouped(trained_parameters), grouped(parameters),
                     readable_bytes(parameter_bytes));
}

std::ostream& operator<<(std::ostream& os, const ModelSummary& summary) {
  return os << summary.str();
}

}  // namespace rensa

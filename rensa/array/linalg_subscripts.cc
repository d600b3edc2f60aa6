// Reads subscripts in NumPy's notation.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "rensa/array/internal.h"
#include "rensa/array/linalg_subscripts.h"
#include "rensa/core/error.h"

namespace rensa::detail {

namespace {

constexpr Label kEllipsis = -1;  // in a term as it was written

[[noreturn]] void throw_subscripts(std::string_view subscripts, const std::string& what) {
  throw ValueError(fmt::format("einsum: \"{}\": {}", subscripts, what));
}

Labels parse_term(std::string_view subscripts, std::string_view text) {
  Labels labels;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == ' ') continue;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      labels.push_back(c);
    } else if (text.substr(i, 3) == "..." && !holds(labels, kEllipsis)) {
      labels.push_back(kEllipsis);
      i += 2;
    } else {
      throw_subscripts(subscripts, fmt::format("'{}' is neither a letter nor part of one \"...\" "
                                               "a term",
                                               c));
    }
  }
  return labels;
}

// What is left and right of "->".
struct Written {
  std::vector<Labels> inputs;
  Labels output;
  bool has_output = false;

  explicit Written(std::string_view text) {
    std::size_t arrow = text.find("->");
    std::string_view left = text.substr(0, arrow);
    while (true) {
      std::size_t comma = left.find(',');
      inputs.push_back(parse_term(text, left.substr(0, comma)));
      if (comma == left.npos) break;
      left.remove_prefix(comma + 1);
    }
    has_output = arrow != text.npos;
    if (has_output) output = parse_term(text, text.substr(arrow + 2));
  }
};

// `labels` with "..." spelled out as `count` axes.
Labels expanded(const Labels& labels, int count) {
  Labels result;
  for (Label label : labels) {
    if (label != kEllipsis) {
      result.push_back(label);
      continue;
    }
    for (int i = count; i-- > 0;) result.push_back(kBroadcastLabel + i);
  }
  return result;
}

// A term's labels for the axes of `a`.
Labels named_axes(std::string_view subscripts, const Array& a, const Labels& written) {
  bool ellipsis = holds(written, kEllipsis);
  int letters = static_cast<int>(written.size()) - ellipsis;
  if (letters > a.ndim() || (!ellipsis && letters < a.ndim())) {
    throw_subscripts(subscripts, fmt::format("{} labels do not name the axes of {}", letters,
                                             a.view().describe()));
  }
  return expanded(written, a.ndim() - letters);
}

// Without "->": the broadcast axes, then the labels that stand once, in order of the alphabet.
Labels implicit_output(const std::vector<Labels>& inputs, int broadcast) {
  std::array<int, 128> count{};
  for (const Labels& labels : inputs) {
    for (Label label : labels) {
      if (label != kEllipsis) ++count[static_cast<std::size_t>(label)];
    }
  }
  Labels output = expanded({kEllipsis}, broadcast);
  for (Label label = 'A'; label <= 'z'; ++label) {
    if (count[static_cast<std::size_t>(label)] == 1) output.push_back(label);
  }
  return output;
}

Labels explicit_output(std::string_view subscripts, const Labels& written,
                       const std::vector<Labels>& operands, int broadcast) {
  if (broadcast > 0 && !holds(written, kEllipsis)) {
    throw_subscripts(subscripts, "\"...\" stands for axes that the result does not name");
  }
  Labels output = expanded(written, broadcast);
  for (std::size_t i = 0; i < output.size(); ++i) {
    bool known = std::any_of(operands.begin(), operands.end(),
                             [&](const Labels& labels) { return holds(labels, output[i]); });
    bool again = std::find(output.begin(), output.begin() + static_cast<std::ptrdiff_t>(i),
                           output[i]) != output.begin() + static_cast<std::ptrdiff_t>(i);
    if (known && !again) continue;
    throw_subscripts(subscripts,
                     fmt::format("the result's label '{}' {}", static_cast<char>(output[i]),
                                 again ? "stands twice" : "names no operand's axis"));
  }
  return output;
}

}  // namespace

bool holds(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

int axis_of(const Labels& labels, Label label) {
  return static_cast<int>(std::find(labels.begin(), labels.end(), label) - labels.begin());
}

Subscripts parse_subscripts(std::string_view text, std::span<const Array> operands) {
  Written written(text);
  if (operands.empty() || written.inputs.size() != operands.size()) {
    throw_subscripts(
        text, fmt::format("{} terms for {} operands", written.inputs.size(), operands.size()));
  }
  Subscripts subscripts;
  subscripts.text = text;
  int broadcast = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    check_defined("einsum", operands[i]);
    Labels labels = named_axes(text, operands[i], written.inputs[i]);
    for (Label label : labels) broadcast = std::max(broadcast, label - kBroadcastLabel + 1);
    subscripts.operands.push_back(std::move(labels));
  }
  subscripts.result = written.has_output
                          ? explicit_output(text, written.output, subscripts.operands, broadcast)
                          : implicit_output(written.inputs, broadcast);
  return subscripts;
}

}  // namespace rensa::detail

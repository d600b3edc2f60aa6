// ElementwiseKernel: from CuPy's strings to C++ for NVRTC or the machine's compiler.
#include "rensa/kernel/elementwise_source.h"

#include <fmt/format.h>

#include <cctype>

#include "rensa/kernel/source_parts.h"

namespace rensa::detail {

namespace {

class Writer {
 public:
  Writer(const ElementwiseText& text, const ElementwiseLayout& layout)
      : text_(text), layout_(layout) {}

  std::string run() {
    std::vector<Dtype> dtypes;
    for (const ArgumentLayout& a : layout_.arguments) dtypes.push_back(a.dtype);
    out_ = kernel_prelude(layout_.host, layout_.small);
    out_ += placeholder_types(text_.signature, dtypes);
    arguments();
    user("preamble", text_.preamble);
    function();
    return out_;
  }

 private:
  const KernelParameter& parameter(std::size_t k) const { return text_.signature.parameter(k); }
  bool is_input(std::size_t k) const { return text_.signature.is_input(k); }
  bool is_number(std::size_t k) const { return layout_.arguments[k].kind == ArgumentKind::number; }
  bool is_strided_raw(std::size_t k) const {
    return layout_.arguments[k].kind == ArgumentKind::raw && !layout_.arguments[k].contiguous;
  }
  std::string type(std::size_t k) const {
    return std::string(dtype_name(layout_.arguments[k].dtype));
  }

  void user(const char* what, const std::string& text) {
    out_ += user_text(what, text_.signature.name, text);
  }

  void arguments() {
    out_ += "struct rensa_arguments {\n";
    for (std::size_t k = 0; k < layout_.arguments.size(); ++k) {
      if (is_number(k)) continue;
      out_ += fmt::format("  char* data{};\n", k);
      if (layout_.has_strides(k))
        out_ += fmt::format("  long long strides{}[{}];\n", k, layout_.ndim);
      if (is_strided_raw(k)) {
        out_ += fmt::format("  long long extents{0}[{1}], strides{0}[{1}];\n", k,
                            layout_.arguments[k].ndim);
      }
    }
    out_ += fmt::format("  long long extents[{}];\n  long long size;\n", layout_.ndim);
    for (std::size_t k = 0; k < layout_.arguments.size(); ++k) {
      if (is_number(k)) out_ += fmt::format("  alignas(16) {} number{};\n", type(k), k);
    }
    out_ += "};\n";
  }

  void function() {
    if (layout_.host) {
      out_ += fmt::format(
          "extern \"C\" void {}(const void* const* rensa_given, long long rensa_begin, "
          "long long rensa_end) {{\n"
          "  const rensa_arguments& rensa_a = "
          "*static_cast<const rensa_arguments*>(rensa_given[0]);\n",
          text_.signature.name);
    } else {
      out_ += fmt::format(
          "extern \"C\" __global__ void __launch_bounds__(256) {}(const __grid_constant__ "
          "rensa_arguments rensa_a) {{\n"
          "  rensa::cuda::wait_for_previous();\n",
          text_.signature.name);
    }
    out_ +=
        "  [[maybe_unused]] const rensa_index n = (rensa_index)rensa_a.size;\n"
        "  [[maybe_unused]] const rensa_indexer _ind{n};\n";
    raw_arguments();
    user("loop_prep", text_.loop_prep);
    if (layout_.host && is_pure()) blocks();
    else if (layout_.width > 1) packs();
    else loop();
    user("after_loop", text_.after_loop);
    out_ += "}\n";
  }

  /// Element after element, each where it stands.
  void loop() {
    if (layout_.host) {
      bool raw = false;
      for (const ArgumentLayout& a : layout_.arguments) raw |= a.kind == ArgumentKind::raw;
      // An output has exactly the elements of an input or none of them, so no iteration depends on
      // another one.
      if (!raw) out_ += "\n#pragma GCC ivdep";
      out_ +=
          "\n  for (rensa_index i = (rensa_index)rensa_begin; i < (rensa_index)rensa_end; ++i) {\n";
    } else {
      out_ +=
          "\n  for (rensa_index i = blockIdx.x * (rensa_index)blockDim.x + threadIdx.x; i < n;\n"
          "       i += (rensa_index)gridDim.x * blockDim.x) {\n";
    }
    elements();
    operation();
    out_ += "  }\n";
  }

  void operation() {
    out_ += "    {";
    user("operation", text_.operation);
    out_ += "    ;}\n";
  }

  /// Whether the operation does nothing but compute outputs from inputs, for any values.
  bool is_pure() const { return !text_.blocks.empty(); }

  void declare_packs(char name) {
    for_each_element([&](std::size_t k) {
      if (name == 'q' && !layout_.arguments[k].loaded) return;
      out_ += fmt::format("    rensa::Pack<{}, rensa_w> rensa_{}{}{};\n", type(k), name, k,
                          is_pure() ? " = {}" : "");
    });
  }

  void load_packs(char name, const char* at) {
    if (!layout_.straight) offsets(at, true);
    for_each_element([&](std::size_t k) {
      if (!layout_.arguments[k].loaded) return;
      if (layout_.arguments[k].constant) {
        out_ += fmt::format(
            "    rensa_{0}{1}.fill(*reinterpret_cast<const {2}*>(rensa_a.data{1} + rensa_o{1}));\n",
            name, k, type(k));
      } else if (layout_.has_strides(k)) {
        out_ += fmt::format("    rensa_{0}{1}.load(rensa_a.data{1} + rensa_o{1}, 0, rensa_w);\n",
                            name, k);
      } else {
        out_ += fmt::format("    rensa_{0}{1}.load(rensa_a.data{1}, {2}, rensa_left({2}));\n", name,
                            k, at);
      }
    });
  }

  void store_packs() {
    bool strided = false;  // an output is a part of something
    for_each_element([&](std::size_t k) { strided |= !is_input(k) && layout_.has_strides(k); });
    if (strided) offsets("rensa_v", true);
    for_each_element([&](std::size_t k) {
      if (is_input(k)) return;
      if (layout_.has_strides(k)) {
        out_ += fmt::format("    rensa_p{0}.store(rensa_a.data{0} + rensa_o{0}, 0, rensa_w);\n", k);
      } else {
        out_ += fmt::format("    rensa_p{0}.store(rensa_a.data{0}, rensa_v, rensa_count);\n", k);
      }
    });
  }

  /// `width` elements at once, all of one row: arrays are read and written by packs, what is left
  /// at the end of straight ones by elements.
  void packs() {
    out_ += fmt::format(
        "\n  constexpr int rensa_w = {};\n"
        "  const auto rensa_left = [&](rensa_index v) {{\n"
        "    return n - v * rensa_w < rensa_w ? (int)(n - v * rensa_w) : rensa_w;\n  }};\n"
        "  const rensa_index rensa_step = (rensa_index)gridDim.x * blockDim.x;\n"
        "  rensa_index rensa_v = blockIdx.x * (rensa_index)blockDim.x + threadIdx.x;\n",
        layout_.width);
    // Ahead of a pure operation the next pack is on its way: memory does not wait for arithmetic.
    int loads = 0;
    for_each_element([&](std::size_t k) { loads += layout_.arguments[k].loaded; });
    bool ahead = is_pure() && loads <= 4;
    if (ahead) {
      declare_packs('q');
      out_ += "  if (rensa_v * rensa_w < n) {\n";
      load_packs('q', "rensa_v");
      out_ += "  }\n";
    }
    out_ += "  for (; rensa_v * rensa_w < n; rensa_v += rensa_step) {\n";
    declare_packs('p');
    if (ahead) {
      for_each_element([&](std::size_t k) {
        if (layout_.arguments[k].loaded) out_ += fmt::format("    rensa_p{0} = rensa_q{0};\n", k);
      });
      out_ += "    if ((rensa_v + rensa_step) * rensa_w < n) {\n";
      load_packs('q', "rensa_v + rensa_step");
      out_ += "    }\n";
    } else {
      out_ += "    {\n";
      load_packs('p', "rensa_v");
      out_ += "    }\n";
    }
    out_ += "    const int rensa_count = rensa_left(rensa_v);\n";
    out_ += "#pragma unroll\n    for (int rensa_e = 0; rensa_e < rensa_w; ++rensa_e) {\n";
    // A pure operation is computed for all elements of a pack, so that no branch keeps the compiler
    // from doing so side by side.
    if (!is_pure()) out_ += "    if (rensa_e >= rensa_count) break;\n";
    out_ += "    [[maybe_unused]] const rensa_index i = rensa_v * rensa_w + rensa_e;\n";
    for_each_element([&](std::size_t k) {
      out_ += fmt::format("    {}{}& {} = rensa_p{}.value[rensa_e];\n", is_input(k) ? "const " : "",
                          type(k), parameter(k).name, k);
    });
    operation();
    out_ += "    }\n";
    store_packs();
    out_ += "  }\n";
  }

  /// kHostBlock elements at once, of one row: read to where the operation finds them, padded at the
  /// end, and written back.
  void blocks() {
    out_ += fmt::format(
        "\n  constexpr int rensa_w = {};\n"
        "  for (rensa_index i = (rensa_index)rensa_begin, rensa_n; i < (rensa_index)rensa_end; "
        "i += rensa_n) {{\n"
        "    rensa_n = min<rensa_index>(rensa_w, (rensa_index)rensa_end - i);\n",
        kHostBlock);
    if (!layout_.straight) {
      offsets("i", false);
      out_ += fmt::format(
          "    rensa_n = min<rensa_index>(rensa_n, (rensa_index)rensa_a.extents[{0}] - "
          "rensa_r{0});\n",
          layout_.ndim - 1);
    }
    for_each_element([&](std::size_t k) {
      std::string at = layout_.straight ? fmt::format("(long long)i * (int)sizeof({})", type(k))
                                        : fmt::format("rensa_o{}", k);
      out_ += fmt::format(
          "    {0} {1}[rensa_w];\n    char* const rensa_d{2} = rensa_a.data{2} + {3};\n", type(k),
          parameter(k).name, k, at);
      if (!layout_.arguments[k].loaded) return;
      out_ += fmt::format(
          "\n#pragma GCC unroll 1\n    for (int e = 0; e < rensa_n; ++e) {0}[e] = {1};\n"
          "    for (int e = (int)rensa_n; e < rensa_w; ++e) {0}[e] = {0}[0];\n",
          parameter(k).name, element_of_block(k));
    });
    out_ += text_.blocks;
    for_each_element([&](std::size_t k) {
      if (is_input(k)) return;
      out_ +=
          fmt::format("\n#pragma GCC unroll 1\n    for (int e = 0; e < rensa_n; ++e) {} = {}[e];\n",
                      element_of_block(k), parameter(k).name);
    });
    out_ += "  }\n";
  }

  std::string element_of_block(std::size_t k) const {
    if (layout_.straight) return fmt::format("reinterpret_cast<{}*>(rensa_d{})[e]", type(k), k);
    return fmt::format("*reinterpret_cast<{0}*>(rensa_d{1} + e * rensa_a.strides{1}[{2}])", type(k),
                       k, layout_.ndim - 1);
  }

  template <class F> void for_each_element(F&& f) const {
    for (std::size_t k = 0; k < layout_.arguments.size(); ++k) {
      if (layout_.arguments[k].kind == ArgumentKind::element) f(k);
    }
  }

  /// What holds for all elements: numbers and raw arrays.
  void raw_arguments() {
    for (std::size_t k = 0; k < layout_.arguments.size(); ++k) {
      const std::string& name = parameter(k).name;
      std::string element = (is_input(k) ? "const " : "") + type(k);
      if (is_number(k)) {
        out_ += fmt::format("  const {} {} = rensa_a.number{};\n", type(k), name, k);
      } else if (is_strided_raw(k)) {
        out_ += fmt::format(
            "  const rensa_raw<{0}, {1}> {2}{{rensa_a.data{3}, rensa_a.extents{3}, "
            "rensa_a.strides{3}}};\n",
            element, layout_.arguments[k].ndim, name, k);
      } else if (layout_.arguments[k].kind == ArgumentKind::raw) {
        out_ += fmt::format("  {0}* const {1} = reinterpret_cast<{0}*>(rensa_a.data{2});\n",
                            element, name, k);
      }
    }
  }

  void elements() {
    if (!layout_.straight) offsets("i", false);
    for_each_element([&](std::size_t k) {
      std::string at =
          !layout_.has_strides(k)
              ? fmt::format("reinterpret_cast<{}*>(rensa_a.data{})[i]", type(k), k)
              : fmt::format("*reinterpret_cast<{}*>(rensa_a.data{} + rensa_o{})", type(k), k, k);
      out_ +=
          fmt::format("    {}{} = {};\n", is_input(k) ? "const " + type(k) + " " : type(k) + "& ",
                      parameter(k).name, at);
    });
  }

  /// Where element `index` stands in each array; with `packs` the index-th pack.
  void offsets(const char* index, bool packs) {
    for (std::size_t k = 0; k < layout_.arguments.size(); ++k) {
      if (layout_.has_strides(k)) out_ += fmt::format("    long long rensa_o{} = 0;\n", k);
    }
    out_ += fmt::format("    rensa_index rensa_rest = {};\n", index);
    for (int axis = layout_.ndim - 1; axis >= 0; --axis) {
      bool by_packs = packs && axis == layout_.ndim - 1;
      if (axis > 0) {
        out_ += fmt::format(
            "    rensa_index rensa_extent{0} = (rensa_index)rensa_a.extents[{0}]{1},\n"
            "                rensa_rows{0} = rensa_rest / rensa_extent{0},\n"
            "                rensa_r{0} = rensa_rest - rensa_rows{0} * rensa_extent{0};\n"
            "    rensa_rest = rensa_rows{0};\n",
            axis, by_packs ? " / rensa_w" : "");
      } else {
        out_ += "    rensa_index rensa_r0 = rensa_rest;\n";
      }
      for (std::size_t k = 0; k < layout_.arguments.size(); ++k) {
        if (!layout_.has_strides(k)) continue;
        out_ += fmt::format("    rensa_o{0} += rensa_r{1} * rensa_a.strides{0}[{1}]{2};\n", k, axis,
                            by_packs ? " * rensa_w" : "");
      }
    }
  }

  const ElementwiseText& text_;
  const ElementwiseLayout& layout_;
  std::string out_;
};

}  // namespace

bool surely_assigned(const std::string& operation, const std::string& name) {
  auto is_word = [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)); };
  auto next_visible = [&](std::size_t at) { return operation.find_first_not_of(" \t\n", at); };
  bool starts = true;  // a statement
  for (std::size_t at = next_visible(0); at != std::string::npos; at = next_visible(at)) {
    char c = operation[at];
    if (!is_word(c)) {
      if (std::string("{}#/\"'?").find(c) != std::string::npos) return false;  // not worth knowing
      starts = c == ';';
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < operation.size() && is_word(operation[end])) ++end;
    std::string word = operation.substr(at, end - at);
    if (word == name) {
      std::size_t equals = next_visible(end);
      return starts && equals != std::string::npos && operation[equals] == '=' &&
             operation.compare(equals, 2, "==") != 0;
    }
    for (const char* jump :
         {"if", "else", "for", "while", "do", "switch", "goto", "return", "continue", "break"}) {
      if (word == jump) return false;
    }
    starts = false;
    at = end;
  }
  return false;
}

std::string ElementwiseLayout::key() const {
  std::string key;
  for (const ArgumentLayout& a : arguments) {
    key += static_cast<char>('A' + static_cast<int>(a.dtype));
    key += static_cast<char>('0' + static_cast<int>(a.kind));
    key += a.contiguous ? '-' : static_cast<char>('0' + a.ndim);
    key += a.loaded ? 'r' : 'w';
    key += a.constant ? 'c' : a.flat ? 'f' : '-';
  }
  key += static_cast<char>('0' + ndim);
  key += straight ? 's' : 'g';
  key += small ? 'i' : 'l';
  key += static_cast<char>('0' + width);
  key += host ? 'h' : 'd';
  return key;
}

std::string elementwise_source(const ElementwiseText& text, const ElementwiseLayout& layout) {
  return Writer(text, layout).run();
}

}  // namespace rensa::detail

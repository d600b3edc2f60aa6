// ReductionKernel: from CuPy's strings to C++ for NVRTC or the machine's compiler.
#include "rensa/kernel/reduction_source.h"

#include <fmt/format.h>

#include "rensa/kernel/elementwise_source.h"
#include "rensa/kernel/source_parts.h"

namespace rensa::detail {

namespace {

class Writer {
 public:
  Writer(const ReductionText& text, const ReductionLayout& layout) : text_(text), layout_(layout) {}

  std::string run() {
    std::vector<Dtype> dtypes;
    for (const ReductionArgument& a : layout_.arguments) dtypes.push_back(a.dtype);
    out_ = kernel_prelude(layout_.host, layout_.small && !layout_.host);
    out_ += placeholder_types(text_.signature, dtypes);
    out_ += fmt::format("#include \"rensa/portable/{}_reduction.h\"\n",
                        layout_.host ? "host" : "device");
    out_ += user_text("preamble", text_.signature.name, text_.preamble);
    arguments();
    reducer();
    kernel();
    return out_;
  }

 private:
  template <class... A> void add(fmt::format_string<A...> format, A&&... values) {
    out_ += fmt::format(format, std::forward<A>(values)...);
  }
  void user(const char* what, const std::string& text) {
    out_ += user_text(what, text_.signature.name, text);
  }
  const std::string& name(std::size_t k) const { return text_.signature.parameter(k).name; }
  std::string type(std::size_t k) const {
    return std::string(dtype_name(layout_.arguments[k].dtype));
  }
  template <class F> void for_each(ArgumentKind kind, F&& f) const {
    for (std::size_t k = 0; k < layout_.arguments.size(); ++k) {
      if (layout_.arguments[k].kind == kind) f(k, layout_.arguments[k]);
    }
  }

  void arguments() {
    add("struct rensa_arguments : rensa::{0} {{\n"
        "  rensa::{1} kept_extents[{2}], reduced_extents[{3}];\n",
        layout_.host ? "host::ReduceParts" : "cuda::ReduceBlocks",
        layout_.host || !layout_.small ? "PlainDiv" : "FastDiv", layout_.kept_ndim,
        layout_.reduced_ndim);
    for (std::size_t k = 0; k < layout_.arguments.size(); ++k) {
      const ReductionArgument& a = layout_.arguments[k];
      if (a.kind == ArgumentKind::number) continue;
      add("  char* data{};\n", k);
      if (a.kind == ArgumentKind::raw) {
        if (!a.contiguous) add("  long long extents{0}[{1}], strides{0}[{1}];\n", k, a.ndim);
        continue;
      }
      add("  long long kept{}[{}];\n", k, layout_.kept_ndim);
      if (a.kind == ArgumentKind::element) {
        add("  long long reduced{}[{}];\n", k, layout_.reduced_ndim);
      }
      if (layout_.columns) add("  long long along{};\n", k);
    }
    for_each(ArgumentKind::number, [&](std::size_t k, const ReductionArgument&) {
      add("  alignas(16) {} number{};\n", type(k), k);
    });
    out_ += "};\n";
  }

  void reducer() {
    int inputs = 0;
    for_each(ArgumentKind::element, [&](std::size_t, const ReductionArgument&) { ++inputs; });
    add("typedef {} _type_reduce;\n"
        "struct rensa_reducer {{\n  typedef rensa_arguments arguments;\n"
        "  typedef rensa_index index;\n  typedef _type_reduce acc;\n"
        "  static_assert(sizeof(acc) <= 64, \"the reduce_type may have 64 bytes\");\n"
        "  enum {{ kInputs = {}, kKept = {}, kReduced = {}, kWidth = {} }};\n"
        "  static RENSA_FN acc identity() {{\n    return acc(\n",
        text_.reduce_type, std::max(inputs, 1), layout_.kept_ndim, layout_.reduced_ndim,
        layout_.width);
    user("identity", text_.identity);
    out_ += ");\n  }\n  static RENSA_FN acc combine(const acc a, const acc b) {\n    return acc(\n";
    user("reduce", text_.reduce);
    out_ += ");\n  }\n";
    kept_offsets();
    reduced_offsets();
    if (layout_.host) {
      host_map();
      host_post();
    } else {
      elements();
      device_map();
      device_post();
    }
    out_ += "};\n";
  }

  /// "position[0] * rensa_a.kept3[0] + ...", of an array's kept axes.
  std::string kept_offset(std::size_t k) const {
    std::string sum = layout_.columns ? fmt::format("column * rensa_a.along{}", k) : "0";
    for (int axis = 0; axis < layout_.kept_ndim; ++axis) {
      sum += fmt::format(" + position[{0}] * rensa_a.kept{1}[{0}]", axis, k);
    }
    return sum;
  }

  void kept_offsets() {
    out_ +=
        "  static RENSA_FN void kept_offsets(const arguments& rensa_a, const index* position, "
        "[[maybe_unused]] index column, long long* offset) {\n    offset[0] = 0;\n";
    int input = 0;
    for_each(ArgumentKind::element, [&](std::size_t k, const ReductionArgument&) {
      add("    offset[{}] = {};\n", input++, kept_offset(k));
    });
    out_ += "  }\n";
  }

  void reduced_offsets() {
    // `at` is an index on a GPU, and on the host the position on each axis.
    add("  static RENSA_FN void reduced_offsets(const arguments& rensa_a, {} at, const long long* "
        "base, long long* offset) {{\n    offset[0] = 0;\n",
        layout_.host ? "const index*" : "index");
    if (!layout_.host && layout_.reduced_ndim > 1) {
      out_ +=
          "    index position[kReduced];\n"
          "    rensa::split_index(at, rensa_a.reduced_extents, position);\n";
    }
    int input = 0;
    for_each(ArgumentKind::element, [&](std::size_t k, const ReductionArgument&) {
      add("    offset[{0}] = base[{0}]", input++);
      for (int axis = 0; axis < layout_.reduced_ndim; ++axis) {
        std::string position = layout_.host               ? fmt::format("at[{}]", axis)
                               : layout_.reduced_ndim > 1 ? fmt::format("position[{}]", axis)
                                                          : "at";
        add(" + {} * rensa_a.reduced{}[{}]", position, k, axis);
      }
      out_ += ";\n";
    });
    out_ += "  }\n";
  }

  /// Numbers, raw arrays and the sizes, by the names that the user's text has for them.
  void constants() {
    out_ +=
        "    [[maybe_unused]] const rensa_indexer _in_ind{(index)(rensa_a.outputs * "
        "rensa_a.count)}, _ind = _in_ind, "
        "_out_ind{(index)rensa_a.outputs};\n";
    for (std::size_t k = 0; k < layout_.arguments.size(); ++k) {
      const ReductionArgument& a = layout_.arguments[k];
      if (a.kind == ArgumentKind::number) {
        add("    [[maybe_unused]] const {} {} = rensa_a.number{};\n", type(k), name(k), k);
      } else if (a.kind == ArgumentKind::raw && a.contiguous) {
        add("    const {0}* const {1} = reinterpret_cast<const {0}*>(rensa_a.data{2});\n", type(k),
            name(k), k);
      } else if (a.kind == ArgumentKind::raw) {
        add("    const rensa_raw<const {0}, {1}> {2}{{rensa_a.data{3}, rensa_a.extents{3}, "
            "rensa_a.strides{3}}};\n",
            type(k), a.ndim, name(k), k);
      }
    }
  }

  void mapped(const char* result) {
    out_ += "    [[maybe_unused]] const index _j = i + _J * (index)rensa_a.outputs;\n";
    out_ += text_.map_statements;
    add("    {} acc(\n", result);
    user("map", text_.map);
    out_ += ");\n";
  }

  // --- on a GPU ---

  void elements() {
    out_ += "  struct elements {\n";
    for_each(ArgumentKind::element, [&](std::size_t k, const ReductionArgument& a) {
      if (a.along == Along::dense) add("    rensa::Pack<{}, {}> p{};\n", type(k), layout_.width, k);
      else add("    {} p{};\n", type(k), k);
    });
    out_ +=
        "    template <bool kFull> __device__ __forceinline__ void load(const arguments& rensa_a, "
        "const long long* offset, [[maybe_unused]] int left) {\n";
    int input = 0;
    for_each(ArgumentKind::element, [&](std::size_t k, const ReductionArgument& a) {
      std::string at = fmt::format("rensa_a.data{} + offset[{}]", k, input++);
      if (a.along != Along::dense) {
        add("      p{0} = *reinterpret_cast<const {1}*>({2});\n", k, type(k), at);
      } else if (layout_.aligned) {
        add("      p{}.load({}, 0, kFull ? (int)kWidth : left);\n", k, at);
      } else {
        add("#pragma unroll\n      for (int j = 0; j < kWidth; ++j) if (kFull || j < left) "
            "p{0}.value[j] = reinterpret_cast<const {1}*>({2})[j];\n",
            k, type(k), at);
      }
    });
    out_ += "    }\n  };\n";
  }

  void device_map() {
    out_ +=
        "  static __device__ __forceinline__ acc map(const arguments& rensa_a, const elements& "
        "rensa_e, [[maybe_unused]] int rensa_lane, [[maybe_unused]] const index _J, "
        "[[maybe_unused]] const index i) {\n";
    constants();
    for_each(ArgumentKind::element, [&](std::size_t k, const ReductionArgument& a) {
      add("    [[maybe_unused]] const {} {} = rensa_e.p{}{};\n", type(k), name(k), k,
          a.along == Along::dense ? ".value[rensa_lane]" : "");
    });
    mapped("return");
    out_ += "  }\n";
  }

  void device_post() {
    out_ +=
        "  static __device__ __forceinline__ void post(const arguments& rensa_a, const index* "
        "position, [[maybe_unused]] index column, [[maybe_unused]] const index i, const acc a) {\n";
    constants();
    for_each(ArgumentKind::kept, [&](std::size_t k, const ReductionArgument& a) {
      add("    {0}{1}& {2} = *reinterpret_cast<{0}{1}*>(rensa_a.data{3} + {4});\n",
          a.written ? "" : "const ", type(k), name(k), k, kept_offset(k));
    });
    user("post", text_.post);
    out_ += "    ;}\n";
  }

  // --- on a CPU ---

  /// Bytes from an element of a run to the next.
  std::string step(std::size_t k, const ReductionArgument& a) const {
    if (layout_.columns) return fmt::format("rensa_a.along{}", k);
    if (a.kind == ArgumentKind::kept) {
      return fmt::format("rensa_a.kept{}[{}]", k, layout_.kept_ndim - 1);
    }
    return fmt::format("rensa_a.reduced{}[{}]", k, layout_.reduced_ndim - 1);
  }

  /// Element `e` of a run that starts at `at`.
  std::string element(std::size_t k, const ReductionArgument& a, const std::string& at,
                      const char* e) const {
    if (a.along == Along::dense) return fmt::format("(({}*)({}))[{}]", type(k), at, e);
    if (a.along == Along::constant) return fmt::format("*({}*)({})", type(k), at);
    return fmt::format("*({}*)({} + ({}) * {})", type(k), at, e, step(k, a));
  }

  void block_loop() {
    add("    constexpr int rensa_w = {};\n"
        "    for (index rensa_0 = 0; rensa_0 < rensa_n; rensa_0 += rensa_w) {{\n"
        "    const int rensa_m = (int)min<index>(rensa_w, rensa_n - rensa_0);\n",
        kHostBlock);
  }

  void read_block(std::size_t k, const ReductionArgument& a, const std::string& at) {
    add("    {0} {1}[rensa_w];\n"
        "    for (int e = 0; e < rensa_m; ++e) {1}[e] = {2};\n"
        "    for (int e = rensa_m; e < rensa_w; ++e) {1}[e] = {1}[0];\n",
        type(k), name(k), element(k, a, at, "rensa_0 + e"));
  }

  void host_map() {
    out_ +=
        "  __attribute__((noinline)) static void run(const arguments& rensa_a, [[maybe_unused]] "
        "const long long* rensa_o, "
        "const index rensa_n, [[maybe_unused]] const index rensa_J, [[maybe_unused]] const index "
        "rensa_i, acc* __restrict rensa_values) {\n";
    constants();
    bool blocks = !text_.map_blocks.empty();
    if (blocks) block_loop();
    else
      out_ += "\n#pragma GCC ivdep\n    for (index rensa_k = 0; rensa_k < rensa_n; ++rensa_k) {\n";
    int input = 0;
    for_each(ArgumentKind::element, [&](std::size_t k, const ReductionArgument& a) {
      std::string at = fmt::format("rensa_a.data{} + rensa_o[{}]", k, input++);
      if (blocks) {
        read_block(k, a, at);
      } else {
        add("    [[maybe_unused]] const {} {} = {};\n", type(k), name(k),
            element(k, a, at, "rensa_k"));
      }
    });
    if (blocks) {
      out_ += "    acc rensa_mapped[rensa_w];\n" + text_.map_blocks;
      out_ +=
          "    for (int e = 0; e < rensa_m; ++e) rensa_values[rensa_0 + e] = rensa_mapped[e];\n";
    } else {
      add("    [[maybe_unused]] const index _J = rensa_J{}, i = rensa_i{};\n",
          layout_.columns ? "" : " + rensa_k", layout_.columns ? " + rensa_k" : "");
      mapped("rensa_values[rensa_k] =");
    }
    out_ += "    }\n  }\n";
  }

  void host_post() {
    out_ +=
        "  __attribute__((noinline)) static void post(const arguments& rensa_a, const index* "
        "position, [[maybe_unused]] "
        "index column, const index rensa_n, [[maybe_unused]] const index rensa_i, const acc* "
        "__restrict rensa_values) {\n";
    constants();
    for_each(ArgumentKind::kept, [&](std::size_t k, const ReductionArgument&) {
      add("    char* const rensa_d{0} = rensa_a.data{0} + {1};\n", k, kept_offset(k));
    });
    bool blocks = !text_.post_blocks.empty();
    auto at = [](std::size_t k) { return fmt::format("rensa_d{}", k); };
    if (!blocks) {
      out_ +=
          "    for (index rensa_k = 0; rensa_k < rensa_n; ++rensa_k) {\n"
          "    [[maybe_unused]] const index i = rensa_i + rensa_k;\n"
          "    const acc a = rensa_values[rensa_k];\n";
      for_each(ArgumentKind::kept, [&](std::size_t k, const ReductionArgument& a) {
        add("    {}{}& {} = {};\n", a.written ? "" : "const ", type(k), name(k),
            element(k, a, at(k), "rensa_k"));
      });
      user("post", text_.post);
      out_ += "    ;}\n  }\n";
      return;
    }
    block_loop();
    for_each(ArgumentKind::kept, [&](std::size_t k, const ReductionArgument& a) {
      if (a.written) add("    {} {}[rensa_w];\n", type(k), name(k));
      else read_block(k, a, at(k));
    });
    out_ +=
        "    acc a[rensa_w];\n"
        "    for (int e = 0; e < rensa_w; ++e) a[e] = rensa_values[rensa_0 + (e < rensa_m ? e : "
        "0)];\n" +
        text_.post_blocks;
    for_each(ArgumentKind::kept, [&](std::size_t k, const ReductionArgument& a) {
      if (!a.written) return;
      add("    for (int e = 0; e < rensa_m; ++e) {} = {}[e];\n",
          element(k, a, at(k), "rensa_0 + e"), name(k));
    });
    out_ += "    }\n  }\n";
  }

  void kernel() {
    const char* form = layout_.columns ? "columns" : "rows";
    if (layout_.host) {
      add("extern \"C\" void {}(const void* const* rensa_given, long long rensa_begin, long long "
          "rensa_end) {{\n"
          "  rensa::host::run_{}<rensa_reducer>(*static_cast<const "
          "rensa_arguments*>(rensa_given[0]), rensa_begin, rensa_end);\n}}\n",
          text_.signature.name, form);
    } else {
      add("extern \"C\" __global__ void __launch_bounds__(256) {}(const __grid_constant__ "
          "rensa_arguments rensa_a) {{\n"
          "  rensa::cuda::reduce_{}_of<rensa::cuda::Generated<rensa_reducer>>(rensa_a);\n}}\n",
          text_.signature.name, form);
    }
  }

  const ReductionText& text_;
  const ReductionLayout& layout_;
  std::string out_;
};

}  // namespace

std::string ReductionLayout::key() const {
  std::string key;
  for (const ReductionArgument& a : arguments) {
    key += static_cast<char>('A' + static_cast<int>(a.dtype));
    key += static_cast<char>('0' + static_cast<int>(a.kind));
    key += static_cast<char>('0' + static_cast<int>(a.along));
    key += a.contiguous ? '-' : static_cast<char>('0' + a.ndim);
  }
  key += static_cast<char>('0' + kept_ndim);
  key += static_cast<char>('0' + reduced_ndim);
  key += static_cast<char>('0' + width);
  for (bool flag : {columns, aligned, small, host}) key += flag ? 'y' : 'n';
  return key;
}

std::string reduction_source(const ReductionText& text, const ReductionLayout& layout) {
  return Writer(text, layout).run();
}

}  // namespace rensa::detail

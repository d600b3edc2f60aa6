// What stands in front of every generated kernel.
#include "rensa/kernel/source_parts.h"

#include <fmt/format.h>

#include <cctype>

namespace rensa::detail {

std::string kernel_prelude(bool host, bool small) {
  std::string text = host ? "#define RENSA_RUN_TIME 1\n#include <algorithm>\n#include "
                            "\"rensa/backend/cpu/vector_math.h\"\nusing namespace std;\n"
                          : "#include \"rensa/portable/block.h\"\n";
  // The 16-bit floats compute as float; assigning one rounds to nearest even.
  text +=
      "#include \"rensa/core/functors.h\"\n#include \"rensa/portable/pack.h\"\n"
      "typedef signed char int8;\ntypedef short int16;\ntypedef int int32;\n"
      "typedef long long int64;\ntypedef unsigned char uint8;\ntypedef unsigned short uint16;\n"
      "typedef unsigned int uint32;\ntypedef unsigned long long uint64;\n"
      "typedef float float32;\ntypedef double float64;\n"
      "typedef rensa::complex_t<float> complex64;\n"
      "typedef rensa::complex_t<double> complex128;\n"
      "struct float16 : rensa::half_t {\n  float16() = default;\n"
      "  RENSA_FN float16(float f) : rensa::half_t(f) {}\n};\n"
      "struct bfloat16 : rensa::bfloat16_t {\n  bfloat16() = default;\n"
      "  RENSA_FN bfloat16(float f) : rensa::bfloat16_t(f) {}\n};\n"
      "template <class T, int N> struct rensa_raw {\n  char* data;\n"
      "  const long long *extents, *strides;\n"
      "  RENSA_FN T& operator[](long long i) const {\n"
      "    char* at = data;\n"
      "    for (int axis = N - 1; axis >= 0; --axis) {\n"
      "      at += i % extents[axis] * strides[axis];\n      i /= extents[axis];\n    }\n"
      "    return *reinterpret_cast<T*>(at);\n  }\n};\n";
  text += fmt::format("typedef {} rensa_index;\n", small ? "int" : "long long");
  return text +
         "struct rensa_indexer {\n  rensa_index n;\n"
         "  RENSA_FN rensa_index size() const { return n; }\n};\n";
}

std::string placeholder_types(const KernelSignature& signature, const std::vector<Dtype>& dtypes) {
  std::string text, known;
  for (std::size_t k = 0; k < signature.size(); ++k) {
    const KernelParameter& p = signature.parameter(k);
    if (p.dtype || known.find(p.type) != std::string::npos) continue;
    known += p.type;
    text += fmt::format("typedef {} {};\n", dtype_name(dtypes[k]), p.type);
  }
  return text;
}

std::string user_text(const char* what, const std::string& kernel, const std::string& text) {
  if (text.empty()) return {};
  return fmt::format("\n#line 1 \"{0} of {1}\"\n{2}\n#line 1 \"kernel {1}\"\n", what, kernel, text);
}

bool has_word(const std::string& text, const std::string& word) {
  auto is_word = [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)); };
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    std::size_t end = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) {
      return true;
    }
  }
  return false;
}

}  // namespace rensa::detail

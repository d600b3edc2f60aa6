// Lines of files, and runs of tokens.
#include "rensa/data/text_datasets.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>
#include <utility>

#include "rensa/array/manipulation.h"
#include "rensa/core/error.h"
#include "rensa/core/files.h"

namespace rensa::datasets {

namespace {

/// A file's lines, of which only the beginnings are in memory.
class LineFile {
 public:
  explicit LineFile(const std::string& path) : file_(path, FileMapping::Mode::read) {
    const char* begin = file_.data();
    const char* end = begin + file_.size();
    for (const char* line = begin; line != end;) {
      starts_.push_back(line - begin);
      const void* newline = std::memchr(line, '\n', static_cast<std::size_t>(end - line));
      line = newline ? static_cast<const char*>(newline) + 1 : end;
    }
    starts_.push_back(end - begin);
  }
  std::int64_t size() const { return static_cast<std::int64_t>(starts_.size()) - 1; }
  std::string line(std::int64_t i) const {
    std::int64_t start = starts_[static_cast<std::size_t>(i)];
    std::int64_t end = starts_[static_cast<std::size_t>(i) + 1];
    std::string_view text(file_.data() + start, static_cast<std::size_t>(end - start));
    if (text.ends_with('\n')) text.remove_suffix(1);
    if (text.ends_with('\r')) text.remove_suffix(1);
    return std::string(text);
  }

 private:
  FileMapping file_;
  std::vector<std::int64_t> starts_;  // of each line, and the end
};

void check_tokens(const char* name, const Array& tokens, std::int64_t least) {
  if (tokens.ndim() != 1) {
    throw ShapeError(fmt::format("{}: tokens of shape {}; give a 1-dimensional array", name,
                                 tokens.shape().str()));
  }
  if (tokens.size() < least) {
    throw ShapeError(
        fmt::format("{}: {} tokens, where a run takes {}", name, tokens.size(), least));
  }
}

}  // namespace

class TextDataset::Body final : public DatasetBody {
 public:
  Body(const std::vector<std::string>& paths, std::function<Columns(const Lines&)> encode,
       const std::function<bool(const Lines&)>& filter)
      : encode_(std::move(encode)) {
    if (paths.empty()) throw ValueError("TextDataset: no files");
    for (const std::string& path : paths) {
      files_.push_back(std::make_unique<LineFile>(path));
      if (files_.back()->size() == files_[0]->size()) continue;
      throw ValueError(fmt::format("TextDataset: {} has {} lines, {} has {}", paths[0],
                                   files_[0]->size(), path, files_.back()->size()));
    }
    size_ = files_[0]->size();
    if (!filter) return;
    for (std::int64_t row = 0; row < size_; ++row) {
      if (filter(lines_of(row))) rows_.push_back(row);
    }
    is_filtered_ = true;
    size_ = static_cast<std::int64_t>(rows_.size());
  }
  std::int64_t size() const override { return size_; }
  Columns example(std::int64_t i, std::uint64_t) const override { return encode_(lines(i)); }
  Lines lines(std::int64_t i) const {
    return lines_of(is_filtered_ ? rows_[static_cast<std::size_t>(i)] : i);
  }

 private:
  Lines lines_of(std::int64_t row) const {
    Lines lines;
    for (const auto& file : files_) lines.push_back(file->line(row));
    return lines;
  }

  std::function<Columns(const Lines&)> encode_;
  std::vector<std::unique_ptr<LineFile>> files_;
  std::vector<std::int64_t> rows_;  // that the filter has left
  bool is_filtered_ = false;
  std::int64_t size_ = 0;
};

TextDataset::TextDataset(std::vector<std::string> paths,
                         std::function<Columns(const Lines&)> encode,
                         const std::function<bool(const Lines&)>& filter)
    : TextDataset(std::make_shared<const Body>(paths, std::move(encode), filter)) {}

TextDataset::TextDataset(std::shared_ptr<const Body> text)
    : Dataset(text), text_(std::move(text)) {}

TextDataset::Lines TextDataset::lines(std::int64_t i) const {
  if (i < 0 || i >= size()) {
    throw IndexError(fmt::format("TextDataset: example {} of {}", i, size()));
  }
  return text_->lines(i);
}

TupleDataset ngrams(const Array& tokens, std::int64_t n) {
  if (n < 2) throw ValueError(fmt::format("ngrams: n is 2 or more, not {}", n));
  check_tokens("ngrams", tokens, n);
  Array runs = xp::lib::stride_tricks::sliding_window_view(tokens, n, 0);
  return TupleDataset(runs[{Slice(), Slice(none, n - 1)}], runs[{Slice(), n - 1}]);
}

TupleDataset token_sequences(const Array& tokens, std::int64_t length, std::int64_t stride) {
  if (length < 1 || stride < 0) {
    throw ValueError(
        fmt::format("token_sequences: a length of {} and a stride of {}", length, stride));
  }
  check_tokens("token_sequences", tokens, length + 1);
  Array runs = xp::lib::stride_tricks::sliding_window_view(tokens, length + 1, 0);
  runs = runs[Slice(none, none, stride == 0 ? length : stride)];
  return TupleDataset(runs[{Slice(), Slice(none, length)}], runs[{Slice(), Slice(1, none)}]);
}

}  // namespace rensa::datasets

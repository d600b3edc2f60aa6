// Datasets of text: lines of files, and what token numbers follow one another.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rensa/data/dataset.h"

namespace rensa::datasets {

/// The lines of text files. Example i is what `encode` makes of line i of each file: two files may
/// hold the sentences of two languages. Files are read as lines are asked for; where the lines
/// begin is kept in memory, 8 bytes a line.
///   datasets::TextDataset pairs({"en.txt", "fr.txt"}, [&](const auto& lines) {
///     return Columns{source.encode(lines[0]), target.encode(lines[1])};
///   });
class TextDataset : public Dataset {
 public:
  using Lines = std::vector<std::string>;  // one of each file, without its "\n" or "\r\n"
  /// `encode` may be called from several threads at once. With a `filter`, which is called once for
  /// each example here, those are left out for which it is false. Throws ValueError for no files,
  /// or files whose numbers of lines differ, SerializationError for a file that cannot be read. A
  /// file that is made shorter afterwards ends the program where the missing part is read.
  TextDataset(std::vector<std::string> paths, std::function<Columns(const Lines&)> encode,
              const std::function<bool(const Lines&)>& filter = {});
  /// What `encode` is given for example i. Throws IndexError outside [0, size()).
  Lines lines(std::int64_t i) const;

 private:
  class Body;
  explicit TextDataset(std::shared_ptr<const Body> text);
  std::shared_ptr<const Body> text_;
};

/// All runs of n numbers in `tokens` (m,): the columns (m - n + 1, n - 1), what is seen, and
/// (m - n + 1,), what comes next. Views of `tokens`, on its device: nothing is copied. Throws
/// ShapeError where `tokens` is not 1-dimensional or has fewer than n elements, ValueError for
/// n < 2.
TupleDataset ngrams(const Array& tokens, std::int64_t n);

/// Runs of `length` numbers in `tokens` (m,), each with the run that is one further: two columns
/// (k, length), x and what comes after each of x. One run begins `stride` behind the other, or
/// `length` where that is 0; what is left at the end is left out. Views of `tokens`, on its device.
/// Throws ShapeError where `tokens` is not 1-dimensional or has fewer than length + 1 elements,
/// ValueError for a length below 1 or a negative stride.
TupleDataset token_sequences(const Array& tokens, std::int64_t length, std::int64_t stride = 0);

}  // namespace rensa::datasets

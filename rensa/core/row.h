// Row: an entry of a table, as a value.
#pragma once

namespace rensa {

/// An entry of a table whose entries are objects of type Info, each with its place in the table as
/// `number`. It is as small as a pointer and equal to itself alone. Rows are named by the objects
/// (ufunc::add, reduction::sum), which the linker finds: who names one reads no table, so that a
/// new row compiles nothing anew but what is made of every row.
template <class Info> class Row {
 public:
  /// No row.
  constexpr Row() = default;
  constexpr Row(const Info& info) : info_(&info) {}
  Row(const Info&&) = delete;
  constexpr const Info& info() const { return *info_; }  // the row; not of none
  /// From 0 on, without gaps; not the same from one version of the library to the next.
  int number() const { return info_->number; }
  friend constexpr bool operator==(Row a, Row b) { return a.info_ == b.info_; }

 private:
  const Info* info_ = nullptr;
};

}  // namespace rensa

// The members of whatever lasts as a flat list of keyed values, and files that hold such lists:
// what formats have in common.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rensa/links/visitor.h"
#include "rensa/serializers/naming.h"

namespace rensa::serializers {

/// One value of a file.
struct Item {
  std::string key;
  Visitor::Access access;
  /// Of an array: what it is to convert to, and its shape; none where any will do.
  std::optional<Dtype> dtype;
  std::optional<Shape> shape;
};

/// The values of a file below a path: what a format derives from. Values are found by the members'
/// keys, through `naming`.
class StoredValues {
 public:
  StoredValues(const StoredValues&) = delete;
  StoredValues& operator=(const StoredValues&) = delete;
  virtual ~StoredValues() = default;

  const std::string& file() const { return file_; }
  const std::set<std::string>& names() const { return names_; }
  const Naming& naming() const { return naming_; }
  StoredName name_of(const std::string& key) const;
  /// Whether there is a value of that key, or one below it.
  bool contains(const std::string& key) const;
  /// Checked against what is there for it; none where the file has none of its key. Throws
  /// ShapeError, SerializationError.
  std::optional<Visitor::Value> read(const Item& item) const;

 protected:
  /// `separators` are those that may stand behind `path` and between the parts of names.
  StoredValues(std::string file, std::string path, Naming naming, std::string separators);
  /// What the file has; to be said once.
  void set_names(const std::vector<std::string>& all);
  /// The text of that name, or the array; an undefined one where the file says that there is none.
  /// `where` is for errors.
  virtual Visitor::Value value(const std::string& name, bool is_text,
                               const std::string& where) const = 0;

 private:
  std::string file_, path_;
  Naming naming_;
  std::string separators_;
  std::set<std::string> names_;              // behind the path
  std::map<std::string, std::string> full_;  // by these, the names in the file
};

/// What load_npz does, of a file of any format; check_members(what) comes before the file is
/// opened.
void load(const StoredValues& file, const Members& what, bool strict);

/// All values to be saved, in members' order, by their names in the file. Throws ValueError where
/// something is shown twice, or two members have one name.
std::vector<std::pair<std::string, Visitor::Value>> values_of(const Members& what,
                                                              const Naming& naming);

/// A value that is no text as a host array in C order; undefined for none. Waits for the device.
Array as_array(const char* operation, const Visitor::Value& value);

}  // namespace rensa::serializers

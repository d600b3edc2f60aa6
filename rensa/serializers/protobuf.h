// The wire format of Protocol Buffers, as far as the files of ONNX and TensorBoard need it: fields
// of whole numbers, floats and bytes, of which texts and messages within messages are made.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rensa::serializers {

/// Builds one message, field by field.
class ProtobufWriter {
 public:
  void integer(int field, std::int64_t value);
  void real(int field, float value);
  void real64(int field, double value);
  /// A list of doubles.
  void packed(int field, std::span<const double> values);
  /// A text, bytes, or a message.
  void bytes(int field, std::string_view value);
  void message(int field, const ProtobufWriter& value) { bytes(field, value.text()); }
  const std::string& text() const { return text_; }

 private:
  void varint(std::uint64_t value);
  void key(int field, int wire) { varint(static_cast<std::uint64_t>(field) << 3 | wire); }
  std::string text_;
};

/// A field as it was read. What asks for another kind than it has throws SerializationError.
class ProtobufField {
 public:
  int number() const { return number_; }
  std::int64_t integer() const;
  float real() const;
  std::string_view bytes() const;
  /// The numbers of a list, which has them one by one or packed: calls add(number) for each.
  template <class Add> void each_integer(Add add) const;

 private:
  friend class ProtobufReader;
  std::string_view file_;
  int number_ = 0, wire_ = 0;
  std::uint64_t value_ = 0;
  std::string_view bytes_;
};

/// Reads the fields of one message. Nothing behind its end is touched, whatever it says.
class ProtobufReader {
 public:
  /// `file` is for errors; both have to live as long.
  ProtobufReader(std::string_view message, std::string_view file) : rest_(message), file_(file) {}
  /// False at the end. Throws SerializationError for what is cut off or no field.
  bool next(ProtobufField& field);
  /// A number of seven bits a byte. Throws SerializationError where it is cut off or too long.
  std::uint64_t varint();
  bool at_end() const { return rest_.empty(); }

 private:
  [[noreturn]] void fail(const char* what) const;
  std::string_view take(std::uint64_t size);
  std::string_view rest_, file_;
};

template <class Add> void ProtobufField::each_integer(Add add) const {
  if (wire_ != 2) return add(integer());
  ProtobufReader packed(bytes_, file_);
  while (!packed.at_end()) add(static_cast<std::int64_t>(packed.varint()));
}

}  // namespace rensa::serializers

// Protocol Buffers' wire format.
#include "rensa/serializers/protobuf.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <limits>

#include "rensa/core/error.h"

namespace rensa::serializers {

namespace {

static_assert(std::endian::native == std::endian::little, "fixed numbers lie as in memory");

// Wire types: how a field's value is stored.
constexpr int kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

}  // namespace

void ProtobufWriter::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
  text_ += static_cast<char>(value);
}

void ProtobufWriter::integer(int field, std::int64_t value) {
  key(field, kVarint);
  varint(static_cast<std::uint64_t>(value));
}

void ProtobufWriter::real(int field, float value) {
  key(field, kFixed32);
  text_.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void ProtobufWriter::real64(int field, double value) {
  key(field, kFixed64);
  text_.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void ProtobufWriter::packed(int field, std::span<const double> values) {
  bytes(field, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

void ProtobufWriter::bytes(int field, std::string_view value) {
  key(field, kBytes);
  varint(value.size());
  text_ += value;
}

void ProtobufReader::fail(const char* what) const {
  throw SerializationError(fmt::format("{}: {}; is it an ONNX file?", file_, what));
}

std::string_view ProtobufReader::take(std::uint64_t size) {
  if (size > rest_.size()) fail("a field is longer than the message that it is in");
  std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

std::uint64_t ProtobufReader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) fail("it ends within a number");
    auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  fail("a number has more than ten bytes");
}

bool ProtobufReader::next(ProtobufField& field) {
  if (rest_.empty()) return false;
  std::uint64_t key = varint();
  if (key >> 3 == 0 || key > std::numeric_limits<std::uint32_t>::max())
    fail("a field of no number");
  field.file_ = file_;
  field.number_ = static_cast<int>(key >> 3), field.wire_ = static_cast<int>(key & 7);
  field.value_ = 0, field.bytes_ = {};
  switch (field.wire_) {
    case kVarint: field.value_ = varint(); break;
    case kBytes: field.bytes_ = take(varint()); break;
    case kFixed32:
    case kFixed64: {
      std::string_view taken = take(field.wire_ == kFixed32 ? 4 : 8);
      std::memcpy(&field.value_, taken.data(), taken.size());
      break;
    }
    default: fail("a field of an unknown wire type");
  }
  return true;
}

namespace {

[[noreturn]] void refuse(std::string_view file, int number, const char* wanted) {
  throw SerializationError(
      fmt::format("{}: field {} of a message is no {}; is it an ONNX file?", file, number, wanted));
}

}  // namespace

std::int64_t ProtobufField::integer() const {
  if (wire_ != kVarint) refuse(file_, number_, "whole number");
  return static_cast<std::int64_t>(value_);
}

float ProtobufField::real() const {
  if (wire_ != kFixed32) refuse(file_, number_, "float");
  return std::bit_cast<float>(static_cast<std::uint32_t>(value_));
}

std::string_view ProtobufField::bytes() const {
  if (wire_ != kBytes) refuse(file_, number_, "bytes");
  return bytes_;
}

}  // namespace rensa::serializers

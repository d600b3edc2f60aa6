// A reader of event files, apart from the library's code: records, and fields of messages.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"

namespace rensa::testing {

/// A message's fields: numbers as they lie in the file, or the bytes of texts and messages.
class Message {
 public:
  explicit Message(const std::string& bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
      std::uint64_t key = varint(bytes, &at), size = 0;
      Field field;
      switch (key & 7) {
        case 0: field.number = varint(bytes, &at); break;
        case 1: size = 8; break;
        case 2: size = varint(bytes, &at); break;
        case 5: size = 4; break;
        default: throw std::runtime_error("no field");
      }
      if (at + size > bytes.size()) throw std::runtime_error("cut off");
      field.bytes = bytes.substr(at, size);
      at += size;
      fields_[static_cast<int>(key >> 3)].push_back(field);
    }
  }

  bool has(int field) const { return fields_.count(field) != 0; }
  std::size_t count(int field) const { return has(field) ? fields_.at(field).size() : 0; }
  std::int64_t integer(int field) const { return static_cast<std::int64_t>(one(field).number); }
  float real(int field) const { return numbers<float>(field).at(0); }
  double real64(int field) const { return numbers<double>(field).at(0); }
  std::string text(int field, std::size_t i = 0) const { return fields_.at(field).at(i).bytes; }
  Message message(int field, std::size_t i = 0) const { return Message(text(field, i)); }
  /// Those of a packed list.
  template <class T> std::vector<T> numbers(int field) const {
    std::string bytes = one(field).bytes;
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }

 private:
  struct Field {
    std::uint64_t number = 0;
    std::string bytes;
  };
  const Field& one(int field) const {
    if (count(field) != 1) throw std::runtime_error("not once: " + std::to_string(field));
    return fields_.at(field)[0];
  }
  static std::uint64_t varint(const std::string& bytes, std::size_t* at) {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      auto byte = static_cast<unsigned char>(bytes.at((*at)++));
      value |= static_cast<std::uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
  }
  std::map<int, std::vector<Field>> fields_;
};

/// The checksum of a record's part, bit by bit.
inline std::uint32_t record_crc(const std::string& bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int i = 0; i < 8; ++i) crc = crc & 1 ? crc >> 1 ^ 0x82F63B78 : crc >> 1;
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8;
}

/// The events of a file; every checksum is a test.
inline std::vector<Message> read_events(const std::string& path) {
  std::string file = read_file(path);
  std::vector<Message> events;
  for (std::size_t at = 0; at < file.size();) {
    auto number = [&]<class T>(T value) {
      std::memcpy(&value, file.substr(at, sizeof value).data(), sizeof value);
      at += sizeof value;
      return value;
    };
    std::string length = file.substr(at, 8);
    auto size = number(std::uint64_t{0});
    EXPECT_EQ(number(std::uint32_t{0}), record_crc(length));
    std::string record = file.substr(at, size);
    at += size;
    EXPECT_EQ(number(std::uint32_t{0}), record_crc(record));
    if (at > file.size()) throw std::runtime_error("the file ends within a record");
    events.emplace_back(record);
  }
  return events;
}

/// The event files of a folder, by their names.
inline std::vector<std::string> event_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace rensa::testing

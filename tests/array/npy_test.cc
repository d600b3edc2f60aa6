// .npy: headers that numpy writes, and headers that nobody should.
#include "rensa/array/npy.h"

#include <gmock/gmock.h>

#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using ::testing::HasSubstr;

std::string npy(const std::string& header, const std::string& data) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size());
  file += '\0';
  return file + header + data;
}

Array parse(const std::string& file) { return parse_npy({file.data(), file.size()}, "a"); }

std::string message_of(const std::string& file) {
  return testing::message_of<SerializationError>([&] { parse(file); });
}

TEST(Npy, EveryDtypeComesBack) {
  for (int d = 0; d < kNumDtypes; ++d) {
    auto dtype = static_cast<Dtype>(d);
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 3}, Shape{2, 0, 3}}) {
      Array a = (xp::random::uniform(0, 4, shape, float32, cpu())).astype(dtype);
      Array b = parse(format_npy(a));
      EXPECT_EQ(b.dtype(), dtype);
      EXPECT_EQ(b.shape(), shape);
      EXPECT_TRUE(xp::array_equal(a, b)) << dtype_name(dtype) << shape.str();
    }
  }
}

TEST(Npy, ElementsBeginAtAMultipleOf64) {
  std::string file = format_npy(xp::zeros({3, 4}, float32, cpu()));
  NpyHeader header = parse_npy_header({file.data(), file.size()}, "a");
  EXPECT_EQ(header.data_offset % 64, 0u);
  EXPECT_EQ(file.size(), header.data_offset + 48);
}

TEST(Npy, FortranOrderAndBigEndian) {
  std::string data("\x00\x01\x00\x02\x00\x03\x00\x04\x00\x05\x00\x06", 12);
  Array a = parse(npy("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }", data));
  EXPECT_EQ(a.to_vector<int>(), (std::vector<int>{1, 3, 5, 2, 4, 6}));
  EXPECT_TRUE(a.is_contiguous());
}

TEST(Npy, BoolsHaveNoOrderOfBytes) {
  std::string data("\0\1\2", 3);
  Array a = parse(npy("{'descr': '>b1', 'fortran_order': False, 'shape': (3,), }", data));
  EXPECT_EQ(a.dtype(), bool_);
  EXPECT_EQ(a.to_vector<int>(), (std::vector<int>{0, 1, 1}));
}

TEST(Npy, AnyOrderAndSpacing) {
  Array a = parse(npy("{ 'shape':(2L,),\"fortran_order\":False , 'descr':'|u1' }", "ab"));
  EXPECT_EQ(a.to_vector<int>(), (std::vector<int>{'a', 'b'}));
}

std::string parse_text(const std::string& file) {
  return parse_npy_text({file.data(), file.size()}, "a");
}

TEST(Npy, Texts) {
  // What numpy.save writes of "a" and a character beyond 16 bits.
  std::string file = npy("{'descr': '<U2', 'fortran_order': False, 'shape': (), }",
                         std::string("a\0\0\0\0\xf6\x01\0", 8));
  EXPECT_EQ(parse_text(file), "a\U0001F600");
  EXPECT_EQ(parse_text(npy("{'descr': '>U1', 'fortran_order': False, 'shape': (), }",
                           std::string("\0\0\0b", 4))),
            "b");
  EXPECT_THAT(format_npy_text("\u9023\u9396"), HasSubstr("'<U2'"));
  for (const char* text : {"", "abc", "\u9023\u9396\u00e9\U0001F600", "\u07ff\u0800\uffff"}) {
    EXPECT_EQ(parse_text(format_npy_text(text)), text);
  }
  // No UTF-8: a byte alone, a character cut off, one written too long, half of a pair.
  for (const char* text : {"\xff", "\xe9\x80", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80"}) {
    EXPECT_THAT(parse_text(format_npy_text(text)), HasSubstr("\uFFFD")) << text;
  }
}

TEST(Npy, TextsThatAreNone) {
  auto message_of = [](const std::string& descr, const std::string& shape,
                       const std::string& data) {
    std::string file =
        npy("{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }", data);
    return testing::message_of<SerializationError>([&] { (void)parse_text(file); });
  };
  std::string four("a\0\0\0", 4);
  EXPECT_THAT(message_of("'<U1'", "(1,)", four), HasSubstr("not a text"));
  EXPECT_THAT(message_of("'<i4'", "()", four), HasSubstr("not a text"));
  EXPECT_THAT(message_of("'<U2'", "()", four), HasSubstr("takes 8 bytes, but 4 are there"));
  EXPECT_THAT(message_of("'<U9223372036854775807'", "()", four), HasSubstr("not supported"));
  EXPECT_THAT(message_of("'<U-1'", "()", four), HasSubstr("not supported"));
  EXPECT_THAT(message_of("'<U100000000000000000'", "(1000,)", four), HasSubstr("overflows"));
  EXPECT_THAT(message_of("'<U1'", "()", std::string("\0\xd8\0\0", 4)), HasSubstr("no character"));
  EXPECT_THAT(message_of("'<U1'", "()", "\xff\xff\xff\xff"), HasSubstr("no character"));
  EXPECT_THAT(testing::message_of<SerializationError>([&] {
                (void)parse(npy("{'descr': '<U1', 'fortran_order': False, 'shape': (), }", four));
              }),
              HasSubstr("a text; only numbers"));
}

TEST(Npy, HostileHeaders) {
  auto with = [](const std::string& descr, const std::string& shape) {
    return npy("{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }",
               "abcd");
  };
  EXPECT_EQ(message_of(with("'|u1'", "(4,)")), testing::kNothingThrown);
  EXPECT_THAT(message_of(with("'|u1'", "(5,)")), HasSubstr("takes 5 bytes, but 4 are there"));
  EXPECT_THAT(message_of(with("'|u1'", "(3,)")), HasSubstr("takes 3 bytes, but 4 are there"));
  EXPECT_THAT(message_of(with("'<f4'", "(4294967296, 4294967296)")), HasSubstr("overflows"));
  EXPECT_THAT(message_of(with("'<f4'", "(99999999999999999999,)")), HasSubstr("overflows"));
  EXPECT_THAT(message_of(with("'<f4'", "(0, 4611686018427387904, 4)")), HasSubstr("overflows"));
  EXPECT_THAT(message_of(with("'<f4'", "(-1,)")), HasSubstr("extent expected"));
  EXPECT_THAT(message_of(with("'<f4'", "(1,1,1,1,1,1,1,1,1)")), HasSubstr("dimensions"));
  EXPECT_THAT(message_of(with("'<M8[ns]'", "(4,)")), HasSubstr("not supported"));
  EXPECT_THAT(message_of(with("[('a', '<f4')]", "(1,)")), HasSubstr("structured"));
  EXPECT_THAT(message_of(with("'|O'", "(1,)")), HasSubstr("Python objects"));
  EXPECT_THAT(message_of(with("__import__('os')", "(1,)")), HasSubstr("quoted name expected"));
  EXPECT_THAT(message_of(npy("{'descr': '|u1', 'shape': (4,)}", "abcd")), HasSubstr("lacks"));
  // Two shapes would add up to one that nobody has checked.
  EXPECT_THAT(
      message_of(npy("{'descr': '|u1', 'shape': (4294967296,), 'shape': (4294967296,)}", "")),
      HasSubstr("'shape' comes twice"));
  EXPECT_THAT(message_of(npy("{'descr': '|u1", "abcd")), HasSubstr("unfinished"));
  EXPECT_THAT(message_of("\x93NUMPX plainly something else"), HasSubstr("magic"));
  EXPECT_THAT(message_of(std::string("\x93NUMPY\x01\x00\xff\xff{", 11)), HasSubstr("65535 bytes"));
  EXPECT_THAT(message_of(std::string("\x93NUMPY\x07\x00\x01\x00{", 11)), HasSubstr("version 7"));
}

}  // namespace
}  // namespace rensa

// What may stand where arrays are written or read: modes, links, devices, pipes, names that no
// archive holds, several writers at once; streams; mapped files.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "rensa/array/dlpack.h"
#include "rensa/array/io.h"
#include "rensa/array/random_basics.h"
#include "tests/array/arrays.h"
#include "tests/temporary_folder.h"

namespace rensa {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::read_file;
using testing::thrown;
using testing::write_file;
using V = std::vector<double>;

/// Each routine that writes a file, and what reads it again.
struct Writer {
  const char* name;
  const char* ending;
  void (*write)(const std::string& path, const Array& a);
  Array (*read)(const std::string& path);
};

const Writer kWriters[] = {
    {"save", ".npy", [](const std::string& path, const Array& a) { xp::save(path, a); },
     [](const std::string& path) { return xp::load(path); }},
    {"savez", ".npz",
     [](const std::string& path, const Array& a) {
       xp::savez(path, {{"a", a}});
     },
     [](const std::string& path) { return xp::load_npz(path)["a"]; }},
    {"savez_compressed", ".npz",
     [](const std::string& path, const Array& a) {
       xp::savez_compressed(path, {{"a", a}});
     },
     [](const std::string& path) { return xp::load_npz(path)["a"]; }},
    {"savetxt", ".txt", [](const std::string& path, const Array& a) { xp::savetxt(path, a); },
     [](const std::string& path) { return xp::loadtxt(path); }},
    {"tofile", ".raw", [](const std::string& path, const Array& a) { xp::tofile(a, path); },
     [](const std::string& path) { return xp::fromfile(path); }},
};

class FileWriters : public ::testing::TestWithParam<Writer> {
 protected:
  std::ptrdiff_t count() const {
    return std::distance(fs::directory_iterator(folder_.str()), fs::directory_iterator());
  }
  void expect_read(const Array& a) const {
    EXPECT_TRUE(xp::array_equal(GetParam().read(path_), a));
  }
  testing::TemporaryFolder folder_;
  std::string path_ = folder_ / (std::string("a") + GetParam().ending);
  Array old_ = xp::arange(3, float64), new_ = xp::arange(100, float64) / 7;
};
INSTANTIATE_TEST_SUITE_P(All, FileWriters, ::testing::ValuesIn(kWriters),
                         [](const auto& info) { return info.param.name; });

TEST_P(FileWriters, KeepTheMode) {
  GetParam().write(path_, old_);
  ::chmod(path_.c_str(), 0600);
  GetParam().write(path_, new_);
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  expect_read(new_);
  EXPECT_EQ(count(), 1);
}

TEST_P(FileWriters, FollowLinksButNotTheirOwnTemporaryName) {
  fs::create_directories(folder_ / "deep");
  GetParam().write(folder_ / (std::string("deep/t") + GetParam().ending), old_);
  fs::create_symlink(std::string("deep/t") + GetParam().ending, path_);
  write_file(folder_ / "victim", "precious");
  fs::create_symlink("victim", path_ + "." + std::to_string(::getpid()) + ".tmp");
  GetParam().write(path_, new_);
  EXPECT_TRUE(fs::is_symlink(path_));
  expect_read(new_);
  EXPECT_EQ(read_file(folder_ / "victim"), "precious");
  EXPECT_EQ(count(), 4);
}

TEST_P(FileWriters, FillPipesAndReadersTakeThem) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  Array got;
  std::thread reader([&] { got = GetParam().read(path_); });
  GetParam().write(path_, new_);
  reader.join();
  EXPECT_TRUE(xp::array_equal(got, new_));
  EXPECT_TRUE(fs::is_fifo(path_));
}

TEST_P(FileWriters, AFullDiskIsAnErrorAndDevicesStay) {
  fs::create_symlink("/dev/full", path_);
  EXPECT_THAT(thrown<SerializationError>([&] { GetParam().write(path_, new_); }),
              HasSubstr("No space left"));
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_TRUE(fs::is_character_file(path_));
}

TEST_P(FileWriters, ManyAtOnceLeaveOneWholeFile) {
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int writer = 1; writer <= 6; ++writer) {
    threads.emplace_back([&, writer] {
      Array a = xp::full({1000 * writer}, static_cast<double>(writer));
      for (int i = 0; i < 10; ++i) {
        try {
          GetParam().write(path_, a);
        } catch (const Error&) {
          ++failures;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  Array whole = GetParam().read(path_);
  EXPECT_EQ(whole.size(), 1000 * whole[0].item<std::int64_t>());
  EXPECT_EQ(count(), 1);
}

TEST_P(FileWriters, FoldersAreNoFiles) {
  fs::create_directories(path_);
  EXPECT_THAT(thrown<SerializationError>([&] { GetParam().write(path_, new_); }),
              HasSubstr("Is a directory"));
  EXPECT_THAT(thrown<SerializationError>([&] { GetParam().read(path_); }),
              HasSubstr("Is a directory"));
}

TEST(Archives, RefuseNamesThatTheyCannotHoldBeforeTheFileIsTouched) {
  testing::TemporaryFolder folder;
  std::string path = folder / "a.npz";
  Array a = xp::arange(3);
  xp::savez(path, {{"good", a}});
  ASSERT_EQ(::mkfifo((folder / "pipe.npz").c_str(), 0600), 0);
  using std::string_literals::operator""s;
  auto refusal = [&](const std::string& name, const std::string& target) {
    return thrown<ValueError>([&] { xp::savez(target, {{"good", a}, {name, a}}); });
  };
  // A pipe that nobody reads: opened, it would be waited for.
  for (const std::string& target : {path, folder / "pipe.npz"}) {
    EXPECT_THAT(refusal(std::string(70000, 'x'), target), HasSubstr("65535"));
    EXPECT_THAT(refusal(std::string(65532, 'x'), target), HasSubstr("65535"));
    EXPECT_THAT(refusal("good", target), HasSubstr("twice"));
    EXPECT_THAT(refusal("a\0b"s, target), HasSubstr("NUL"));
    for (const char* bad :
         {"\xff", "a\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80"}) {
      EXPECT_THAT(refusal(bad, target), HasSubstr("UTF-8"));
    }
  }
  EXPECT_THAT(xp::load_npz(path).files(), ElementsAre("good"));
  for (const std::string& name :
       {std::string(65531, 'x'), "連鎖/é"s, "../up"s, "/root"s, ""s, "x.npy"s, "\U0010ffff"s}) {
    xp::savez(path, {{name, a}, {"x", a + 1}});
    EXPECT_TRUE(xp::array_equal(xp::load_npz(path)[name], a)) << name;
  }
}

TEST(Streams, HoldEveryKindOfFile) {
  Array a = xp::arange(6, float32).reshape({2, 3}), b = xp::arange(4, int16);
  std::stringstream npy;
  xp::save(npy, a);
  xp::save(npy, b.astype(bfloat16));
  xp::save(npy, a.transpose());
  EXPECT_TRUE(xp::array_equal(xp::load(npy), a));
  EXPECT_EQ(xp::load(npy, cpu()).dtype(), bfloat16);
  EXPECT_TRUE(xp::array_equal(xp::load(npy), a.transpose()));
  EXPECT_THROW(xp::load(npy), SerializationError);

  for (bool compressed : {false, true}) {
    std::stringstream npz;
    if (compressed) xp::savez_compressed(npz, {{"a", a}, {"b", b}});
    else xp::savez(npz, {{"a", a}, {"b", b}});
    auto file = xp::load_npz(npz);
    EXPECT_THAT(file.files(), ElementsAre("a", "b"));
    EXPECT_TRUE(xp::array_equal(file["a"], a) && xp::array_equal(file["b"], b));
  }
  std::stringstream text;
  xp::savetxt(text, a, {.fmt = "%d", .delimiter = ","});
  EXPECT_EQ(text.str(), "0,1,2\n3,4,5\n");
  EXPECT_TRUE(xp::array_equal(xp::loadtxt(text, {.delimiter = ","}), a));
  std::istringstream holes("1,\nx,2\n");
  EXPECT_EQ(xp::genfromtxt(holes, {.dtype = int32, .delimiter = ","}).to_vector<double>(),
            V({1, -1, -1, 2}));
  std::stringstream raw("head");
  raw.seekp(0, std::ios::end);
  xp::tofile(b, raw);
  raw.seekg(2);
  EXPECT_EQ(xp::fromfile(raw, int16, 2, 2).to_vector<double>(), V({0, 1}));
  EXPECT_EQ(xp::fromfile(raw, int16).to_vector<double>(), V({2, 3}));
}

TEST(Streams, ThatEndEarlyOrFailAreErrors) {
  std::ostringstream whole;
  xp::save(whole, xp::arange(5));
  for (std::size_t size = 0; size < whole.str().size(); ++size) {
    std::istringstream cut(whole.str().substr(0, size));
    EXPECT_THROW(xp::load(cut), SerializationError) << size;
  }
  std::ifstream none("/no/such/file");
  EXPECT_THAT(thrown<SerializationError>([&] { xp::load(none); }), HasSubstr("failed before"));
  EXPECT_THROW(xp::loadtxt(none), SerializationError);
  EXPECT_THROW(xp::NpzFile{none}, SerializationError);
  std::ofstream full("/dev/full", std::ios::binary);
  EXPECT_THROW(xp::save(full, xp::zeros({100000})), SerializationError);
}

TEST(Readers, SizesThatLieTakeNoMemory) {
  // 2^60 bytes are declared by a stream and by a pipe, whose ends nobody knows before.
  std::string lie("\x93NUMPY\x01\x00", 8);
  std::string header =
      "{'descr': '<f8', 'fortran_order': False, 'shape': (144115188075855872,), }\n";
  lie += static_cast<char>(header.size());
  lie += '\0';
  lie += header + std::string(1000, 'x');
  std::istringstream stream(lie);
  EXPECT_THAT(thrown<SerializationError>([&] { xp::load(stream); }), HasSubstr("1000 are there"));
  testing::TemporaryFolder folder;
  write_file(folder / "a.npy", lie);
  EXPECT_THAT(thrown<SerializationError>([&] { xp::load(folder / "a.npy"); }),
              HasSubstr("1000 are there"));
  EXPECT_THROW(xp::load(folder / "a.npy", {.mmap_mode = "r"}), SerializationError);
  EXPECT_THAT(thrown<SerializationError>([&] { xp::load("/dev/zero"); }), HasSubstr("magic"));
  EXPECT_EQ(xp::fromfile("/dev/zero", float64, 10).size(), 10);
  EXPECT_EQ(xp::fromfile(folder / "a.npy", uint8, std::numeric_limits<std::int64_t>::max()).size(),
            static_cast<std::int64_t>(lie.size()));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they map what they like
/// The exit status of f() in a process of its own that may have 16 MiB more memory.
int status_in_little_memory(const std::function<int()>& f) {
  pid_t child = ::fork();
  if (child == 0) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlim_t most = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (16 << 20);
    rlimit limit{most, most};
    ::setrlimit(RLIMIT_AS, &limit);
    ::_exit(f());
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Readers, FilesThatDoNotFitIntoMemoryAreErrors) {
  testing::TemporaryFolder folder;
  Array big = xp::zeros({64 << 20}, uint8, cpu());
  xp::savez_compressed(folder / "bomb.npz", {{"a", big}});
  xp::tofile(big, folder / "raw");
  auto refused = [](const std::function<void()>& read) {
    return status_in_little_memory([&] {
      try {
        read();
      } catch (const OutOfMemoryError&) {
        return 7;
      }
      return 0;
    });
  };
  EXPECT_EQ(refused([&] { xp::load_npz(folder / "bomb.npz").get("a", cpu()); }), 7);
  EXPECT_EQ(refused([&] { xp::fromfile(folder / "raw", uint8, -1, 0, cpu()); }), 7);
  EXPECT_EQ(refused([&] { xp::loadtxt(folder / "raw", {.device = cpu()}); }), 7);
}
#endif

class MappedFile : public ::testing::Test {
 protected:
  Array map(const char* mode) const { return xp::load(path_, {.mmap_mode = mode}); }
  testing::TemporaryFolder folder_;
  std::string path_ = folder_ / "a.npy";
};

TEST_F(MappedFile, EveryDtypeAndOrder) {
  for (int d = 0; d < kNumDtypes; ++d) {
    Array a = xp::arange(6, float64, cpu()).reshape({2, 3}).astype(static_cast<Dtype>(d));
    xp::save(path_, a);
    for (const char* mode : {"r", "c", "r+"}) {
      Array b = map(mode);
      EXPECT_EQ(b.dtype(), a.dtype());
      EXPECT_TRUE(xp::array_equal(a, b)) << mode;
      EXPECT_TRUE(xp::array_equal((a + b)[{Slice(), Slice(none, none, -1)}],
                                  (a + a)[{Slice(), Slice(none, none, -1)}]));
    }
  }
  std::string file = read_file(path_);
  file.replace(file.find("False"), 5, "True ");
  write_file(path_, file);
  Array fortran = map("r");
  EXPECT_EQ(fortran.shape(), Shape({2, 3}));
  EXPECT_FALSE(fortran.is_contiguous());
  EXPECT_TRUE(xp::array_equal(fortran, xp::load(path_, cpu())));
  xp::save(path_, xp::zeros({0, 3}, float32, cpu()));
  EXPECT_EQ(map("r").shape(), Shape({0, 3}));
}

TEST_F(MappedFile, WritesAreRefusedKeptOrGoThrough) {
  Array values = xp::arange(6, float64, cpu());
  xp::save(path_, values);
  Array copy = map("c"), shared = map("r+");
  copy += 1;
  EXPECT_TRUE(xp::array_equal(xp::load(path_, cpu()), values));
  shared[{Slice(0, 2)}] = 9;
  EXPECT_EQ(xp::load(path_, cpu()).to_vector<double>(), V({9, 9, 2, 3, 4, 5}));
  // Every way to write: none may come as far as the page that cannot be written.
  Array read = map("r"), other = xp::ones({6}, float64, cpu()), one = xp::array({1}, cpu());
  const std::function<void()> writes[] = {
      [&] { read += 1; },
      [&] { read.fill(0); },
      [&] { read.assign(other); },
      [&] { read.set(other); },
      [&] { read[0] = 5; },
      [&] { read[one] = 5; },
      [&] { read[read > 3] = 5; },
      [&] { read[{Slice(none, none, 2)}] = 5; },
      [&] {
        read.reshape({2, 3}).transpose()[1] = 5;
      },
      [&] { xp::add(other, other, {.out = read}); },
      [&] { xp::cumsum(other, {.axis = 0, .out = read}); },
      [&] { xp::copyto(read, other); },
      [&] { xp::put(read, one, one); },
      [&] {
        xp::fill_diagonal(read.reshape({2, 3}), 1);
      },
      [&] { xp::random::shuffle(read); },
  };
  int index = 0;
  for (const auto& write : writes) {
    EXPECT_THAT(thrown<ValueError>(write), HasSubstr("read-only")) << index;
    ++index;
  }
  EXPECT_EQ(read.to_vector<double>(), V({9, 9, 2, 3, 4, 5}));
  EXPECT_EQ((read.copy() += 1).to_vector<double>()[2], 3);
}

TEST_F(MappedFile, TheMappingLivesAsLongAsItsArrays) {
  xp::save(path_, xp::arange(100000, float64, cpu()));
  Array part = Array(map("r")[{Slice(90000, none)}]);
  xp::save(path_, xp::zeros({3}, float64, cpu()));  // another file takes the name
  fs::remove(path_);
  EXPECT_EQ(part.sum().item<double>(), (90000.0 + 99999.0) * 5000);
}

TEST_F(MappedFile, WhatCannotBeMapped) {
  xp::save(path_, xp::arange(3, float64, cpu()));
  std::string file = read_file(path_);
  EXPECT_THAT(thrown<ValueError>([&] { map("w+"); }), HasSubstr("mmap_mode"));
  EXPECT_THAT(thrown<ValueError>([&] {
                xp::load(path_, {.mmap_mode = "r", .device = Device{DeviceType::cuda, 0}});
              }),
              HasSubstr("host memory"));
  auto refusal = [&](const std::string& content) {
    write_file(path_, content);
    return thrown<SerializationError>([&] { map("r"); });
  };
  std::string big = file;
  big[big.find("<f8")] = '>';
  EXPECT_THAT(refusal(big), HasSubstr("byte order"));
  std::string shifted = file;
  shifted.erase(shifted.find("   \n"), 1);
  shifted[8] = static_cast<char>(shifted[8] - 1);
  EXPECT_THAT(refusal(shifted), HasSubstr("multiples of 8"));
  EXPECT_THAT(refusal(file + "x"), HasSubstr("25 are there"));
  EXPECT_THAT(refusal(file.substr(0, file.size() - 1)), HasSubstr("23 are there"));
  xp::save(path_, xp::ones({3}, bool_, cpu()));
  std::string bools = read_file(path_);
  bools.back() = 7;
  EXPECT_THAT(refusal(bools), HasSubstr("neither 0 nor 1"));
  EXPECT_THROW(xp::load(folder_ / "none.npy", {.mmap_mode = "r"}), SerializationError);
}

}  // namespace
}  // namespace rensa

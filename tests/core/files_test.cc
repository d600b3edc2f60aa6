// The one way that files are written, and what may stand where one is read or written.
#include "rensa/core/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <sstream>
#include <thread>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/core/user_cache.h"
#include "tests/file_size_limit.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa {
namespace {

namespace fs = std::filesystem;
using detail::read_whole_file;
using detail::write_whole_file;
using ::testing::HasSubstr;
using testing::message_of;
using testing::read_file;
using testing::write_file;

unsigned mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

/// What f() throws (or not) in a process that is not root's.
std::string message_as_nobody(const std::function<void()>& f) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  pid_t child = ::fork();
  if (child == 0) {
    bool ready = ::geteuid() != 0 ||
                 (::setgroups(0, nullptr) == 0 && ::setresgid(65534, 65534, 65534) == 0 &&
                  ::setresuid(65534, 65534, 65534) == 0);
    std::string message = ready ? message_of<SerializationError>(f) : "root's rights stay";
    (void)!::write(ends[1], message.data(), message.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  char text[4096] = {};
  (void)!::read(ends[0], text, sizeof(text) - 1);
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return text;
}

class FilesTest : public ::testing::Test {
 protected:
  /// How many files the folder holds: a temporary one that was left would be one more.
  std::ptrdiff_t count() const {
    return std::distance(fs::directory_iterator(folder_.str()), fs::directory_iterator());
  }
  testing::TemporaryFolder folder_;
  std::string path_ = folder_ / "a";
};

TEST_F(FilesTest, NewFilesHaveTheModeOfTheUmask) {
  mode_t before = ::umask(027);
  write_whole_file(path_, "new");
  ::umask(before);
  EXPECT_EQ(mode_of(path_), 0640u);
  EXPECT_EQ(read_file(path_), "new");
  EXPECT_EQ(count(), 1);
}

TEST_F(FilesTest, TheModeOfWhatIsReplacedStays) {
  for (unsigned mode : {0600u, 0644u, 0666u, 0755u, 0620u}) {
    write_file(path_, "old");
    ::chmod(path_.c_str(), mode);
    write_whole_file(path_, "new");
    EXPECT_EQ(mode_of(path_), mode);
    EXPECT_EQ(read_file(path_), "new");
  }
  EXPECT_EQ(count(), 1);
}

TEST_F(FilesTest, WhatMayNotBeWrittenIsRefused) {
  write_file(path_, "old");
  ::chmod(path_.c_str(), 0444);
  ::chmod(folder_.str().c_str(), 0777);
  EXPECT_THAT(message_as_nobody([&] { write_whole_file(path_, "new"); }),
              HasSubstr("Permission denied"));
  EXPECT_EQ(read_file(path_), "old");
  EXPECT_EQ(count(), 1);
}

TEST_F(FilesTest, LinksAreFollowed) {
  fs::create_directories(folder_ / "deep");
  write_file(folder_ / "deep/target", "old");
  fs::create_symlink("deep/second", path_);
  fs::create_symlink("target", folder_ / "deep/second");
  write_whole_file(path_, "new");
  EXPECT_TRUE(fs::is_symlink(path_) && fs::is_symlink(folder_ / "deep/second"));
  EXPECT_FALSE(fs::is_symlink(folder_ / "deep/target"));
  EXPECT_EQ(read_file(folder_ / "deep/target"), "new");
  fs::remove(folder_ / "deep/target");  // one that leads nowhere makes its target
  write_whole_file(path_, "newer");
  EXPECT_EQ(read_file(folder_ / "deep/target"), "newer");
  EXPECT_TRUE(fs::is_symlink(path_));
  fs::create_symlink("circle", folder_ / "circle");
  EXPECT_THAT(message_of<SerializationError>([&] { write_whole_file(folder_ / "circle", "x"); }),
              HasSubstr("symbolic links"));
}

TEST_F(FilesTest, TemporaryNamesCannotBeGuessed) {
  write_file(folder_ / "victim", "precious");
  for (const std::string& name :
       {path_ + "." + std::to_string(::getpid()) + ".tmp", path_ + ".tmp", path_ + ".part"}) {
    fs::create_symlink("victim", name);
  }
  write_whole_file(path_, "new");
  EXPECT_EQ(read_file(folder_ / "victim"), "precious");
  EXPECT_FALSE(fs::is_symlink(path_));
  EXPECT_EQ(count(), 5);
}

TEST_F(FilesTest, WhatIsNotFinishedChangesNothing) {
  write_file(path_, "old");
  {
    FileWriter file(path_);
    file.write(std::string(1 << 20, 'x'));
  }
  EXPECT_EQ(read_file(path_), "old");
  EXPECT_EQ(count(), 1);
}

TEST_F(FilesTest, DevicesAndPipesAreWrittenTo) {
  fs::create_symlink("/dev/full", folder_ / "full");
  EXPECT_THAT(message_of<SerializationError>([&] { write_whole_file(folder_ / "full", "x"); }),
              HasSubstr("No space"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "full"));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  std::string content(300000, 'x'), got;
  std::thread reader([&] { got = read_whole_file(path_); });
  write_whole_file(path_, content);
  reader.join();
  EXPECT_EQ(got, content);
  EXPECT_TRUE(fs::is_fifo(path_));
  EXPECT_EQ(count(), 2);
}

TEST_F(FilesTest, AppendersAddToWhatIsThere) {
  write_file(path_, "old ");
  FileAppender file(path_), other(path_);
  file.append("one ");
  EXPECT_EQ(read_file(path_), "old one ");
  other.append("two ");
  file.append("three");
  EXPECT_EQ(read_file(path_), "old one two three");
  FileAppender fresh(folder_ / "fresh");
  EXPECT_EQ(read_file(fresh.name()), "");
  for (const std::string& bad : {folder_ / "no/a", folder_.str(), std::string()}) {
    EXPECT_THAT(message_of<SerializationError>([&] { FileAppender nowhere(bad); }),
                HasSubstr("append"));
  }
}

TEST_F(FilesTest, WhatCannotBeAppendedLeavesTheFileAsItWas) {
  FileAppender full("/dev/full");
  EXPECT_THAT(message_of<SerializationError>([&] { full.append("x"); }),
              HasSubstr("cannot append to /dev/full: No space"));
  FileAppender file(path_);
  file.append(std::string(60, 'a'));
  {
    testing::FileSizeLimit limit(100);
    EXPECT_THAT(message_of<SerializationError>([&] { file.append(std::string(60, 'b')); }),
                HasSubstr(path_));
    file.append(std::string(40, 'c'));
  }
  EXPECT_EQ(read_file(path_), std::string(60, 'a') + std::string(40, 'c'));
}

TEST_F(FilesTest, PathsThatCannotBe) {
  using std::string_literals::operator""s;
  auto written = [](const std::string& path) {
    return message_of<SerializationError>([&] { write_whole_file(path, "x"); });
  };
  EXPECT_THAT(written(""), HasSubstr("without a name"));
  EXPECT_THAT(written(path_ + "\0b"s), HasSubstr("NUL"));
  EXPECT_THAT(written(folder_.str()), HasSubstr("Is a directory"));
  EXPECT_THAT(written(folder_ / "no/a"), HasSubstr("No such file"));
  EXPECT_THAT(written(folder_ / std::string(300, 'a')), HasSubstr("too long"));
  write_file(path_, "x");
  EXPECT_THAT(written(path_ + "/b"), HasSubstr("Not a directory"));
  auto read = [](const std::string& path) {
    return message_of<SerializationError>([&] { read_whole_file(path); });
  };
  EXPECT_THAT(read(""), HasSubstr("without a name"));
  EXPECT_THAT(read(folder_.str()), HasSubstr("Is a directory"));
  EXPECT_THAT(read(folder_ / "none"), HasSubstr("No such file"));
  EXPECT_EQ(count(), 1);
  write_whole_file(folder_ / std::string(255, 'a'), "x");  // the longest name that there is
  EXPECT_EQ(count(), 2);
}

TEST_F(FilesTest, FoldersAreMadeOrSayWhyNot) {
  detail::make_folders(folder_ / "a/b");
  detail::make_folders(folder_ / "a/b");
  EXPECT_TRUE(fs::is_directory(folder_ / "a/b"));
  write_file(folder_ / "file", "x");
  EXPECT_THAT(message_of<SerializationError>([&] { detail::make_folders(folder_ / "file"); }),
              HasSubstr("directory"));
  EXPECT_THAT(message_of<SerializationError>([&] { detail::make_folders(folder_ / "file/b"); }),
              HasSubstr("directory"));
  EXPECT_THAT(message_of<SerializationError>([] { detail::make_folders(""); }),
              HasSubstr("without a name"));
}

TEST_F(FilesTest, ManyWritersOfOnePathLeaveOneWholeFile) {
  auto content = [](int writer) {
    return std::string(50000 + 7 * writer, static_cast<char>('a' + writer));
  };
  auto is_whole = [&](const std::string& text) {
    return !text.empty() && text == content(text[0] - 'a');
  };
  write_whole_file(path_, content(0));
  std::vector<pid_t> processes;
  for (int writer = 0; writer < 4; ++writer) {
    processes.push_back(::fork());
    if (processes.back() != 0) continue;
    int failed = 0;
    for (int i = 0; i < 25; ++i) {
      failed |= message_of<SerializationError>([&] { write_whole_file(path_, content(writer)); }) !=
                testing::kNothingThrown;
    }
    ::_exit(failed);
  }
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int writer = 4; writer < 10; ++writer) {
    threads.emplace_back([&, writer] {
      for (int i = 0; i < 25; ++i) {
        std::string message =
            message_of<SerializationError>([&] { write_whole_file(path_, content(writer)); });
        failures += message != testing::kNothingThrown || !is_whole(read_whole_file(path_));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (pid_t process : processes) {
    int status = -1;
    ::waitpid(process, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(failures, 0);
  EXPECT_TRUE(is_whole(read_file(path_)));
  EXPECT_EQ(count(), 1);
}

TEST_F(FilesTest, ReadersTakeWhatComes) {
  write_file(path_, "0123456789");
  FileReader file(path_);
  EXPECT_EQ(file.remaining(), 10);
  EXPECT_EQ(file.read(3), "012");
  EXPECT_EQ(file.skip(2), 2);
  EXPECT_EQ(file.remaining(), 5);
  EXPECT_EQ(file.read(100), "56789");
  EXPECT_EQ(file.read_rest(), "");
  EXPECT_EQ(file.skip(1), 0);
  std::istringstream stream("0123456789");
  stream.get();
  FileReader same(stream);
  EXPECT_EQ(same.remaining(), std::nullopt);
  EXPECT_EQ(same.skip(2), 2);
  EXPECT_EQ(same.read(2), "34");
  EXPECT_EQ(same.read_rest(), "56789");
  EXPECT_THAT(message_of<SerializationError>([&] { FileReader again(stream); }),
              HasSubstr("failed before"));
  // Files that say that they are empty, and one without an end.
  EXPECT_THAT(read_whole_file("/proc/self/status"), HasSubstr("Pid:"));
  EXPECT_EQ(FileReader("/dev/zero").read(5), std::string(5, '\0'));
}

TEST_F(FilesTest, WhatKilledWritersLeaveIsRemoved) {
  write_file(path_, "old");
  pid_t child = ::fork();
  if (child == 0) {
    FileWriter file(path_);
    file.write(std::string(1 << 20, 'x'));
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(count(), 2);
  FileWriter writing(path_);
  writing.write("new");
  const std::vector<std::string> others = {"a.tmp", "a.0123.tmp", "a.0123456789abcdeg.tmp",
                                           "b.0123456789abcdef.tmp", "a.0123456789abcdef"};
  for (const std::string& name : others) write_file(folder_ / name, "");
  fs::create_directory(folder_ / "a.0123456789abcdef.tmp");
  fs::create_symlink("b.tmp", folder_ / "a.0123456789abcdee.tmp");
  auto is_a = [](std::string_view name) { return name == "a"; };
  EXPECT_EQ(detail::remove_abandoned(folder_.str(), is_a), 1);
  EXPECT_EQ(detail::remove_abandoned(folder_.str(), is_a), 0);
  EXPECT_EQ(count(), 9);
  EXPECT_EQ(read_file(path_), "old");
  writing.finish();
  EXPECT_EQ(read_file(path_), "new");
  EXPECT_EQ(detail::remove_abandoned(folder_ / "none", is_a), 0);
}

TEST_F(FilesTest, NobodyRemovesWhatIsBeingWritten) {
  std::atomic<bool> ended{false};
  std::thread remover([&] {
    while (!ended) detail::remove_abandoned(folder_.str(), [](std::string_view) { return true; });
  });
  for (int i = 0; i < 300; ++i) EXPECT_NO_THROW(write_whole_file(path_, std::to_string(i)));
  ended = true;
  remover.join();
  EXPECT_EQ(read_file(path_), "299");
  EXPECT_EQ(count(), 1);
}

/// A limit of the process stands for a disk that gets full behind a file's first half.
TEST_F(FilesTest, AFileThatGrowsTooLargeLeavesTheOldOne) {
  write_file(path_, "old");
  pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit most{100000, 100000};
    bool limited = ::setrlimit(RLIMIT_FSIZE, &most) == 0;
    std::string message =
        message_of<SerializationError>([&] { write_whole_file(path_, std::string(1 << 20, 'x')); });
    ::_exit(limited && message == "cannot write " + path_ + ": File too large" ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(path_), "old");
  EXPECT_EQ(count(), 1);
}

TEST_F(FilesTest, StreamsThatFail) {
  std::ofstream closed;
  closed.setstate(std::ios::failbit);
  EXPECT_THAT(message_of<SerializationError>([&] { FileWriter file(closed); }),
              HasSubstr("failed before"));
  std::ofstream full("/dev/full");
  EXPECT_THAT(message_of<SerializationError>([&] {
                FileWriter file(full);
                file.write(std::string(1 << 20, 'x'));
                file.finish();
              }),
              HasSubstr("it fails"));
}

TEST_F(FilesTest, MapsRegularFilesAlone) {
  using Mode = FileMapping::Mode;
  write_file(path_, "0123456789");
  {
    FileMapping copy(path_, Mode::copy);
    EXPECT_EQ(copy.size(), 10u);
    copy.data()[0] = 'x';
    EXPECT_EQ(read_file(path_), "0123456789");
    FileMapping shared(path_, Mode::read_write);
    shared.data()[1] = 'y';
    EXPECT_EQ(read_file(path_), "0y23456789");
    EXPECT_EQ(std::string(FileMapping(path_, Mode::read).data(), 3), "0y2");
  }
  write_file(path_, "");
  EXPECT_EQ(FileMapping(path_, Mode::read).size(), 0u);
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const std::string& bad : {folder_ / "pipe", folder_.str(), folder_ / "none"}) {
    EXPECT_NE(message_of<SerializationError>([&] { FileMapping file(bad, Mode::read); }),
              testing::kNothingThrown);
  }
}

TEST(UserCache, RelativePathsAreIgnored) {
  struct Variable {
    explicit Variable(const char* n) : name(n) {
      if (const char* value = std::getenv(n)) before = value;
    }
    ~Variable() {
      if (before) ::setenv(name, before->c_str(), 1);
      else ::unsetenv(name);
    }
    const char* name;
    std::optional<std::string> before;
  } cache("XDG_CACHE_HOME"), home("HOME");
  auto folder = [](const char* cache, const char* home) {
    ::setenv("XDG_CACHE_HOME", cache, 1);
    ::setenv("HOME", home, 1);
    return user_cache_folder();
  };
  EXPECT_EQ(folder("/c", "/h"), "/c/rensa");
  EXPECT_EQ(folder("", "/h"), "/h/.cache/rensa");
  EXPECT_EQ(folder("c", "/h"), "/h/.cache/rensa");
  EXPECT_EQ(folder(".", "."), "");
  EXPECT_EQ(folder("c", "h"), "");
}

}  // namespace
}  // namespace rensa

// idx files, good and bad; where get_mnist looks; downloads; the generated digits.
#include "rensa/data/mnist.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <zlib.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "rensa/core/error.h"
#include "rensa/core/sha256.h"
#include "rensa/core/thread_pool.h"
#include "rensa/data/download.h"
#include "rensa/data/idx.h"
#include "tests/data/published_files.h"
#include "tests/environment.h"
#include "tests/num_threads.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using testing::EnvironmentScope;
using ::testing::HasSubstr;
using testing::idx;
using testing::message_of;
using testing::NumThreads;
using testing::TemporaryFolder;
using testing::write_gz;
using testing::write_small_mnist;

class IdxTest : public ::testing::Test {
 protected:
  std::string read(const std::string& content) {
    write_gz(folder_ / "a.gz", content);
    return message_of<SerializationError>([&] { read_idx_gz(folder_ / "a.gz", 1); });
  }
  TemporaryFolder folder_;
};

TEST_F(IdxTest, ReadsAllDimensions) {
  write_gz(folder_ / "a.gz", idx(2051, {2, 1, 3}, "abcdef"));
  Array a = read_idx_gz(folder_ / "a.gz", 3);
  EXPECT_EQ(a.shape(), (Shape{2, 1, 3}));
  EXPECT_EQ(a.to_vector<int>(), (std::vector<int>{'a', 'b', 'c', 'd', 'e', 'f'}));
}

TEST_F(IdxTest, BadFilesAreNamed) {
  EXPECT_THAT(read(idx(2051, {2}, "ab")), HasSubstr("magic number is 2051, not 2049"));
  EXPECT_THAT(read(idx(2049, {5}, "abc")), HasSubstr("declares 5 bytes, 3 are there"));
  EXPECT_THAT(read(idx(2049, {2}, "abc")), HasSubstr("goes on after"));
  EXPECT_THAT(read("ab"), HasSubstr("within the idx header"));
  EXPECT_THAT(message_of<SerializationError>([&] { read_idx_gz(folder_ / "none.gz", 1); }),
              HasSubstr("cannot be opened"));
}

TEST_F(IdxTest, NoFilesAreNamed) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {folder_ / "pipe", folder_.str()}) {
    EXPECT_THAT(message_of<SerializationError>([&] { read_idx_gz(path, 1); }),
                HasSubstr("no regular file"));
  }
}

TEST_F(IdxTest, TakesNoMemoryForSizesThatTheFileCannotHold) {
  EXPECT_THAT(read(idx(2049, {0xfffffff0}, "ab")), HasSubstr("compressed bytes can hold"));
  write_gz(folder_ / "b.gz", idx(2051, {0xffffffff, 0xffffffff, 0xffffffff}, "ab"));
  EXPECT_THAT(message_of<SerializationError>([&] { read_idx_gz(folder_ / "b.gz", 3); }),
              HasSubstr("can hold"));
}

TEST_F(IdxTest, DamagedGzip) {
  write_gz(folder_ / "a.gz", idx(2049, {1000}, std::string(1000, 'x')));
  std::string bytes = testing::read_file(folder_ / "a.gz");
  testing::write_file(folder_ / "a.gz", bytes.substr(0, bytes.size() - 12));
  EXPECT_NE(message_of<SerializationError>([&] { read_idx_gz(folder_ / "a.gz", 1); }),
            testing::kNothingThrown);
  for (int ndim : {-1, 0, 9, 1000000}) {
    EXPECT_THROW(read_idx_gz(folder_ / "a.gz", ndim), ValueError) << ndim;
  }
}

TEST(Mnist, IsFoundInTheDatasetRootAndTheCacheIsVerified) {
  TemporaryFolder root, cache;
  EnvironmentScope a("RENSA_DATASET_ROOT", root.str()), b("XDG_CACHE_HOME", cache.str());
  EXPECT_EQ(datasets::find_mnist(), "");
  write_small_mnist(cache / "rensa/mnist");
  EXPECT_EQ(datasets::find_mnist(), "") << "a cache holds the published files or none";
  write_small_mnist(root.str());
  EXPECT_EQ(datasets::find_mnist(), root.str());
  write_small_mnist(root / "mnist");
  EXPECT_EQ(datasets::find_mnist(), root / "mnist");
}

TEST(Mnist, ShapesScaleAndLabels) {
  TemporaryFolder root;
  EnvironmentScope a("RENSA_DATASET_ROOT", root.str());
  write_small_mnist(root / "mnist");
  auto [train, test] = datasets::get_mnist();
  EXPECT_EQ(train.size(), 2);
  EXPECT_EQ(test.size(), 1);
  EXPECT_EQ((*train.columns())[0].shape(), (Shape{2, 784}));
  EXPECT_EQ((*train.columns())[0].dtype(), float32);
  EXPECT_NEAR((*train.columns())[0].max().item<double>(), 1.0, 1e-6);
  EXPECT_EQ((*train.columns())[1].dtype(), int32);
  EXPECT_EQ((*train.columns())[1].to_vector<int>(), (std::vector<int>{3, 9}));
  auto images = datasets::get_mnist(false, 3, 255.f);
  EXPECT_EQ(images.test.columns()->size(), 1u);
  EXPECT_EQ(images.test[0][0].shape(), (Shape{1, 28, 28}));
  EXPECT_NEAR(images.test[0][0].max().item<double>(), 255.0, 1e-4);
  EXPECT_THROW(datasets::get_mnist(true, 4), ValueError);
}

TEST(Mnist, ImagesAndLabelsOfDifferentCounts) {
  TemporaryFolder root;
  EnvironmentScope a("RENSA_DATASET_ROOT", root.str());
  write_small_mnist(root / "mnist");
  write_gz(root / "mnist/train-labels-idx1-ubyte.gz", idx(2049, {1}, "a"));
  EXPECT_THAT(message_of<SerializationError>([] { datasets::get_mnist(); }), HasSubstr("2 images"));
}

std::string sha256_of(const std::string& text) {
  Sha256 hash;
  hash.update(text.data(), text.size());
  return hash.hex_digest();
}

FileIdentity identity_of(const std::string& text) {
  return {sha256_of(text), static_cast<std::int64_t>(text.size())};
}

class DownloadTest : public ::testing::Test {
 protected:
  std::string url(const std::string& name) const { return "file://" + (folder_ / name); }
  std::string failure(std::vector<std::string> urls, const FileIdentity& wanted) const {
    return message_of<SerializationError>([&] { download(urls, wanted, folder_ / "a"); });
  }
  std::ptrdiff_t count() const {
    return std::distance(std::filesystem::directory_iterator(folder_.str()), {});
  }
  TemporaryFolder folder_;
  std::string content_ = std::string(5000, 'q');
};

TEST_F(DownloadTest, PassesOverWrongMirrorsAndGoesOnWithWhatIsThere) {
  testing::write_file(folder_ / "wrong", "something else");
  testing::write_file(folder_ / "right", content_);
  std::vector<std::string> urls{url("missing"), url("wrong"), url("right")};
  download(urls, identity_of(content_), folder_ / "a");
  EXPECT_EQ(testing::read_file(folder_ / "a"), content_);
  for (const std::string& part :
       {content_.substr(0, 3000), content_, std::string("of another file"), content_ + "more",
        std::string(5000, 'x'), std::string(4999, 'x')}) {
    std::filesystem::remove(folder_ / "b");
    testing::write_file(folder_ / "b.part", part);
    download(std::vector<std::string>{urls[2]}, identity_of(content_), folder_ / "b");
    EXPECT_EQ(testing::read_file(folder_ / "b"), content_);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "b.part"));
  }
}

TEST_F(DownloadTest, AWholeFileIsKeptAndADamagedOneReplaced) {
  testing::write_file(folder_ / "a", content_);
  download(std::vector<std::string>{url("missing")}, identity_of(content_), folder_ / "a");
  testing::write_file(folder_ / "a", std::string(5000, 'x'));
  EXPECT_FALSE(is_file(folder_ / "a", identity_of(content_)));
  EXPECT_NE(failure({url("missing")}, identity_of(content_)), testing::kNothingThrown);
  testing::write_file(folder_ / "right", content_);
  download(std::vector<std::string>{url("right")}, identity_of(content_), folder_ / "a");
  EXPECT_TRUE(is_file(folder_ / "a", identity_of(content_)));
}

TEST_F(DownloadTest, SaysWhatEachAddressAnswered) {
  testing::write_file(folder_ / "wrong", "something else");
  testing::write_file(folder_ / "short", "x");
  std::string message =
      failure({url("missing"), url("wrong"), url("short"), "gopher://x/y"}, identity_of("yy"));
  EXPECT_THAT(message, HasSubstr("missing: "));
  EXPECT_THAT(message, HasSubstr("wrong: it sends more than the file has"));
  EXPECT_THAT(message, HasSubstr("short: its SHA-256 is not"));
  EXPECT_THAT(message, HasSubstr("gopher://x/y: "));
  EXPECT_EQ(count(), 2);
}

TEST_F(DownloadTest, TakesNoMoreThanTheFileHas) {
  EXPECT_THAT(failure({"file:///dev/zero"}, identity_of(content_)), HasSubstr("sends more"));
  EXPECT_EQ(count(), 0);
}

TEST_F(DownloadTest, PlacesThatCannotBe) {
  testing::write_file(folder_ / "right", content_);
  std::filesystem::create_directories(folder_ / "a");
  EXPECT_THAT(failure({url("right")}, identity_of(content_)), HasSubstr("Is a directory"));
  std::filesystem::remove(folder_ / "a");
  testing::write_file(folder_ / "victim", "precious");
  std::filesystem::create_symlink("victim", folder_ / "a.part");
  EXPECT_NE(failure({url("right")}, identity_of(content_)), testing::kNothingThrown);
  EXPECT_EQ(testing::read_file(folder_ / "victim"), "precious");
  std::filesystem::remove(folder_ / "a.part");
  ASSERT_EQ(::mkfifo((folder_ / "a.part").c_str(), 0600), 0);
  EXPECT_NE(failure({url("right")}, identity_of(content_)), testing::kNothingThrown);
  EXPECT_NE(message_of<SerializationError>([&] {
              download(std::vector<std::string>{url("right")}, identity_of(content_),
                       folder_ / "no/a");
            }),
            testing::kNothingThrown);
}

TEST_F(DownloadTest, ManyAtOnceFetchOneWholeFile) {
  std::string content(3 << 20, 'r');
  testing::write_file(folder_ / "right", content);
  FileIdentity wanted = identity_of(content);
  auto fetch = [&] {
    std::vector<std::string> urls{url("right")};
    return message_of<SerializationError>([&] { download(urls, wanted, folder_ / "a"); }) ==
               testing::kNothingThrown &&
           is_file(folder_ / "a", wanted);
  };
  std::vector<pid_t> processes;
  for (int i = 0; i < 4; ++i) {
    processes.push_back(::fork());
    if (processes.back() == 0) ::_exit(fetch() ? 0 : 1);
  }
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { failures += !fetch(); });
  for (std::thread& thread : threads) thread.join();
  for (pid_t process : processes) {
    int status = -1;
    ::waitpid(process, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(count(), 2);
}

/// An HTTP server on this machine that gives the same answer to whoever connects.
class Server {
 public:
  explicit Server(std::string answer) : answer_(std::move(answer)) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* at = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket_, at, size) != 0 || ::listen(socket_, 8) != 0 ||
        ::getsockname(socket_, at, &size) != 0) {
      throw std::runtime_error("no server on this machine");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/file"; }
  int visits() const { return visits_; }

 private:
  void serve() {
    for (int client; (client = ::accept(socket_, nullptr, nullptr)) >= 0; ::close(client)) {
      ++visits_;
      char request[4096];
      (void)!::recv(client, request, sizeof(request), 0);
      (void)!::send(client, answer_.data(), answer_.size(), MSG_NOSIGNAL);
    }
  }
  std::string answer_;
  int socket_ = -1, port_ = 0;
  std::atomic<int> visits_{0};
  std::thread thread_;
};

std::string answer(const std::string& status, const std::string& headers, const std::string& body) {
  return "HTTP/1.1 " + status + "\r\nConnection: close\r\n" + headers + "\r\n" + body;
}

TEST_F(DownloadTest, OverHttp) {
  EnvironmentScope direct("no_proxy", "127.0.0.1");
  Server good(answer("200 OK", "", content_));
  Server longer(answer("200 OK", "Content-Length: 999999999\r\n", content_));
  Server missing(answer("404 Not Found", "", "nothing here"));
  download(std::vector<std::string>{missing.url(), longer.url(), good.url()}, identity_of(content_),
           folder_ / "a");
  EXPECT_EQ(testing::read_file(folder_ / "a"), content_);
  // A server that does not go on from the middle: all of it once more.
  testing::write_file(folder_ / "b.part", content_.substr(0, 100));
  download(std::vector<std::string>{good.url()}, identity_of(content_), folder_ / "b");
  EXPECT_EQ(testing::read_file(folder_ / "b"), content_);
}

TEST_F(DownloadTest, RedirectsLeadToHttpsAlone) {
  EnvironmentScope direct("no_proxy", "127.0.0.1");
  Server good(answer("200 OK", "", content_));
  testing::write_file(folder_ / "right", content_);
  for (const std::string& target : {good.url(), url("right")}) {
    Server redirects(answer("302 Found", "Location: " + target + "\r\n", ""));
    EXPECT_THAT(failure({redirects.url()}, identity_of(content_)), HasSubstr("rotocol"));
    EXPECT_EQ(redirects.visits(), 1);
  }
  EXPECT_EQ(good.visits(), 0);
}

TEST(SyntheticDigits, AreTheSameOnAnyNumberOfThreads) {
  auto first = datasets::get_synthetic_digits(300, 20, 7);
  auto second = [] {
    NumThreads scope(get_num_threads() + 2);
    return datasets::get_synthetic_digits(300, 20, 7);
  }();
  for (int c : {0, 1}) {
    EXPECT_TRUE(xp::array_equal((*first.train.columns())[c], (*second.train.columns())[c]));
    EXPECT_TRUE(xp::array_equal((*first.test.columns())[c], (*second.test.columns())[c]));
  }
  auto other = datasets::get_synthetic_digits(300, 20, 8);
  EXPECT_FALSE(xp::array_equal((*first.train.columns())[0], (*other.train.columns())[0]));
}

TEST(SyntheticDigits, LookLikeDigits) {
  auto [train, test] = datasets::get_synthetic_digits(2000, 10);
  const Array &x = (*train.columns())[0], &t = (*train.columns())[1];
  EXPECT_EQ(x.shape(), (Shape{2000, 784}));
  EXPECT_EQ(test.size(), 10);
  EXPECT_GE(x.min().item<float>(), 0.f);
  EXPECT_LE(x.max().item<float>(), 1.f);
  EXPECT_NEAR(x.mean().item<double>(), 0.13, 0.06);  // MNIST's is 0.13
  std::vector<int> counts(10);
  for (int label : t.to_vector<int>()) ++counts.at(static_cast<std::size_t>(label));
  EXPECT_GT(*std::min_element(counts.begin(), counts.end()), 140);
}

}  // namespace
}  // namespace rensa

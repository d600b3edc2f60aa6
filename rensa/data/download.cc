// Downloads by libcurl.
#include "rensa/data/download.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>

#include "rensa/core/error.h"
#include "rensa/core/sha256.h"

namespace rensa {

namespace {

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
struct CurlCloser {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};

struct Outcome {
  std::string problem;   // empty: the transfer came to its end
  bool refused = false;  // the server answered, and did not give what was asked for
};

/// Appends what `url` has beyond the bytes in `part`.
Outcome fetch(const std::string& url, const std::string& part) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  std::unique_ptr<std::FILE, FileCloser> file(std::fopen(part.c_str(), "ab"));
  if (!file) return {"cannot write " + part};
  std::unique_ptr<CURL, CurlCloser> curl(curl_easy_init());
  if (!curl) return {"libcurl cannot start"};
  char reason[CURL_ERROR_SIZE] = "";
  auto size = static_cast<curl_off_t>(std::filesystem::file_size(part));
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, reason);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, file.get());
  curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT, 10L);
  curl_easy_setopt(curl.get(), CURLOPT_LOW_SPEED_LIMIT, 1000L);  // bytes a second,
  curl_easy_setopt(curl.get(), CURLOPT_LOW_SPEED_TIME, 30L);     // for so many seconds
  curl_easy_setopt(curl.get(), CURLOPT_RESUME_FROM_LARGE, size);
  CURLcode code = curl_easy_perform(curl.get());
  if (code == CURLE_OK) return {};
  return {reason[0] ? reason : curl_easy_strerror(code),
          code == CURLE_HTTP_RETURNED_ERROR || code == CURLE_RANGE_ERROR};
}

}  // namespace

void download(std::span<const std::string> urls, const std::string& sha256,
              const std::string& path) {
  std::string part = path + ".part", account;
  for (const std::string& url : urls) {
    // A second try without what was there already: it may be of another file.
    for (bool resuming = std::filesystem::exists(part);; resuming = false) {
      Outcome outcome = fetch(url, part);
      std::error_code ignored;
      if (std::filesystem::exists(part, ignored) && sha256_of_file(part) == sha256) {
        std::filesystem::rename(part, path);
        return;
      }
      bool useless = outcome.problem.empty() || (outcome.refused && resuming);
      if (useless) std::filesystem::remove(part, ignored);
      if (useless && resuming) continue;
      account +=
          fmt::format("\n  {}: {}", url,
                      outcome.problem.empty() ? "its SHA-256 is not " + sha256 : outcome.problem);
      break;
    }
  }
  std::error_code ignored;
  if (std::filesystem::exists(part, ignored) && std::filesystem::file_size(part, ignored) == 0) {
    std::filesystem::remove(part, ignored);
  }
  throw SerializationError(fmt::format("cannot download {}:{}", path, account));
}

}  // namespace rensa

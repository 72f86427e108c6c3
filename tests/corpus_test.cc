// The conformance corpus beside the checkout: every case and every other form of it against
// TensorFlow's answers.
//
// tests/corpus_failures.txt lists what is known to fail, NAME | REASON. The test fails when
// anything else does, and when something on the list has begun to pass. Environment:
//   FLOE_CORPUS_FILTER=TEXT   only cases whose name contains TEXT
//   FLOE_CORPUS_VERBOSE=1     a line for each failing case
//   FLOE_CORPUS_UPDATE=1      rewrites the list
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/rounds_for_test.h"
#include "runtime/passes/passes.h"
#include "tests/corpus_case.h"
#include "tests/island_check.h"
#include "tests/row_check.h"

namespace floe::corpus {
namespace {

namespace fs = std::filesystem;

constexpr int kThreads = 2;
// What each thread is running, for the last words of a crash or a hang.
char running[kThreads][256];

void LastWords(int signal) {
  for (const auto& name : running) {
    // Nothing can be done about a failed write here.
    if (write(STDERR_FILENO, "running: ", 9) < 0 ||
        write(STDERR_FILENO, name, strnlen(name, sizeof name)) < 0 ||
        write(STDERR_FILENO, "\n", 1) < 0)
      break;
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// The unpacked corpus, in the build folder under a name that changes with the archive. Empty
// without one.
fs::path UnpackedCorpus() {
  const fs::path archive = fs::path(FLOE_SOURCE_DIR) / ".." / "shared" / "corpus" / "corpus.tar.xz";
  if (!fs::exists(archive)) return {};
  const auto time = fs::last_write_time(archive).time_since_epoch().count();
  const fs::path target =
      fs::path(FLOE_BINARY_DIR) / absl::StrCat("corpus-", fs::file_size(archive), "-", time);
  if (fs::exists(target)) return target / "corpus";
  const fs::path partial = target.string() + absl::StrCat(".", getpid());
  fs::create_directories(partial);
  const std::string command =
      absl::StrCat("tar xf '", archive.string(), "' -C '", partial.string(), "'");
  if (std::system(command.c_str()) != 0) return {};
  std::error_code raced;  // another run may have been faster
  fs::rename(partial, target, raced);
  if (raced) fs::remove_all(partial);
  return target / "corpus";
}

struct Result {
  std::string name;
  absl::Status status;
};

using RunVariant = std::function<absl::Status(const CorpusCase&, const CorpusVariant&)>;

// The case with some passes left out.
RunVariant Without(const std::vector<std::string>& passes) {
  return [passes](const CorpusCase& c, const CorpusVariant& variant) {
    return RunCorpusCase(c, variant, {.disabled_passes = passes});
  };
}

std::vector<Result> RunCase(const fs::path& folder, const RunVariant& run, char* now) {
  const auto c = ReadCorpusCase(folder);
  if (!c.ok()) return {{folder.filename().string(), c.status()}};
  std::vector<Result> results;
  for (const CorpusVariant& variant : c->variants) {
    now[variant.name.copy(now, sizeof running[0] - 1)] = '\0';
    results.push_back({variant.name, run(*c, variant)});
  }
  return results;
}

std::vector<Result> RunAll(const std::vector<fs::path>& folders, const RunVariant& run) {
  std::vector<std::vector<Result>> by_case(folders.size());
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = next++; i < folders.size(); i = next++)
        by_case[i] = RunCase(folders[i], run, running[t]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Result> results;
  for (auto& some : by_case) results.insert(results.end(), some.begin(), some.end());
  return results;
}

// One line without the machine's paths.
std::string Reason(const Result& result, const fs::path& corpus) {
  std::string text = absl::StrReplaceAll(std::string(result.status.message()),
                                         {{corpus.string() + "/", ""}, {"\n", " "}, {"|", "/"}});
  if (text.size() > 160) text = text.substr(0, 157) + "...";
  return text;
}

// What failures have in common: each op that is missing, or else the message without names and
// numbers.
std::set<std::string> Groups(const Result& result, const fs::path& corpus) {
  const std::string message(result.status.message());
  std::set<std::string> groups;
  if (message.find("does not support") != std::string::npos) {
    static const std::regex kOp(R"('[^']*' \(([^)]*)\))");
    for (std::sregex_iterator it(message.begin(), message.end(), kOp), end; it != end; ++it)
      groups.insert("missing: " + (*it)[1].str());
    if (!groups.empty()) return groups;
  }
  std::string text = absl::StrReplaceAll(message, {{corpus.string() + "/", ""}});
  text = std::regex_replace(text, std::regex("'[^']*'"), "'_'");
  text = std::regex_replace(text, std::regex("^[^ ]*[.]pb: "), "");
  text = std::regex_replace(text, std::regex("-?[0-9][0-9.e+-]*"), "#");
  return {text.substr(0, 150)};
}

const fs::path kListed = fs::path(FLOE_SOURCE_DIR) / "tests" / "corpus_failures.txt";

std::set<std::string> ReadListed() {
  std::set<std::string> listed;
  std::ifstream file(kListed);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::string name = line.substr(0, line.find('|'));
    listed.emplace(absl::StripAsciiWhitespace(name));
  }
  return listed;
}

void WriteListed(const std::vector<Result>& results, const fs::path& corpus) {
  std::ofstream file(kListed);
  file << "# Cases of the conformance corpus that fail, NAME | REASON. Written by corpus_tests "
          "with FLOE_CORPUS_UPDATE=1.\n";
  for (const Result& result : results) {
    if (!result.status.ok()) file << result.name << " | " << Reason(result, corpus) << "\n";
  }
}

void PrintSummary(const std::vector<Result>& results, const fs::path& corpus) {
  std::map<std::string, int> groups;
  int count[2] = {0, 0}, passed[2] = {0, 0};
  for (const Result& result : results) {
    const bool variant = result.name.find('/') != std::string::npos;
    ++count[variant];
    if (result.status.ok()) {
      ++passed[variant];
      continue;
    }
    for (const std::string& group : Groups(result, corpus)) ++groups[group];
    if (std::getenv("FLOE_CORPUS_VERBOSE") != nullptr)
      std::cout << result.name << ": " << result.status.message() << "\n";
  }
  std::multimap<int, std::string, std::greater<>> by_count;
  for (const auto& [group, n] : groups) by_count.emplace(n, group);
  std::cout << "failing\tbecause of\n";
  for (const auto& [n, group] : by_count) std::cout << n << "\t" << group << "\n";
  std::cout << passed[0] << " of " << count[0] << " cases, variants " << passed[1] << " of "
            << count[1] << std::endl;
}

// `every`: one of so many.
std::vector<fs::path> Folders(const fs::path& corpus, size_t every = 1) {
  const char* filter = std::getenv("FLOE_CORPUS_FILTER");
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(corpus)) {
    if (filter == nullptr || entry.path().filename().string().find(filter) != std::string::npos)
      folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  for (size_t i = 0; i * every < folders.size(); ++i) folders[i] = folders[i * every];
  folders.resize((folders.size() + every - 1) / every);
  return folders;
}

std::vector<Result> RunGuarded(const std::vector<fs::path>& folders, const RunVariant& run) {
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGALRM})
    std::signal(signal, LastWords);
  alarm(600);
  std::vector<Result> results = RunAll(folders, run);
  alarm(0);
  return results;
}

// No case fails but those of the list, which fail anyway.
void ExpectOnlyListed(const std::vector<Result>& results) {
  const std::set<std::string> listed = ReadListed();
  for (const Result& result : results) {
    EXPECT_TRUE(result.status.ok() || listed.count(result.name) != 0)
        << result.name << ": " << result.status.message();
  }
}

absl::Status CheckRowsOf(const CorpusCase& c, const CorpusVariant& variant) {
  return CheckRows(c, variant).status();
}

// Where the runtime says that requests may be batched, a row has the bits it has alone.
TEST(Corpus, ProvedRowsKeepTheirBitsInCompany) {
  const fs::path corpus = UnpackedCorpus();
  if (corpus.empty()) GTEST_SKIP() << "needs ../shared";
  ExpectOnlyListed(RunGuarded(Folders(corpus, kEveryCase), CheckRowsOf));
}

absl::Status RunUndeclared(const CorpusCase& c, const CorpusVariant& variant) {
#ifndef FLOE_SANITIZED
  FLOE_RETURN_IF_ERROR(RunUndeclaredCase(c, variant, /*ranks=*/true));
#endif
  return RunUndeclaredCase(c, variant, /*ranks=*/false);
}

// What shape inference knows beforehand makes a run quick, not right.
TEST(Corpus, EveryCaseGivesTheSameWithNothingDeclared) {
  const fs::path corpus = UnpackedCorpus();
  if (corpus.empty()) GTEST_SKIP() << "needs ../shared";
  ExpectOnlyListed(RunGuarded(Folders(corpus, kEveryCase), RunUndeclared));
}

TEST(Corpus, EveryCaseGivesTensorFlowsAnswers) {
  const fs::path corpus = UnpackedCorpus();
  if (corpus.empty()) GTEST_SKIP() << "needs ../shared";
  const std::vector<Result> results = RunGuarded(Folders(corpus), Without({}));
  PrintSummary(results, corpus);
  if (std::getenv("FLOE_CORPUS_UPDATE") != nullptr && std::getenv("FLOE_CORPUS_FILTER") == nullptr)
    WriteListed(results, corpus);
  const std::set<std::string> listed = ReadListed();
  for (const Result& result : results) {
    if (result.status.ok()) {
      EXPECT_EQ(listed.count(result.name), 0u)
          << result.name << " passes; take it off tests/corpus_failures.txt";
    } else {
      EXPECT_EQ(listed.count(result.name), 1u) << result.name << ": " << Reason(result, corpus);
    }
  }
}

class InIslands : public testing::TestWithParam<DeviceKind> {};

TEST_P(InIslands, EveryCaseGivesTheSameAnswers) {
  const fs::path corpus = UnpackedCorpus();
  if (corpus.empty()) GTEST_SKIP() << "needs ../shared";
  const std::set<std::string> listed = ReadListed();
  std::atomic<int> nodes = 0;
  const RunVariant run = [&](const CorpusCase& c, const CorpusVariant& variant) {
    const auto checked = CheckIslands(c, variant, GetParam());
    if (checked.ok()) nodes += *checked;
    return checked.status();
  };
  for (const Result& result : RunGuarded(Folders(corpus, kEveryCase), run)) {
    if (listed.count(result.name) != 0) continue;
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << Reason(result, corpus);
  }
  std::cout << nodes << " nodes are in islands" << std::endl;
  EXPECT_GT(nodes, 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, InIslands, testing::Values(kHostDevice, DeviceKind::kCuda),
                         [](const auto& info) {
                           return info.param == kHostDevice ? "host" : "emulated";
                         });

// A pass may make a graph faster, never right: without it the answers are the same. Under a
// sanitizer, which makes each round take most of a minute, only all are left out, at once.
class WithoutPass : public testing::TestWithParam<std::string> {};

TEST_P(WithoutPass, EveryCaseGivesTheSameAnswers) {
  const fs::path corpus = UnpackedCorpus();
  if (corpus.empty()) GTEST_SKIP() << "needs ../shared";
  const std::set<std::string> listed = ReadListed();
  for (const Result& result : RunGuarded(Folders(corpus, kEveryCase), Without({GetParam()}))) {
    if (listed.count(result.name) != 0) continue;
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << Reason(result, corpus);
  }
}

std::vector<std::string> Switches() {
  std::vector<std::string> names = {"all"};
#ifndef FLOE_SANITIZED
  for (const std::string& pass : PassNames()) names.push_back(pass);
#endif
  return names;
}

INSTANTIATE_TEST_SUITE_P(Passes, WithoutPass, testing::ValuesIn(Switches()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace floe::corpus

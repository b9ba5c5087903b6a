// Findings as files of the report folder, and what is left to say where there is no finding.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "trapline/capi.h"

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kFinding =
    R"({"code": "TL105", "cause": "index_out_of_range", "certainty": "proven", "role": "root",
        "summary": "x[index]: index[0] is 9", "fix": ["check it"]})";

struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "trapline-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(path)) all.push_back(entry.path().filename());
    std::ranges::sort(all);
    return all;
  }
};

using Kinds = std::vector<std::string>;

// "guard" of guard-HOST-PID.TAG.json.
Kinds kinds_in(const Folder& folder) {
  Kinds kinds;
  for (const std::string& name : folder.names()) kinds.push_back(name.substr(0, name.find('-')));
  return kinds;
}

struct Answer {
  int verdict;
  std::string text;
};

Answer take(int verdict, char* text) {
  Answer answer{verdict, text == nullptr ? "" : text};
  trapline_free(text);
  return answer;
}

Answer write_finding(const std::string& folder, bool always = false, const char* finding = kFinding) {
  char* text = nullptr;
  const int verdict = trapline_write_finding(folder.c_str(), finding, R"(["a note"])", always ? 1 : 0, &text);
  return take(verdict, text);
}

Answer write_file(const std::string& folder, const char* kind, const char* content) {
  char* text = nullptr;
  const int verdict = trapline_write_file(folder.c_str(), kind, content, &text);
  return take(verdict, text);
}

// "...-PID.TAG" and the end: the tag is four letters.
bool is_ours(const std::string& path, const std::string& end) {
  const std::string pid = "-" + std::to_string(::getpid()) + ".";
  const std::size_t at = path.rfind(pid);
  return at != std::string::npos && path.ends_with(end) && path.size() == at + pid.size() + 4 + end.size();
}

json read(const std::string& path) { return json::parse(std::ifstream(path)); }

TEST(WriteFinding, PutsAReportAroundIt) {
  const Folder folder;
  const Answer answer = write_finding(folder.path);
  ASSERT_EQ(answer.verdict, TRAPLINE_FILE_WRITTEN);
  EXPECT_TRUE(answer.text.starts_with(folder.path.string() + "/finding-"));
  EXPECT_TRUE(is_ours(answer.text, "-0.json")) << answer.text;
  const json report = read(answer.text);
  EXPECT_EQ(report.at("trapline"), json({{"version", trapline_version()}, {"schema", 1}}));
  EXPECT_EQ(report.at("command"), "run");
  EXPECT_EQ(report.at("verdict"), "fault");
  EXPECT_EQ(report.at("findings"), json::array({json::parse(kFinding)}));
  EXPECT_EQ(report.at("notes"), json::array({"a note"}));
  EXPECT_EQ(folder.names().size(), 1U);  // nothing half written is left
}

TEST(WriteFinding, StopsAtTwentyButForTheLast) {
  const Folder folder;
  for (int i = 0; i < TRAPLINE_MAX_FINDINGS; ++i)
    EXPECT_EQ(write_finding(folder.path).verdict, TRAPLINE_FILE_WRITTEN);
  EXPECT_EQ(trapline_findings_written(folder.path.c_str()), TRAPLINE_MAX_FINDINGS);
  const Answer enough = write_finding(folder.path);
  EXPECT_EQ(enough.verdict, TRAPLINE_FILE_ENOUGH);
  EXPECT_EQ(enough.text, "");
  EXPECT_TRUE(write_finding(folder.path, true).text.ends_with("-20.json"));
  const Folder other;
  EXPECT_EQ(trapline_findings_written(other.path.c_str()), 0);
  EXPECT_TRUE(write_finding(other.path).text.ends_with("-0.json"));
}

TEST(WriteFinding, AFolderThatIsMissingIsSaid) {
  const Folder folder;
  const std::string missing = folder.path / "missing";
  const Answer answer = write_finding(missing);
  EXPECT_EQ(answer.verdict, TRAPLINE_FILE_FAILED);
  EXPECT_EQ(answer.text, "cannot write the report into " + missing +
                             ": No such file or directory: give a folder that this process can write to "
                             "with --report DIR");
  EXPECT_EQ(trapline_findings_written(missing.c_str()), 0);
  const std::string deep = folder.path / std::string(5000, 'x');
  EXPECT_NE(write_finding(deep).text.find("File name too long"), std::string::npos);
  EXPECT_EQ(write_file(deep, "guard", "{}").verdict, TRAPLINE_FILE_FAILED);
  EXPECT_EQ(write_file(folder.path, std::string(300, 'k').c_str(), "{}").verdict, TRAPLINE_FILE_FAILED);
  EXPECT_TRUE(folder.names().empty());
}

TEST(WriteFinding, ADiskThatTakesNoMoreIsSaid) {
  const Folder folder;
  // A limit on the size of files stands for a full disk: the file is there, and its bytes are refused.
  const pid_t child = ::fork();
  if (child == 0) {
    const bool first = write_finding(folder.path).verdict == TRAPLINE_FILE_WRITTEN;
    const rlimit limit{16, 16};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const Answer second = write_finding(folder.path);
    const bool said =
        second.verdict == TRAPLINE_FILE_FAILED && second.text.find("File too large") != std::string::npos;
    ::_exit(first && said && trapline_findings_written(folder.path.c_str()) == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(kinds_in(folder), (Kinds{"finding", "lost"}));  // nothing half written is left
}

// In a child, which may limit itself: what write_finding() says after `limit`.
template <class Limit>
int verdict_in_child(const Folder& folder, Limit limit) {
  const pid_t child = ::fork();
  if (child == 0) {
    limit();
    ::_exit(write_finding(folder.path).verdict);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void no_descriptors() {
  const rlimit limit{0, 0};
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void no_bytes() {
  const rlimit limit{0, 0};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

TEST(LostFinding, IsToldInTheMarkerWhateverTheProcessMayStillDo) {
  for (void (*const limit)() : {no_descriptors, no_bytes}) {
    const Folder folder;
    const Answer marker = write_file(folder.path, "guard", R"({"adapter": "compiled"})");
    ASSERT_EQ(marker.verdict, TRAPLINE_FILE_WRITTEN);
    EXPECT_EQ(read(marker.text), json({{"adapter", "compiled"}, {"lost", 0}}));
    EXPECT_EQ(verdict_in_child(folder, limit), TRAPLINE_FILE_FAILED);
    EXPECT_EQ(read(marker.text), json({{"adapter", "compiled"}, {"lost", 1}}));
    EXPECT_EQ(kinds_in(folder), Kinds{"guard"});
  }
}

TEST(LostFinding, OneThatIsWrittenIsNotLost) {
  const Folder folder;
  const Answer marker = write_file(folder.path, "guard", "{}");
  EXPECT_EQ(verdict_in_child(folder, [] {}), TRAPLINE_FILE_WRITTEN);
  EXPECT_EQ(read(marker.text), json({{"lost", 0}}));
}

TEST(LostFinding, AShortenedMarkerEndsNobody) {
  const Folder folder;
  const Answer marker = write_file(folder.path, "guard", "{}");
  fs::resize_file(marker.text, 0);
  EXPECT_EQ(verdict_in_child(folder, no_bytes), TRAPLINE_FILE_FAILED);
  EXPECT_EQ(kinds_in(folder), (Kinds{"guard", "lost"}));
}

TEST(LostFinding, WithoutAMarkerAnEmptyFileTellsIt) {
  const Folder folder;
  EXPECT_EQ(verdict_in_child(folder, no_bytes), TRAPLINE_FILE_FAILED);
  EXPECT_EQ(kinds_in(folder), Kinds{"lost"});
}

TEST(WriteFinding, WhereAShortFileIsTakenTheFindingIsShortened) {
  const Folder folder;
  const std::string finding =
      R"({"code": "TL101", "cause": "c", "certainty": "proven", "role": "root", "summary": "label 7",)"
      R"( "fix": ["a", "b"], "origin": {"file": "t.py", "line": 3, "code": "x"}, "stack": [")" +
      std::string(5000, 'x') + R"("]})";
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{1024, 1024};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    char* text = nullptr;
    const int verdict =
        trapline_write_finding(folder.path.c_str(), finding.c_str(), R"(["a note"])", 0, &text);
    ::_exit(verdict == TRAPLINE_FILE_WRITTEN && trapline_findings_written(folder.path.c_str()) == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(folder.names().size(), 1U);
  std::ifstream file(folder.path / folder.names()[0]);
  const json report = json::parse(file);
  EXPECT_EQ(report["findings"][0], json::parse(R"({"code": "TL101", "cause": "c", "certainty": "proven",
      "role": "root", "summary": "label 7", "fix": ["a"], "origin": {"file": "t.py", "line": 3}})"));
  EXPECT_EQ(report["notes"][0], "the finding is shortened: in full it could not be written: File too large");
}

TEST(WriteFinding, ALimitOnFilesDoesNotEndTheProcess) {
  const Folder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_DFL);
    const rlimit limit{16, 16};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const bool failed = write_finding(folder.path).verdict == TRAPLINE_FILE_FAILED;
    sigset_t pending;
    ::sigpending(&pending);
    ::_exit(failed && ::sigismember(&pending, SIGXFSZ) == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(kinds_in(folder), Kinds{"lost"});
}

TEST(WriteFinding, ForkedChildrenCountForThemselvesAndDoNotWait) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "its allocator (GCC 12) does not free its own lock in a forked child";
#endif
  const Folder folder;
  std::atomic<bool> over{false};
  std::vector<std::thread> writers;
  for (int i = 0; i < 2; ++i) {
    writers.emplace_back([&] {
      while (!over) write_finding(folder.path, true);
    });
  }
  for (int i = 0; i < 30; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // a child that waits for a lock is ended
      const bool zero = trapline_findings_written(folder.path.c_str()) == 0;
      const Answer answer = write_finding(folder.path);
      const bool first = is_ours(answer.text, "-0.json");
      ::_exit(zero && first ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  over = true;
  for (std::thread& writer : writers) writer.join();
}

TEST(WriteFinding, GarbageIsNoFinding) {
  const Folder folder;
  for (const char* wrong : {"", "{", "[]", "null", "7"}) {
    EXPECT_EQ(write_finding(folder.path, false, wrong).verdict, TRAPLINE_FILE_FAILED) << wrong;
  }
  EXPECT_EQ(write_finding(folder.path, false, nullptr).verdict, TRAPLINE_FILE_FAILED);
  EXPECT_EQ(kinds_in(folder), Kinds{"lost"});
}

TEST(WriteFile, IsOneOfEachKind) {
  const Folder folder;
  const Answer answer = write_file(folder.path, "guard", R"({"torch": "2"})");
  EXPECT_TRUE(is_ours(answer.text, ".json")) << answer.text;
  EXPECT_EQ(read(answer.text), json({{"torch", "2"}, {"lost", 0}}));
  EXPECT_EQ(write_file(folder.path, "guard", R"({"torch": "3"})").text, answer.text);
  EXPECT_EQ(read(answer.text), json({{"torch", "3"}, {"lost", 0}}));
  EXPECT_EQ(folder.names().size(), 1U);
}

std::string sentence(const char* contract, const trapline_scan* scan) {
  char text[256];
  const int length = trapline_bare_sentence(contract, scan, text, sizeof text);
  EXPECT_EQ(std::string(text).size(), static_cast<std::size_t>(length));
  return text;
}

TEST(BareSentence, SaysWhatTheScanSaw) {
  trapline_scan scan{};
  scan.bad = 1;
  scan.total = 4;
  scan.first = 2;
  scan.ivalue = 10;
  EXPECT_EQ(sentence("nll_loss_forward.target", &scan),
            "cross_entropy: 1 of 4 elements of target is not valid: 10, at position 2");
  scan.bad = 3;
  EXPECT_EQ(sentence("nll_loss_forward.target", &scan),
            "cross_entropy: 3 of 4 elements of target are not valid: the first is 10, at position 2");
  scan.is_float = 1;
  scan.fvalue = -std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(sentence("no_such.row", &scan),
            "no_such: 3 of 4 elements of row are not valid: the first is nan, at position 2");
  scan.first = -1;
  EXPECT_EQ(sentence("no_such.row", &scan), "no_such: 3 of 4 elements of row are not valid");
  scan.bad = scan.total = 1;
  EXPECT_EQ(sentence("no_such.row", &scan), "no_such: 1 of 1 element of row is not valid");
}

TEST(BareSentence, TakesWhateverIsMissing) {
  EXPECT_EQ(sentence("nll_loss_forward.target", nullptr), "cross_entropy: target is not valid");
  EXPECT_EQ(sentence(nullptr, nullptr), "an operation: an argument is not valid");
  EXPECT_EQ(sentence("?", nullptr), "an operation: an argument is not valid");
  EXPECT_EQ(sentence((std::string(9999, 'x') + ".y").c_str(), nullptr).size(), 255U);
  char little[8];
  EXPECT_EQ(trapline_bare_sentence("a.b", nullptr, little, sizeof little), 7);
  EXPECT_STREQ(little, "a: b is");
  EXPECT_EQ(trapline_bare_sentence("a.b", nullptr, nullptr, 0), 0);
}

TEST(BareFinding, IsAFindingThatSaysWhy) {
  trapline_scan scan{};
  scan.bad = 1;
  scan.total = 4;
  char* text = trapline_bare_finding("nll_loss_forward.target", &scan, "no memory");
  const json finding = json::parse(text);
  trapline_free(text);
  EXPECT_EQ(finding.at("code"), "TL901");
  EXPECT_EQ(finding.at("cause"), "insufficient_evidence");
  EXPECT_EQ(finding.at("certainty"), "proven");
  EXPECT_EQ(finding.at("op"), "cross_entropy");
  EXPECT_EQ(finding.at("argument"), "target");
  EXPECT_EQ(finding.at("contained"), true);
  EXPECT_NE(finding.at("fix").at(0).get<std::string>().find("(no memory)"), std::string::npos);
}

}  // namespace

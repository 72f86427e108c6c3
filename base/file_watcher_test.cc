#include "base/file_watcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace floe {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The kernel's events are there once a call that changes files has returned.
class FileWatcherTest : public testing::Test {
 protected:
  FileWatcherTest() {
    root_ = testing::TempDir() + "floe_watch_" +
            testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
    fs::create_directories(root_);
    auto created = FileWatcher::Create([](int64_t) { return true; });
    EXPECT_TRUE(created.ok()) << created.status();
    watcher_ = *created;
  }
  ~FileWatcherTest() override { fs::remove_all(root_); }

  std::string Path(const std::string& path) { return root_ + "/" + path; }
  void Write(const std::string& path, const std::string& text = "x") {
    fs::create_directories(fs::path(Path(path)).parent_path());
    std::ofstream(Path(path)) << text;
  }
  absl::Status Watch(const std::string& name, const std::vector<std::string>& paths,
                     FileWatch* watch) {
    std::vector<std::string> whole;
    whole.reserve(paths.size());
    for (const std::string& path : paths) whole.push_back(Path(path));
    return watcher_->Watch(name, whole, watch);
  }
  bool Changed() { return !watcher_->TakeChanged().empty(); }

  std::string root_;
  std::shared_ptr<FileWatcher> watcher_;
};

TEST_F(FileWatcherTest, TellsWhoseDirectoryHasAnotherEntry) {
  Write("a/1/f");
  Write("b/1/f");
  FileWatch a, b;
  ASSERT_TRUE(Watch("a", {"a"}, &a).ok());
  ASSERT_TRUE(Watch("b", {"b"}, &b).ok());
  EXPECT_THAT(watcher_->TakeChanged(), IsEmpty());
  fs::create_directory(Path("a/2"));
  EXPECT_THAT(watcher_->TakeChanged(), ElementsAre("a"));
  EXPECT_THAT(watcher_->TakeChanged(), IsEmpty()) << "told once";
  fs::rename(Path("a/2"), Path("b/2"));
  EXPECT_THAT(watcher_->TakeChanged(), ElementsAre("a", "b"));
  fs::remove(Path("b/2"));
  EXPECT_THAT(watcher_->TakeChanged(), ElementsAre("b"));
  Write("a/1/g");
  EXPECT_THAT(watcher_->TakeChanged(), IsEmpty()) << "deeper";
  Write("c/1/f");
  EXPECT_THAT(watcher_->TakeChanged(), IsEmpty()) << "a neighbour of both";
}

TEST_F(FileWatcherTest, TellsOfAFilesContentsAndOfAnotherInItsPlace) {
  Write("m/1/f");
  Write("m/1/other");
  FileWatch watch;
  ASSERT_TRUE(Watch("m", {"m", "m/1/f"}, &watch).ok());
  Write("m/1/f", "overwritten");
  EXPECT_TRUE(Changed());
  Write("new");
  fs::rename(Path("new"), Path("m/1/f"));
  EXPECT_TRUE(Changed());
  fs::permissions(Path("m/1/f"), fs::perms::none);
  EXPECT_TRUE(Changed());
  Write("m/1/other", "overwritten");
  EXPECT_FALSE(Changed());
}

TEST_F(FileWatcherTest, TellsOfWhatLeadsElsewhere) {
  const auto expect_told = [this](const char* what, auto&& change) {
    fs::remove_all(root_);
    Write("store/new/m/2/f");
    Write("store/old/m/1/f");
    fs::create_directory_symlink("old", Path("store/now"));
    fs::create_directory_symlink(Path("store/now"), Path("models"));
    FileWatch watch;
    ASSERT_TRUE(Watch("m", {"models/m"}, &watch).ok());
    EXPECT_FALSE(Changed());
    change();
    EXPECT_TRUE(Changed()) << what;
    std::error_code unreadable;  // to all but root
    if (!fs::exists(Path("models/m"), unreadable)) return;
    ASSERT_TRUE(Watch("m", {"models/m"}, &watch).ok());
    (void)Changed();
    fs::create_directory(Path("models/m/3"));
    EXPECT_TRUE(Changed()) << "afterwards: " << what;
  };
  expect_told("a link is replaced", [this] {
    fs::create_directory_symlink("new", Path("store/next"));
    fs::rename(Path("store/next"), Path("store/now"));
  });
  expect_told("the first link is removed", [this] { fs::remove(Path("models")); });
  expect_told("the directory is renamed",
              [this] { fs::rename(Path("store/old/m"), Path("store/old/n")); });
  expect_told("one above it makes place for another", [this] {
    fs::rename(Path("store/old"), Path("store/older"));
    fs::rename(Path("store/new"), Path("store/old"));
  });
  expect_told("all is removed", [this] { fs::remove_all(root_); });
  expect_told("one above it may not be read",
              [this] { fs::permissions(Path("store/old"), fs::perms::none); });
  fs::permissions(Path("store/old"), fs::perms::owner_all);  // so that it can be removed
}

// A version may be a link, whose directory comes and goes elsewhere.
TEST_F(FileWatcherTest, FollowsTheLinksAmongEntries) {
  Write("store/a/f");
  Write("m/readme");
  fs::create_directory_symlink("../store/a", Path("m/1"));
  fs::create_directory_symlink("../store/later/b", Path("m/2"));
  FileWatch watch;
  ASSERT_TRUE(Watch("m", {"m"}, &watch).ok());
  fs::rename(Path("store/a"), Path("store/c"));
  EXPECT_TRUE(Changed());
  fs::create_directory(Path("store/later"));
  EXPECT_TRUE(Changed()) << "on the way to what was not there";
  fs::create_directory(Path("elsewhere"));
  EXPECT_FALSE(Changed());
}

TEST_F(FileWatcherTest, RefusesWhatDoesNotExist) {
  Write("m/1/f");
  FileWatch watch;
  ASSERT_TRUE(Watch("m", {"m"}, &watch).ok());
  EXPECT_TRUE(absl::IsNotFound(Watch("m", {"m", "gone/n"}, &watch)));
  fs::create_directory(Path("m/2"));
  fs::create_directory(Path("gone"));
  EXPECT_FALSE(Changed()) << "nothing is watched for it";
  fs::create_directory_symlink("round", Path("round"));
  EXPECT_FALSE(Watch("m", {"round/m"}, &watch).ok());
  EXPECT_FALSE(Watch("m", {"m/1/f/g"}, &watch).ok());
}

TEST_F(FileWatcherTest, RefusesFileSystemsThatMayChangeUnseen) {
  const auto watcher = *FileWatcher::Create([](int64_t) { return false; });
  FileWatch watch;
  EXPECT_TRUE(absl::IsUnimplemented(watcher->Watch("m", {root_}, &watch)));
  fs::create_directory(Path("1"));
  EXPECT_THAT(watcher->TakeChanged(), IsEmpty());
  for (const int64_t kind : {EXT4_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC})
    EXPECT_TRUE(ReportsChanges(kind)) << kind;
  constexpr int64_t kCifs = 0xff534d42, kFuse = 0x65735546, kUnknown = 4711;
  for (const int64_t kind :
       {int64_t{NFS_SUPER_MAGIC}, int64_t{SMB_SUPER_MAGIC}, int64_t{V9FS_MAGIC},
        int64_t{CEPH_SUPER_MAGIC}, kCifs, kFuse, kUnknown})
    EXPECT_FALSE(ReportsChanges(kind)) << kind;
}

TEST_F(FileWatcherTest, AWatchEndsWithItsOwner) {
  Write("m/1/f");
  FileWatch stays;
  ASSERT_TRUE(Watch("stays", {"m"}, &stays).ok());
  {
    FileWatch goes;
    ASSERT_TRUE(Watch("goes", {"m", "m/1/f"}, &goes).ok());
  }
  Write("m/2/f");
  Write("m/1/f", "overwritten");
  EXPECT_THAT(watcher_->TakeChanged(), ElementsAre("stays"));
  ASSERT_TRUE(Watch("stays", {"m/1"}, &stays).ok());
  Write("m/3/f");
  EXPECT_FALSE(Changed()) << "what was watched before is not any more";
  Write("m/1/g");
  EXPECT_TRUE(Changed());
}

// Whoever has a watch is told when events are lost.
TEST_F(FileWatcherTest, AnOverflowIsAChangeOfEverything) {
  int64_t most = 0;
  std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> most;
  ASSERT_GT(most, 0);
  Write("busy/f");
  Write("quiet/f");
  FileWatch busy, quiet;
  ASSERT_TRUE(Watch("busy", {"busy"}, &busy).ok());
  ASSERT_TRUE(Watch("quiet", {"quiet"}, &quiet).ok());
  for (int64_t i = 0; i <= most / 2; ++i) {  // two events each; equal ones in a row are one
    fs::rename(Path("busy/f"), Path("busy/g"));
    fs::rename(Path("busy/g"), Path("busy/f"));
  }
  EXPECT_THAT(watcher_->TakeChanged(), ElementsAre("busy", "quiet"));
  EXPECT_FALSE(Changed());
  fs::create_directory(Path("quiet/1"));
  EXPECT_THAT(watcher_->TakeChanged(), ElementsAre("quiet"));
}

TEST_F(FileWatcherTest, ManyThreads) {
  constexpr int kThreads = 4, kRounds = 50;
  for (int i = 0; i < kThreads; ++i) Write("m" + std::to_string(i) + "/1/f");
  std::atomic<bool> done{false};
  std::thread taker([&] {
    while (!done) (void)watcher_->TakeChanged();
  });
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([this, i] {
      const std::string own = "m" + std::to_string(i);
      for (int round = 0; round < kRounds; ++round) {
        FileWatch watch;
        EXPECT_TRUE(Watch(own, {own, own + "/1/f"}, &watch).ok());
        Write(own + "/1/f", "overwritten");
      }
    });
  for (std::thread& thread : threads) thread.join();
  done = true;
  taker.join();
  FileWatch watch;
  ASSERT_TRUE(Watch("m0", {"m0"}, &watch).ok());
  fs::create_directory(Path("m0/2"));
  EXPECT_THAT(watcher_->TakeChanged(), ElementsAre("m0"));
}

}  // namespace
}  // namespace floe

// The cache on disk: what is damaged, cut off, somebody else's or somewhere
// else is not believed, and what is kept is whole.

#include "CacheFixture.h"

#include <csignal>
#include <cstddef>
#include <cstring>
#include <gmock/gmock.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

using namespace accel;
using namespace accel::test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Cache, KeepsBytesByKindAndInputs) {
  CacheFolder folder;
  EXPECT_EQ(folder.find("a"), std::nullopt);
  EXPECT_FALSE(fs::exists(folder.path)) << "asking makes no folder";
  std::string content("one\0two", 7);
  folder.insert("a", content);
  EXPECT_EQ(folder.find("a"), content);
  EXPECT_EQ(folder.find("b"), std::nullopt);
  EXPECT_EQ(cpu::Cache(folder.path, "other", "others", folder.warn()).find("a"),
            std::nullopt);
  folder.insert("a", "");
  EXPECT_EQ(folder.find("a"), "") << "the last one counts, even if empty";
  EXPECT_THAT(folder.warnings, IsEmpty());
  EXPECT_EQ(folder.files().size(), 1u);
  EXPECT_EQ(fs::status(folder.path).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(fs::path(folder.path).parent_path()).permissions(),
            fs::perms::owner_all);
  EXPECT_EQ(fs::status(folder.files()[0]).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST(Cache, IsInTheUsersFolder) {
  const char *names[] = {"ACCEL_CACHE", "XDG_CACHE_HOME", "HOME"};
  std::vector<std::optional<std::string>> before;
  for (const char *name : names) {
    const char *value = getenv(name);
    before.push_back(value ? std::optional<std::string>(value) : std::nullopt);
    unsetenv(name);
  }
  EXPECT_EQ(cpu::getCacheFolder(), "");
  setenv("HOME", "/h", 1);
  EXPECT_EQ(cpu::getCacheFolder(), "/h/.cache/acc");
  setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(cpu::getCacheFolder(), "/x/acc");
  setenv("ACCEL_CACHE", "/c", 1);
  EXPECT_EQ(cpu::getCacheFolder(), "/c");
  for (size_t i = 0; i < before.size(); ++i)
    before[i] ? setenv(names[i], before[i]->c_str(), 1) : unsetenv(names[i]);
  // Without one nothing is kept, and nobody is bothered.
  CacheFolder folder;
  cpu::Cache none("", "thing", "things", folder.warn());
  none.insert("a", "content");
  EXPECT_EQ(none.find("a"), std::nullopt);
  EXPECT_THAT(folder.warnings, IsEmpty());
}

TEST(Cache, BelievesNoEntryWithAFlippedBit) {
  CacheFolder folder;
  folder.insert("a", "content");
  std::string file = folder.files()[0], whole = readAll(file);
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] ^= 1 << bit % 8;
    writeAll(file, damaged);
    folder.warnings.clear();
    ASSERT_EQ(folder.find("a"), std::nullopt) << "bit " << bit;
    ASSERT_THAT(folder.warnings, ElementsAre(HasSubstr("damaged")));
    ASSERT_FALSE(fs::exists(file)) << "it is thrown away";
  }
}

TEST(Cache, BelievesNoEntryOfAnotherLengthOrOfOtherInputs) {
  CacheFolder folder;
  folder.insert("a", "content");
  std::string file = folder.files()[0], whole = readAll(file);
  for (size_t length = 0; length <= whole.size() + 1; ++length) {
    writeAll(file, (whole + "!").substr(0, length));
    EXPECT_EQ(folder.find("a").has_value(), length == whole.size()) << length;
  }
  folder.insert("b", "other content");
  fs::rename(folder.files()[0], file);
  EXPECT_EQ(folder.find("a"), std::nullopt);
  cpu::Cache other(folder.path, "other", "others", folder.warn());
  other.insert("a", "content");
  std::string name = folder.files()[0];
  writeAll(name, whole);
  EXPECT_EQ(other.find("a"), std::nullopt) << "one of another kind";
}

/// Expects that neither finding nor keeping uses `path`, and that one warning
/// says why.
static void expectRefused(CacheFolder &folder, const std::string &path,
                          const std::string &why) {
  folder.warnings.clear();
  cpu::Cache cache(path, "thing", "things", folder.warn());
  EXPECT_EQ(cache.find("a"), std::nullopt) << why;
  cache.insert("a", "changed");
  EXPECT_THAT(folder.warnings,
              ElementsAre(testing::AllOf(HasSubstr("found " + why),
                                         HasSubstr("chmod 700"),
                                         HasSubstr("ACCEL_CACHE"))));
}

TEST(Cache, RefusesAFolderThatOthersMayHaveWrittenTo) {
  CacheFolder folder;
  folder.insert("a", "content");
  std::string file = folder.files()[0], whole = readAll(file);
  fs::permissions(folder.path, fs::perms(0770));
  expectRefused(folder, folder.path, "mode 0770");
  fs::permissions(folder.path, fs::perms(01707));
  expectRefused(folder, folder.path, "mode 1707");
  fs::permissions(folder.path, fs::perms(0755));
  EXPECT_EQ(folder.find("a"), "content") << "others may read";

  std::string link = folder.path + "-link";
  fs::create_symlink(folder.path, link);
  expectRefused(folder, link, "a link or a file");
  expectRefused(folder, link + "/", "a link or a file");
  expectRefused(folder, file, "a link or a file");
  if (geteuid() == 0) {
    ASSERT_EQ(chown(folder.path.c_str(), 12345, -1), 0);
    expectRefused(folder, folder.path, "one of user 12345");
  } else {
    expectRefused(folder, "/", "one of user 0");
  }
  EXPECT_EQ(readAll(file), whole);
}

TEST(Cache, BelievesNoEntryThatOthersMayHaveWritten) {
  CacheFolder folder;
  folder.insert("a", "content");
  std::string file = folder.files()[0], aside = folder.path + "-aside";
  auto expectDiscarded = [&](const std::string &why) {
    folder.warnings.clear();
    EXPECT_EQ(folder.find("a"), std::nullopt);
    EXPECT_THAT(folder.warnings, ElementsAre(HasSubstr("found " + why)));
    EXPECT_FALSE(fs::exists(fs::symlink_status(file)));
    folder.insert("a", "content");
    EXPECT_EQ(folder.find("a"), "content");
  };
  fs::permissions(file, fs::perms(0620));
  expectDiscarded("mode 0620");
  fs::permissions(file, fs::perms(0602));
  expectDiscarded("mode 0602");
  fs::rename(file, aside);
  fs::create_symlink(aside, file);
  expectDiscarded("a link");
  EXPECT_TRUE(fs::exists(aside)) << "only the link is thrown away";
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  expectDiscarded("no file");
  fs::resize_file(file, uint64_t(1) << 42);
  expectDiscarded("4398046511104 bytes");
  if (geteuid() == 0) {
    ASSERT_EQ(chown(file.c_str(), 12345, -1), 0);
    expectDiscarded("one of user 12345");
  }
}

TEST(Cache, IsWholeForSeveralProcessesAtOnce) {
  CacheFolder folder;
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    children.push_back(fork());
    if (children.back() != 0)
      continue;
    bool good = true;
    for (int turn = 0; turn < 100; ++turn) {
      folder.insert("a", std::string(20000 + turn, 'a' + child));
      std::optional<std::string> found = folder.find("a");
      good &= found && found->find_first_not_of((*found)[0]) == found->npos;
    }
    _exit(good && folder.warnings.empty() ? 0 : 1);
  }
  for (pid_t child : children) {
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(folder.files().size(), 1u) << "nothing unfinished is left";
}

TEST(Cache, RemovesWhatAKilledProcessLeft) {
  CacheFolder folder;
  folder.insert("a", "content");
  std::string entry = folder.files()[0];
  std::string old = folder.path + "/.new-0000000000000000",
              recent = folder.path + "/.new-0000000000000001";
  writeAll(old, "half");
  writeAll(recent, "half");
  for (const std::string &file : {old, entry})
    fs::last_write_time(file, fs::file_time_type::clock::now() -
                                  std::chrono::hours(2));
  folder.insert("b", "content");
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(recent));
  EXPECT_EQ(folder.find("a"), "content") << "entries grow old";
}

/// Of a process in which fsync calls onTrap: the calls so far, the file that
/// has its name or not at each of them, and what is answered.
static std::string syncs, watched;
static long answer = 0;

static void onTrap(int, siginfo_t *, void *context) {
  greg_t *registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
  struct stat status {};
  fstat(static_cast<int>(registers[REG_RDI]), &status);
  syncs += S_ISDIR(status.st_mode) ? "folder " : "file ";
  syncs += access(watched.c_str(), F_OK) == 0 ? "named;" : "unnamed;";
  registers[REG_RAX] = answer;
}

/// False where the system has no filters of calls.
static bool trapSyncs() {
  struct sigaction action {};
  action.sa_sigaction = onTrap;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, nullptr);
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fsync, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog program{4, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// Keeps an entry where every fsync gives `result`; returns the fsyncs there
/// were, nothing where the system has no filters.
static std::string insertWatched(CacheFolder &folder, long result) {
  folder.insert("a", "content");
  watched = folder.files()[0];
  fs::remove(watched);
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    answer = result;
    if (trapSyncs())
      folder.insert("a", "content");
    _exit(write(ends[1], syncs.data(), syncs.size()) < 0);
  }
  close(ends[1]);
  char found[100];
  ssize_t count = read(ends[0], found, sizeof(found));
  close(ends[0]);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  return std::string(found, std::max<ssize_t>(count, 0));
}

TEST(Cache, SyncsAnEntryBeforeItHasAName) {
  CacheFolder folder;
  std::string found = insertWatched(folder, 0);
  EXPECT_EQ(found, "file unnamed;"); // a lost name costs time only
  EXPECT_EQ(folder.find("a"), "content");
}

TEST(Cache, KeepsNothingThatCannotBeSynced) {
  CacheFolder folder;
  EXPECT_EQ(insertWatched(folder, -EIO), "file unnamed;");
  EXPECT_THAT(folder.files(), IsEmpty());
}

// A file of data that somebody changes while it is open.

#include "Data/DataFile.h"
#include "Files.h"
#include "TinyExecutable.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace accel::rt;
using namespace accel::rt::test;
using ::testing::HasSubstr;

namespace {

class Changed : public ::testing::Test {
protected:
  Changed() {
    spill(path, "0123456789");
    // Long ago, so that the next write has another time.
    const struct timespec times[] = {{1, 0}, {1, 0}};
    EXPECT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    EXPECT_TRUE(file.open(path).ok());
    EXPECT_TRUE(file.check().ok());
  }
  std::string error() {
    Status status = file.check();
    return status.ok() ? "" : status.message();
  }
  TemporaryFolder folder;
  std::string path = folder / "d";
  DataFile file;
};

TEST_F(Changed, IsToldWhereItIsShorterOrLonger) {
  ASSERT_EQ(truncate(path.c_str(), 4), 0);
  EXPECT_THAT(error(), HasSubstr("d' to stay as they were (10 bytes) while "
                                 "they are read, found 4 bytes"));
  char bytes[10];
  Status status = file.read(0, bytes, 10);
  ASSERT_FALSE(status.ok()); // and no signal
  EXPECT_THAT(status.message(), HasSubstr("found its end"));
  ASSERT_EQ(truncate(path.c_str(), 11), 0);
  EXPECT_THAT(error(), HasSubstr("found 11 bytes"));
}

TEST_F(Changed, IsToldWhereItWasWrittenTo) {
  spill(path, "0123456780");
  EXPECT_THAT(error(), HasSubstr("found that somebody wrote to the file"));
}

TEST_F(Changed, IsReadOnWhereItWasMovedOrReplaced) {
  char bytes[10];
  ASSERT_EQ(std::rename(path.c_str(), (folder / "moved").c_str()), 0);
  spill(path, "another");
  EXPECT_EQ(error(), "");
  ASSERT_EQ(std::remove((folder / "moved").c_str()), 0);
  EXPECT_EQ(error(), "");
  ASSERT_TRUE(file.read(0, bytes, 10).ok());
  EXPECT_EQ(std::string(bytes, 10), "0123456789");
}

TEST(DataFile, IsARegularFile) {
  TemporaryFolder folder;
  DataFile file;
  EXPECT_THAT(file.open(folder / "none", " of input 'x'").message(),
              HasSubstr("none' of input 'x': No such file"));
  EXPECT_THAT(file.open(folder / ".").message(),
              HasSubstr("expected a regular file"));
}

} // namespace

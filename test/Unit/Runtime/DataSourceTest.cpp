// What --data says: one file of tokens, or a file for each of some inputs.

#include "Feed/DataSource.h"

#include <gmock/gmock.h>

using namespace accel::rt;
using ::testing::HasSubstr;

namespace {

/// "input:path input:path", or the error.
std::string parse(const std::string &text) {
  std::vector<InputFile> files;
  Status status = filesOf(text,
                          {{"ids", DType::I64, {}},
                           {"labels", DType::I64, {}},
                           {"a/b", DType::F32, {}}},
                          files);
  if (!status.ok())
    return status.message();
  std::string found;
  for (const InputFile &file : files)
    found += (found.empty() ? "" : " ") + file.input + ":" + file.path;
  return found;
}

TEST(DataSource, TellsFilesOfInputsFromOneOfTokens) {
  EXPECT_EQ(parse("ids=a.npy,labels=dir/b.npy"), "ids:a.npy labels:dir/b.npy");
  EXPECT_EQ(parse("a/b=x.npy"), "a/b:x.npy");
  EXPECT_EQ(parse("tokens.npy"), "");
  EXPECT_EQ(parse("runs/lr=3/tokens.npy"), "");
}

TEST(DataSource, KeepsWhatNamesOfFilesHave) {
  EXPECT_EQ(parse("ids=a,b.npy,labels=c=d.npy"), "ids:a,b.npy labels:c=d.npy");
}

TEST(DataSource, SaysWhichInputsThereAre) {
  EXPECT_THAT(
      parse("ids=a.npy,lables=b.npy"),
      HasSubstr("expected INPUT=FILE for an input of the program "
                "('ids', 'labels', 'a/b'), found 'lables' in the data"));
  EXPECT_THAT(parse("x=a.npy"), HasSubstr("found 'x' in the data"));
  EXPECT_THAT(parse("ids="), HasSubstr("expected a file behind '=' for input "
                                       "'ids', found none"));
  EXPECT_THAT(parse("ids=a.npy,ids=b.npy"),
              HasSubstr("expected one file for input 'ids', found two"));
}

} // namespace

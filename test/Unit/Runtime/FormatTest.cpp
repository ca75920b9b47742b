// The file format: what is written is read, and no truncated or mutated file is
// taken for a good one.

#include "Files.h"
#include "Format/Json.h"
#include "TinyTraining.h"

#include <gmock/gmock.h>

#include <cstring>
#include <sys/stat.h>

using namespace accel::rt;
using namespace accel::rt::test;
using ::testing::HasSubstr;

namespace {

std::string openError(const std::string &path) {
  std::unique_ptr<ExecutableFile> file;
  Status status = ExecutableFile::open(path, file);
  return status.ok() ? "" : status.message();
}

/// Every command kind with every field off its default: it makes no sense as a
/// program.
Executable everyCommand() {
  Executable executable = tinyExecutable(2);
  executable.programs[0].buffers[1].aliasOf = "x";
  View x = contiguousView(0, {2, 2}), y = contiguousView(2, {2, 2});
  y.axes = {{"mb", 0}};
  Part part{{8}, {{"dp"}}};
  Form form{{"library", std::string("onednn")},
            {"chunk", int64_t(64)},
            {"grid", std::vector<int64_t>{2, 3}},
            {"alpha", 0.5}};
  AttentionCommand attention;
  attention.query = attention.key = attention.value = attention.output = x;
  attention.mask = y;
  attention.scale = 0.125;
  attention.logSumExp = y;
  attention.causal = attention.zeroMaskedRows = true;
  attention.rowOffset = 3, attention.columnOffset = 2;
  attention.kernel = "softmax";
  AttentionGradCommand grad;
  grad.query = grad.key = grad.value = grad.gradient = x;
  grad.output = grad.logSumExp = x;
  grad.mask = grad.logSumExpGradient = y;
  grad.queryGradient = grad.keyGradient = grad.valueGradient = x;
  grad.scale = 0.25;
  grad.causal = grad.zeroMaskedRows = true;
  grad.rowOffset = 5, grad.columnOffset = 4;
  grad.kernel = "softmax_grad";
  grad.form = form;
  executable.programs[0].bodies.push_back({"every", "cpu", {}});
  auto &commands = executable.programs[0].bodies[2].commands;
  commands.push_back(
      command(GemmCommand{x, x, y, x, std::nullopt, y, true, form}, "MatMul"));
  commands.push_back(
      command(GroupedGemmCommand{x, y, x, y, x, y, form}, "Experts"));
  commands.push_back(command(
      ConvCommand{"input_grad", x, y, x, {2}, {3}, {1}, y, form}, "Conv"));
  commands.push_back(command(DealRowsCommand{x, y, x, y, x, 4, 2}, "Experts"));
  commands.push_back(
      command(GroupedGemmGradCommand{x, y, x, y, x, y, true, form}, "Experts"));
  commands.push_back(command(attention, "Attention"));
  commands.push_back(command(grad, "Attention"));
  commands.push_back(command(
      KernelCommand{"kernel_0", {x}, {y}, 7, 3, {"x"}, y, form}, "Gelu"));
  commands.push_back(command(
      CollectiveCommand{
          "all_reduce", {"dp"}, {x}, {y}, x, "sum", 1, 1, {1, 0}, DType::BF16},
      "Sum"));
  commands.push_back(command(SendCommand{x, "dp", 1, 3}, "Send"));
  commands.push_back(command(RecvCommand{x, "dp", -1, 3}, "Recv"));
  commands.push_back(
      command(GroupCommand{{{x, "dp", 1, 4}}, {{y, "dp", -1, 4}}}, "Group"));
  commands.push_back(command(FillCommand{{0, 0, 128, 63}, x}, "Fill"));
  commands.push_back(command(PackCommand{x, y, form}, "Pack"));
  commands.push_back(command(
      CoordinateCommand{{"dp"}, contiguousView(0, {}, DType::I64)}, "Rank"));
  commands.push_back(command(RecordCommand{"E"}, "Record"));
  commands.push_back(command(WaitCommand{"E"}, "Wait"));
  commands.back().stream = "comm";
  commands.back().releases = {x};
  commands.back().insertedBy = "a-pass";
  return executable;
}

TEST(Format, WritesWhatItReads) {
  TemporaryFolder folder;
  ASSERT_TRUE(
      writeExecutableFile(tinyExecutable(), tinySections(), folder / "a.accx")
          .ok());
  std::unique_ptr<ExecutableFile> file;
  Status status = ExecutableFile::open(folder / "a.accx", file);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(file->find("state:v"), nullptr);
  float state[4] = {};
  const Section *section = file->find("state:w");
  ASSERT_NE(section, nullptr);
  EXPECT_EQ(file->fileOffset(*section) % 4096, 0u);
  ASSERT_TRUE(file->read(*section, state).ok());
  EXPECT_EQ(state[3], 4.f);
  // Written again, the file is the same to the byte: nothing was lost.
  ASSERT_TRUE(
      writeExecutableFile(file->plan(), tinySections(), folder / "b.accx")
          .ok());
  EXPECT_EQ(slurp(folder / "a.accx"), slurp(folder / "b.accx"));
}

TEST(Format, WritesEveryCommand) {
  Executable executable = everyCommand(), found;
  executable.separateRows = SeparateRows{
      {"x"}, {{"y", 1}}, {-100}, {{"n", "d", 0.25, 2.5}, {"m", ""}}};
  std::string text = format::toJson(executable);
  Status status = format::fromJson(text, found);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(format::toJson(found), text);
  EXPECT_EQ(found.separateRows->terms.at(0).least, 2.5);
  EXPECT_EQ(found.separateRows->terms.at(0).plus, 0.25);
  EXPECT_EQ(found.separateRows->terms.at(1).numerator, "m");
  EXPECT_EQ(found.programs[0].bodies.back().commands.size(),
            executable.programs[0].bodies.back().commands.size());
}

TEST(Format, ReadsEveryFieldAsWhatItIs) {
  Executable executable = everyCommand();
  std::string text = format::toJson(executable);
  auto error = [&](const std::string &from, const std::string &to) {
    std::string changed = text;
    size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    Executable found;
    return format::fromJson(changed, found).message();
  };
  const struct {
    const char *from, *to, *message;
  } cases[] = {
      {"{\"name\":\"dp\",\"size\":2}", "5",
       "expected an object in field 'mesh'"},
      {",\"size\":2", "",
       "expected a field 'size', found none in field 'mesh'"},
      {"\"size\":2", "\"size\":9223372036854775808",
       "expected an integer in field 'size'"},
      {"\"size\":2", "\"size\":2.5", "expected an integer in field 'size'"},
      {"\"target\":\"cpu\"", "\"target\":5", "expected a string"},
      {"\"role\":\"parameter\"", "\"role\":\"parameter\",\"frozen\":1",
       "expected a boolean in field 'frozen'"},
      {"\"bytes\":16,\"hash\":", "\"bytes\":-1,\"hash\":",
       "expected a non-negative integer in field 'bytes'"},
      {"\"scale\":0.125", "\"scale\":\"0.125\"",
       "expected a number in field 'scale'"},
      {"\"dtype\":\"f32\"", "\"dtype\":\"f33\"",
       "expected an element type, found 'f33' in field 'dtype'"},
      {"\"form\":{", "\"form\":5,\"from\":{",
       "expected an object in field 'form'"},
      {"\"alpha\":0.5", "\"alpha\":0.5,\"alpha\":0.5",
       "each key of a form once"},
      {"\"alpha\":", "\"alpha\\u0000\":", "and without NUL"},
      {"\"alpha\":0.5", "\"alpha\":true", "expected a list in field 'form'"},
      {"{\"__metadata__\"", "[\"__metadata__\"", "expected a JSON object"},
      {"\"__metadata__\":{\"format\":\"accx\",\"version\":\"21\"},", "",
       "expected the format 'accx'"},
      {"{\"format\":\"accx\",\"version\":\"21\"}", "\"accx\"",
       "expected the format 'accx'"},
      {"\"version\":\"21\"", "\"version\":21", "expected format version 21"},
      {"\"accx\":{", "\"section:s\":5,\"accx\":{",
       "expected an object in section 's'"},
      {"\"accx\":{",
       "\"section:s\":{\"dtype\":\"F33\",\"data_offsets\":[0,0],\"hash\":0},"
       "\"accx\":{",
       "expected an element type and two offsets in section 's'"},
      {"\"accx\":{",
       "\"section:s\":{\"dtype\":\"U8\",\"data_offsets\":[0],\"hash\":0},"
       "\"accx\":{",
       "expected an element type and two offsets in section 's'"},
      {"\"accx\":{",
       "\"section:s\":{\"dtype\":\"U8\",\"data_offsets\":[8,0],\"hash\":0},"
       "\"accx\":{",
       "expected an element type and two offsets in section 's'"},
      {"\"accx\":{", "\"accy\":{},\"accx\":{", "a header key 'accy'"}};
  for (auto &test : cases)
    EXPECT_THAT(error(test.from, test.to), HasSubstr(test.message))
        << test.from << " -> " << test.to;
  Executable found;
  EXPECT_THAT(format::fromJson("[]", found).message(),
              HasSubstr("expected a JSON object"));
}

TEST(Format, RefusesEveryTruncation) {
  TemporaryFolder folder;
  ASSERT_TRUE(
      writeExecutableFile(tinyExecutable(), tinySections(), folder / "a.accx")
          .ok());
  std::string text = slurp(folder / "a.accx");
  // The last section ends before its padding does.
  for (size_t length = 0; length + 4096 - 16 < text.size(); length += 7) {
    spill(folder / "b.accx", text.substr(0, length));
    EXPECT_NE(openError(folder / "b.accx"), "") << length;
  }
}

TEST(Format, BelievesNoLengthThatIsNone) {
  TemporaryFolder folder;
  auto error = [&](uint64_t length, const std::string &header) {
    spill(folder / "b.accx",
          std::string(reinterpret_cast<char *>(&length), 8) + header);
    return openError(folder / "b.accx");
  };
  for (uint64_t length : {uint64_t(0), uint64_t(1), UINT64_MAX, UINT64_MAX - 7})
    EXPECT_THAT(error(length, std::string(64, '{')),
                HasSubstr("expected a header length"));
  EXPECT_THAT(error(57, std::string(64, '{')),
              HasSubstr("expected a header of 57 bytes, found 72 bytes"));
  EXPECT_THAT(error(48, std::string(64, 'x')),
              HasSubstr("expected a JSON header"));
}

TEST(Format, RefusesEveryMutationOfTheHeader) {
  TemporaryFolder folder;
  ASSERT_TRUE(
      writeExecutableFile(tinyExecutable(), tinySections(), folder / "a.accx")
          .ok());
  std::string text = slurp(folder / "a.accx");
  uint64_t length;
  std::memcpy(&length, text.data(), 8);
  for (size_t i = 0; i < length + 16; ++i) {
    std::string mutated = text;
    mutated[i] ^= 1 << (i % 8);
    spill(folder / "b.accx", mutated);
    EXPECT_NE(openError(folder / "b.accx"), "") << i;
  }
  std::string mutated = text;
  mutated[(length + 16 + 4095) / 4096 * 4096] ^= 1;
  spill(folder / "b.accx", mutated);
  std::unique_ptr<ExecutableFile> file;
  ASSERT_TRUE(ExecutableFile::open(folder / "b.accx", file).ok());
  float state[4];
  Status status = file->read(*file->find("state:w"), state);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("section 'state:w' does not match"));
}

/// Replaces text in the header and makes the length and hash fit again: what an
/// accident does not do, and a hostile file does.
std::string withHeader(const std::string &text, const std::string &from,
                       const std::string &to) {
  uint64_t length;
  std::memcpy(&length, text.data(), 8);
  std::string header = text.substr(8, length);
  size_t at = header.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  header.replace(at, from.size(), to);
  uint64_t size = header.size(), hash = hashBytes(header.data(), size);
  std::string result(reinterpret_cast<char *>(&size), 8);
  result += header;
  result.append(reinterpret_cast<char *>(&hash), 8);
  result.resize((result.size() + 4095) / 4096 * 4096);
  return result + text.substr((length + 16 + 4095) / 4096 * 4096);
}

TEST(Format, NamesWhatIsWrongInAForgedHeader) {
  TemporaryFolder folder;
  ASSERT_TRUE(
      writeExecutableFile(tinyExecutable(), tinySections(), folder / "a.accx")
          .ok());
  std::string text = slurp(folder / "a.accx");
  struct {
    const char *from, *to, *message;
  } cases[] = {
      {"\"version\":\"21\"", "\"version\":\"22\"",
       "expected format version 21, found 22"},
      {"\"accx\"", "\"none\"", "expected the format 'accx'"},
      {"\"target\":", "\"tarjet\":", "does not know"},
      {"\"size\":1", "\"size\":0", "expected a mesh"},
      {"\"size\":1", "\"size\":\"1\"", "expected an integer in field 'size'"},
      {"\"offset\":128,\"bytes\":16", "\"offset\":128,\"bytes\":1600",
       "buffer 'y'"},
      {"\"body\":1", "\"body\":2", "a run of no body"},
      {"\"buffer\":2", "\"buffer\":-1", "a view of no buffer"},
      {"\"strides\":[1]", "\"strides\":[9]", "leaves buffer 'x'"},
      {"\"section\":\"state:w\"", "\"section\":\"state:v\"", "state 'w'"},
      {"\"kind\":\"copy\"", "\"kind\":\"coqy\"", "unknown kind 'coqy'"},
      {"\"data_offsets\":[0,16]", "\"data_offsets\":[8,16]",
       "a range of a section for state 'w'"},
      {"\"data_offsets\":[0,16]", "\"data_offsets\":[0,4097]",
       "expected section 'state:w' to end at byte"},
      // Sums that leave 64 bits.
      {"\"data_offsets\":[0,16]",
       "\"data_offsets\":[18446744073709547520,18446744073709547536]",
       "expected section 'state:w' to end at byte"},
      {"\"data_offsets\":[0,16]", "\"data_offsets\":[0,18446744073709547520]",
       "expected section 'state:w' to end at byte"},
      {"\"shape\":[2,2],\"data", "\"shape\":2,\"data", "expected a list"},
      // What a reader that takes the last, or stops at NUL, would take.
      {"\"stage\":0", "\"stage\":0,\"stage\":0", "the field 'stage' twice"},
      {"\"target\":\"cpu\"", "\"target\":\"cpu\\u0000\"", "without NUL"},
      {"\"section:state:w\"", "\"section:state:w\\u0000\"", "without NUL"},
      {"\"accx\":{",
       "\"section:state:w\":{\"dtype\":\"U8\",\"data_offsets\":[0,0],\"hash\":"
       "0},"
       "\"accx\":{",
       "the header key 'section:state:w' twice"},
      {"\"version\":", "\"format\":\"accx\",\"version\":",
       "a format and a version as metadata"}};
  for (auto &test : cases) {
    spill(folder / "b.accx", withHeader(text, test.from, test.to));
    EXPECT_THAT(openError(folder / "b.accx"), HasSubstr(test.message));
  }
}

TEST(Format, WritesWhatTrainingNeeds) {
  TemporaryFolder folder;
  Executable executable = tinyTraining(2, 3);
  executable.folded = {{"ln.bias", std::vector<int64_t>{4}}, {"old", {}}};
  executable.states[0].dtype = DType::F64;
  executable.states[0].first.stored = DType::F32;
  executable.states[1].logicalShape = {3};
  // The load must agree with the type, and in which order it comes.
  auto &read =
      std::get<ReadCommand>(executable.programs[0].bodies[0].commands[0].what);
  read.part.interleaved = executable.states[0].interleaved =
      Interleaved{0, {1, 1}, 1};
  read.target.dtype = DType::F64;
  executable.programs[0].buffers[0].bytes =
      executable.programs[0].buffers[0].slotStride = 32;
  auto write = [&](const char *name) {
    return writeExecutableFile(executable, tinySections(), folder / name);
  };
  Status status = write("a.accx");
  ASSERT_TRUE(status.ok()) << status.message();
  std::unique_ptr<ExecutableFile> file;
  status = ExecutableFile::open(folder / "a.accx", file);
  ASSERT_TRUE(status.ok()) << status.message();
  const Executable &plan = file->plan();
  EXPECT_TRUE(plan.isTraining());
  EXPECT_EQ(plan.microBatches, 3);
  EXPECT_EQ(plan.seed, 7);
  ASSERT_EQ(plan.folded.size(), 2u);
  EXPECT_EQ(*plan.folded[0].shape, std::vector<int64_t>{4});
  EXPECT_FALSE(plan.folded[1].shape);
  EXPECT_EQ(plan.states[1].first.fill, bytesOf(1.f));
  EXPECT_EQ(plan.states[1].logicalShape, std::vector<int64_t>{3});
  EXPECT_EQ(plan.states[5].role, "counter");
  EXPECT_EQ(*plan.states[0].first.stored, DType::F32);
  EXPECT_FALSE(plan.states[1].first.stored);
  EXPECT_EQ(plan.states[0].interleaved, (Interleaved{0, {1, 1}, 1}));
  EXPECT_FALSE(plan.states[1].interleaved);
  EXPECT_FALSE(plan.states[1].inStack);
  executable = plan;
  ASSERT_TRUE(write("b.accx").ok());
  EXPECT_EQ(slurp(folder / "a.accx"), slurp(folder / "b.accx"));
}

TEST(Format, RefusesRowsThatAreNoStack) {
  auto error = [](auto change) {
    TemporaryFolder folder;
    Executable executable = stackedTraining(2);
    change(executable.states);
    return writeExecutableFile(executable, tinySections(), folder / "a.accx")
        .message();
  };
  using States = std::vector<StatePlan>;
  // 'rows' is in the place of state 1, and its rows are 1 to 4.
  EXPECT_EQ(error([](States &) {}), "");
  EXPECT_THAT(error([](States &all) { all[2].inStack->row = 0; }),
              HasSubstr("expected a place of its own for row 'row.1' of the "
                        "stack 'rows'"));
  EXPECT_THAT(error([](States &all) { all[2].inStack->row = 4; }),
              HasSubstr("expected a place of its own for row 'row.1'"));
  EXPECT_THAT(error([](States &all) { all.erase(all.begin() + 2); }),
              HasSubstr("expected all rows before the last of the stack"));
  EXPECT_THAT(error([](States &all) { all[2].inStack->rows = 6; }),
              HasSubstr("expected what the other rows are for row 'row.1'"));
  EXPECT_THAT(error([](States &all) { all[2].role = "moment"; }),
              HasSubstr("expected what the other rows are for row 'row.1'"));
  EXPECT_THAT(error([](States &all) { all[2].inStack->axes.clear(); }),
              HasSubstr("expected what the other rows are for row 'row.1'"));
  EXPECT_THAT(error([](States &all) { all[2].inStack->axes = {"tp"}; }),
              HasSubstr("found no mesh axis 'tp'"));
  EXPECT_THAT(error([](States &all) { all.back().name = "rows"; }),
              HasSubstr("found two states called 'rows'"));
  EXPECT_THAT(error([](States &all) {
                for (int row : {1, 2, 3, 4})
                  all[row].inStack->axes.clear();
              }),
              HasSubstr("expected the shape of the state, shared as it is"));
  EXPECT_THAT(error([](States &all) {
                all.erase(all.begin() + 4);
                for (int row : {1, 2, 3})
                  all[row].inStack->rows = 3;
              }),
              HasSubstr("expected axes that divide its 3 rows"));
}

TEST(Format, RefusesTrainingThatDoesNotFit) {
  auto error = [](auto change,
                  std::vector<SectionData> sections = tinySections()) {
    Executable executable = tinyTraining(2, 3);
    change(executable);
    TemporaryFolder folder;
    Status status =
        writeExecutableFile(executable, sections, folder / "a.accx");
    return status.ok() ? "" : status.message();
  };
  EXPECT_EQ(error([](Executable &) {}), "");
  EXPECT_THAT(
      error([](Executable &e) { e.programs[0].entries[1].name = "main"; }),
      HasSubstr("expected the entries 'load', 'step', 'eval' and 'forward', "
                "each once at most, found 'main'"));
  EXPECT_THAT(
      error([](Executable &e) { e.programs[0].entries[1].name = "load"; }),
      HasSubstr("each once at most, found 'load'"));
  EXPECT_THAT(error([](Executable &e) { e.programs[0].entries.pop_back(); }),
              HasSubstr("expected an entry beside 'load' in program 'step'"));
  EXPECT_THAT(error([](Executable &e) { e.outputs.erase(e.outputs.begin()); }),
              HasSubstr("found no input or output 'index'"));
  EXPECT_THAT(error([](Executable &e) {
                e.programs[0].bodies[3].commands.erase(
                    e.programs[0].bodies[3].commands.begin() + 4);
                e.outputs.erase(e.outputs.begin() + 2);
              }),
              HasSubstr("expected an output 'grad_norm', a number"));
  EXPECT_THAT(error([](Executable &e) { e.microBatches = 0; }),
              HasSubstr("micro-batches, found 0"));
  EXPECT_THAT(error([](Executable &e) { e.microBatches = 2; }),
              HasSubstr("expected a view of the part's shape"));
  EXPECT_THAT(
      error([](Executable &e) {
        e.programs[0].entries[1].loops[2].segments[0].runs[0].microBatch = 3;
      }),
      HasSubstr("a micro-batch of 3 for body 'update'"));
  EXPECT_THAT(error([](Executable &e) {
                e.mesh.push_back({"mb", 2});
              }),
              HasSubstr("expected a mesh without the axis 'mb'"));
  EXPECT_THAT(error([](Executable &e) { e.states[0].role = "weight"; }),
              HasSubstr("expected the role of a state, found 'weight'"));
  EXPECT_THAT(error([](Executable &e) { e.states[1].aliases = {"tied"}; }),
              HasSubstr("found two states called 'tied'"));
  EXPECT_THAT(error([](Executable &e) {
                e.folded = {{"rows", {}}};
              }),
              HasSubstr("found two states called 'rows'"));
  EXPECT_THAT(error([](Executable &e) { e.states[1].logicalShape = {5}; }),
              HasSubstr("a logical shape within the shape of state 'rows'"));
  EXPECT_THAT(error([](Executable &e) {
                e.states[0].logicalShape = {1, 2};
              }),
              HasSubstr("expected 8 bytes of first value, found 16"));
  EXPECT_THAT(error([](Executable &e) { e.states[1].first.fill.pop_back(); }),
              HasSubstr("expected a fill of one element for state 'rows'"));
  EXPECT_THAT(error([](Executable &e) { e.states[1].first.fill[0] = 256; }),
              HasSubstr("expected a fill of one element"));
  EXPECT_THAT(error([](Executable &e) { e.states[1].first.fill.clear(); }),
              HasSubstr("expected a file, a section or a fill for"));
  EXPECT_THAT(error([](Executable &e) { e.states[1].first.path = "w"; }),
              HasSubstr("expected a file, a section or a fill for"));
  EXPECT_THAT(
      error([](Executable &e) { e.states[0].first.stored = DType::F64; }),
      HasSubstr("a conversion to a wider float, found one of f64 to f32"));
  // Pieces are hashed by the axes of the state.
  EXPECT_THAT(error([](Executable &e) { e.states[1].axes.clear(); }),
              HasSubstr("expected the shape of the state, shared as it is"));
  EXPECT_THAT(error([](Executable &e) {
                e.states.push_back(e.states[1]);
                e.states.back().name = "unread";
                e.states.back().shape = {3};
              }),
              HasSubstr("expected axes that divide dimension 0 of state "
                        "'unread', found 2 pieces"));
  auto withPath = [&](const std::string &path) {
    return error(
        [&](Executable &e) {
          e.states[0].first.section.clear();
          e.states[0].first.path = path;
        },
        {});
  };
  for (std::string path : {"w", "a/w", "../w", "../../a/b/w", "..a/..w"})
    EXPECT_EQ(withPath(path), "") << path;
  for (std::string path :
       {"/w", "a/../w", "./w", "a//w", "a/", "a/.", "..", "../..", "../a/../w"})
    EXPECT_THAT(withPath(path),
                HasSubstr("expected a relative path without detours, found '" +
                          path + "'"));
  EXPECT_THAT(withPath(std::string("a\0b", 3)),
              HasSubstr("expected a relative path without detours"));
}

TEST(Format, NamesEachInputOfAKernelOrNone) {
  TemporaryFolder folder;
  Executable executable = everyCommand();
  for (Command &command : executable.programs[0].bodies[2].commands)
    if (auto *kernel = std::get_if<KernelCommand>(&command.what))
      kernel->inputNames = {"x", ""}, kernel->scratch.reset();
    else if (auto *gemm = std::get_if<GemmCommand>(&command.what))
      gemm->scratch.reset();
    else if (auto *grouped = std::get_if<GroupedGemmCommand>(&command.what))
      grouped->scratch.reset();
    else if (auto *conv = std::get_if<ConvCommand>(&command.what))
      conv->scratch.reset();
    else if (auto *grad = std::get_if<GroupedGemmGradCommand>(&command.what))
      grad->scratch.reset();
  Status status =
      writeExecutableFile(executable, tinySections(), folder / "a.accx");
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("for each input of a kernel"));
}

TEST(Format, LeavesNothingBehindWhenItCannotWrite) {
  TemporaryFolder folder;
  Executable bad = tinyExecutable();
  bad.programs[0].entries[0].loops[0].segments[0].runs[0].body = 7;
  EXPECT_FALSE(
      writeExecutableFile(bad, tinySections(), folder / "a.accx").ok());
  Status status = writeExecutableFile(tinyExecutable(), tinySections(),
                                      folder / "none/a.accx");
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("No such file or directory"));
  // A folder of that name: the rename fails after everything was written.
  std::filesystem::create_directory(folder / "b.accx");
  EXPECT_FALSE(
      writeExecutableFile(tinyExecutable(), tinySections(), folder / "b.accx")
          .ok());
  EXPECT_THAT(openError(folder / "b.accx"),
              HasSubstr("expected a regular file"));
  // Nor is what is no file replaced by one.
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(
      writeExecutableFile(tinyExecutable(), tinySections(), folder / "pipe")
          .message(),
      HasSubstr("expected a regular file"));
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "pipe"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path), {}),
            2);
}

} // namespace

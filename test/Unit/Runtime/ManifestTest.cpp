// Manifests of checkpoints: nothing in one is believed for its hash alone.

#include "Files.h"
#include "RunFixture.h"
#include "SealedManifest.h"

#include <cstring>
#include <filesystem>

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

namespace fs = std::filesystem;

TEST(Manifest, RefusesStepsAndStatesThatAreNone) {
  TemporaryFolder folder;
  auto error = [&](const Manifest &manifest, int64_t step) {
    ManifestText text;
    text.prepare(manifest);
    text.setStep(step);
    text.seal();
    std::ofstream(folder / kManifestFile, std::ios::binary) << text.text();
    Manifest found;
    return readManifest(folder.path, found).message();
  };
  Manifest manifest;
  manifest.states = {{"w", "parameter", {}, 0, 1},
                     {"v", "parameter", {}, 0, 1}};
  EXPECT_EQ(error(manifest, 3), "");
  for (int64_t step : {int64_t(-1), INT64_MIN, INT64_MAX})
    EXPECT_THAT(error(manifest, step), HasSubstr("a step from 0 on")) << step;
  manifest.states[1].name = "w";
  EXPECT_THAT(error(manifest, 3), HasSubstr("states, each once"));
  manifest.states[1].name = std::string("w\0", 2);
  EXPECT_THAT(error(manifest, 3), HasSubstr("states, each once"));
  // By aliases too, which are names.
  manifest.states[1] = {"v", "parameter", {"u", "t"}, 0, 1};
  EXPECT_EQ(error(manifest, 3), "");
  for (std::string alias : {"w", "v", "u"}) {
    manifest.states[1].aliases[1] = alias;
    EXPECT_THAT(error(manifest, 3), HasSubstr("states, each once")) << alias;
  }
}

TEST(Manifest, RemembersEvaluations) {
  TemporaryFolder folder;
  Manifest manifest, found;
  manifest.states = {{"w", "parameter", {}, 0, 1}};
  manifest.evaluations.emplace();
  ManifestText prepared;
  prepared.prepare(manifest);
  prepared.setStep(9);
  auto read = [&](const std::string &text) {
    spill(folder / kManifestFile, sealed(text));
    found = Manifest();
    return readManifest(folder.path, found).message();
  };
  BestEvaluation best;
  for (double value : {-2.5e-300, 1.0 / 3, 0.25}) {
    best.add(9, value, 0);
    prepared.setEvaluations(best);
    ASSERT_EQ(read(prepared.text()), "");
    EXPECT_EQ(found.evaluations->value, best.value);
    EXPECT_EQ(found.evaluations->step, 9);
    EXPECT_EQ(found.evaluations->withoutGain, best.withoutGain);
    EXPECT_EQ(found.evaluations->count, best.count);
  }
  std::string text = prepared.text();
  for (auto [from, to] : {std::pair("\"eval_loss\"", "\"accuracy\""),
                          std::pair("-2.5e-300", "\"a text\""),
                          std::pair("-2.5e-300", "     null"),
                          std::pair(" 9, \"without", "10, \"without"),
                          std::pair(" 9, \"without", "-1, \"without"),
                          std::pair(" 9, \"without", " 0, \"without"),
                          std::pair(" 2, \"count", "-1, \"count"),
                          std::pair(" 2, \"count", " 4, \"count"),
                          std::pair("\"count\"", "\"point\"")}) {
    std::string changed = text;
    size_t at = changed.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    changed.replace(at, std::strlen(from), to);
    EXPECT_THAT(read(changed), HasSubstr("a step from 0 on")) << to;
  }
  best = BestEvaluation();
  best.add(3, std::numeric_limits<double>::quiet_NaN(), 0);
  prepared.setEvaluations(best); // none was a number
  ASSERT_EQ(read(prepared.text()), "");
  EXPECT_EQ(found.evaluations->step, 0);
  EXPECT_EQ(found.evaluations->count, 1);
  EXPECT_EQ(found.evaluations->value, best.value);
}

TEST(Manifest, BelievesNoFieldForItsSeal) {
  TemporaryFolder folder;
  Manifest manifest, found;
  manifest.states = {{"w", "parameter", {}, 0, 1}};
  manifest.data.emplace();
  manifest.data->batch = 1;
  manifest.data->file = "d.npy";
  manifest.data->hash = 2;
  ManifestText prepared;
  prepared.prepare(manifest);
  prepared.setStep(3);
  std::string text = prepared.text();
  auto error = [&](const std::string &from, const std::string &to) {
    std::string changed = text;
    size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    spill(folder / kManifestFile, sealed(changed));
    found = Manifest();
    return readManifest(folder.path, found).message();
  };
  EXPECT_EQ(error("w", "w"), "");
  const char *fields = "expected a step from 0 on, a seed, and the files",
             *none = "expected the manifest of a checkpoint";
  const struct {
    const char *from, *to, *message;
  } cases[] = {
      {"{\"format\"", "[\"format\"", none},
      {"\"format\"", "\"from\"", none},
      {"\"accel-checkpoint\"", "5", none},
      {"\"accel-checkpoint\"", "\"accel\"", none},
      {"\"version\"", "\"from\"", none},
      {"\"version\": 5", "\"version\": \"2\"", none},
      {"\"version\": 5", "\"version\": 0", "expected version 1 to 5 of"},
      {"\"version\": 5", "\"version\": 6", "found 6"},
      {"\"step\"", "\"sttp\"", fields},
      {"\"seed\": 0,", "", fields},
      {"\"seed\": 0,", "\"seed\": 0.5,", fields},
      {"\"seed\": 0,", "\"seed\": 9223372036854775808,", fields},
      {"\"files\"", "\"filez\"", fields},
      {"\"files\": {", "\"files\": 5, \"f\": {", fields},
      {"\"states\"", "\"statez\"", fields},
      {"\"states\": {", "\"states\": 5, \"f\": {", fields},
      {"\"states\": {", "\"states\": [], \"f\": {", fields},
      {"\"data\": {", "\"data\": 5, \"f\": {", fields},
      {"\"samples\"", "\"s\"", fields},
      {"\"length\"", "\"s\"", fields},
      {"\"batch\"", "\"s\"", fields},
      {"\"seed\": 0, \"order\"", "\"order\"", fields},
      {"\"order\": \"shuffled\", ", "", fields},
      {"\"order\": \"shuffled\"", "\"order\": \"sorted\"", fields},
      {"\"last_batch\": \"next\", ", "", fields},
      {"\"last_batch\": \"next\"", "\"last_batch\": \"last\"", fields},
      {"\"first_step\": 0, ", "", fields},
      {"\"first_step\": 0", "\"first_step\": -1", fields},
      {"\"first_step\": 0", "\"first_step\": 4", fields},
      {"\"file\": \"d.npy\"", "\"file\": 5", fields},
      {"\"file\": \"d.npy\", \"hash\"", "\"file\": \"d.npy\", \"h\"", fields},
      {"\"0000000000000002\"", "2", fields},
      {"\"0000000000000002\"", "\"00000000000000002\"", fields},
      {"\"0000000000000002\"", "\"000000000000000G\"", fields},
      {"\"model.safetensors\": \"", "\"m\": \"", fields},
      {"\"optimizer.safetensors\": \"0", "\"optimizer.safetensors\": \"g",
       fields},
      {"{\"file\": \"model.safetensors\"", "{\"file\": \"other\"", fields},
      {"{\"file\": \"model.safetensors\", ", "{", fields},
      {"\"role\": \"parameter\", ", "", fields},
      {"\"role\"", "\"aliases\": \"u\", \"role\"", fields},
      {"\"role\"", "\"aliases\": [5], \"role\"", fields},
      {"\"parameter\", \"hash\"", "\"parameter\", \"h\"", fields},
      {"\"parameter\", \"hash\": \"0", "\"parameter\", \"hash\": \"-", fields},
      {"\"w\": {", "\"w\": 5, \"v\": {", fields}};
  for (auto &test : cases)
    EXPECT_THAT(error(test.from, test.to), HasSubstr(test.message))
        << test.from << " -> " << test.to;
  // Nor is anything read behind the seal, or without one.
  spill(folder / kManifestFile, text);
  EXPECT_THAT(readManifest(folder.path, found).message(),
              HasSubstr("the text does not match its hash"));
  for (std::string other : {"", "{}", "\"hash\": \""}) {
    spill(folder / kManifestFile, other);
    EXPECT_THAT(readManifest(folder.path, found).message(),
                HasSubstr("the text does not match its hash"));
  }
  fs::resize_file(folder / kManifestFile, (uint64_t(1) << 30) + 1);
  EXPECT_THAT(readManifest(folder.path, found).message(),
              testing::Not(HasSubstr("its hash")))
      << "it is not even read";
  fs::remove(folder / kManifestFile);
  EXPECT_THAT(readManifest(folder.path, found).message(),
              HasSubstr("cannot open the checkpoint"));
  fs::create_directory(folder / kManifestFile);
  EXPECT_THAT(readManifest(folder.path, found).message(),
              HasSubstr("expected a regular file"));
}

} // namespace

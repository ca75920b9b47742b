// What the library of products is told must fit what a command says: it checks
// nothing itself.

#include "Device/CPU/Gemm/Gemm.h"
#include "RunFixture.h"

#include <functional>

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

class Products : public RunTest {
protected:
  /// Buffers 3 and on, of 4 KiB each but for the scratch, filled with ones.
  enum { A = 3, B, C, Bias, Packed, Scratch };

  Executable executable = tinyExecutable();
  GemmCommand gemm;
  Products() {
    gemm.a = contiguousView(A, {2, 2});
    gemm.b = contiguousView(B, {2, 2});
    gemm.c = contiguousView(C, {2, 2});
    gemm.scratch = contiguousView(Scratch, {1 << 15}, DType::I8);
    Program &program = executable.programs[0];
    int64_t &end = program.arenas[0].bytes;
    for (int buffer = A; buffer <= Scratch; ++buffer) {
      int64_t bytes = buffer == Scratch ? 1 << 15 : 1 << 12;
      // What is exchanged may go unread.
      program.buffers.push_back(
          {std::to_string(buffer),
           buffer == Scratch ? "scratch" : "communication", "device", end,
           bytes, 1, bytes, "", ""});
      end += bytes;
    }
  }
  std::string runWith(decltype(Command::what) what) {
    Executable changed = executable;
    auto &commands = changed.programs[0].bodies[1].commands;
    for (int buffer = A; buffer < Scratch; ++buffer)
      commands.push_back(command(
          FillCommand{{1}, contiguousView(buffer, {1 << 12}, DType::I8)}, "F"));
    commands.push_back(command(std::move(what), "MatMul"));
    write(changed);
    return run();
  }
  std::string product(const std::function<void(GemmCommand &)> &change) {
    GemmCommand changed = gemm;
    change(changed);
    return runWith(changed);
  }
  std::string shapes(std::vector<int64_t> a, std::vector<int64_t> b,
                     std::vector<int64_t> c) {
    return product([&](GemmCommand &g) {
      g.a = contiguousView(A, a);
      g.b = contiguousView(B, b);
      g.c = contiguousView(C, c);
    });
  }
};

TEST_F(Products, HaveShapesThatAgree) {
  EXPECT_EQ(shapes({2, 2}, {2, 2}, {2, 2}), "");
  EXPECT_EQ(shapes({3, 2, 2}, {2, 2}, {3, 2, 2}), "");
  EXPECT_EQ(shapes({3, 2, 2}, {3, 2, 2}, {3, 2, 2}), "");
  const std::vector<int64_t> cases[][3] = {{{4}, {4, 4}, {4}},
                                           {{2, 2}, {2, 1}, {2, 2, 1}},
                                           {{2, 2, 2}, {2, 2, 2, 2}, {2, 2, 2}},
                                           {{2, 2}, {1, 2}, {2, 2}},
                                           {{2, 2}, {2, 1}, {2, 2}},
                                           {{1, 2}, {2, 2}, {2, 2}},
                                           {{2, 2, 2}, {1, 2, 2}, {2, 2, 2}}};
  for (auto &[a, b, c] : cases)
    EXPECT_THAT(shapes(a, b, c),
                HasSubstr("expected operands whose shapes agree"))
        << ::testing::PrintToString(a) << ::testing::PrintToString(b);
  EXPECT_EQ(product([](GemmCommand &g) { g.bias = contiguousView(Bias, {2}); }),
            "");
  EXPECT_THAT(
      product([](GemmCommand &g) { g.bias = contiguousView(Bias, {1}); }),
      HasSubstr("expected operands whose shapes agree"));
}

TEST_F(Products, HaveTypesAndRowsAsTheLibraryTakesThem) {
  EXPECT_THAT(product([](GemmCommand &g) { g.b.dtype = DType::F64; }),
              HasSubstr("expected operands of one element type"));
  EXPECT_THAT(product([](GemmCommand &g) {
                g.bias = contiguousView(Bias, {2}, DType::F64);
              }),
              HasSubstr("expected operands of one element type"));
  EXPECT_THAT(product([](GemmCommand &g) {
                g.c.strides = {1, 2};
              }),
              HasSubstr("expected rows without gaps"));
  EXPECT_THAT(product([](GemmCommand &g) {
                g.bias = contiguousView(Bias, {2});
                g.bias->strides = {2};
              }),
              HasSubstr("expected rows without gaps"));
}

TEST_F(Products, OfAttentionHaveALogSumExpForEachRow) {
  auto attention = [&](const std::function<void(AttentionCommand &)> &change) {
    AttentionCommand command;
    command.query = command.key = command.value =
        contiguousView(A, {1, 2, 3, 4});
    command.output = contiguousView(B, {1, 2, 3, 4});
    command.logSumExp = contiguousView(C, {1, 2, 3});
    command.scratch = contiguousView(Scratch, {1 << 15}, DType::I8);
    change(command);
    return runWith(command);
  };
  const char *expected = "expected a log-sum-exp for each row, in f32";
  // It has no kernel: what stands before that is right.
  EXPECT_THAT(attention([](AttentionCommand &) {}), Not(HasSubstr(expected)));
  const std::function<void(View &)> wrong[] = {
      [](View &v) {
        v = contiguousView(C, {1, 2, 4});
      },
      [](View &v) {
        v = contiguousView(C, {2, 3});
      },
      [](View &v) {
        v = contiguousView(C, {1, 2, 3}, DType::F64);
      },
      [](View &v) {
        v.strides = {12, 6, 2};
      },
  };
  auto gradient =
      [&](const std::function<void(AttentionGradCommand &)> &change) {
        AttentionGradCommand command;
        command.query = command.key = command.value = command.output =
            command.gradient = contiguousView(A, {1, 2, 3, 4});
        command.logSumExp = contiguousView(B, {1, 2, 3});
        command.logSumExpGradient = contiguousView(B, {1, 2, 3});
        command.queryGradient = contiguousView(C, {1, 2, 3, 4});
        command.keyGradient = contiguousView(Bias, {1, 2, 3, 4});
        command.valueGradient = contiguousView(Packed, {1, 2, 3, 4});
        command.scratch = contiguousView(Scratch, {1 << 15}, DType::I8);
        change(command);
        return runWith(command);
      };
  EXPECT_THAT(gradient([](AttentionGradCommand &) {}),
              Not(HasSubstr(expected)));
  for (const auto &change : wrong) {
    EXPECT_THAT(attention([&](AttentionCommand &c) { change(*c.logSumExp); }),
                HasSubstr(expected));
    EXPECT_THAT(gradient([&](AttentionGradCommand &c) {
                  change(c.logSumExp);
                  c.logSumExp.buffer = B;
                }),
                HasSubstr(expected));
    EXPECT_THAT(gradient([&](AttentionGradCommand &c) {
                  change(*c.logSumExpGradient);
                  c.logSumExpGradient->buffer = B;
                }),
                HasSubstr(expected));
  }
  EXPECT_THAT(gradient([](AttentionGradCommand &c) {
                c.output = contiguousView(A, {1, 2, 4, 3});
              }),
              HasSubstr("expected gradients like what they are of"));
}

TEST_F(Products, HaveThePlaceTheyNeed) {
  auto scratch = [&](int64_t bytes) {
    return product([&](GemmCommand &g) {
      for (View *view : {&g.a, &g.b, &g.c})
        view->dtype = DType::F64;
      g.scratch = contiguousView(Scratch, {bytes}, DType::I8);
    });
  };
  EXPECT_EQ(scratch(1 << 15), "");
  EXPECT_THAT(scratch(1), HasSubstr("bytes of scratch a thread, found less"));
  EXPECT_THAT(product([](GemmCommand &g) {
                g.packed = contiguousView(Packed, {1 << 12}, DType::I8);
              }),
              HasSubstr("packed weights where the form says so"));
  EXPECT_THAT(product([](GemmCommand &g) { g.form["packed"] = int64_t(1); }),
              HasSubstr("packed weights where the form says so"));
}

TEST_F(Products, HaveRoomForPackedWeights) {
  // As the compiler lays weights out.
  cpu::GemmDesc desc;
  desc.m = desc.n = desc.k = 16;
  desc.aRow = desc.bRow = desc.cRow = 16;
  desc.bCol = 1;
  cpu::GemmForm form;
  form.packed = true;
  std::unique_ptr<cpu::Gemm> made;
  Status status = cpu::Gemm::create(desc, form, 1, made);
  if (!status.ok()) // oneDNN blocks weights on CPUs with AVX-512 alone
    GTEST_SKIP() << "no packed form on this machine";
  Form text{{"packed", int64_t(1)}, {"layout", made->form().layout}};
  int64_t bytes = static_cast<int64_t>(made->packedBytes());
  View square = contiguousView(B, {16, 16});
  auto packedProduct = [&](int64_t room) {
    return product([&](GemmCommand &g) {
      g.a = contiguousView(A, {16, 16});
      g.b = square;
      g.c = contiguousView(C, {16, 16});
      g.packed = contiguousView(Packed, {room}, DType::I8);
      g.form = text;
    });
  };
  auto pack = [&](int64_t room, View source) {
    return runWith(
        PackCommand{source, contiguousView(Packed, {room}, DType::I8), text});
  };
  ASSERT_LE(bytes, 1 << 12);
  EXPECT_EQ(packedProduct(bytes), "");
  EXPECT_THAT(packedProduct(bytes - 1), HasSubstr("bytes of packed weights"));
  EXPECT_EQ(pack(bytes, square), "");
  EXPECT_THAT(pack(bytes - 1, square),
              HasSubstr("bytes for packed weights, found"));
  EXPECT_THAT(pack(bytes, contiguousView(B, {2, 8, 16})),
              HasSubstr("expected a matrix to pack"));
}

} // namespace

// What cuBLASLt offers on this chip: which epilogues, layouts and types have
// algorithms; how the heuristic's first compares with the best of eight; which
// results keep their bits; how exact each computation is. Prints JSON lines.
// usage: products [support|accuracy|timing|scaled|heads]
#include "products.cuh"

static void support() {
  struct {
    const char *n;
    cublasLtEpilogue_t e;
  } eps[] = {{"default", CUBLASLT_EPILOGUE_DEFAULT},
             {"bias", CUBLASLT_EPILOGUE_BIAS},
             {"relu_bias", CUBLASLT_EPILOGUE_RELU_BIAS},
             {"relu_aux_bias", CUBLASLT_EPILOGUE_RELU_AUX_BIAS},
             {"drelu_bgrad", CUBLASLT_EPILOGUE_DRELU_BGRAD},
             {"gelu_bias", CUBLASLT_EPILOGUE_GELU_BIAS},
             {"gelu_aux", CUBLASLT_EPILOGUE_GELU_AUX},
             {"gelu_aux_bias", CUBLASLT_EPILOGUE_GELU_AUX_BIAS},
             {"dgelu", CUBLASLT_EPILOGUE_DGELU},
             {"dgelu_bgrad", CUBLASLT_EPILOGUE_DGELU_BGRAD},
             {"bgrada", CUBLASLT_EPILOGUE_BGRADA},
             {"bgradb", CUBLASLT_EPILOGUE_BGRADB}};
  for (auto &t : types)
    for (int l = 0; l < 4; ++l) {
      bool ta = l & 1, tb = l & 2;
      printf("{\"support\":\"%s\",\"layout\":\"%c%c\"", t.name, ta ? 'T' : 'N',
             tb ? 'T' : 'N');
      for (auto &e : eps)
        for (int beta = 0; beta < 2; ++beta) {
          if (beta && e.e != CUBLASLT_EPILOGUE_DEFAULT &&
              e.e != CUBLASLT_EPILOGUE_BGRADB)
            continue;
          Options o;
          o.epilogue = e.e;
          o.beta = beta;
          Plan p(t, 3072, 2048, 768, ta, tb, o);
          std::string r = std::to_string(p.algos.size());
          if (p.algos.empty())
            r = std::string("status ") + std::to_string(p.status) + " " +
                p.where;
          else {
            auto s = p.run(0);
            auto q = cudaDeviceSynchronize();
            if (s || q)
              r += " but run " + std::to_string(s) + "/" + std::to_string(q);
          }
          printf(",\"%s%s\":\"%s\"", e.n, beta ? "+=" : "", r.c_str());
        }
      printf("}\n");
      fflush(stdout);
    }
  for (auto &t : types)
    if (t.fp8) { // fp8's further options, TN
      printf("{\"fp8 options\":\"%s\"", t.name);
      auto one = [&](const char *n, Options o, int m = 3072, int nn = 2048,
                     int k = 768) {
        Plan p(t, m, nn, k, true, false, o);
        std::string r = p.algos.empty() ? "status " + std::to_string(p.status) +
                                              " " + p.where
                                        : std::to_string(p.algos.size());
        if (!p.algos.empty()) {
          auto s = p.run(0);
          auto q = cudaDeviceSynchronize();
          if (s || q)
            r += " but run " + std::to_string(s) + "/" + std::to_string(q);
        }
        printf(",\"%s\":\"%s\"", n, r.c_str());
      };
      Options o;
      o.amax = true;
      one("amax_d", o);
      for (int m = 1; m <= 5; ++m) {
        Options q;
        q.scaleMode = m;
        char n[32];
        sprintf(n, "scale mode %d", m);
        one(n, q);
      }
      Options q;
      q.scaleMode = 4 | 5 << 8;
      one("A 128, B 128x128", q);
      q.scaleMode = 5 | 4 << 8;
      one("A 128x128, B 128", q);
      Options bt;
      bt.epilogue = CUBLASLT_EPILOGUE_BIAS;
      bt.bias = CUDA_R_32F;
      one("bias f32", bt);
      bt.bias = CUDA_R_16BF;
      one("bias bf16", bt);
      bt.bias = CUDA_R_16F;
      one("bias f16", bt);
      Options ga;
      ga.epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
      ga.bias = CUDA_R_16BF;
      ga.aux = CUDA_R_16BF;
      one("gelu_aux_bias aux bf16", ga);
      ga.aux = CUDA_R_8F_E4M3;
      one("gelu_aux_bias aux e4m3", ga);
      Options d;
      one("m,n,k mod 16 = 8", d, 3080, 2056, 776);
      one("k mod 16 = 8", d, 3072, 2048, 776);
      one("n mod 16 = 1", d, 3072, 2049, 768);
      one("m = 50257", d, 50257, 2048, 768);
      printf("}\n");
      fflush(stdout);
    }
  for (int m : {768, 772, 769})
    for (int k : {768, 772, 769}) {
      Plan p(type("bf16"), m, 2048, k, true, false, Options());
      printf("{\"bf16 sizes\":\"m %d k %d\",\"algos\":%zu,\"us\":%.1f}\n", m, k,
             p.algos.size(), p.algos.empty() ? 0 : micros(p, 0, 10));
    }
}

static void timing() {
  struct Shape {
    const char *n;
    int m, nn, k;
    bool ta, tb;
    cublasLtEpilogue_t e;
    float beta;
    const char *types;
    int batch;
  };
  const auto no = CUBLASLT_EPILOGUE_DEFAULT;
  Shape shapes[] = {
      {"8192 cubed", 8192, 8192, 8192, 1, 0, no, 0,
       "bf16,e4m3->bf16,e4m3->bf16 fast", 1},
      {"gpt2 fc fwd TN", 3072, 8192, 768, 1, 0, no, 0,
       "bf16,e4m3->bf16,e4m3->bf16 fast", 1},
      {"gpt2 fc fwd TN bias", 3072, 8192, 768, 1, 0, CUBLASLT_EPILOGUE_BIAS, 0,
       "e4m3->bf16 fast", 1},
      {"gpt2 fc fwd gelu_bias", 3072, 8192, 768, 0, 0,
       CUBLASLT_EPILOGUE_GELU_BIAS, 0, "bf16", 1},
      {"gpt2 fc2 dgrad dgelu", 3072, 8192, 768, 1, 0, CUBLASLT_EPILOGUE_DGELU,
       0, "bf16,tf32", 1},
      {"gpt2 fc2 dgrad drelu_bgrad", 3072, 8192, 768, 1, 0,
       CUBLASLT_EPILOGUE_DRELU_BGRAD, 0, "bf16", 1},
      {"wide fc fwd", 16384, 4096, 4096, 1, 0, no, 0, "bf16", 1},
      {"wide fc fwd gelu_aux_bias", 16384, 4096, 4096, 1, 0,
       CUBLASLT_EPILOGUE_GELU_AUX_BIAS, 0, "bf16", 1},
      {"wide dgrad", 16384, 4096, 4096, 0, 0, no, 0, "bf16", 1},
      {"wide dgrad dgelu", 16384, 4096, 4096, 0, 0, CUBLASLT_EPILOGUE_DGELU, 0,
       "bf16", 1},
      {"wide dgrad dgelu_bgrad", 16384, 4096, 4096, 0, 0,
       CUBLASLT_EPILOGUE_DGELU_BGRAD, 0, "bf16", 1},
      {"wide wgrad", 16384, 4096, 4096, 0, 1, no, 0, "bf16", 1},
      {"wide wgrad bgrada", 16384, 4096, 4096, 0, 1, CUBLASLT_EPILOGUE_BGRADA,
       0, "bf16", 1},
      {"7b proj fwd bias", 4096, 8192, 4096, 1, 0, CUBLASLT_EPILOGUE_BIAS, 0,
       "bf16,e4m3->bf16 fast", 1},
      {"7b proj fwd to e4m3", 4096, 8192, 4096, 1, 0, no, 0,
       "e4m3->e4m3 (C bf16)", 1},
      {"7b proj wgrad TN", 4096, 4096, 8192, 1, 0, no, 0,
       "e5m2*e4m3->f32,e5m2*e4m3->bf16", 1},
      {"gpt2 qkv fwd", 2304, 8192, 768, 0, 0, CUBLASLT_EPILOGUE_BIAS, 0,
       "bf16,tf32,f32", 1},
      {"gpt2 proj fwd", 768, 8192, 768, 0, 0, CUBLASLT_EPILOGUE_BIAS, 0,
       "bf16,tf32,f32", 1},
      {"gpt2 fc fwd", 3072, 8192, 768, 0, 0, CUBLASLT_EPILOGUE_BIAS, 0,
       "bf16,f16,tf32,f32", 1},
      {"gpt2 fc fwd gelu_aux_bias", 3072, 8192, 768, 0, 0,
       CUBLASLT_EPILOGUE_GELU_AUX_BIAS, 0, "bf16,tf32,f32", 1},
      {"gpt2 fc fwd plain", 3072, 8192, 768, 0, 0, no, 0, "bf16,tf32,f32", 1},
      {"gpt2 fc2 fwd", 768, 8192, 3072, 0, 0, CUBLASLT_EPILOGUE_BIAS, 0,
       "bf16,tf32,f32", 1},
      {"gpt2 fc2 dgrad", 3072, 8192, 768, 1, 0, no, 0, "bf16,tf32,f32", 1},
      {"gpt2 fc2 dgrad dgelu_bgrad", 3072, 8192, 768, 1, 0,
       CUBLASLT_EPILOGUE_DGELU_BGRAD, 0, "bf16,tf32,f32", 1},
      {"gpt2 fc wgrad", 3072, 768, 8192, 0, 1, no, 0, "bf16,bf16->f32,tf32,f32",
       1},
      {"gpt2 fc wgrad +=", 3072, 768, 8192, 0, 1, no, 1, "bf16->f32,tf32,f32",
       1},
      {"gpt2 fc wgrad bgrada", 3072, 768, 8192, 0, 1, CUBLASLT_EPILOGUE_BGRADA,
       0, "bf16,bf16->f32", 1},
      {"gpt2 proj wgrad", 768, 768, 8192, 0, 1, no, 0,
       "bf16,bf16->f32,tf32,f32", 1},
      {"gpt2 head fwd 50257", 50257, 4096, 768, 1, 0, no, 0, "bf16,tf32", 1},
      {"gpt2 head fwd 50304", 50304, 4096, 768, 1, 0, no, 0, "bf16,tf32,f32",
       1},
      {"gpt2 head dgrad 50257", 768, 4096, 50257, 0, 0, no, 0, "bf16", 1},
      {"gpt2 head dgrad 50304", 768, 4096, 50304, 0, 0, no, 0, "bf16,tf32", 1},
      {"gpt2 head wgrad 50257", 768, 50257, 4096, 0, 1, no, 0, "bf16,bf16->f32",
       1},
      {"gpt2 head wgrad 50304", 768, 50304, 4096, 0, 1, no, 0, "bf16,bf16->f32",
       1},
      {"scores 96x1024x1024x64", 1024, 1024, 64, 1, 0, no, 0, "bf16,tf32,f32",
       96},
      {"7b proj fwd", 4096, 8192, 4096, 1, 0, no, 0,
       "bf16,tf32,f32,e4m3->bf16,e4m3->bf16 fast", 1},
      {"7b gate+up fwd", 22016, 4096, 4096, 1, 0, no, 0, "bf16,e4m3->bf16 fast",
       1},
      {"7b down fwd", 4096, 8192, 11008, 1, 0, no, 0, "bf16,e4m3->bf16 fast",
       1},
      {"7b proj dgrad", 4096, 8192, 4096, 0, 0, no, 0, "bf16", 1},
      {"7b proj dgrad TN", 4096, 8192, 4096, 1, 0, no, 0, "e4m3*e5m2->bf16", 1},
      {"7b proj wgrad", 4096, 4096, 8192, 0, 1, no, 0, "bf16,bf16->f32", 1},
      {"7b proj wgrad += TN", 4096, 4096, 8192, 1, 0, no, 1, "e5m2*e4m3->f32",
       1}};
  for (auto &s : shapes)
    for (auto &t : types) {
      if ((std::string(",") + s.types + ",")
              .find(std::string(",") + t.name + ",") == std::string::npos)
        continue;
      prepare(t);
      Options o;
      o.epilogue = s.e;
      o.beta = s.beta;
      o.batch = s.batch;
      Plan p(t, s.m, s.nn, s.k, s.ta, s.tb, o);
      double flop = 2.0 * s.m * s.nn * s.k * s.batch;
      int reps = std::max(2, std::min(30, int(1e10 / flop * 30)));
      if (!strncmp(t.name, "f32", 3))
        reps = 2;
      printf("{\"time\":\"%s\",\"type\":\"%s\",\"algos\":%zu,\"us\":[", s.n,
             t.name, p.algos.size());
      double first = 0, best = 1e30;
      int at = 0;
      size_t bytes = (size_t)s.m * s.nn * s.batch * size(t.d);
      std::vector<unsigned long long> hs;
      std::string split;
      for (size_t i = 0; i < p.algos.size(); ++i) {
        double us = p.run(i) ? -1 : micros(p, i, reps);
        if (i == 0)
          first = us;
        if (us > 0 && us < best)
          best = us, at = i;
        printf("%s%.1f", i ? "," : "", us);
        p.run(i);
        if (!s.beta)
          hs.push_back(bits(bytes));
        split +=
            (i ? "," : "") +
            std::to_string(p.get<int32_t>(i, CUBLASLT_ALGO_CONFIG_SPLITK_NUM)) +
            "/" +
            std::to_string(
                p.get<uint32_t>(i, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME));
      }
      bool stable = true;
      if (!p.algos.empty() && !s.beta)
        for (int r = 0; r < 10; ++r) {
          cudaMemset(D, 0xff, bytes);
          p.run(at);
          stable &= bits(bytes) == hs[at];
          p.run(0);
          stable &= bits(bytes) == hs[0];
        }
      std::string ws = "";
      for (auto &a : p.algos)
        ws += (ws.empty() ? "" : ",") + std::to_string(a.workspaceSize);
      std::vector<unsigned long long> u = hs;
      std::sort(u.begin(), u.end());
      u.erase(std::unique(u.begin(), u.end()), u.end());
      printf("],\"workspace\":[%s],\"splitk/scheme\":\"%s\",\"first "
             "TFLOPs\":%.0f,\"best\":%d,\"best "
             "TFLOPs\":%.0f,\"first/best\":%.3f,\"bits of algos "
             "differ\":%d,\"of\":%zu,\"repeats equal\":%s",
             ws.c_str(), split.c_str(), flop / first / 1e6, at,
             flop / best / 1e6, first / best, (int)u.size(), hs.size(),
             stable ? "true" : "false");
      // The workspace's share: first algorithm's time and bits at other limits.
      if (!p.algos.empty() && !s.beta) {
        printf(",\"by workspace\":{");
        bool c = false;
        for (size_t w : {(size_t)0, (size_t)4 << 20, (size_t)128 << 20}) {
          Options q = o;
          q.workspace = w;
          q.want = 1;
          Plan r(t, s.m, s.nn, s.k, s.ta, s.tb, q);
          if (r.algos.empty())
            continue;
          double us = micros(r, 0, reps);
          r.run(0);
          printf("%s\"%zu\":[%.1f,%s]", c ? "," : "", w >> 20, us,
                 bits(bytes) == hs[0] ? "\"same bits\"" : "\"other bits\"");
          c = true;
        }
        printf("}");
      }
      if (!p.algos.empty() && s.e == no && !s.beta) {
        cudaMemset(sums, 0, 64);
        p.run(0);
        check<<<2048, 256>>>(A, B, D, s.m, s.nn, s.k, s.ta, s.tb, t.a, t.b, t.d,
                             sums);
        double h[3];
        cudaMemcpy(h, sums, 24, cudaMemcpyDeviceToHost);
        printf(",\"rel error\":%.3g,\"max error/sum|ab|\":%.3g",
               sqrt(h[0] / h[1]), h[2]);
      }
      printf("}\n");
      fflush(stdout);
    }
}
static void heads() { // 50257 columns in rows of 50257, 50264 (16 bytes) and
                      // 50304 (128 bytes)
  Type &t = type("bf16");
  prepare(t);
  for (int ld : {50257, 50264, 50304})
    for (int columns : {50257, ld})
      for (int part = 0; part < 3; ++part) {
        Options o;
        int m, n, k;
        bool ta, tb;
        const char *w;
        if (part == 0)
          m = columns, n = 4096, k = 768, ta = true, tb = false, o.ldd = ld,
          w = "logits";
        else if (part == 1)
          m = 768, n = 4096, k = columns, ta = tb = false, o.ldb = ld,
          w = "gradient of x";
        else
          m = 768, n = columns, k = 4096, ta = false, tb = true, o.ldb = ld,
          w = "gradient of the table";
        Plan p(t, m, n, k, ta, tb, o);
        double best = 1e30;
        for (size_t i = 0; i < p.algos.size(); ++i)
          best = std::min(best, micros(p, i, 5));
        printf("{\"head\":\"%s\",\"columns\":%d,\"row\":%d,\"algos\":%zu,"
               "\"first us\":%.1f,\"best us\":%.1f}\n",
               w, columns, ld, p.algos.size(),
               p.algos.empty() ? 0 : micros(p, 0, 5), best);
        fflush(stdout);
      }
}
static void scaled() { // fp8's scale modes, timed
  for (const char *n : {"e4m3->bf16", "e4m3->bf16 fast"}) {
    Type &t = type(n);
    prepare(t);
    struct {
      const char *n;
      int m;
    } ms[] = {{"scalar", 0},
              {"vector of rows and columns", 3},
              {"128", 4},
              {"A 128, B 128x128", 4 | 5 << 8},
              {"A 128x128, B 128", 5 | 4 << 8}};
    for (auto &m : ms) {
      Options o;
      o.scaleMode = m.m;
      Plan p(t, 4096, 8192, 4096, true, false, o);
      if (p.algos.empty()) {
        printf("{\"scales\":\"%s\",\"type\":\"%s\",\"status\":%d}\n", m.n, n,
               p.status);
        continue;
      }
      cudaMemset(sums, 0, 64);
      auto s = p.run(0);
      check<<<4096, 256>>>(A, B, D, 4096, 8192, 4096, true, false, t.a, t.b,
                           t.d, sums);
      double h[3];
      cudaMemcpy(h, sums, 24, cudaMemcpyDeviceToHost);
      double us = s ? -1 : micros(p, 0, 5);
      printf("{\"scales\":\"%s\",\"type\":\"%s\",\"run\":%d,\"algos\":%zu,"
             "\"us\":%.1f,\"TFLOPs\":%.0f,\"rel error\":%.3g}\n",
             m.n, n, s, p.algos.size(), us, 2.0 * 4096 * 8192 * 4096 / us / 1e6,
             sqrt(h[0] / h[1]));
      fflush(stdout);
    }
  }
  // One scale pointer off 16 bytes: is that refused?
  for (int off : {0, 1, 2}) {
    Type &t = type("e4m3->bf16");
    Plan p(t, 4096, 8192, 4096, true, false, Options());
    float *q = scales + 4 + off;
    cublasLtMatmulDescSetAttribute(p.op, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
                                   &q, sizeof q);
    printf("{\"scale pointer at byte\":%d,\"run\":%d}\n", off * 4,
           (int)p.run(0));
    cudaDeviceSynchronize();
  }
}
static void accuracy() { // one product, each computation, against float64
  for (const char *n :
       {"f32", "f32 pedantic", "f32 as 9 bf16", "tf32", "bf16->f32", "f16->f32",
        "e4m3->f32", "e4m3->bf16", "e4m3->bf16 fast"})
    for (int k : {768, 8192}) {
      Type &t = type(n);
      prepare(t);
      Plan p(t, 2048, 2048, k, true, false, Options());
      if (p.algos.empty()) {
        printf("{\"accuracy\":\"%s\",\"k\":%d,\"status\":%d}\n", n, k,
               p.status);
        continue;
      }
      cudaMemset(sums, 0, 64);
      auto s = p.run(0);
      check<<<4096, 256>>>(A, B, D, 2048, 2048, k, true, false, t.a, t.b, t.d,
                           sums);
      double h[3];
      cudaMemcpy(h, sums, 24, cudaMemcpyDeviceToHost);
      printf(
          "{\"accuracy\":\"%s\",\"k\":%d,\"run\":%d,\"rel error\":%.3g,\"max "
          "error/sum|ab|\":%.3g,\"us\":%.1f,\"splitk\":%d}\n",
          n, k, s, sqrt(h[0] / h[1]), h[2], micros(p, 0, 5),
          p.get<int32_t>(0, CUBLASLT_ALGO_CONFIG_SPLITK_NUM));
      fflush(stdout);
    }
  // The heuristic's cost on the host and the cost of a fewer-SM target.
  Type &t = type("bf16");
  prepare(t);
  cudaDeviceSynchronize();
  timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  for (int i = 0; i < 50; ++i)
    Plan p(t, 3072, 8192 + 128 * i, 768, true, false, Options());
  clock_gettime(CLOCK_MONOTONIC, &b);
  printf("{\"heuristic us\":%.1f}\n",
         ((b.tv_sec - a.tv_sec) * 1e9 + b.tv_nsec - a.tv_nsec) / 50e3);
  for (int sm : {132, 124, 116, 100}) {
    Options o;
    o.sm = sm;
    Plan p(t, 4096, 8192, 4096, true, false, o);
    if (!p.algos.empty())
      printf("{\"sm target\":%d,\"us\":%.1f}\n", sm, micros(p, 0, 5));
  }
}
int main(int argc, char **argv) {
  CK(cublasLtCreate(&lt));
  printf("{\"cublasLt\":%zu}\n", cublasLtGetVersion());
  for (char **p : {&A, &B, &C, &D, &AUX})
    CK(cudaMalloc(p, bufferBytes));
  CK(cudaMalloc(&W, maxWorkspace));
  CK(cudaMalloc(&BIAS, 8 << 20));
  CK(cudaMalloc(&scales, 16 << 20));
  CK(cudaMalloc(&sums, 4096));
  fill<<<64, 256>>>(BIAS, 2 << 20, CUDA_R_32F, 9);
  fill<<<64, 256>>>(AUX, 200 << 20, CUDA_R_16BF, 5);
  std::vector<float> one(4 << 20, 1.f);
  CK(cudaMemcpy(scales, one.data(), 16 << 20, cudaMemcpyHostToDevice));
  std::string w = argc > 1 ? argv[1] : "";
  if (w.empty() || w == "support")
    support();
  if (w.empty() || w == "accuracy")
    accuracy();
  if (w.empty() || w == "timing")
    timing();
  if (w.empty() || w == "scaled")
    scaled();
  if (w.empty() || w == "heads")
    heads();
  printf("{\"end\":%d}\n", (int)cudaGetLastError());
}

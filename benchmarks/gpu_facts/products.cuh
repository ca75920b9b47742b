// A product by cuBLASLt with all that this probe varies: types, layouts, epilogues,
// scales, workspace; its data, times, bits and errors. Used by products.cu alone.
#pragma once
#include "check.cuh"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <string>
#include <vector>
#define OK(x) ((x) == CUBLAS_STATUS_SUCCESS)

__device__ float noise(unsigned long long i, unsigned seed) {
  unsigned long long z =
      i * 0x9E3779B97F4A7C15ull + seed * 0xD1342543DE82EF95ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  return float((unsigned)(z >> 40)) / 8388608.f - 1.f;
}
__global__ void fill(void *p, size_t n, int type, unsigned seed) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
       i += (size_t)gridDim.x * blockDim.x) {
    float v = noise(i, seed);
    switch (type) {
    case CUDA_R_32F:
      ((float *)p)[i] = v;
      break;
    case CUDA_R_16BF:
      ((__nv_bfloat16 *)p)[i] = __float2bfloat16(v);
      break;
    case CUDA_R_16F:
      ((__half *)p)[i] = __float2half(v);
      break;
    case CUDA_R_8F_E4M3:
      ((__nv_fp8_e4m3 *)p)[i] = __nv_fp8_e4m3(v);
      break;
    case CUDA_R_8F_E5M2:
      ((__nv_fp8_e5m2 *)p)[i] = __nv_fp8_e5m2(v);
      break;
    }
  }
}
__device__ double get(const void *p, size_t i, int type) {
  switch (type) {
  case CUDA_R_32F:
    return ((const float *)p)[i];
  case CUDA_R_16BF:
    return __bfloat162float(((const __nv_bfloat16 *)p)[i]);
  case CUDA_R_16F:
    return __half2float(((const __half *)p)[i]);
  case CUDA_R_8F_E4M3:
    return float(((const __nv_fp8_e4m3 *)p)[i]);
  case CUDA_R_8F_E5M2:
    return float(((const __nv_fp8_e5m2 *)p)[i]);
  }
  return 0;
}
// An order-free hash of the bits of n 16-bit words.
__global__ void hash(const unsigned short *p, size_t n,
                     unsigned long long *out) {
  unsigned long long s = 0;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
       i += (size_t)gridDim.x * blockDim.x)
    s += (p[i] + 1ull) * (i * 0x9E3779B97F4A7C15ull | 1);
  atomicAdd(out, s);
}
// Sampled entries of D against float64: sums of squares of errors and of
// values, and the largest |error| / sum |a||b|.
__global__ void check(const void *A, const void *B, const void *D, int m, int n,
                      int k, bool ta, bool tb, int a, int b, int d,
                      double *out) {
  int i = (blockIdx.x * 7919ll) % m, j = (blockIdx.x * 104729ll) % n;
  __shared__ double s[256], w[256];
  double x = 0, y = 0;
  for (int q = threadIdx.x; q < k; q += 256) {
    double u = get(A, ta ? (size_t)i * k + q : (size_t)q * m + i, a),
           v = get(B, tb ? (size_t)q * n + j : (size_t)j * k + q, b);
    x += u * v;
    y += fabs(u * v);
  }
  s[threadIdx.x] = x;
  w[threadIdx.x] = y;
  __syncthreads();
  if (threadIdx.x)
    return;
  for (int q = 1; q < 256; ++q)
    s[0] += s[q], w[0] += w[q];
  double e = get(D, (size_t)j * m + i, d) - s[0];
  atomicAdd(out, e * e);
  atomicAdd(out + 1, s[0] * s[0]);
  atomicMax((unsigned long long *)out + 2,
            __double_as_longlong(fabs(e) / w[0]));
}

struct Type {
  const char *name;
  cudaDataType_t a, b, c, d;
  cublasComputeType_t compute;
  bool fp8, fast;
};
static Type types[] = {
    {"bf16", CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF,
     CUBLAS_COMPUTE_32F, 0, 0},
    {"bf16->f32", CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F,
     CUBLAS_COMPUTE_32F, 0, 0},
    {"f16", CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F,
     0, 0},
    {"f16->f32", CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUDA_R_32F,
     CUBLAS_COMPUTE_32F, 0, 0},
    {"f32", CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F,
     0, 0},
    {"f32 pedantic", CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
     CUBLAS_COMPUTE_32F_PEDANTIC, 0, 0},
    {"tf32", CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
     CUBLAS_COMPUTE_32F_FAST_TF32, 0, 0},
    {"f32 as 9 bf16", CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
     CUBLAS_COMPUTE_32F_EMULATED_16BFX9, 0, 0},
    {"e4m3->bf16", CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_16BF,
     CUBLAS_COMPUTE_32F, 1, 0},
    {"e4m3->bf16 fast", CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16BF,
     CUDA_R_16BF, CUBLAS_COMPUTE_32F, 1, 1},
    {"e4m3->f32", CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_32F, CUDA_R_32F,
     CUBLAS_COMPUTE_32F, 1, 0},
    {"e4m3->f16", CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16F, CUDA_R_16F,
     CUBLAS_COMPUTE_32F, 1, 0},
    {"e4m3->e4m3 (C bf16)", CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16BF,
     CUDA_R_8F_E4M3, CUBLAS_COMPUTE_32F, 1, 0},
    {"e4m3->e5m2 (C bf16)", CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16BF,
     CUDA_R_8F_E5M2, CUBLAS_COMPUTE_32F, 1, 0},
    {"e4m3*e5m2->bf16", CUDA_R_8F_E4M3, CUDA_R_8F_E5M2, CUDA_R_16BF,
     CUDA_R_16BF, CUBLAS_COMPUTE_32F, 1, 0},
    {"e5m2*e4m3->bf16", CUDA_R_8F_E5M2, CUDA_R_8F_E4M3, CUDA_R_16BF,
     CUDA_R_16BF, CUBLAS_COMPUTE_32F, 1, 0},
    {"e5m2*e4m3->f32", CUDA_R_8F_E5M2, CUDA_R_8F_E4M3, CUDA_R_32F, CUDA_R_32F,
     CUBLAS_COMPUTE_32F, 1, 0},
    {"e5m2*e5m2->bf16", CUDA_R_8F_E5M2, CUDA_R_8F_E5M2, CUDA_R_16BF,
     CUDA_R_16BF, CUBLAS_COMPUTE_32F, 1, 0},
};
static Type &type(const char *n) {
  for (auto &t : types)
    if (!strcmp(t.name, n))
      return t;
  abort();
}
static size_t size(cudaDataType_t t) {
  return t == CUDA_R_32F ? 4 : t == CUDA_R_16BF || t == CUDA_R_16F ? 2 : 1;
}
static cublasLtHandle_t lt;
static char *A, *B, *C, *D, *W, *AUX, *BIAS;
static float *scales; // floats 0: A, 4: B, 8: D, 12: amax (16-byte aligned, or the run fails), 16: vectors
static double *sums;
static const size_t bufferBytes = size_t(1) << 30, maxWorkspace = 256 << 20;

struct Options {
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  float beta = 0;
  size_t workspace = 32 << 20;
  bool amax = false;
  int scaleMode = 0;
  int batch = 1;
  cudaDataType_t aux = (cudaDataType_t)-1, bias = (cudaDataType_t)-1;
  uint32_t mask = ~0u;
  int sm = 0;
  int want = 8;
  int lda = 0, ldb = 0, ldd = 0;
};
struct Plan {
  cublasLtMatmulDesc_t op = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr, d = nullptr;
  std::vector<cublasLtMatmulHeuristicResult_t> algos;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  float beta = 0;
  const char *where = "";
  void set(cublasLtMatmulDescAttributes_t k, const void *p, size_t n,
           const char *w) {
    auto s = cublasLtMatmulDescSetAttribute(op, k, p, n);
    if (s && !status)
      status = s, where = w;
  }
  Plan(const Type &t, int m, int n, int k, bool ta, bool tb, const Options &o)
      : beta(o.beta) {
    CK(cublasLtMatmulDescCreate(&op, t.compute, CUDA_R_32F));
    cublasOperation_t oa = ta ? CUBLAS_OP_T : CUBLAS_OP_N,
                      ob = tb ? CUBLAS_OP_T : CUBLAS_OP_N;
    set(CUBLASLT_MATMUL_DESC_TRANSA, &oa, sizeof oa, "transa");
    set(CUBLASLT_MATMUL_DESC_TRANSB, &ob, sizeof ob, "transb");
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, &o.epilogue, sizeof o.epilogue,
        "epilogue");
    auto e = o.epilogue;
    bool bias = e == CUBLASLT_EPILOGUE_BIAS ||
                e == CUBLASLT_EPILOGUE_RELU_BIAS ||
                e == CUBLASLT_EPILOGUE_RELU_AUX_BIAS ||
                e == CUBLASLT_EPILOGUE_GELU_BIAS ||
                e == CUBLASLT_EPILOGUE_GELU_AUX_BIAS ||
                e == CUBLASLT_EPILOGUE_DGELU_BGRAD ||
                e == CUBLASLT_EPILOGUE_DRELU_BGRAD ||
                e == CUBLASLT_EPILOGUE_BGRADA || e == CUBLASLT_EPILOGUE_BGRADB;
    if (bias) {
      void *p = BIAS;
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p, sizeof p, "bias");
      if (o.bias >= 0)
        set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &o.bias, sizeof o.bias,
            "bias type");
    }
    if (e & 128) {
      void *p = AUX;
      int64_t ld = m;
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &p, sizeof p, "aux");
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof ld, "aux ld");
      if (o.aux >= 0)
        set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, &o.aux, sizeof o.aux,
            "aux type");
    }
    if (t.fp8) {
      float *p = scales;
      if (o.scaleMode) {
        int32_t s = o.scaleMode & 255,
                s2 = o.scaleMode >> 8 ? o.scaleMode >> 8 : s;
        set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, &s, sizeof s, "a mode");
        set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, &s2, sizeof s2, "b mode");
        p = scales + 16;
      }
      set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &p, sizeof p, "a scale");
      if (!o.scaleMode)
        p += 4;
      else
        p = scales + (1 << 20);
      set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &p, sizeof p, "b scale");
      if (size(t.d) == 1) {
        p = scales + 8;
        set(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, &p, sizeof p, "d scale");
      }
      if (o.amax) {
        p = scales + 12;
        set(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, &p, sizeof p, "amax");
      }
      int8_t f = t.fast;
      set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, &f, sizeof f, "fast");
    }
    if (o.sm) {
      int32_t s = o.sm;
      set(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &s, sizeof s, "sm target");
    }
    CK(cublasLtMatrixLayoutCreate(&a, t.a, ta ? k : m, ta ? m : k,
                                  o.lda ? o.lda
                                  : ta  ? k
                                        : m));
    CK(cublasLtMatrixLayoutCreate(&b, t.b, tb ? n : k, tb ? k : n,
                                  o.ldb ? o.ldb
                                  : tb  ? n
                                        : k));
    CK(cublasLtMatrixLayoutCreate(&c, t.c, m, n, o.ldd ? o.ldd : m));
    CK(cublasLtMatrixLayoutCreate(&d, t.d, m, n, o.ldd ? o.ldd : m));
    if (o.batch > 1) {
      int32_t q = o.batch;
      int64_t s[4] = {(int64_t)m * k, (int64_t)k * n, (int64_t)m * n,
                      (int64_t)m * n};
      int i = 0;
      for (auto l : {a, b, c, d}) {
        cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                         &q, sizeof q);
        cublasLtMatrixLayoutSetAttribute(
            l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &s[i++], 8);
      }
    }
    if (status)
      return;
    cublasLtMatmulPreference_t pref;
    CK(cublasLtMatmulPreferenceCreate(&pref));
    size_t ws = o.workspace;
    cublasLtMatmulPreferenceSetAttribute(
        pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &ws, sizeof ws);
    if (o.mask != ~0u) {
      uint32_t r = o.mask;
      cublasLtMatmulPreferenceSetAttribute(
          pref, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &r, sizeof r);
    }
    algos.resize(o.want);
    int got = 0;
    status = cublasLtMatmulAlgoGetHeuristic(lt, op, a, b, c, d, pref, o.want,
                                            algos.data(), &got);
    where = "heuristic";
    algos.resize(status ? 0 : got);
    cublasLtMatmulPreferenceDestroy(pref);
  }
  ~Plan() {
    cublasLtMatmulDescDestroy(op);
    for (auto l : {a, b, c, d})
      if (l)
        cublasLtMatrixLayoutDestroy(l);
  }
  cublasStatus_t run(int i, cudaStream_t s = 0) {
    float one = 1;
    return cublasLtMatmul(lt, op, &one, A, a, B, b, &beta, C, c, D, d,
                          &algos[i].algo, W, algos[i].workspaceSize, s);
  }
  template <typename T> T get(int i, cublasLtMatmulAlgoConfigAttributes_t k) {
    T v = 0;
    size_t n;
    cublasLtMatmulAlgoConfigGetAttribute(&algos[i].algo, k, &v, sizeof v, &n);
    return v;
  }
};
static double micros(Plan &p, int i, int reps) {
  cudaEvent_t s, e;
  cudaEventCreate(&s);
  cudaEventCreate(&e);
  p.run(i);
  double best = 1e30;
  for (int r = 0; r < 3; ++r) {
    cudaEventRecord(s);
    for (int q = 0; q < reps; ++q)
      p.run(i);
    cudaEventRecord(e);
    cudaEventSynchronize(e);
    float ms;
    cudaEventElapsedTime(&ms, s, e);
    best = std::min(best, ms * 1e3 / reps);
  }
  cudaEventDestroy(s);
  cudaEventDestroy(e);
  return best;
}
static unsigned long long bits(size_t bytes) {
  unsigned long long *h = (unsigned long long *)(sums + 8), v;
  cudaMemset(h, 0, 8);
  hash<<<528, 256>>>((unsigned short *)D, bytes / 2, h);
  cudaMemcpy(&v, h, 8, cudaMemcpyDeviceToHost);
  return v;
}
static void prepare(const Type &t) {
  fill<<<1056, 256>>>(A, (240ull << 20), t.a, 1);
  fill<<<1056, 256>>>(B, 240ull << 20, t.b, 2);
  fill<<<1056, 256>>>(C, 64ull << 20, t.c, 3);
  cudaDeviceSynchronize();
}

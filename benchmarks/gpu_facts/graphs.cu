// What a step costs on the host and between kernels: eager against CUDA graphs,
// events across streams, an arena by virtual memory under cuBLASLt and NCCL.
// usage: graphs tiny.cubin. Prints JSON lines.
#include "check.cuh"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cublasLt.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <fstream>
#include <functional>
#include <iterator>
#include <nccl.h>
#include <string>
#include <vector>
template <typename F> static F driver(const char *n) {
  void *p = nullptr;
  cudaDriverEntryPointQueryResult q;
  CK(cudaGetDriverEntryPointByVersion(n, &p, 13000, cudaEnableDefault, &q));
  if (!p) {
    printf("{\"missing\":\"%s\"}\n", n);
    exit(1);
  }
  return (F)p;
}
#define DRV(n) static auto n##_ = driver<decltype(&n)>(#n)
// Median wall and host-side microseconds of f.
struct Times {
  double wall, host, device;
};
static Times clockIt(cudaStream_t s, const std::function<void()> &f,
                     int n = 30) {
  for (int i = 0; i < 3; ++i)
    f();
  CK(cudaStreamSynchronize(s));
  std::vector<double> w, h, d;
  cudaEvent_t a, b;
  cudaEventCreate(&a);
  cudaEventCreate(&b);
  for (int i = 0; i < n; ++i) {
    double t = now();
    cudaEventRecord(a, s);
    f();
    cudaEventRecord(b, s);
    double u = now();
    CK(cudaStreamSynchronize(s));
    w.push_back(now() - t);
    h.push_back(u - t);
    float ms;
    cudaEventElapsedTime(&ms, a, b);
    d.push_back(ms * 1e3);
  }
  auto med = [](std::vector<double> &v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
  };
  return {med(w), med(h), med(d)};
}
static cudaGraphExec_t capture(cudaStream_t s, const std::function<void()> &f,
                               const char *name) {
  cudaGraph_t g;
  cudaGraphExec_t e;
  double t0 = now();
  CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  f();
  CK(cudaStreamEndCapture(s, &g));
  double t1 = now();
  CK(cudaGraphInstantiate(&e, g, 0));
  double t2 = now();
  CK(cudaGraphUpload(e, s));
  CK(cudaStreamSynchronize(s));
  double t3 = now();
  size_t n = 0;
  cudaGraphGetNodes(g, nullptr, &n);
  printf("{\"graph\":\"%s\",\"nodes\":%zu,\"capture us\":%.0f,\"instantiate "
         "us\":%.0f,\"upload us\":%.0f}\n",
         name, n, t1 - t0, t2 - t1, t3 - t2);
  cudaGraphDestroy(g);
  return e;
}
static void both(cudaStream_t s, const char *name,
                 const std::function<void()> &f) {
  Times e = clockIt(s, f);
  auto g = capture(s, f, name);
  Times r = clockIt(s, [&] { CK(cudaGraphLaunch(g, s)); });
  printf("{\"step\":\"%s\",\"eager wall us\":%.1f,\"eager host "
         "us\":%.1f,\"eager device us\":%.1f,\"graph wall us\":%.1f,\"graph "
         "host us\":%.1f,\"graph device us\":%.1f}\n",
         name, e.wall, e.host, e.device, r.wall, r.host, r.device);
  fflush(stdout);
  cudaGraphExecDestroy(g);
}
int main(int, char **argv) {
  CK(cudaSetDevice(0));
  CK(cudaFree(0));
  DRV(cuMemAddressReserve);
  DRV(cuMemCreate);
  DRV(cuMemMap);
  DRV(cuMemSetAccess);
  DRV(cuMemGetAllocationGranularity);
  DRV(cuLibraryLoadData);
  DRV(cuLibraryGetKernel);
  DRV(cuLaunchKernel);
  DRV(cuMemUnmap);
  DRV(cuMemRelease);
  // The arena: one reservation of 1 TiB, 4 GiB mapped.
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  int rdma = 0;
  cudaDeviceGetAttribute(&rdma, cudaDevAttrGPUDirectRDMASupported, 0);
  int rdmaVmm = 0;
  {
    DRV(cuDeviceGetAttribute);
    cuDeviceGetAttribute_(
        &rdmaVmm, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
        0);
  }
  prop.allocFlags.gpuDirectRDMACapable = rdmaVmm;
  size_t gmin, grec;
  CK(cuMemGetAllocationGranularity_(&gmin, &prop,
                                    CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CK(cuMemGetAllocationGranularity_(&grec, &prop,
                                    CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  size_t freeBefore, freeAfter, total;
  cudaMemGetInfo(&freeBefore, &total);
  CUdeviceptr base;
  double t0 = now();
  CK(cuMemAddressReserve_(&base, size_t(1) << 40, 0, 0, 0));
  double t1 = now();
  size_t bytes = size_t(4) << 30;
  CUmemGenericAllocationHandle h;
  CK(cuMemCreate_(&h, bytes, &prop, 0));
  double t2 = now();
  CK(cuMemMap_(base, bytes, 0, h, 0));
  CUmemAccessDesc acc = {};
  acc.location = prop.location;
  acc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CK(cuMemSetAccess_(base, bytes, &acc, 1));
  double t3 = now();
  cudaMemGetInfo(&freeAfter, &total);
  printf("{\"vmm\":\"ok\",\"granularity\":[%zu,%zu],\"rdma\":[%d,%d],\"reserve "
         "us\":%.0f,\"create us\":%.0f,\"map us\":%.0f,\"bytes taken beyond "
         "asked\":%lld}\n",
         gmin, grec, rdma, rdmaVmm, t1 - t0, t2 - t1, t3 - t2,
         (long long)(freeBefore - freeAfter) - (long long)bytes);
  for (size_t odd : {size_t(2) << 20, (size_t(2) << 20) + 4096}) {
    CUmemGenericAllocationHandle q;
    int r = cuMemCreate_(&q, odd, &prop, 0);
    printf("{\"create of\":%zu,\"result\":%d}\n", odd, r);
    if (!r)
      cuMemRelease_(q);
  }
  char *arena = (char *)base;
  CK(cudaMemset(arena, 0, bytes));
  // A kernel of ours.
  std::ifstream f(argv[1], std::ios::binary);
  std::string img((std::istreambuf_iterator<char>(f)), {});
  CUlibrary lib;
  CUkernel k;
  CK(cuLibraryLoadData_(&lib, img.data(), 0, 0, 0, 0, 0, 0));
  CK(cuLibraryGetKernel_(&k, lib, "tiny"));
  cudaStream_t s, s2;
  CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&s2, cudaStreamNonBlocking));
  void *x = arena, *y = arena + (1 << 20);
  void *args[] = {&x, &y};
  auto tiny = [&](cudaStream_t q) {
    CK(cuLaunchKernel_((CUfunction)k, 1, 1, 1, 256, 1, 1, 0, q, args, nullptr));
  };
  // A product in the arena.
  cublasLtHandle_t lt;
  CK(cublasLtCreate(&lt));
  cublasLtMatmulDesc_t op;
  CK(cublasLtMatmulDescCreate(&op, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  cublasLtMatrixLayout_t A, B, D;
  const int m = 768, n = 1024, kk = 768;
  CK(cublasLtMatrixLayoutCreate(&A, CUDA_R_16BF, m, kk, m));
  CK(cublasLtMatrixLayoutCreate(&B, CUDA_R_16BF, kk, n, kk));
  CK(cublasLtMatrixLayoutCreate(&D, CUDA_R_16BF, m, n, m));
  cublasLtMatmulPreference_t pref;
  CK(cublasLtMatmulPreferenceCreate(&pref));
  size_t ws = 32 << 20;
  cublasLtMatmulPreferenceSetAttribute(
      pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &ws, sizeof ws);
  cublasLtMatmulHeuristicResult_t algo;
  int got;
  CK(cublasLtMatmulAlgoGetHeuristic(lt, op, A, B, D, D, pref, 1, &algo, &got));
  float one = 1, zero = 0;
  auto gemm = [&](cudaStream_t q) {
    CK(cublasLtMatmul(lt, op, &one, arena + (64 << 20), A, arena + (128 << 20),
                      B, &zero, arena + (192 << 20), D, arena + (192 << 20), D,
                      &algo.algo, arena + (256 << 20), algo.workspaceSize, q));
  };
  both(s, "400 tiny", [&] {
    for (int i = 0; i < 400; ++i)
      tiny(s);
  });
  both(s, "100 gemm 768x1024x768", [&] {
    for (int i = 0; i < 100; ++i)
      gemm(s);
  });
  both(s, "400 tiny + 100 gemm", [&] {
    for (int i = 0; i < 100; ++i) {
      for (int j = 0; j < 4; ++j)
        tiny(s);
      gemm(s);
    }
  });
  std::vector<cudaEvent_t> ev(4096);
  for (auto &e : ev)
    CK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  both(s, "400 tiny, alternately on two streams, joined each time", [&] {
    int c = 0;
    for (int i = 0; i < 200; ++i) {
      tiny(s);
      CK(cudaEventRecord(ev[c], s));
      CK(cudaStreamWaitEvent(s2, ev[c++], 0));
      tiny(s2);
      CK(cudaEventRecord(ev[c], s2));
      CK(cudaStreamWaitEvent(s, ev[c++], 0));
    }
  });
  both(s, "200 + 200 tiny on two streams, one fork and join", [&] {
    CK(cudaEventRecord(ev[0], s));
    CK(cudaStreamWaitEvent(s2, ev[0], 0));
    for (int i = 0; i < 200; ++i)
      tiny(s), tiny(s2);
    CK(cudaEventRecord(ev[1], s2));
    CK(cudaStreamWaitEvent(s, ev[1], 0));
  });
  // Scalars of a step: a small pinned copy before the graph.
  void *pin;
  CK(cudaHostAlloc(&pin, 4096, 0));
  {
    auto g = capture(
        s,
        [&] {
          for (int i = 0; i < 400; ++i)
            tiny(s);
        },
        "with scalars");
    Times t = clockIt(s, [&] {
      CK(cudaMemcpyAsync(arena + (512 << 20), pin, 256, cudaMemcpyHostToDevice,
                         s));
      CK(cudaGraphLaunch(g, s));
    });
    printf("{\"step\":\"copy of 256 B + graph of 400 tiny\",\"wall "
           "us\":%.1f,\"device us\":%.1f}\n",
           t.wall, t.device);
  }
  {
    auto g = capture(
        s,
        [&] {
          for (int i = 0; i < 400; ++i) {
            tiny(s);
            if (i % 40 == 0)
              CK(cudaMemcpyAsync(arena + (600 << 20), arena + (700 << 20),
                                 1 << 20, cudaMemcpyDeviceToDevice, s));
            if (i % 40 == 20)
              CK(cudaMemsetAsync(arena + (600 << 20), 0, 1 << 20, s));
          }
        },
        "with copies and fills");
    Times t = clockIt(s, [&] { CK(cudaGraphLaunch(g, s)); });
    printf("{\"step\":\"400 tiny + 10 copies + 10 fills of 1 MiB\",\"graph "
           "wall us\":%.1f}\n",
           t.wall);
  }
  fflush(stdout);
  // NCCL, one rank: registration of the arena, a collective inside a graph.
  int v;
  ncclGetVersion(&v);
  ncclUniqueId id;
  ncclComm_t comm;
  CK(ncclGetUniqueId(&id));
  double t4 = now();
  CK(ncclCommInitRank(&comm, 1, id, 0));
  double t5 = now();
  void *reg = nullptr;
  int rr = ncclCommRegister(comm, arena, bytes, &reg);
  double t6 = now();
  void *mem = nullptr;
  int rm = ncclMemAlloc(&mem, 64 << 20);
  ncclWindow_t win;
  int rw = rm ? -1
              : ncclCommWindowRegister(comm, mem, 64 << 20, &win,
                                       NCCL_WIN_COLL_SYMMETRIC);
  ncclWindow_t win2;
  int rw2 = ncclCommWindowRegister(comm, arena, bytes, &win2,
                                   NCCL_WIN_COLL_SYMMETRIC);
  printf("{\"nccl\":%d,\"init ms\":%.0f,\"register of the "
         "arena\":%d,\"us\":%.0f,\"handle\":%d,\"ncclMemAlloc\":%d,\"symmetric "
         "window of it\":%d,\"symmetric window of the arena\":%d}\n",
         v, (t5 - t4) / 1e3, rr, t6 - t5, reg != nullptr, rm, rw, rw2);
  both(s, "all_reduce 16 MiB, one rank, out of place", [&] {
    CK(ncclAllReduce(arena, arena + (1 << 30), 4 << 20, ncclFloat, ncclSum,
                     comm, s));
  });
  both(s, "400 tiny + 100 gemm + 12 all_reduce on a second stream", [&] {
    int c = 0;
    for (int i = 0; i < 100; ++i) {
      for (int j = 0; j < 4; ++j)
        tiny(s);
      gemm(s);
      if (i % 8 == 7) {
        CK(cudaEventRecord(ev[c], s));
        CK(cudaStreamWaitEvent(s2, ev[c++], 0));
        CK(ncclAllReduce(arena + (1 << 30), arena + (1 << 30), 1 << 20,
                         ncclFloat, ncclAvg, comm, s2));
      }
    }
    CK(cudaEventRecord(ev[c], s2));
    CK(cudaStreamWaitEvent(s, ev[c], 0));
  });
  printf("{\"end\":%d}\n", (int)cudaGetLastError());
  fflush(stdout);
  ncclCommDestroy(comm);
}

// NCCL with several ranks on one GPU, each its own process and "host".
// usage: ranks RANK RANKS ID_FILE. Prints JSON lines from rank 0.
#include "check.cuh"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <functional>
#include <nccl.h>
#include <string>
#include <unistd.h>
#include <vector>
static int rank, ranks;
__global__ void fill(float *p, size_t n, float v) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
       i += (size_t)gridDim.x * blockDim.x)
    p[i] = v;
}
int main(int, char **v) {
  rank = thisRank = atoi(v[1]);
  ranks = atoi(v[2]);
  CK(cudaSetDevice(0));
  ncclUniqueId id;
  if (!rank) {
    CK(ncclGetUniqueId(&id));
    std::string t = std::string(v[3]) + ".t";
    FILE *f = fopen(t.c_str(), "wb");
    fwrite(&id, sizeof id, 1, f);
    fclose(f);
    rename(t.c_str(), v[3]);
  } else {
    while (access(v[3], R_OK))
      usleep(1000);
    FILE *f = fopen(v[3], "rb");
    if (fread(&id, sizeof id, 1, f) != 1)
      return 1;
    fclose(f);
  }
  ncclComm_t c;
  double t = now();
  CK(ncclCommInitRank(&c, ranks, id, rank));
  if (!rank)
    printf("{\"ranks\":%d,\"init ms\":%.0f}\n", ranks, (now() - t) / 1e3),
        fflush(stdout);
  cudaStream_t s;
  CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  float *a, *b;
  const size_t big = 4 << 20;
  CK(cudaMalloc(&a, big * 4 * ranks));
  CK(cudaMalloc(&b, big * 4 * ranks));
  auto one = [&](const char *name, size_t bytes, const std::function<void()> &f,
                 float want) {
    size_t n = bytes / 4;
    fill<<<64, 256, 0, s>>>(a, n, rank + 1.f);
    f();
    CK(cudaStreamSynchronize(s));
    float got;
    CK(cudaMemcpy(&got, b + n - 1, 4, cudaMemcpyDeviceToHost));
    auto median = [&](const std::function<void()> &g, int reps) {
      std::vector<double> w;
      for (int i = 0; i < reps; ++i) {
        double t = now();
        g();
        CK(cudaStreamSynchronize(s));
        w.push_back(now() - t);
      }
      std::sort(w.begin(), w.end());
      return w[w.size() / 2];
    };
    double e = median(f, 9);
    double many = median(
                      [&] {
                        for (int i = 0; i < 10; ++i)
                          f();
                      },
                      3) /
                  10;
    cudaGraph_t g;
    cudaGraphExec_t x;
    CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < 10; ++i)
      f();
    CK(cudaStreamEndCapture(s, &g));
    CK(cudaGraphInstantiate(&x, g, 0));
    double r = median([&] { CK(cudaGraphLaunch(x, s)); }, 3) / 10;
    if (!rank)
      printf("{\"ranks\":%d,\"op\":\"%s\",\"bytes\":%zu,\"right\":%s,\"alone "
             "us\":%.0f,\"in a row of 10 us\":%.0f,\"in a graph of 10 "
             "us\":%.0f}\n",
             ranks, name, bytes, got == want ? "true" : "false", e, many, r),
          fflush(stdout);
    cudaGraphExecDestroy(x);
    cudaGraphDestroy(g);
  };
  float sum = ranks * (ranks + 1) / 2.f;
  int next = (rank + 1) % ranks, prev = (rank + ranks - 1) % ranks;
  for (size_t n : {size_t(1) << 10, size_t(16) << 20}) {
    one(
        "all_reduce", n,
        [&] { CK(ncclAllReduce(a, b, n / 4, ncclFloat, ncclSum, c, s)); }, sum);
    one(
        "all_gather", n,
        [&] { CK(ncclAllGather(a, b, n / 4 / ranks, ncclFloat, c, s)); },
        ranks);
    one(
        "reduce_scatter to last", n,
        [&] {
          CK(ncclReduceScatter(a, b + n / 4 - n / 4 / ranks, n / 4 / ranks,
                               ncclFloat, ncclSum, c, s));
        },
        sum);
    one(
        "send and recv round", n,
        [&] {
          CK(ncclGroupStart());
          CK(ncclSend(a, n / 4, ncclFloat, next, c, s));
          CK(ncclRecv(b, n / 4, ncclFloat, prev, c, s));
          CK(ncclGroupEnd());
        },
        prev + 1.f);
  }
  CK(cudaStreamSynchronize(s));
  CK(ncclCommDestroy(c));
  if (!rank)
    printf("{\"ranks\":%d,\"end\":%d}\n", ranks, (int)cudaGetLastError());
  return 0;
}

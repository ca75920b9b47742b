// Times every command of an executable by itself, on zeros, beside what the
// machine can do at most:
//
//   acc-bench-commands MODEL.accx [threads]      (default 2)
//
// One line per distinct command: how often it runs in a call, seconds of all of
// them, and the share of the machine's peak (products, attention: fp32
// operations; all others: memory traffic). One rank, hot caches where they fit.

#include "Base/ThreadPool.h"
#include "Device/CPU/CpuDevice.h"
#include "Format/Views.h"
#include "MachineLimits.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>

using namespace accel::rt;

namespace {
int64_t count(const View &view) {
  int64_t elements = 1;
  for (int64_t size : view.shape)
    elements *= size;
  return elements;
}

std::string shapeOf(const View &view) {
  std::string text = dtypeName(view.dtype);
  for (int64_t size : view.shape)
    text += "x" + std::to_string(size);
  return text;
}

struct Cost {
  std::string name;
  double flops = 0, bytes = 0;
};

/// What a command does; empty name: nothing to time.
Cost getCost(const Command &command) {
  Cost cost;
  format::forEachView(command, [&](const View &view) {
    cost.bytes += double(count(view) * dtypeBytes(view.dtype));
  });
  auto countScores = [](const View &query, const View &key, bool causal) {
    double scores = double(count(query)) / query.shape[3] * key.shape[2];
    return causal ? scores * 0.5 * (1 + 1.0 / key.shape[2]) : scores;
  };
  if (auto *gemm = std::get_if<GemmCommand>(&command.what)) {
    cost.flops = 2.0 * count(gemm->c) * gemm->a.shape.back();
    cost.name = "gemm " + shapeOf(gemm->a) + " · " + shapeOf(gemm->b) +
                (gemm->packed ? " packed" : "");
  } else if (auto *attention = std::get_if<AttentionCommand>(&command.what)) {
    cost.flops =
        2.0 * countScores(attention->query, attention->key, attention->causal) *
        (attention->query.shape[3] + attention->value.shape[3]);
    cost.name = "attention " + shapeOf(attention->query) +
                (attention->causal ? " causal" : "");
  } else if (auto *grad = std::get_if<AttentionGradCommand>(&command.what)) {
    cost.flops = 2.0 * countScores(grad->query, grad->key, grad->causal) *
                 (3 * grad->query.shape[3] + 2 * grad->value.shape[3]);
    cost.name = "attention_grad " + shapeOf(grad->query) +
                (grad->causal ? " causal" : "");
  } else if (auto *kernel = std::get_if<KernelCommand>(&command.what)) {
    // Of a table that rows are picked from, what is picked counts.
    int64_t largest = 0;
    for (const View &view : kernel->outputs)
      largest = std::max(largest, count(view) * dtypeBytes(view.dtype));
    cost.bytes = 0;
    for (const std::vector<View> *views : {&kernel->inputs, &kernel->outputs})
      for (const View &view : *views)
        cost.bytes +=
            double(std::min(largest, count(view) * dtypeBytes(view.dtype)));
    cost.name = "kernel " + kernel->function;
    for (const View &view : kernel->outputs)
      cost.name += " " + shapeOf(view);
  } else if (auto *copy = std::get_if<CopyCommand>(&command.what)) {
    cost.name = "copy " + shapeOf(copy->target);
  }
  return cost;
}

int fail(const Status &status) {
  std::fprintf(stderr, "acc-bench-commands: error: %s\n",
               status.message().c_str());
  return 1;
}
} // namespace

int main(int argc, char **argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: acc-bench-commands MODEL.accx [threads]\n");
    return 1;
  }
  int threads = argc > 2 ? std::atoi(argv[2]) : 2;
  std::unique_ptr<ExecutableFile> file;
  if (Status status = ExecutableFile::open(argv[1], file); !status.ok())
    return fail(status);
  ThreadPool pool(threads, 2000);
  std::unique_ptr<Device> device;
  if (Status status = cpu::makeDevice(*file, pool, nullptr, device);
      !status.ok())
    return fail(status);
  const Program &program = file->plan().programs.front();
  std::map<std::string, Address> arenas;
  for (const ArenaPlan &arena : program.arenas) {
    Address address;
    if (Status status = device->allocate(arena, address); !status.ok())
      return fail(status);
    arenas[arena.space] = address;
  }

  // Shared machines speed up and slow down: the peak is the better of before
  // and after.
  double flops = accel::bench::measureFlops(threads);
  double bandwidth = accel::bench::measureBandwidth(threads);
  struct Row {
    Cost cost;
    int64_t times = 0;
    double seconds = 0;
  };
  std::map<std::string, Row> rows;
  double total = 0;
  for (const Body &body : program.bodies)
    for (const Command &command : body.commands) {
      Cost cost = getCost(command);
      if (cost.name.empty())
        continue;
      std::unique_ptr<Task> task;
      if (Status status = device->prepare(command, task); !status.ok())
        return fail(status);
      std::vector<Address> addresses;
      format::forEachView(command, [&](const View &view) {
        const BufferPlan &buffer = program.buffers[view.buffer];
        addresses.push_back(arenas[buffer.space] +
                            (buffer.offset + view.offset));
      });
      double best = 1e9;
      for (int round = 0; round < 6; ++round) {
        auto begin = std::chrono::steady_clock::now();
        // The CPU's tasks are the host's: no stream is needed to time one.
        Status status = static_cast<HostTask &>(*task).run(addresses.data(), 0);
        if (!status.ok())
          return fail(status);
        std::chrono::duration<double> taken =
            std::chrono::steady_clock::now() - begin;
        best = std::min(best, taken.count());
      }
      Row &row = rows[cost.name];
      row.cost = cost;
      row.times += 1;
      row.seconds += best;
      total += best;
    }

  flops = std::max(flops, accel::bench::measureFlops(threads));
  bandwidth = std::max(bandwidth, accel::bench::measureBandwidth(threads));
  std::printf("%d threads; measured peaks: %.0f GF/s fp32, %.1f GB/s (read + "
              "written)\n\n",
              threads, flops / 1e9, bandwidth / 1e9);
  std::vector<Row> sorted;
  for (auto &entry : rows)
    sorted.push_back(entry.second);
  std::sort(sorted.begin(), sorted.end(),
            [](const Row &a, const Row &b) { return a.seconds > b.seconds; });
  std::printf(
      "| command | runs | ms | %% of call | GF/s | GB/s | %% of peak |\n"
      "|---|---|---|---|---|---|---|\n");
  for (const Row &row : sorted) {
    double each = row.seconds / row.times;
    double share = row.cost.flops > 0 ? row.cost.flops / each / flops
                                      : row.cost.bytes / each / bandwidth;
    std::printf("| %s | %lld | %.2f | %.1f | %.0f | %.1f | %.0f |\n",
                row.cost.name.c_str(), static_cast<long long>(row.times),
                row.seconds * 1e3, 100 * row.seconds / total,
                row.cost.flops / each / 1e9, row.cost.bytes / each / 1e9,
                100 * share);
  }
  std::printf("\nall commands: %.1f ms\n", total * 1e3);
  return 0;
}

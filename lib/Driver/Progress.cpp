// The watcher thread behind progress lines.

#include "Progress.h"

#include <chrono>
#include <cstdio>
#include <unistd.h>

using namespace accel::driver;

Progress::Progress(std::string tool)
    : tool(std::move(tool)), watcher([this] { watch(); }) {}

Progress::~Progress() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stop = true;
  }
  stopped.notify_all();
  watcher.join();
}

void Progress::setStage(std::string next) {
  std::lock_guard<std::mutex> lock(mutex);
  stage = std::move(next);
}

void Progress::watch() {
  auto begin = std::chrono::steady_clock::now();
  bool terminal = isatty(STDERR_FILENO);
  std::string printed;
  std::unique_lock<std::mutex> lock(mutex);
  auto wait = std::chrono::milliseconds(2000);
  while (!stopped.wait_for(lock, wait, [this] { return stop; })) {
    wait = std::chrono::milliseconds(500);
    long seconds = std::chrono::duration_cast<std::chrono::seconds>(
                       std::chrono::steady_clock::now() - begin)
                       .count();
    if (terminal)
      std::fprintf(stderr, "\r\033[K%s: %s (%ld s)", tool.c_str(),
                   stage.c_str(), seconds);
    else if (stage != printed)
      std::fprintf(stderr, "%s: %s (%ld s)\n", tool.c_str(), stage.c_str(),
                   seconds);
    printed = stage;
  }
  if (terminal && !printed.empty())
    std::fprintf(stderr, "\r\033[K");
}

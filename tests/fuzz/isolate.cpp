// A child process whose text comes through a pipe.
#include "tests/fuzz/isolate.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <stdexcept>

namespace tilewright::fuzz {

void Telling::tell(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t count = write(pipe_, text.data() + at, text.size() - at);
    if (count <= 0) return;
    at += static_cast<std::size_t>(count);
  }
}

Isolated run_isolated(const std::function<void(Telling& parent)>& work, double seconds) {
  int ends[2];
  auto* reached = static_cast<volatile std::int64_t*>(mmap(nullptr, sizeof(std::int64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (reached == MAP_FAILED || pipe(ends) != 0) throw std::runtime_error("no pipe or memory for a child process");
  *reached = -1;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no child process");
  if (child == 0) {
    close(ends[0]);
    Telling parent(*reached, ends[1]);
    int status = 0;
    try {
      work(parent);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "error: %s\n", error.what());
      status = 1;
    }
    close(ends[1]);
    _exit(status);
  }
  close(ends[1]);
  Isolated result;
  std::int64_t before = -2;
  auto since = std::chrono::steady_clock::now();
  char buffer[65536];
  for (;;) {
    pollfd waited{ends[0], POLLIN, 0};
    if (poll(&waited, 1, 200) > 0) {
      const ssize_t count = read(ends[0], buffer, sizeof buffer);
      if (count <= 0) break;
      result.text.append(buffer, static_cast<std::size_t>(count));
    }
    const auto now = std::chrono::steady_clock::now();
    if (*reached != before) {
      before = *reached;
      since = now;
    } else if (std::chrono::duration<double>(now - since).count() > seconds) {
      kill(child, SIGKILL);
      result.end = Isolated::End::TimedOut;
      break;
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  close(ends[0]);
  result.reached = *reached;
  munmap(const_cast<std::int64_t*>(reached), sizeof(std::int64_t));
  if (result.end == Isolated::End::Done && WIFSIGNALED(status)) {
    result.end = Isolated::End::Crashed;
    result.signal = WTERMSIG(status);
  } else if (result.end == Isolated::End::Done && WEXITSTATUS(status) != 0) {
    result.end = Isolated::End::Crashed;  // std::terminate and sanitizers leave by a status of their own
  }
  return result;
}

}  // namespace tilewright::fuzz

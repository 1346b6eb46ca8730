// Runs another program; see process.h.
#include "runtime/process.h"

#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "ir/diagnostic.h"

extern char** environ;

namespace tilewright {

namespace {

struct PipeEnds {
  int read_end = -1;
  int write_end = -1;
};

PipeEnds make_pipe() {
  int ends[2];
  if (pipe(ends) != 0) throw MachineError(fmt::format("pipe: {}", std::strerror(errno)));
  return {ends[0], ends[1]};
}

// Reads both streams until both end; one alone could fill up while the program waits for the other to be read.
void drain(int first, std::string& first_text, int second, std::string& second_text) {
  std::array<pollfd, 2> streams = {pollfd{first, POLLIN, 0}, pollfd{second, POLLIN, 0}};
  std::array<char, 1 << 16> chunk;
  int open_streams = 2;
  while (open_streams > 0) {
    if (poll(streams.data(), streams.size(), -1) < 0) {
      if (errno == EINTR) continue;
      break;
    }
    for (std::size_t index = 0; index < streams.size(); ++index) {
      if (streams[index].fd < 0 || streams[index].revents == 0) continue;
      const ssize_t count = read(streams[index].fd, chunk.data(), chunk.size());
      if (count > 0) {
        (index == 0 ? first_text : second_text).append(chunk.data(), static_cast<std::size_t>(count));
      } else {
        streams[index].fd = -1;
        --open_streams;
      }
    }
  }
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  const PipeEnds output = make_pipe();
  const PipeEnds errors = make_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output.write_end, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.write_end, STDERR_FILENO);
  for (const int end : {output.read_end, output.write_end, errors.read_end, errors.write_end})
    posix_spawn_file_actions_addclose(&actions, end);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(output.write_end);
  close(errors.write_end);

  ProcessResult result;
  if (failed == 0) drain(output.read_end, result.output, errors.read_end, result.errors);
  close(output.read_end);
  close(errors.read_end);
  if (failed != 0) throw MachineError(fmt::format("{} cannot be started: {}", arguments.at(0), std::strerror(failed)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace tilewright

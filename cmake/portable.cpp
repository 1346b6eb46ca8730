// For the static build: the one C library function that LLVM uses and that glibc has only since 2.36. With this one a
// binary built on Debian 12 runs with glibc 2.35 (Ubuntu 22.04) too.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

// A random word of the system; LLVM names temporary files with it.
extern "C" std::uint32_t arc4random() {
  std::uint32_t word = 0;
  if (getrandom(&word, sizeof word, 0) != static_cast<ssize_t>(sizeof word)) std::abort();
  return word;
}

// The entry that libFuzzer calls; TILEWRIGHT_READER names the reader.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/readers/readers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tilewright::fuzz::TILEWRIGHT_READER(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}

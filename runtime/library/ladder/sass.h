// SASS as nvdisasm prints it: which instructions there are, and a text for people.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tilewright {

// Instructions of one entry that matter for speed, by name and width (`LDG.128`, `HGMMA.64x256x16`), most telling first.
// `entry`: the kernel's name in the code; empty: all of them.
std::vector<std::pair<std::string, int>> instructions_of(const std::string& sass, const std::string& entry = {});
bool has_tensor_instructions(const std::vector<std::pair<std::string, int>>& instructions);

// One instruction or label a line, without columns of live ranges; the line of the source that nvdisasm's marks
// (`//## File "k.cu", line 12`) give for each, 0 where they give none.
struct SassText {
  std::string text;
  std::vector<int> source_lines;
};
SassText readable_sass(const std::string& sass);

}  // namespace tilewright

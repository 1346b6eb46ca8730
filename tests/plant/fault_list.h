// The rows of faults.txt.
#pragma once

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace tilewright {

struct PlantedFault {
  std::string name;     // `tile.end`: the pass, and a word of its own
  std::string summary;
  std::string file;     // from the root of the tree
  std::string right;    // what stands in the file, once
  std::string wrong;    // what stands there when the fault is switched on
};

// Throws std::runtime_error with the line that is no part of a row.
inline std::vector<PlantedFault> read_faults(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::vector<PlantedFault> faults;
  int number = 0;
  const auto rest_behind = [](const std::string& line, std::size_t at) { return line.substr(line.find_first_not_of(' ', at)); };
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    const std::size_t blank = line.find(' ');
    const std::string word = line.substr(0, blank);
    const bool has_rest = blank != std::string::npos && line.find_first_not_of(' ', blank) != std::string::npos;
    if (has_rest && word == "fault") {
      const std::string rest = rest_behind(line, blank);
      const std::size_t end = rest.find(' ');
      faults.push_back({rest.substr(0, end), end == std::string::npos ? "" : rest_behind(rest, end), {}, {}, {}});
    } else if (has_rest && !faults.empty() && word == "file") {
      faults.back().file = rest_behind(line, blank);
    } else if (has_rest && !faults.empty() && word == "-") {
      faults.back().right = line.substr(2);
    } else if (has_rest && !faults.empty() && word == "+") {
      faults.back().wrong = line.substr(2);
    } else {
      throw std::runtime_error(path + ":" + std::to_string(number) + ": `" + line + "` is no part of a row");
    }
  }
  for (const PlantedFault& fault : faults)
    if (fault.file.empty() || fault.right.empty() || fault.wrong.empty())
      throw std::runtime_error(path + ": `" + fault.name + "` lacks its file, its right or its wrong text");
  return faults;
}

}  // namespace tilewright

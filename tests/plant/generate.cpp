// plant_faults FAULTS ROOT FILE OUTPUT: the copy of a pass in which each fault of faults.txt can be switched on.
//
//   in the file    less(element, axis.hi)
//   in the copy    (planted("tile.end") ? (less(element, axis.hi + 1)) : (less(element, axis.hi)))
//
// A text that ends in `;` is a statement: if (planted("…")) { wrong } else { right }. A text must stand in its file once.
#include <fstream>
#include <iostream>
#include <sstream>

#include "tests/plant/fault_list.h"

namespace {

std::string switched(const tilewright::PlantedFault& fault) {
  if (fault.right.back() == ';') return "{ if (planted(\"" + fault.name + "\")) { " + fault.wrong + " } else { " + fault.right + " } }";
  return "(planted(\"" + fault.name + "\") ? (" + fault.wrong + ") : (" + fault.right + "))";
}

std::string read_text(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void generate(const std::string& faults, const std::string& root, const std::string& file, const std::string& output) {
  std::string text = read_text(root + "/" + file);
  for (const tilewright::PlantedFault& fault : tilewright::read_faults(faults)) {
    if (fault.file != file) continue;
    const std::size_t place = text.find(fault.right);
    const bool is_unique = place != std::string::npos && text.find(fault.right, place + 1) == std::string::npos;
    if (!is_unique) throw std::runtime_error(file + ": the text of `" + fault.name + "` does not stand there once: " + fault.right);
    text.replace(place, fault.right.size(), switched(fault));
  }
  std::ofstream out(output, std::ios::binary);
  out << "#include \"tests/plant/planted.h\"\n#line 1 \"" << file << "\"\n" << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + output);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) {
    std::cerr << "plant_faults FAULTS ROOT FILE OUTPUT\n";
    return 2;
  }
  try {
    generate(arguments[1], arguments[2], arguments[3], arguments[4]);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}

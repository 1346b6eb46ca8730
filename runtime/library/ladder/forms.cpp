// Printing, reading back and joining lines; see forms.h.
#include "runtime/library/ladder/forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string_view>

#include "ir/diagnostic.h"
#include "runtime/disassemble.h"
#include "runtime/library/ladder/sass.h"
#include "runtime/nvrtc.h"

namespace tilewright {

namespace {

int count_lines(const std::string& text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

// Appends a kernel's text to a form; `origin` are lines of the form above.
void append(Form& form, const std::string& text, const std::vector<int>& origin) {
  form.text += text;
  if (!form.text.empty() && form.text.back() != '\n') form.text += '\n';
  form.origin.insert(form.origin.end(), origin.begin(), origin.end());
  form.origin.resize(static_cast<std::size_t>(count_lines(form.text)));
}

template <class Line>
std::vector<int> origin_of(const std::vector<Line>& lines, int count, int shift = 0) {
  std::vector<int> origin(static_cast<std::size_t>(std::max(0, count)));
  for (const Line& line : lines)
    if (line.line >= 1 && line.line <= count && line.span.is_known()) origin[static_cast<std::size_t>(line.line) - 1] = line.span.line + shift;
  return origin;
}

bool is_at_threads(const Plan& plan) {
  const std::vector<const Kernel*> kernels = kernels_of(plan);
  return !kernels.empty() && kernels[0]->stage == Stage::Thread;
}

// PTX without its debug information, and the line of CUDA C of each of its lines: the outermost one where it was inlined.
struct PtxText {
  std::string text;
  std::vector<int> source_lines;
};
PtxText readable_ptx(const std::string& ptx, const std::set<std::string>* wanted = nullptr) {
  PtxText result;
  std::istringstream lines(ptx);
  int source = 0;
  bool in_section = false;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find_first_not_of(" \t");
    const std::string_view body = first == std::string::npos ? std::string_view() : std::string_view(line).substr(first);
    if (in_section) {
      in_section = !body.starts_with("}");
      continue;
    }
    if (const std::size_t at = body.find(".entry "); at != std::string_view::npos && wanted != nullptr) {
      const std::string_view name = body.substr(at + 7);
      in_section = wanted->count(std::string(name.substr(0, name.find_first_of("( \t")))) == 0;  // to its closing brace
      if (in_section) continue;
    }
    if (body.starts_with(".section")) {
      in_section = true;
      continue;
    }
    if (body.starts_with(".file") || body.starts_with("$L__tmp") || body.starts_with("$L__info_string")) continue;
    if (body.starts_with(".loc")) {
      const std::size_t inlined = body.find("inlined_at ");
      std::istringstream words{std::string(inlined == std::string_view::npos ? body.substr(4) : body.substr(inlined + 11))};
      int file = 0;
      words >> file >> source;
      continue;
    }
    result.text += line + "\n";
    result.source_lines.push_back(!body.empty() && body.back() == ';' && body.front() != '.' ? source : 0);
  }
  return result;
}

std::vector<int> shifted(std::vector<int> lines, int shift) {
  for (int& line : lines)
    if (line > 0) line += shift;
  return lines;
}

// Of nvdisasm's text the sections of these entries.
std::string sections_of(const std::string& sass, const std::set<std::string>& entries) {
  std::istringstream lines(sass);
  std::string out;
  bool is_wanted = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(".text.")) is_wanted = entries.count(line.substr(6, line.find(':') - 6)) > 0;
    if (is_wanted) out += line + "\n";
  }
  return out;
}

void add_sass(Form& form, const Cubin& cubin, int shift, std::string* note, const std::set<std::string>* wanted = nullptr) {
  try {
    const std::string text = disassemble(cubin, true);
    const SassText sass = readable_sass(wanted != nullptr ? sections_of(text, *wanted) : text);
    append(form, sass.text, shifted(sass.source_lines, shift));
  } catch (const MachineError& error) {
    if (note != nullptr) *note = error.what();
  }
}

void keep_full(std::vector<Form>& forms) {
  std::erase_if(forms, [](const Form& form) { return form.text.empty(); });
}

}  // namespace

std::vector<Form> forms_of(const Plan& plan, const CompileOptions& options, std::string* note) {
  std::vector<Form> forms;
  std::vector<PrintedLine> lines;
  const bool starts_at_threads = is_at_threads(plan);
  const std::string ir = print(plan, lines);
  if (!starts_at_threads) {
    forms.push_back({"ir", "program", "", {}});
    append(forms.back(), ir, origin_of(lines, count_lines(ir)));
  }
  const Plan finished = starts_at_threads ? plan : thread_stage(read_plan(ir), target_for(options.arch));
  lines.clear();
  const std::string threads = print(finished, lines);
  forms.push_back({"thread", starts_at_threads ? "program" : "ir", "", {}});
  append(forms.back(), threads, origin_of(lines, count_lines(threads)));
  const Plan again = read_plan(threads);

  CompileOptions with_lines = options;
  with_lines.line_info = true;
  const bool is_llvm = options.backend == Backend::Llvm;
  Form cuda{"cuda", "thread", "", {}}, ptx{"ptx", is_llvm ? "thread" : "cuda", "", {}}, sass{"sass", is_llvm ? "ptx" : "cuda", "", {}};
  for (const Kernel* kernel : kernels_of(again)) {
    const KernelText text = print_cuda(again, *kernel);
    const int shift = count_lines(is_llvm ? ptx.text : cuda.text);
    append(cuda, text.text, origin_of(text.lines, count_lines(text.text)));
    const CompiledKernel compiled = compile_kernel(again, *kernel, with_lines);
    if (is_llvm) {
      append(ptx, compiled.source.text, origin_of(compiled.source.lines, count_lines(compiled.source.text)));
    } else {
      const PtxText readable = readable_ptx(ptx_of(again, *kernel, with_lines));
      append(ptx, readable.text, shifted(readable.source_lines, shift));
    }
    add_sass(sass, compiled.cubin, shift, note);
  }
  forms.insert(forms.end(), {cuda, ptx, sass});
  keep_full(forms);
  return forms;
}

std::vector<Form> forms_of(const HandProgram& hand, const std::string& arch, std::string* note) {
  const CompiledHand compiled = compile_hand(hand, arch, true, true);
  std::set<std::string> launched;  // a file may hold the kernels of other hands
  for (const HandStep& step : hand.steps)
    if (const auto* launch = std::get_if<HandLaunch>(&step)) {
      const auto entry = compiled.cubin.entries.find(launch->kernel);
      launched.insert(entry == compiled.cubin.entries.end() ? launch->kernel : entry->second);
    }
  Form cuda{"cuda", "program", "", {}}, ptx{"ptx", "cuda", "", {}}, sass{"sass", "cuda", "", {}};
  append(cuda, hand.text, {});
  const PtxText readable = readable_ptx(compile_hand_to_ptx(hand, arch).text, &launched);
  append(ptx, readable.text, readable.source_lines);
  add_sass(sass, compiled.cubin, 0, note, &launched);
  std::vector<Form> forms = {cuda, ptx, sass};
  keep_full(forms);
  return forms;
}

}  // namespace tilewright

// dump: the program after any or every line, in every form.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "codegen/codegen.h"
#include "ir/diagnostic.h"
#include "runtime/compile.h"
#include "runtime/disassemble.h"
#include "runtime/files.h"
#include "runtime/toolkit.h"
#include "tools/line_pairs.h"
#include "tools/options.h"

namespace tilewright {

namespace {

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  while (true) {
    std::size_t comma = text.find(',', start);
    parts.push_back(text.substr(start, comma == std::string::npos ? std::string::npos : comma - start));
    if (comma == std::string::npos) return parts;
    start = comma + 1;
  }
}

// Which rungs `--after` names: a number, a word, a piece of the line, or all.
std::vector<std::size_t> chosen_rungs(const std::vector<Rung>& rungs, const std::string& after) {
  std::vector<std::size_t> result;
  if (after.empty()) return {rungs.size() - 1};
  bool number = after.find_first_not_of("0123456789") == std::string::npos;
  for (std::size_t n = 0; n < rungs.size(); ++n) {
    bool fits = after == "all" || (number && std::to_string(n) == after) || (!number && (rungs[n].line.find(after) != std::string::npos || (n == 0 && after == "lowered")));
    if (fits) result.push_back(n);
  }
  if (!result.empty()) return result;
  std::string known;
  for (std::size_t n = 0; n < rungs.size(); ++n) known += fmt::format("{}{}: {}", n ? ", " : "", n, n ? rungs[n].line : "lowered");
  throw UserError({}, fmt::format("no line is `{}`", after), "the rungs are " + known);
}

// Line by line: what is in both, in order, and what is in one only.
std::string difference(const std::string& before, const std::string& after) {
  const std::vector<std::string> a = lines_of_text(before), b = lines_of_text(after);
  std::string out;
  for (const auto& [n, m] : pair_lines(a, b)) out += (n != 0 && m != 0 ? "  " + a[n - 1] : n != 0 ? "- " + a[n - 1] : "+ " + b[m - 1]) + "\n";
  return out;
}

class Dump {
 public:
  Dump(const Options& options, PreparedCall call) : options_(options), call_(std::move(call)), forms_(split_list(options.emit)) {
    const std::set<std::string> known = {"tensor", "ir", "thread", "cuda", "llvm", "ptx", "sass"};
    for (const std::string& form : forms_)
      if (!known.count(form)) throw UserError({}, fmt::format("unknown form `{}`", form), "known are tensor, ir, thread, cuda, llvm, ptx, sass");
    compile_.backend = options.backend == "llvm" ? Backend::Llvm : Backend::Nvrtc;
    compile_.arch = call_.settings.execution.arch;
    compile_.use_cache = !options.no_cache;
  }

  void run() {
    if (!options_.folder.empty()) {
      std::error_code failure;
      std::filesystem::create_directories(options_.folder, failure);
      if (failure) throw UserError({}, fmt::format("cannot make the folder `{}`: {}", options_.folder, failure.message()));
    }
    for (std::size_t n : chosen_rungs(call_.rungs, options_.after)) rung(n);
  }

 private:
  bool wants(const char* form) const { return std::find(forms_.begin(), forms_.end(), form) != forms_.end(); }

  void rung(std::size_t n) {
    const Rung& rung = call_.rungs[n];
    if (options_.folder.empty()) std::cout << fmt::format("// {} {}\n", n, n ? rung.line : "lowered");
    if (wants("tensor") && n == 0) put(n, ".tensor.tw", print(*call_.fn));
    const bool is_compared = options_.diff && n > 0;
    const std::vector<Text> before = is_compared ? texts_of(n - 1) : std::vector<Text>{};
    for (const Text& text : texts_of(n)) {
      if (!is_compared) {
        put(n, text.ending, text.text);
        continue;
      }
      // A kernel that the rung before did not have is new in every line.
      const auto old = std::find_if(before.begin(), before.end(), [&](const Text& other) { return other.ending == text.ending; });
      put(n, text.ending + ".diff", difference(old == before.end() ? "" : old->text, text.text));
    }
  }

  // One form of a rung, and how its file ends: `.ir`, or `.s.cu` where there are several kernels.
  struct Text {
    std::string ending;
    std::string text;
  };

  std::vector<Text> texts_of(std::size_t n) {
    const Rung& rung = call_.rungs[n];
    std::vector<Text> result;
    if (wants("ir")) result.push_back({".ir", print(rung.plan)});
    const bool needs_threads = wants("thread") || wants("cuda") || wants("llvm") || wants("ptx") || wants("sass");
    if (!needs_threads && options_.folder.empty()) return result;
    const Plan finished = thread_stage(rung.plan, target_for(compile_.arch));
    if (wants("thread") || (wants("ir") && !options_.folder.empty())) result.push_back({".thread.ir", print(finished)});
    const std::vector<const Kernel*> kernels = kernels_of(finished);
    for (const Kernel* kernel : kernels) {
      const std::string name = kernels.size() > 1 ? "." + kernel->name : "";
      if (wants("cuda")) result.push_back({name + ".cu", print_cuda(finished, *kernel).text});
      if (wants("llvm"))
        result.push_back({name + ".ll", print_llvm(finished, *kernel, compile_.arch, find_tool(Tool::Libdevice).value_or("").string())});
      if (wants("ptx")) result.push_back({name + ".ptx", ptx_of(finished, *kernel, compile_)});
      if (wants("sass")) result.push_back({name + ".sass", disassemble(compile_kernel(finished, *kernel, compile_).cubin)});
    }
    return result;
  }

  void put(std::size_t n, const std::string& ending, const std::string& text) {
    if (options_.folder.empty()) {
      std::cout << text << (text.empty() || text.back() == '\n' ? "" : "\n");
      return;
    }
    std::string path = (std::filesystem::path(options_.folder) / (rung_file_name(call_.rungs, n) + ending)).string();
    replace_file(path, {}, text);
    std::cout << path << "\n";
  }

  const Options& options_;
  PreparedCall call_;
  std::vector<std::string> forms_;
  CompileOptions compile_;
};

}  // namespace

ExitCode dump_verb(const Options& given) {
  Options options = given;
  if (options.device == "auto") options.device = "cpu";  // nothing is launched
  LoadedProgram loaded = load(options);
  if (options.arch.empty()) options.arch = choose_arch("");
  Dump(options, prepare(options, loaded)).run();
  return ExitCode::Success;
}

}  // namespace tilewright

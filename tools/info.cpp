// info: GPUs, driver and tools. passes: the compiler as a list.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "runtime/driver.h"
#include "runtime/toolkit.h"
#include "tools/options.h"

namespace tilewright {

namespace {

std::string_view class_name(NumericClass numeric) {
  switch (numeric) {
    case NumericClass::Exact: return "exact";
    case NumericClass::Reassociates: return "reassociates";
    case NumericClass::ChangesPrecision: return "changes precision";
  }
  return "";
}

}  // namespace

ExitCode info_verb(const Options& options) {
  std::string why;
  std::vector<GpuInfo> gpus = list_gpus(&why);
  std::vector<ToolReport> tools = report_tools();
  if (options.json) {
    nlohmann::json out;
    out["version"] = "0.1.0";
    out["gpus"] = nlohmann::json::array();
    for (const GpuInfo& gpu : gpus)
      out["gpus"].push_back({{"name", gpu.name}, {"arch", gpu.arch}, {"sms", gpu.sms}, {"l2_bytes", gpu.l2_bytes}, {"memory_bytes", gpu.memory_bytes}, {"shared_bytes", gpu.shared_bytes}, {"driver", gpu.driver}});
    if (gpus.empty()) out["no_gpu"] = why;
    out["tools"] = nlohmann::json::array();
    for (const ToolReport& tool : tools)
      out["tools"].push_back({{"name", tool.name}, {"found", tool.is_found}, {"path", tool.path}, {"version", tool.version}, {"cure", tool.cure}});
    out["architectures"] = nlohmann::json::array();
    for (std::string_view arch : known_architectures()) out["architectures"].push_back(arch);
    std::cout << out.dump(2) << "\n";
    return ExitCode::Success;
  }
  std::cout << "tilewright 0.1.0\n\n";
  if (gpus.empty()) std::cout << fmt::format("GPU            none: {}\n", why);
  for (const GpuInfo& gpu : gpus)
    std::cout << fmt::format("GPU            {}, {}, {} SMs, {} MB L2, {} GB, driver {}\n", gpu.name, gpu.arch, gpu.sms, gpu.l2_bytes >> 20, gpu.memory_bytes >> 30, gpu.driver);
  for (const ToolReport& tool : tools) {
    if (tool.is_found) std::cout << fmt::format("{:<14} {} {}\n", tool.name, tool.version, tool.path);
    else std::cout << fmt::format("{:<14} missing ({}); {}\n", tool.name, tool.purpose, tool.cure);
  }
  std::cout << "\narchitectures ";
  for (std::string_view arch : known_architectures()) std::cout << ' ' << arch;
  std::cout << "\ndevices        cuda, cpu, sim, interpreter\n";
  return ExitCode::Success;
}

ExitCode passes_verb(const Options& options) {
  if (options.json) {
    nlohmann::json out;
    for (const SchedulePass& pass : schedule_passes())
      out["schedule"].push_back({{"word", pass.word}, {"syntax", pass.syntax}, {"summary", pass.summary}, {"class", class_name(pass.numeric)}});
    for (const FinishingPass& pass : finishing_passes())
      out["finishing"].push_back({{"name", pass.name}, {"summary", pass.summary}, {"class", class_name(pass.numeric)}});
    std::cout << out.dump(2) << "\n";
    return ExitCode::Success;
  }
  std::cout << "lower          tensor IR to the naive plan: a kernel a statement, one thread an element\n\nschedule lines\n";
  for (const SchedulePass& pass : schedule_passes())
    std::cout << fmt::format("  {:<40} {} ({})\n", pass.syntax, pass.summary, class_name(pass.numeric));
  std::cout << "\nfinishing passes, in this order\n";
  for (const FinishingPass& pass : finishing_passes()) std::cout << fmt::format("  {:<40} {} ({})\n", pass.name, pass.summary, class_name(pass.numeric));
  return ExitCode::Success;
}

}  // namespace tilewright

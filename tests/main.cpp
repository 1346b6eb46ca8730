// The test program: doctest's runner, with two kinds of test chosen at run time.
//
//   a suite whose name holds "gpu"    runs where a CUDA device can be used, else is skipped (visibly)
//   a suite whose name holds "full"   runs only under --full
//
// Options of our own: --gpu (only the GPU suites; no device is then an error), --no-gpu, --full. All others are doctest's
// (-tc=PATTERN …). The last line is `N passed, N failed, N skipped`; the exit status is 0 only where something passed and
// nothing failed.
#define DOCTEST_CONFIG_IMPLEMENT
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <iostream>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tests/locations.h"

namespace tilewright {

namespace {

bool full_tests = false;
bool gpu_allowed = true;

// Set by skip_test while a test case runs.
std::mutex skip_mutex;
std::string skip_reason;

int passed = 0;
int failed = 0;
int skipped = 0;
std::vector<std::string> skip_lines;

bool suite_holds(const doctest::TestCaseData& test, std::string_view word) {
  return test.m_test_suite != nullptr && std::string_view(test.m_test_suite).find(word) != std::string_view::npos;
}

// Counts test cases by outcome. doctest's own summary counts a filtered test as "skipped" too, but neither names the
// ones that lack a device nor knows of skip_test.
struct Counter : doctest::IReporter {
  const doctest::TestCaseData* current = nullptr;

  explicit Counter(const doctest::ContextOptions&) {}

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_start(const doctest::TestCaseData& test) override {
    current = &test;
    const std::lock_guard lock(skip_mutex);
    skip_reason.clear();
  }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    const std::lock_guard lock(skip_mutex);
    if (stats.failure_flags != 0) {
      ++failed;
    } else if (!skip_reason.empty()) {
      ++skipped;
      skip_lines.push_back(std::string(current->m_name) + ": " + skip_reason);
    } else {
      ++passed;
    }
  }
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData& test) override {
    // Only what this run leaves out for want of a device or of --full; a filter that the user gave is no skip.
    if (suite_holds(test, "gpu") && gpu_allowed && !has_gpu()) {
      ++skipped;
      skip_lines.push_back(std::string(test.m_name) + ": no CUDA device");
    } else if (suite_holds(test, "full") && !full_tests) {
      ++skipped;
      skip_lines.push_back(std::string(test.m_name) + ": long, runs under --full");
    }
  }
};

REGISTER_LISTENER("counter", 1, Counter);

int run_tests(int argument_count, char** arguments) {
  std::vector<const char*> doctest_arguments;
  bool only_gpu = false;
  for (int index = 0; index < argument_count; ++index) {
    const std::string_view argument = arguments[index];
    if (argument == "--full") {
      full_tests = true;
    } else if (argument == "--gpu") {
      only_gpu = true;
    } else if (argument == "--no-gpu") {
      gpu_allowed = false;
    } else {
      doctest_arguments.push_back(arguments[index]);
    }
  }

  doctest::Context context;
  context.setOption("no-version", true);
  context.setOption("no-intro", true);
  context.applyCommandLine(static_cast<int>(doctest_arguments.size()), doctest_arguments.data());
  if (only_gpu) {
    if (!has_gpu()) {
      std::cerr << "error: --gpu needs a CUDA device, and none was found\n";
      return 1;
    }
    context.addFilter("test-suite", "*gpu*");
  } else if (!gpu_allowed || !has_gpu()) {
    context.addFilter("test-suite-exclude", "*gpu*");
  }
  if (!full_tests) context.addFilter("test-suite-exclude", "*full*");

  const int status = context.run();
  if (context.shouldExit()) return status;

  for (const std::string& line : skip_lines) std::cout << "skipped: " << line << "\n";
  if (passed + failed == 0) std::cout << "error: no test ran\n";
  std::cout << passed << " passed, " << failed << " failed, " << skipped << " skipped" << std::endl;
  return status == 0 && failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace

bool runs_full_tests() { return full_tests; }

bool has_gpu() {
  static const bool found = [] {
    // The handle stays open: the driver does not like to be unloaded.
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == nullptr) return false;
    const auto initialise = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
    const auto count_devices = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
    int count = 0;
    return initialise != nullptr && count_devices != nullptr && initialise(0) == 0 && count_devices(&count) == 0 &&
           count > 0;
  }();
  return found;
}

void skip_test(std::string_view reason) {
  const std::lock_guard lock(skip_mutex);
  skip_reason = reason;
}

}  // namespace tilewright

int main(int argument_count, char** arguments) { return tilewright::run_tests(argument_count, arguments); }

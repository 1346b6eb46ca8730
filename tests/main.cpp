// The test program: doctest's runner, with two kinds of test chosen at run time.
//
//   a suite whose name holds "gpu"    runs where a CUDA device can be used, else is skipped (visibly)
//   a suite whose name holds "full"   runs only under --full
//
// Options of our own: --gpu (only the GPU suites; no device is then an error), --no-gpu, --full, --json FILE. All
// others are doctest's (-tc=PATTERN …). The last line is `N passed, N failed, N skipped`; the exit status is 0 only
// where something passed and nothing failed.
//
// --json FILE keeps a record of the run, rewritten after each test case, so that a run stopped by a time limit leaves
// what it knows: `complete` is then false and `running` names the test case that did not end.
#define DOCTEST_CONFIG_IMPLEMENT
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/locations.h"

namespace tilewright {

namespace {

bool full_tests = false;
bool gpu_allowed = true;
std::string json_path;

// Set by skip_test while a test case runs.
std::mutex skip_mutex;
std::string skip_reason;

// The CUDA driver, opened at run time; it stays open, for it does not like to be unloaded.
struct Driver {
  bool has_device = false;
  std::string device_name;
  int version = 0;

  Driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) return;
    const auto initialise = reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit"));
    const auto count_devices = reinterpret_cast<int (*)(int*)>(dlsym(library, "cuDeviceGetCount"));
    const auto name_of = reinterpret_cast<int (*)(char*, int, int)>(dlsym(library, "cuDeviceGetName"));
    const auto version_of = reinterpret_cast<int (*)(int*)>(dlsym(library, "cuDriverGetVersion"));
    if (initialise == nullptr || count_devices == nullptr || name_of == nullptr || version_of == nullptr) return;
    int count = 0;
    if (initialise(0) != 0 || count_devices(&count) != 0 || count == 0) return;
    has_device = true;
    char name[256] = "";
    if (name_of(name, sizeof name, 0) == 0) device_name = name;
    version_of(&version);
  }
};

const Driver& driver() {
  static const Driver opened;
  return opened;
}

// What the run has come to.
struct Outcome {
  int passed = 0;
  int failed = 0;
  int skipped = 0;
  double seconds = 0;
  std::vector<std::string> skip_lines;
  nlohmann::ordered_json tests = nlohmann::ordered_json::array();

  void add_skipped(const std::string& test, const std::string& reason) {
    ++skipped;
    skip_lines.push_back(test + ": " + reason);
    tests.push_back({{"name", test}, {"outcome", "skipped"}, {"messages", nlohmann::ordered_json::array({reason})}});
  }

  // Writes the record, whole or not at all.
  void write(std::string_view running) const {
    if (json_path.empty()) return;
    nlohmann::ordered_json record;
    record["complete"] = running.empty();
    if (!running.empty()) record["running"] = running;
    record["device"] = driver().has_device ? nlohmann::ordered_json(driver().device_name) : nlohmann::ordered_json();
    record["driver_api"] = driver().version;
    record["passed"] = passed;
    record["failed"] = failed;
    record["skipped"] = skipped;
    record["seconds"] = seconds;
    record["tests"] = tests;
    const std::string scratch = json_path + ".part";
    std::ofstream(scratch) << record.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    if (std::rename(scratch.c_str(), json_path.c_str()) != 0) std::cerr << "error: cannot write " << json_path << "\n";
  }
};

Outcome outcome;

bool suite_holds(const doctest::TestCaseData& test, std::string_view word) {
  return test.m_test_suite != nullptr && std::string_view(test.m_test_suite).find(word) != std::string_view::npos;
}

// Counts test cases by outcome. doctest's own summary counts a filtered test as "skipped" too, but neither names the
// ones that lack a device nor knows of skip_test.
struct Counter : doctest::IReporter {
  const doctest::TestCaseData* current = nullptr;
  std::mutex message_mutex;  // assertions may come from several threads
  nlohmann::ordered_json messages;

  explicit Counter(const doctest::ContextOptions&) {}

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override { outcome.write(""); }
  void test_case_start(const doctest::TestCaseData& test) override {
    current = &test;
    messages = nlohmann::ordered_json::array();
    {
      const std::lock_guard lock(skip_mutex);
      skip_reason.clear();
    }
    outcome.write(test.m_name);
  }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    outcome.seconds += stats.seconds;
    const std::lock_guard lock(skip_mutex);
    const bool failed = stats.failure_flags != 0;
    if (!failed && !skip_reason.empty()) {
      outcome.add_skipped(current->m_name, skip_reason);
      return;
    }
    ++(failed ? outcome.failed : outcome.passed);
    outcome.tests.push_back(
        {{"name", current->m_name}, {"outcome", failed ? "failed" : "passed"}, {"seconds", stats.seconds}});
    if (failed) outcome.tests.back()["messages"] = messages;
  }
  void test_case_exception(const doctest::TestCaseException& exception) override {
    add_message(std::string("exception: ") + exception.error_string.c_str());
  }
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& assertion) override {
    if (!assertion.m_failed) return;
    add_message(std::string(assertion.m_file) + ":" + std::to_string(assertion.m_line) + ": " + assertion.m_expr +
                " is " + assertion.m_decomp.c_str());
  }
  void log_message(const doctest::MessageData& message) override {
    if (message.m_severity == doctest::assertType::is_warn) return;
    add_message(std::string(message.m_file) + ":" + std::to_string(message.m_line) + ": " + message.m_string.c_str());
  }
  void test_case_skipped(const doctest::TestCaseData& test) override {
    // Only what this run leaves out for want of a device or of --full; a filter that the user gave is no skip.
    if (suite_holds(test, "gpu") && gpu_allowed && !has_gpu()) {
      outcome.add_skipped(test.m_name, "no CUDA device");
    } else if (suite_holds(test, "full") && !full_tests) {
      outcome.add_skipped(test.m_name, "long, runs under --full");
    }
  }

  void add_message(std::string text) {
    const std::lock_guard lock(message_mutex);
    if (messages.size() < 20) messages.push_back(std::move(text));
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
    } else if (argument == "--json") {
      if (index + 1 == argument_count) {
        std::cerr << "error: --json needs a file name\n";
        return 1;
      }
      json_path = arguments[++index];
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

  for (const std::string& line : outcome.skip_lines) std::cout << "skipped: " << line << "\n";
  if (outcome.passed + outcome.failed == 0) std::cout << "error: no test ran\n";
  std::cout << outcome.passed << " passed, " << outcome.failed << " failed, " << outcome.skipped << " skipped"
            << std::endl;
  return status == 0 && outcome.failed == 0 && outcome.passed > 0 ? 0 : 1;
}

}  // namespace

bool runs_full_tests() { return full_tests; }

bool has_gpu() { return driver().has_device; }

void skip_test(std::string_view reason) {
  const std::lock_guard lock(skip_mutex);
  skip_reason = reason;
}

}  // namespace tilewright

int main(int argument_count, char** arguments) { return tilewright::run_tests(argument_count, arguments); }

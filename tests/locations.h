// Where the tests find what they read and run: the source tree, the shared data, the built programs.
#pragma once

#include <filesystem>
#include <string_view>

namespace tilewright {

// The root of the source tree (or of a bundle): holds tests/ and examples/. TILEWRIGHT_ROOT overrides the built-in
// path.
std::filesystem::path source_root();

// Whether that is the whole source tree, not a bundle: what a test looks for in docs/ and scripts/ must be there then.
bool has_source_tree();

// The folder of shared data (digits_x.npy, flower.npy …): TILEWRIGHT_DATA, else ../shared/data beside the source tree.
// It need not exist: see skip_test.
std::filesystem::path data_root();

// The folder of the test program, which holds `tilewright` and `embed` too.
std::filesystem::path program_folder();

// True where expectations are to be rewritten instead of compared (TILEWRIGHT_UPDATE=1).
bool updates_expectations();

// True where long tests were asked for (tilewright_tests --full).
bool runs_full_tests();

// True where a CUDA device can be used.
bool has_gpu();

// Counts the running test case as skipped, with the reason shown; the test returns behind it. Use TILEWRIGHT_SKIP.
void skip_test(std::string_view reason);

}  // namespace tilewright

// Leaves a test case visibly: if (!std::filesystem::exists(data_root())) TILEWRIGHT_SKIP("no shared data");
#define TILEWRIGHT_SKIP(reason)      \
  do {                               \
    ::tilewright::skip_test(reason); \
    return;                          \
  } while (false)

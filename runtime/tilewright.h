// The library under the command line: a program's text becomes a function that a C++ program calls.
//
//   auto compiled = tilewright::compile("fn saxpy(a: f32, X: f32[N], Y: f32[N]) -> Z: f32[N] { Z[i] = a * X[i] + Y[i] }", {});
//   if (!compiled) { std::puts(compiled.error().c_str()); return 1; }
//   auto called = compiled.value().call({{"a", &a, {}}, {"X", x, {n}}, {"Y", y, {n}}, {"Z", z, {n}}});
//
// Errors are values; nothing here throws. One compiled function serves every shape: kernels are compiled for a class of
// shapes at its first call and kept.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tilewright {

// A value or the text of an error.
template <class T>
class Result {
 public:
  Result(T value) : value_(std::make_unique<T>(std::move(value))) {}
  static Result failure(std::string text) {
    Result result;
    result.error_ = std::move(text);
    return result;
  }
  explicit operator bool() const { return value_ != nullptr; }
  T& value() { return *value_; }
  const std::string& error() const { return error_; }

 private:
  Result() = default;
  std::unique_ptr<T> value_;
  std::string error_;
};

// One argument of a call: memory of the caller's with the dtype that the signature states. Strides count elements and may
// be left out for a contiguous row-major tensor; a scalar has no shape. The memory is the host's on every device.
struct Argument {
  std::string name;
  void* data = nullptr;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
};

struct CompileSettings {
  std::string fn;                    // empty: the last one of tensors
  std::string schedule;              // a unique beginning of a name; empty: the last that fits each call
  std::string device = "auto";       // auto, cuda, cpu, sim, interpreter
  std::string backend = "nvrtc";     // nvrtc or llvm
  std::string arch;                  // empty: the GPU's
  std::map<std::string, std::int64_t> parameters;  // of the schedule
};

struct CallReport {
  std::string schedule;     // the one taken; empty for none
  double milliseconds = 0;  // of the kernels, where the device measures it
};

class CompiledFunction {
 public:
  struct State;
  explicit CompiledFunction(std::shared_ptr<State> state);
  // Computes the outputs into the caller's memory. The error says what is wrong with the arguments, or what failed.
  Result<CallReport> call(const std::vector<Argument>& arguments);

 private:
  std::shared_ptr<State> state_;
};

// Parses and checks the program. The error is the rendered diagnostics.
Result<CompiledFunction> compile(const std::string& program_text, const CompileSettings& settings);

}  // namespace tilewright

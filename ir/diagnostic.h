// Errors as values: the user's fault (Diagnostic), ours (internal_error), the machine's (MachineError).
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "ir/span.h"

namespace tilewright {

struct Note {
  Span span;  // may be unknown: then only the text is shown
  std::string text;
};

// One fault of the user's. `message` has no capital and no full stop, code in backticks.
struct Diagnostic {
  Span span;
  std::string message;        // what was seen, then what is needed
  std::vector<Note> notes;    // other places of the same cause
  std::string help;           // the cure, empty where none is known
};

struct SourceFile {
  std::string name;
  std::string text;
};

// Renders with the line, a caret under the narrowest range, notes and help, as STYLE shows.
std::string render(const Diagnostic& diagnostic, const std::vector<SourceFile>& files);
std::string render(const std::vector<Diagnostic>& diagnostics, const std::vector<SourceFile>& files);

// Thrown by readers and passes for the user's fault; carries all faults found so far.
class UserError : public std::runtime_error {
 public:
  explicit UserError(std::vector<Diagnostic> diagnostics);
  UserError(Span span, std::string message, std::string help = {});
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  std::vector<Diagnostic> diagnostics_;
};

// The machine's fault: a missing tool, a failed call, no memory, no GPU. The text says what and how to get on.
class MachineError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Our fault: something that should have held did not.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};
[[noreturn]] void internal_error(std::string message);

}  // namespace tilewright

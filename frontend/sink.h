// Sink: collects the faults of a program while it is read, one diagnostic for one cause.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/spelling.h"

namespace tilewright {

class Sink {
 public:
  // `text` must outlive the sink; spans of file `file` point into it.
  Sink(std::string_view text, int file);

  void error(Span span, std::string message, std::string help = {}, std::vector<Note> notes = {});

  // As error, but a second fault with the same `cause` becomes a note `again` of the first.
  void error_once(const std::string& cause, Span span, std::string message, std::string again, std::string help = {},
                  std::vector<Note> notes = {});

  std::set<int> lines_with_faults() const;
  bool has_errors() const { return !diagnostics_.empty(); }
  // So many faults were found that reading on would only repeat them.
  bool is_full() const;
  // All faults in order of their places.
  std::vector<Diagnostic> take();

  // The program's own words, blanks collapsed, long ones cut.
  std::string text_of(Span span) const;
  int file() const { return file_; }

 private:
  std::string_view text_;
  int file_;
  std::vector<std::size_t> line_starts_;
  std::vector<Diagnostic> diagnostics_;
  std::map<std::string, std::size_t> causes_;
};

// From the start of `first` to the end of `last`.
Span join(Span first, Span last);

}  // namespace tilewright

// Where in a source text something stands.
#pragma once

#include <compare>

namespace tilewright {

// Lines and columns count from 1; 0 means unknown. `file` is an index into the caller's list of sources.
// Two spans always compare equal, so that IR equality does not depend on where a text was read from.
struct Span {
  int file = 0;
  int line = 0;
  int column = 0;
  int end_line = 0;
  int end_column = 0;  // one past the last column

  bool is_known() const { return line > 0; }
  friend bool operator==(const Span&, const Span&) { return true; }
};

}  // namespace tilewright

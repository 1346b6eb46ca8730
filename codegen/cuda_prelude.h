// The small device functions that a printed kernel uses, written in front of it: only those used, in a fixed order.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "ir/dtype.h"

namespace tilewright {

// Whether the table has a function of that name, which nothing else of a kernel may have.
bool is_prelude_function(std::string_view name);

class CudaPrelude {
 public:
  // Notes that a function of the table is used and gives its name as it is called: use("f32_from_f16").
  std::string use(const std::string& function);
  // The same for a function that exists for several types, `floor_div` of int and of long long (overloads).
  std::string use(const std::string& function, const std::string& c_type);
  // A function whose text the caller made (an atomic combination); `order` sorts it behind the table's.
  std::string add(const std::string& name, const std::string& key, const std::string& text);

  // The texts of all functions used, each followed by an empty line.
  std::string text() const;

 private:
  std::map<std::string, std::string> texts_;  // keyed so that the order does not depend on the order of use
};

}  // namespace tilewright

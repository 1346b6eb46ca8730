// The header comment of each pass' file, which is what `help WORD` prints.
#pragma once

#include <string_view>

namespace tilewright {

// Of a schedule word or the name of a finishing pass; empty where there is none.
std::string_view header_comment(std::string_view pass);

}  // namespace tilewright

// Whole files in and out of memory.
#pragma once

#include <string>
#include <string_view>

namespace tilewright {

// Throws UserError with the reason and the path.
std::string read_whole_file(const std::string& path);
// Writes beside the path and renames, so that no reader sees half a file and a failure leaves the old one. Throws
// UserError with the reason.
void replace_file(const std::string& path, std::string_view head, std::string_view body);
// Throws UserError, as replace_file would, where the file cannot be written. What stands there stays.
void require_writable(const std::string& path);

}  // namespace tilewright

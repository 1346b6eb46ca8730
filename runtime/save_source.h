// Keeps a text that a tool refused, so that the message can name a file to look at.
#pragma once

#include <string>

namespace tilewright {

// Writes to a new file in the folder for temporary files and gives its path; on failure a few words that say so.
std::string save_source(const std::string& text, const std::string& extension);

}  // namespace tilewright

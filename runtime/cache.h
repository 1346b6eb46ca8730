// Machine code kept on disk between runs: under TILEWRIGHT_CACHE, else $XDG_CACHE_HOME/tilewright, else
// ~/.cache/tilewright. TILEWRIGHT_CACHE=off turns it off. A cache that cannot be read or written is as good as none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/cubin.h"

namespace tilewright {

// The folder, or "" where the cache is off.
std::string cache_folder();

// `key` is everything that can change the code: text, architecture, options, tool. It is stored beside the code and
// compared in full, so that two keys never share an entry.
std::optional<Cubin> find_cached(const std::string& key);
// Written beside and renamed: another process never sees half a file.
void keep_cached(const std::string& key, const Cubin& cubin);

// Puts parts together so that no two lists of parts give the same key.
std::string cache_key(const std::vector<std::string>& parts);

}  // namespace tilewright

// Work on all cores.
#pragma once

#include <cstddef>
#include <functional>

namespace tilewright {

// Calls `work(0)` … `work(count - 1)`, each once, on as many threads as there are cores. Throws what one of them threw, when all
// are done.
void for_each_in_parallel(std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace tilewright

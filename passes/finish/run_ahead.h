// Copies that run ahead of the work, without roles.
#pragma once

#include "ir/stmt.h"

namespace tilewright {

// Every loop over the verbs of a pipe via tma or cp.async becomes a prologue and a steady loop, at any depth of `body`.
Block run_ahead(const Block& body);

}  // namespace tilewright

// What --record does for a verb: looks that a record can be written before the work, and writes it behind.
#pragma once

#include "runtime/library/ladder/record.h"
#include "tools/options.h"

namespace tilewright {

// Throws UserError where the folder of --record cannot take a record.
void prepare_recording(const Options& options);
// Does nothing without --record.
void keep_record(const Options& options, const LoadedProgram& loaded, std::vector<Ladder> ladders);

}  // namespace tilewright

// tilewright: the command line.
#include <malloc.h>

#include "tools/options.h"

int main(int argc, char** argv) {
  // Compilers take and free the same megabytes for each kernel; what is freed is kept, for a page that is taken again from
  // the system costs a fault.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);
  return tilewright::command_line(argc, argv);
}

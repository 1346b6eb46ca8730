// tilewright: the command line.
#include "tools/options.h"

int main(int argc, char** argv) { return tilewright::command_line(argc, argv); }

/* bench_main.h - start and end of a program that measures under mpirun. */
#pragma once

#include "cli/command.h"

/* Runs the command, or prints its help; only rank 0 prints, and an error ends all ranks. Returns
 * the exit code of main. */
int bench_main(const zero_command *command, int argc, char **argv);

/* bench_main.h - how a program that measures under mpirun begins and ends. */
#pragma once

#include "cli/command.h"

/* Runs the command, or prints its help; only rank 0 prints, and an error ends all ranks. Returns
 * what main does. */
int bench_main(const zero_command *command, int argc, char **argv);

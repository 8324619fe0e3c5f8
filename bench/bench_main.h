/* bench_main.h - how a program that measures under mpirun begins and ends. */
#pragma once

#include "zero/status.h"

/* Runs `bench` with rank 0's words alone; an error ends all ranks. Returns what main does. */
int bench_main(const char *name, zero_status (*bench)(int argc, char **argv), int argc,
               char **argv);

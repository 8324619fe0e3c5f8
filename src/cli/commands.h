/* commands.h - the subcommands: one file each, called by main() with what follows the name.
 *
 * A command returns its status and leaves the message to main(), which prints it once and
 * ends all ranks with the exit code. */
#pragma once

#include "zero/status.h"

ZERO_NODISCARD zero_status zero_command_train(int argc, char **argv);
ZERO_NODISCARD zero_status zero_command_plan(int argc, char **argv);
ZERO_NODISCARD zero_status zero_command_generate(int argc, char **argv);
ZERO_NODISCARD zero_status zero_command_info(int argc, char **argv);
ZERO_NODISCARD zero_status zero_command_checkpoint(int argc, char **argv);

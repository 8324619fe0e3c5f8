/* chakra.h - a step of all ranks as execution traces of Chakra (arXiv 2305.14516), which
 * ASTRA-sim replays.
 *
 *     DIR/zero.RANK.et    GlobalMetadata, then a Node for each
 *
 *         unit computed               COMP_NODE, its microseconds and flops
 *         message of a collective     COMM_SEND_NODE, COMM_RECV_NODE: the steps of our own
 *                                     lists, broadcasts too; equal tags at both ends
 *         read through a window       MEM_LOAD_NODE, from "window"
 *         transfer of the disk        MEM_LOAD_NODE or MEM_STORE_NODE, of "file"
 *         vote, norm, loss            COMM_COLL_NODE
 *         wait                        COMP_NODE of no time, which depends on what it awaits
 *
 * Bytes of messages and windows add up to the ledger's of a step. Signals between ranks of
 * a node are left out: the format has nothing for them. What the step before has left in
 * flight is not awaited. Protobuf is written by hand: keys, varints and lengths. */
#pragma once

#include "report/simulation_report.h"

/* The first stage of the report. ZERO_ERR_INVALID, ZERO_ERR_ENV or ZERO_ERR_IO if DIR,
 * which is made if it is missing, cannot be written; ZERO_ERR_NOMEM. */
zero_status zero_chakra_write(const char *directory, const char *command,
                              const zero_simulation_report *report);

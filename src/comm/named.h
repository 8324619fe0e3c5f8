/* named.h - groups of ranks of the program's choice (zero/collective.h): of the family of the
 * group that they were opened from. */
#pragma once

#include "comm/group.h"

/* Ends such a group, which no work or trainer uses any more. Collective over it. After a
 * failure it is left to the abort. */
void zero_named_close(zero_comm *comm);

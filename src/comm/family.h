/* family.h - what the groups of a family share (divide.h). A group that was never divided
 * is a family of one. For the other files of comm/. */
#pragma once

#include "comm/group.h"

/* The group that has what the family shares. */
static inline zero_comm *zero_family_whole(zero_comm *comm)
{
    return comm->whole ? comm->whole : comm;
}

/* The group of this part; NULL if the whole has none. */
static inline zero_comm *zero_family_find(const zero_comm *whole, zero_family_part part)
{
    for (int i = 0; i < whole->n_parts; i++)
        if (whole->parts[i].member.part == (int)part) return &whole->parts[i];
    return NULL;
}

/* ZERO_ERR_INVALID for a part: a helper works for a family. */
static inline zero_status zero_family_check_whole(const zero_comm *comm, const char *helper)
{
    if (!comm->whole) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "%s for a part of a divided group: start it on the group that was "
                     "divided, where it works for all parts",
                     helper);
}

/* True if something is in flight on any of the family's groups. */
static inline bool zero_family_is_active(const zero_comm *whole)
{
    bool is_active = whole->active || whole->requests || whole->undecided;
    for (int i = 0; i < whole->n_parts && !is_active; i++)
        is_active = whole->parts[i].active != NULL;
    for (const zero_comm *g = whole->named; g && !is_active; g = g->next_named)
        is_active = g->active || g->requests || g->undecided;
    return is_active;
}

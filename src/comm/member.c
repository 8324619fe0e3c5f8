#include "comm/member.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"

#define LISTED 4 /* ranks of a ZeRO group that a text lists */

zero_member zero_member_of(zero_family_part part, int tp, int size, int rank)
{
    if (part == ZERO_WHOLE) return (zero_member){.part = ZERO_WHOLE};
    return (zero_member){.part = part,
                         .tp = tp,
                         .size = size,
                         .index = part == ZERO_TP_GROUP ? rank / tp : rank % tp};
}

int zero_member_size(const zero_member *member)
{
    return member->part == ZERO_TP_GROUP ? member->tp : member->size / member->tp;
}

int zero_member_rank(const zero_member *member, int rank)
{
    switch ((zero_family_part)member->part) {
    case ZERO_WHOLE: break;
    case ZERO_TP_GROUP: return member->index * member->tp + rank;
    case ZERO_DATA_GROUP: return rank * member->tp + member->index;
    }
    return rank;
}

zero_status zero_member_layout(const zero_member *member, const zero_layout *whole,
                               zero_layout *out)
{
    int n = member->part == ZERO_WHOLE ? whole->size : zero_member_size(member);
    int *ids = malloc((size_t)n * sizeof *ids);
    if (!ids) return zero_fail(ZERO_ERR_NOMEM, "no memory for %d ranks", n);
    for (int r = 0; r < n; r++) ids[r] = whole->node_of[zero_member_rank(member, r)];
    zero_status st = zero_layout_init(out, n, ids);
    free(ids);
    return st;
}

int zero_member_find_spread(const zero_layout *whole, int tp)
{
    for (int r = 0; r < whole->size; r++)
        if (whole->node_of[r] != whole->node_of[r / tp * tp]) return r / tp;
    return -1;
}

static void name_ranks(const zero_member *member, char text[ZERO_MEMBER_TEXT])
{
    int n = zero_member_size(member), used = 0;
    int first = zero_member_rank(member, 0), last = zero_member_rank(member, n - 1);
    const size_t room = ZERO_MEMBER_TEXT;
    if (n == 1) {
        snprintf(text, room, " %d", first);
    } else if (member->part == ZERO_TP_GROUP) {
        snprintf(text, room, "s %d-%d", first, last);
    } else if (n > LISTED) {
        snprintf(text, room, "s %d,%d,...,%d", first, zero_member_rank(member, 1), last);
    } else {
        for (int r = 0; r < n; r++)
            used += snprintf(text + used, room - (size_t)used, r == 0 ? "s %d" : ",%d",
                             zero_member_rank(member, r));
    }
}

void zero_member_name(const zero_member *member, char text[ZERO_MEMBER_TEXT])
{
    const char *kind = member->part == ZERO_TP_GROUP ? "TP" : "ZeRO";
    char ranks[ZERO_MEMBER_TEXT];
    text[0] = '\0';
    if (member->part == ZERO_WHOLE) return;
    if (member->index < 0) {
        snprintf(text, ZERO_MEMBER_TEXT, " in their %s groups", kind);
        return;
    }
    name_ranks(member, ranks);
    snprintf(text, ZERO_MEMBER_TEXT, " in the %s group of rank%.60s", kind, ranks);
}

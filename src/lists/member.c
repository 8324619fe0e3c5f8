#include "lists/member.h"

#include "base/number.h"

#define LISTED 4 /* ranks, other than neighbours, that a text names one by one */

bool zero_can_shard(int n, int64_t R)
{
    return R >= 1 && n % R == 0 && (R == n || zero_is_power_of_two(R));
}

void zero_list_shards(int n, char text[ZERO_SHARD_TEXT])
{
    int used = 0;
    for (int64_t R = 1; R < n && zero_can_shard(n, R); R *= 2)
        used += snprintf(text + used, ZERO_SHARD_TEXT - (size_t)used, "%d, ", (int)R);
    snprintf(text + used, ZERO_SHARD_TEXT - (size_t)used, "%d", n);
}

int zero_division_data(const zero_division *divided)
{
    return divided->size / divided->tp / (int)zero_max(divided->pp, 1);
}

bool zero_division_has(const zero_division *divided, zero_family_part part)
{
    switch (part) {
    case ZERO_WHOLE: break;
    case ZERO_TP_GROUP: return divided->tp > 1;
    case ZERO_PIPE_GROUP: return divided->pp > 1;
    case ZERO_DATA_GROUP: return divided->tp > 1 || divided->pp > 1;
    case ZERO_SHARD_GROUP:
    case ZERO_REPLICA_GROUP: return divided->shard < zero_division_data(divided);
    }
    return true;
}

/* A block of stride * size ranks holds `stride` groups; ranks a stride apart are in one
 * group. */
zero_member zero_member_beside(const zero_member *member, int rank)
{
    zero_member its = *member;
    if (its.part == ZERO_WHOLE) return its;
    int block = its.stride * its.size;
    its.first = rank / block * block + rank % its.stride;
    return its;
}

static zero_member find(zero_family_part part, int stride, int size, int rank)
{
    return zero_member_beside(
        &(zero_member){.part = (int32_t)part, .stride = stride, .size = size}, rank);
}

zero_member zero_member_of(zero_family_part part, const zero_division *divided, int rank)
{
    int tp = divided->tp, shard = divided->shard, n = zero_division_data(divided);
    switch (part) {
    case ZERO_WHOLE: break;
    case ZERO_TP_GROUP: return find(part, 1, tp, rank);
    case ZERO_DATA_GROUP: return find(part, tp, n, rank);
    case ZERO_SHARD_GROUP: return find(part, tp, shard, rank);
    case ZERO_REPLICA_GROUP: return find(part, shard * tp, n / shard, rank);
    case ZERO_PIPE_GROUP: return find(part, n * tp, divided->size / (n * tp), rank);
    }
    return (zero_member){.part = ZERO_WHOLE};
}

int zero_member_rank(const zero_member *member, int rank)
{
    return member->part == ZERO_WHOLE ? rank : member->first + rank * member->stride;
}

zero_status zero_member_layout(const zero_member *member, const zero_layout *whole,
                               zero_layout *out)
{
    int n = member->part == ZERO_WHOLE ? whole->size : member->size;
    int *ids;
    ZERO_TRY(zero_new(&ids, n, "ranks of a group"));
    for (int r = 0; r < n; r++) ids[r] = whole->node_of[zero_member_rank(member, r)];
    zero_status st = zero_layout_init(out, n, ids);
    free(ids);
    return st;
}

void zero_member_name(const zero_member *member, char text[ZERO_MEMBER_TEXT])
{
    static const char *const kinds[ZERO_FAMILY_PARTS] = {[ZERO_TP_GROUP] = "TP",
                                                         [ZERO_DATA_GROUP] = "ZeRO",
                                                         [ZERO_SHARD_GROUP] = "shard",
                                                         [ZERO_REPLICA_GROUP] = "replica",
                                                         [ZERO_PIPE_GROUP] = "pipeline"};
    const char *kind = kinds[member->part];
    char ranks[ZERO_MEMBER_TEXT];
    text[0] = '\0';
    if (member->part == ZERO_WHOLE) return;
    if (member->first < 0) {
        snprintf(text, ZERO_MEMBER_TEXT, " in their %s groups", kind);
        return;
    }
    int n = member->size, used = 0;
    int first = member->first, last = zero_member_rank(member, n - 1);
    const size_t room = ZERO_MEMBER_TEXT;
    if (n == 1) {
        snprintf(ranks, room, " %d", first);
    } else if (member->stride == 1) {
        snprintf(ranks, room, "s %d-%d", first, last);
    } else if (n > LISTED) {
        snprintf(ranks, room, "s %d,%d,...,%d", first, zero_member_rank(member, 1), last);
    } else {
        for (int r = 0; r < n; r++)
            used += snprintf(ranks + used, room - (size_t)used, r == 0 ? "s %d" : ",%d",
                             zero_member_rank(member, r));
    }
    snprintf(text, ZERO_MEMBER_TEXT, " in the %s group of rank%.60s", kind, ranks);
}

#include "comm/check.h"

#include "comm/control.h"
#include "comm/family.h"
#include "comm/mpi_error.h"
#include "comm/wait.h"

#define MAX_CLASSES 3 /* kinds of minority that an error lists */

struct zero_check {
    MPI_Comm mpi;        /* owned, from the start on */
    zero_operation *all; /* [size] */
    int *class_of;       /* [size] */
};

/* ---- comparing ---- */

/* Compares `mine` among the ranks of `comm`, which may be a part of the operation's
 * group. */
static zero_status compare(zero_comm *comm, const zero_operation *mine)
{
    struct zero_check *c = comm->check;
    MPI_Request request;
    if (!c) return ZERO_OK;
    const int bytes = (int)sizeof *mine;
    ZERO_TRY(zero_mpi_check(
        MPI_Iallgather(mine, bytes, MPI_BYTE, c->all, bytes, MPI_BYTE, c->mpi, &request),
        "MPI_Iallgather of what ranks begin"));
    ZERO_TRY(zero_wait_request(comm, ZERO_WATCH_COMPARING, mine, &request));
    for (int r = 0; r < comm->size; r++)
        if (!zero_operation_equal(&c->all[r], mine)) {
            zero_sentence report = {.used = 0};
            char text[ZERO_OPERATION_TEXT];
            zero_ranks_classes(comm->size, c->all, sizeof *c->all, sizeof *c->all,
                               c->class_of);
            int most = zero_ranks_majority(comm->size, c->class_of), listed = 0;
            int left = comm->size - zero_ranks_count(comm->size, c->class_of, most);
            for (int q = 0; q < comm->size && listed < MAX_CLASSES; q++) {
                if (c->class_of[q] != q || q == most) continue;
                zero_operation_describe(&c->all[q], text);
                zero_sentence_add_members(&report, &comm->member, comm->size, c->class_of,
                                          q);
                zero_sentence_add(&report, " began %s, ", text);
                left -= zero_ranks_count(comm->size, c->class_of, q);
                listed++;
            }
            if (left > 0)
                zero_sentence_add(&report, "%d more ranks began something else, ", left);
            zero_operation_describe(&c->all[most], text);
            zero_sentence_add(
                &report,
                "the others %s: ranks must begin the same operations in the same order",
                text);
            return zero_fail(ZERO_ERR_INVALID, "%s", report.chars);
        }
    return ZERO_OK;
}

/* True if operations of the group are compared in its parts: the whole of a family, and a
 * ZeRO group that is divided into shard groups and replica groups. */
static bool is_divided(const zero_comm *comm)
{
    if (!comm->whole) return comm->n_parts > 0;
    return comm->member.part == ZERO_DATA_GROUP &&
           zero_family_find(comm->whole, ZERO_SHARD_GROUP) != NULL;
}

/* If all TP groups agree, and all ZeRO groups, then all ranks agree; and a ZeRO group
 * agrees if its shard groups and its replica groups do. A rank that left out an operation
 * of a part, on which its neighbours wait, thus meets them here. */
zero_status zero_compare(zero_comm *comm, const zero_operation *mine)
{
    if (!is_divided(comm)) return compare(comm, mine);
    const zero_comm *whole = zero_family_whole(comm);
    for (int i = 0; i < whole->n_parts; i++) {
        zero_comm *part = &whole->parts[i];
        /* True if the ranks of the part are among those of `comm`, which is divided. */
        if (!is_divided(part) && (!comm->whole || part->member.part == ZERO_SHARD_GROUP ||
                                  part->member.part == ZERO_REPLICA_GROUP))
            ZERO_TRY(compare(part, mine));
    }
    return ZERO_OK;
}

/* ---- start and stop ---- */

/* A divided group compares in its smallest parts, for the whole family. */
static int list_groups(zero_comm *comm, zero_comm *groups[ZERO_FAMILY_PARTS])
{
    int n = 0;
    for (int i = 0; i < comm->n_parts; i++)
        if (!is_divided(&comm->parts[i])) groups[n++] = &comm->parts[i];
    if (n == 0) groups[n++] = comm;
    return n;
}

static void release(struct zero_check *c)
{
    if (!c) return;
    zero_free(c->all, c->class_of, c);
}

static zero_status make(int size, struct zero_check **c)
{
    ZERO_TRY(zero_new(c, 1, "a check of collectives"));
    ZERO_TRY(zero_new(&(*c)->all, size, "ranks of a check of collectives"));
    return zero_new(&(*c)->class_of, size, "ranks of a check of collectives");
}

zero_status zero_check_start(zero_comm *comm)
{
    zero_comm *groups[ZERO_FAMILY_PARTS];
    int n = list_groups(comm, groups);
    ZERO_TRY(zero_family_check_whole(comm, "a check of collectives"));
    for (int i = 0; i < n; i++) {
        zero_comm *group = groups[i];
        struct zero_check *c = NULL;
        if (group->size <= 1) continue; /* one rank has nothing to compare */
        ZERO_INVALID_IF(group->check, "the group checks already");
        zero_status st = zero_agree(group, make(group->size, &c));
        if (st == ZERO_OK) st = zero_mpi(MPI_Comm_dup(group->mpi, &c->mpi));
        if (st != ZERO_OK) {
            release(c);
            return st;
        }
        group->check = c;
    }
    return ZERO_OK;
}

zero_status zero_check_stop(zero_comm *comm)
{
    zero_comm *groups[ZERO_FAMILY_PARTS];
    int n = list_groups(comm, groups), checking = 0;
    for (int i = 0; i < n; i++) checking += groups[i]->check != NULL;
    if (comm->whole || checking == 0) return ZERO_OK;
    ZERO_TRY(zero_comm_finish(comm));
    for (int i = 0; i < n; i++) {
        struct zero_check *c = groups[i]->check;
        if (!c) continue;
        groups[i]->check = NULL;
        int code = MPI_Comm_free(&c->mpi);
        release(c);
        ZERO_TRY(zero_mpi_check(code, "MPI_Comm_free"));
    }
    return ZERO_OK;
}

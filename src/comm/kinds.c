#include "comm/kinds.h"

#include "base/hash.h"

zero_status zero_comm_kinds(zero_comm *comm, const char *mine, zero_kind **kinds, int *n)
{
    ZERO_FREED uint64_t *hashes = NULL;
    ZERO_FREED int *class_of = NULL;
    ZERO_FREED zero_kind *all = NULL;
    int count = 0;
    zero_status st = zero_new(&hashes, comm->size, "ranks");
    if (st == ZERO_OK) st = zero_new(&class_of, comm->size, "ranks");
    ZERO_TRY(zero_agree(comm, st));
    hashes[comm->rank] = XXH3_64bits(mine, strlen(mine));
    ZERO_TRY(zero_comm_or(comm, comm->size, hashes));
    zero_ranks_classes(comm->size, hashes, sizeof *hashes, sizeof *hashes, class_of);
    for (int r = 0; r < comm->size; r++) count += class_of[r] == r;
    ZERO_TRY(zero_agree(comm, zero_new(&all, count, "kinds of ranks")));
    /* One rank after another tells the text of its kind. */
    for (int rank = 0, k = 0; k < count; rank++) {
        if (class_of[rank] != rank) continue;
        zero_kind *kind = &all[k++];
        zero_sentence_add_ranks(&kind->ranks, comm->size, class_of, rank);
        if (rank == comm->rank) zero_print(kind->text, "%s", mine);
        ZERO_TRY(zero_comm_broadcast(comm, rank, kind->text, sizeof kind->text));
    }
    ZERO_GIVE(kinds, all);
    *n = count;
    return ZERO_OK;
}

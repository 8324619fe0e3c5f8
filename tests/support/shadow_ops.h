/* shadow_ops.h - the effect of each instruction on the shadow. Local ones act on w->rank;
 * collectives act on all ranks, beginning with rank 0, to which they return. */
#pragma once

#include "support/shadow.h"

/* Local instructions. RECOMPUTE is a forward, too. */
void shadow_load(shadow *w);
void shadow_forward(shadow *w);
void shadow_backward(shadow *w);
void shadow_join(shadow *w);
void shadow_join_wait(shadow *w);
void shadow_keep(shadow *w);
void shadow_collect(shadow *w);
void shadow_collect_wait(shadow *w);
void shadow_round(shadow *w);
void shadow_accumulate(shadow *w);
void shadow_let_go(shadow *w); /* RELEASE */
void shadow_loss(shadow *w);
void shadow_norm(shadow *w);
void shadow_overflow(shadow *w);
void shadow_check(shadow *w); /* VERIFY, COMPARE */
void shadow_update(shadow *w);
void shadow_record(shadow *w);
void shadow_fetch_grad(shadow *w);  /* FETCH_GRAD */
void shadow_store_param(shadow *w); /* STORE_PARAM */
void shadow_publish(shadow *w);     /* PUBLISH */
void shadow_delay(shadow *w);       /* DELAY */

/* Transfers of w->rank alone: shadow_file.c. */
void shadow_file_open(shadow *w); /* of w->rank: its states lie there */
void shadow_file_close(shadow *w);
void shadow_file_finish(shadow *w); /* a program ends: nothing is in flight */
void shadow_fetch(shadow *w);
void shadow_fetch_wait(shadow *w);
void shadow_update_block(shadow *w); /* UPDATE of a block in its slot */
void shadow_store(shadow *w);
void shadow_store_wait(shadow *w);
void shadow_fetch_param(shadow *w);
void shadow_fetch_param_wait(shadow *w);
void shadow_save(shadow *w);
void shadow_save_wait(shadow *w);
void shadow_restore(shadow *w);
void shadow_restore_wait(shadow *w);

/* Instructions of all ranks. */
void shadow_reduce(shadow *w);
void shadow_reduce_wait(shadow *w);
void shadow_all_reduce(shadow *w);
void shadow_all_reduce_wait(shadow *w);
void shadow_gather(shadow *w);
void shadow_gather_wait(shadow *w);

/* ---- between them ---- */

bool shadow_updates_all(const shadow *w); /* each rank, all pieces */
/* w->rank has made all updates that this program makes. */
void shadow_check_updates(shadow *w);

int64_t *shadow_index_of(const shadow *w, int rank, int microbatch);
bool *shadow_loss_of(const shadow *w, int rank, int microbatch);
void shadow_next_rank(shadow *w, int rank); /* after the last comes rank 0 */

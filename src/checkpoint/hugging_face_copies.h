/* hugging_face_copies.h - whether ranks read the same model from copies of its files.
 *
 * Nodes may have copies of their own. In stages 1 to 3 each element is read by one rank
 * alone, so a copy that is damaged would give a mixture of models. What ranks read is
 * hashed in blocks:
 *
 *     a block that ranks of one copy need    one rank of another copy reads it as well
 *     ranks of several copies                each of these ranks reads all of it, nobody
 *                                            more
 *     one copy (a node, one file)            nothing is read again
 *
 * So each block that becomes part of the model was read from two copies and is equal in
 * them, and no rank reads more than twice what it needs, but for the ends of its blocks.
 * Other readers are dealt out block by block: two copies with the same damage are found,
 * too, by those of a third. Ranks of a node that open the same file share a copy.
 * Collective over the ranks that read. */
#pragma once

#include "checkpoint/hugging_face.h"
#include "comm/comm.h"

/* To be called once the engine has read its weights. ZERO_ERR_FORMAT names the rank, its
 * file, and the elements that differ. */
zero_status zero_hugging_face_compare_copies(zero_hugging_face *file, zero_comm *world);

#define ZERO_HUGGING_FACE_TEXT 512

/* Says in words which elements are zeros where training would not leave them so; "" if
 * none. The same on all ranks. */
zero_status zero_hugging_face_tell_zeros(const zero_hugging_face *file, zero_comm *world,
                                         char text[ZERO_HUGGING_FACE_TEXT]);

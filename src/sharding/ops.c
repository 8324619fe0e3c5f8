#include "sharding/ops.h"

#define OF_MICROBATCH .has_microbatch = true
#define SHOWS(what)   .shows = ZERO_SHOWS_##what
#define FREE          .kind = ZERO_WORK_FREE
#define COPIES        .kind = ZERO_WORK_COPY
#define COMPUTES      .kind = ZERO_WORK_COMPUTE, .category = "compute"
#define AGREES        .kind = ZERO_WORK_AGREE, .category = "communication"
#define EXCHANGE(work, part, op) \
    .kind = (work), .among = ZERO_##part, .begun_by = ZERO_OP_##op, \
    .category = "communication"
#define BEGINS(part, op) EXCHANGE(ZERO_WORK_EXCHANGE, part, op), SHOWS(SENT)
#define AWAITS(part, op) EXCHANGE(ZERO_WORK_EXCHANGE_WAIT, part, op)
#define TRANSFER(work, what, op) \
    .kind = (work), .moves = ZERO_MOVES_##what, .begun_by = ZERO_OP_##op, .category = "disk"
#define READS(what, op)  TRANSFER(ZERO_WORK_TRANSFER, what, op), SHOWS(FILE)
#define WRITES(what, op) READS(what, op), .writes = true
#define ENDS(what, op)   TRANSFER(ZERO_WORK_TRANSFER_WAIT, what, op)

const zero_op_row zero_ops[ZERO_OP_KINDS] = {
#define OP(op, text, ...) [ZERO_OP_##op] = {.name = #op, .meaning = text, __VA_ARGS__},
#include "sharding/ops.def"
};

const zero_op zero_exchange_ops[ZERO_EXCHANGES] = {
    ZERO_OP_REDUCE,  ZERO_OP_ALL_REDUCE, ZERO_OP_GATHER, ZERO_OP_JOIN,
    ZERO_OP_COLLECT, ZERO_OP_SEND,       ZERO_OP_RECEIVE};

const char *zero_op_name(zero_op op)
{
    return zero_ops[op].name;
}

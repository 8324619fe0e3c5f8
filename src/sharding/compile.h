/* compile.h - what the stages share when they write a program. */
#pragma once

#include "sharding/schedule.h"

/* The buffers of one microbatch on its way forward and back. */
typedef struct {
    zero_program_kind program;
    int64_t B, T;
    int microbatch;
    int rank_stride, microbatch_stride; /* see zero_instruction */
    bool training;
    int tokens, row_loss, stream;
    int *out, *saved; /* [n_units], owned by the stage */
} zero_pass;

/* Adds the buffers of a pass: tokens and targets, and what the head needs. */
void zero_compile_open_pass(zero_schedule *s, zero_pass *pass);
/* LOAD: reads the microbatch's tokens. */
void zero_compile_load(zero_schedule *s, const zero_pass *pass);
/* LOSS: of all microbatches so far. */
void zero_compile_loss(zero_schedule *s, const zero_pass *pass);
/* FORWARD of unit u, with fresh buffers for its output and what backward reads. */
void zero_compile_forward(zero_schedule *s, zero_pass *pass, int u);
/* BACKWARD of unit u, which writes group g's gradient to grad[g]. */
void zero_compile_backward(zero_schedule *s, zero_pass *pass, int u, const int *grad);

/* NORM of group g's gradient; UPDATE of group g, all of whose state this rank holds. */
void zero_compile_norm(zero_schedule *s, int g);
void zero_compile_update(zero_schedule *s, int g);

/* REDUCE or GATHER of group g over `buffer`; counts what it moves. */
void zero_compile_collective(zero_schedule *s, zero_op op, int g, int buffer, int staging);

/* links.h - one link, which its messages share fairly. For network.c.
 *
 * The messages that a link serves at a time have equal shares of its rate. Each of them
 * ends when the link's own clock, which advances by 1/n of a second per second while n are
 * served, shows the message's mark: the clock when it came, and the seconds it takes alone.
 * So a message that comes or ends changes one clock and no other message. Source: Parekh
 * and Gallager 1993, "A generalized processor sharing approach to flow control". */
#pragma once

#include "simulation/events.h"

typedef struct {
    double mark;
    int64_t number; /* of the message: those of one mark end in this order */
    struct zero_message *message;
    int32_t hop; /* which link of the message this is */
} zero_served;

typedef struct {
    double seconds_per_byte;
    double clock, at; /* what the clock showed at time `at` */
    double busy;      /* seconds in which it served something */
    int64_t bytes;    /* that have passed */
    zero_heap served; /* by marks; owned */
    int64_t event;    /* the number of the event that looks here next; -1: none */
    double due;       /* its time */
} zero_link;

/* Brings the clock to the time `now`. */
void zero_link_advance(zero_link *link, double now);
/* Serves a message from now on. False: no memory. */
bool zero_link_add(zero_link *link, const zero_served *message);
/* Takes the next message that has ended by `now`, the time of the clock; false if no
 * message has. */
bool zero_link_take(zero_link *link, zero_served *message);
/* The time when the next message ends if none comes; n > 0. */
double zero_link_next(const zero_link *link);

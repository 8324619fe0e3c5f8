/* machine_file.h - machines as small text files of numbers, for --machine NAME|FILE.
 *
 * A file has one key per line, then its values; '#' begins a line that says nothing. Every
 * key stands exactly once, but for `peak`, once per type, of which at least one is given.
 * Numbers are as in base/quantity.h: 32G, 1e-6.
 *
 *     name, about, source, date, fit   texts; `fit` says which numbers were fitted, and to
 *                                      what
 *     devices N                        devices of a node
 *     memory BYTES                     of a device
 *     memory-bandwidth RATE            of a device, bytes per second
 *     peak TYPE RATE                   flops per second of a device
 *     efficiency SHARE TOKENS          of products, zero_machine_products()
 *     unaligned EVERY SHARE            attention products whose head size EVERY does not
 *                                      divide
 *     inside SECONDS RATE              link of a device to its node: per message, bytes per
 *                                      second
 *     between SECONDS RATE             link of a node to the others, which its devices
 *                                      share
 *     host RATE                        between a node's devices and its host, all together
 *     disk READ WRITE                  of a node, which its devices share; may be left out
 *
 * Machines of the folder machines/ are part of the program. Nothing here is collective. */
#pragma once

#include "base/embedded.h"
#include "nn/shape.h"

#define ZERO_MACHINE_TEXT 120 /* bytes of a text, at most, with its end */

typedef struct {
    double latency;   /* seconds per message */
    double bandwidth; /* bytes per second and direction */
} zero_machine_link;

typedef struct {
    char name[ZERO_MACHINE_TEXT], about[ZERO_MACHINE_TEXT], source[ZERO_MACHINE_TEXT];
    char date[ZERO_MACHINE_TEXT], fit[ZERO_MACHINE_TEXT];
    double devices;          /* whole, >= 1 */
    double memory;           /* bytes of a device */
    double memory_bandwidth; /* bytes per second of a device */
    double peak[ZERO_TYPES]; /* flops per second of a device; 0: it lacks the type */
    double share, tokens;
    double unaligned_every, unaligned_share;
    zero_machine_link inside;  /* of a device */
    zero_machine_link between; /* of a node */
    double host;               /* bytes per second of a node */
    struct {
        double read, write;
    } disk; /* bytes per second of a node; 0: not said */
} zero_machine_file;

/* Reads text[len]. ZERO_ERR_INVALID on the first mistake, with the file, the line, what was
 * expected and what was found; *machine is then untouched. `path` is only for messages. */
zero_status zero_machine_file_parse(const char *path, const char *text, size_t len,
                                    zero_machine_file *machine);

/* A machine of this program by name, or a file: its path has a '/' or ends in ".machine".
 * ZERO_ERR_INVALID lists the names; also for a file that cannot be read. */
zero_status zero_machine_file_find(const char *name_or_path, zero_machine_file *machine);

/* R: flops per second that a device reaches in the products of the shape
 * (paper/formulas/time.txt) for `tokens` positions at a time; where T ranks share a product
 * it is as large as one of a T-th of them. 0 if the machine lacks the type. */
double zero_machine_products(const zero_machine_file *machine, zero_type type,
                             const zero_shape *shape, double tokens);

/* The name of machine i of this program, from 0 on; NULL past the last one. */
extern const zero_embedded zero_machine_texts[]; /* the files of machines/ */
const char *zero_machine_name_at(int i);

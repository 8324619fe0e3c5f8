/* line_file.h - a file, a pipe or a device that gets lines, each completely or not at all.
 *
 *   - In a regular file a line that does not fit, because the disk is full, is cut off
 *     again.
 *   - A pipe must have a reader when it is opened. A reader that is slow never stops the
 *     writer:
 *     lines for which the pipe has no room are lost. A line of which the pipe took a part
 *       is
 *     continued before the next one. A reader that is gone costs lines, not the process.
 *
 * Lost lines are counted; the writer can tell them in the next line that gets through. Not
 * collective. */
#pragma once

#include "base/fail.h"

typedef struct {
    const char *path; /* borrowed */
    int fd;           /* -1: the reader of a pipe is gone; a new one may come */
    bool is_open;     /* a zeroed one is not */
    bool is_regular;
    bool is_torn;        /* a part of a line could not be cut off */
    char *rest;          /* of a line that a pipe took a part of; owned */
    size_t rest_len, at; /* of which `at` bytes are written */
    int64_t lost;        /* lines since the last one that was written */
    int error;           /* errno of the first loss; 0: none */
} zero_line_file;

/* Creates the file, or opens it without changing it. `option` names it in errors, as
 * --metrics. ZERO_ERR_INVALID if it cannot be opened for writing, or is a pipe that nobody
 * reads. */
zero_status zero_line_file_open(zero_line_file *file, const char *option, const char *path);
/* Before the first line: a regular file is emptied or, to `append`, a half line at its end
 * gets an end. */
void zero_line_file_begin(zero_line_file *file, bool append);
/* Writes text[len], which ends in a new line, and which this takes over (free); NULL: there
 * was no memory for it. Waits for a pipe's reader `patience` seconds at most. */
void zero_line_file_write(zero_line_file *file, char *text, size_t len, double patience);
void zero_line_file_close(zero_line_file *file); /* accepts a zeroed one */

/* small_run.h - the metrics of a small run of two ranks, with every key that a report reads. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* clang-format off */
#define SMALL_RUN \
    "{\"run\": {\"version\": \"0.1.0\", \"commit\": \"abc\", \"started\": \"2026-11-23T16:28:05Z\"," \
    " \"command\": \"zero train\", \"resumed_step\": 0, \"stage\": 3, \"dtype\": \"bf16\"," \
    " \"collectives\": \"shm\", \"ranks\": 2, \"tp\": {\"ranks\": 1, \"slices\": 1}," \
    " \"nodes\": {\"count\": 1, \"fake\": false}, \"model\": {\"name\": \"tiny\", \"parameters\": 300}," \
    " \"options\": {\"steps\": 4}, \"config\": {\"steps\": 4, \"stage\": 3, \"metrics\": \"a.jsonl\"}," \
    " \"schedule\": {\"classes\": [\"parameters\", \"activations\"], \"length\": 5, \"peak\": 3," \
    " \"left_out\": {\"after\": 1, \"count\": 3}, \"instructions\": [" \
    "{\"op\": \"GATHER\", \"name\": \"GATHER head\", \"bytes\": 512, \"live\": [10, 0]}, " \
    "{\"op\": \"LOSS\", \"name\": \"LOSS\", \"live\": [10, 1]}], \"peak_instruction\": " \
    "{\"op\": \"BACKWARD\", \"name\": \"BACKWARD head\", \"live\": [10, 90]}}}}\n"

#define SMALL_STEP(n, loss, more) \
    "{\"step\": " #n ", \"loss\": " #loss ", \"lr\": 0.001, \"grad_norm\": 2.5," \
    " \"loss_scale\": 1.0, \"tokens\": 64, \"step_seconds\": 0.5, \"exposed_seconds\": 0.125," \
    " \"tokens_per_second\": 128.0, \"elapsed\": 1.5" more "}\n"

#define SMALL_STEPS \
    SMALL_STEP(1, 5.5, "") \
    SMALL_STEP(2, null, ", \"skipped\": true") \
    SMALL_STEP(3, 4.5, ", \"val_loss\": 4.75") \
    SMALL_STEP(4, 4.25, "")

#define SMALL_ENTRY(name, more) \
    "\"" name "\": {\"planned_bytes_sent\": 100, \"planned_bytes_received\": 101," \
    " \"planned_messages_sent\": 3, \"bytes_sent\": 100, \"bytes_received\": 101," \
    " \"messages_sent\": 3, \"inside_nodes\": {\"bytes_sent\": 60}," \
    " \"across_nodes\": {\"bytes_sent\": 40}, \"seconds\": 2.0, \"exposed_seconds\": 0.5" more "}"

#define SMALL_ROW \
    "{\"count\": 4, \"seconds\": 1.0, \"least_seconds\": 0.75, \"most_seconds\": 1.25," \
    " \"exchange_seconds\": 0.25"

#define SMALL_SPENT(name, a, b, average) \
    "\"" name "\": {\"least\": " #a ", \"mean\": " #average ", \"most\": " #b \
    ", \"ranks\": [" #a ", " #b "]}"

#define SMALL_FINAL \
    "{\"final\": true, \"digest\": \"00112233445566778899aabbccddeeff\", \"ranks\": 2," \
    " \"memory\": {\"planned_bytes\": {\"parameters\": 10, \"activations\": 90}," \
    " \"measured_bytes\": {\"parameters\": 10, \"activations\": 91}," \
    " \"planned_peak_bytes\": 100, \"measured_peak_bytes\": 101," \
    " \"host_planned_bytes\": {\"data\": 5}, \"host_measured_bytes\": {\"data\": 6}," \
    " \"host_planned_peak_bytes\": 5, \"host_measured_peak_bytes\": 6}," \
    " \"file\": {\"planned\": {\"optimizer states\": {\"bytes_read\": 11, \"bytes_written\": 12}}," \
    " \"measured\": {\"optimizer states\": {\"bytes_read\": 21, \"bytes_written\": 22}}}," \
    " \"communication\": {\"collectives\": \"shm\", " \
    SMALL_ENTRY("reduce", "") ", " SMALL_ENTRY("gather", "") ", " \
    SMALL_ENTRY("control", ", \"programs_bytes_sent\": 7, \"programs_bytes_received\": 8," \
                           " \"programs_messages_sent\": 9") "}," \
    " \"profile\": {\"FORWARD\": " SMALL_ROW ", \"units\": {\"block\": " SMALL_ROW "}}}," \
    " \"REDUCE_WAIT\": " SMALL_ROW "}}," \
    " \"peers\": {\"node_of\": [0, 0], \"planned\": [[0, 200], [200, 0]]," \
    " \"sent\": [[0, 200], [201, 0]]}, \"rank_seconds\": {" \
    SMALL_SPENT("step", 2.0, 2.0, 2.0) ", " \
    SMALL_SPENT("compute", 1.0, 1.5, 1.25) ", " \
    SMALL_SPENT("exchange", 0.0, 0.0, 0.0) ", " \
    SMALL_SPENT("exposed", 0.25, 0.75, 0.5) ", " \
    SMALL_SPENT("waited", 0.0, 0.0, 0.0) ", " \
    SMALL_SPENT("transfers", 0.0, 0.0, 0.0) ", " \
    SMALL_SPENT("in_flight", 4.0, 4.0, 4.0) ", " \
    SMALL_SPENT("awaited", 1.0, 1.0, 1.0) "}}\n"

#define SMALL_FILE SMALL_RUN SMALL_STEPS SMALL_FINAL
/* clang-format on */

/* The file with `to` in place of the first `from`, which it has. Free it. */
static inline char *small_file_with(const char *file, const char *from, const char *to)
{
    const char *at = strstr(file, from);
    assert_non_null(at);
    char *text = malloc(strlen(file) + strlen(to) + 1);
    assert_non_null(text);
    sprintf(text, "%.*s%s%s", (int)(at - file), file, to, at + strlen(from));
    return text;
}

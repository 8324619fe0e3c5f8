/* plan_device.h - a plan with a device: memory there and on the host, and what a step copies. */
#pragma once

#include <stdio.h>

#include "report/plan_report.h"

/* Classes, the peak of the device and its place, and what a rank needs of both. `context`: bytes that
 * the device's library takes there. */
void zero_plan_show_both(const zero_schedule *s, const zero_plan_ledger *l, size_t context,
                         FILE *out);

/* Whether the device has room, if --device-memory was given; nothing without a device. */
void zero_plan_show_device_limit(const zero_plan_report *r, const zero_plan_stage *stage,
                                 FILE *out);

/* Bytes to the device and from it per step; nothing without one. */
void zero_plan_show_copies(const zero_plan_stage *stage, FILE *out);

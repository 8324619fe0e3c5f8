#include "bench_report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "base/topology.h"
#include "comm/launch.h"

static zero_status no_memory(void)
{
    return zero_fail(ZERO_ERR_NOMEM, "no memory for the report");
}

static void today(char *text, size_t size)
{
    time_t now = time(NULL);
    struct tm day;
    gmtime_r(&now, &day);
    strftime(text, size, "%Y-%m-%d", &day);
}

static zero_status cannot_write(const bench_report *report, int error)
{
    return zero_fail(ZERO_ERR_IO, "--json %s: cannot be written: %s", report->path,
                     strerror(error));
}

/* Opened first: a mistake shows before the minutes of measuring, not after them. */
static zero_status open_file(bench_report *report)
{
    if (!report->path) return ZERO_OK;
    report->file = fopen(report->path, "w");
    return report->file ? ZERO_OK : cannot_write(report, errno);
}

zero_status bench_report_open(bench_report *report, const bench_clock *clock,
                              const bench_options *options, const char *why_rounds)
{
    char date[16], library[128];
    zero_comm *comm = clock->comm;
    int n_nodes = comm->layout.n_nodes;
    zero_topology machine;
    ZERO_TRY(zero_topology_read(&machine));
    today(date, sizeof date);
    zero_launch_library(library, sizeof library);
    printf("%s: ranks %d, nodes %d%s; %s, %d cores; %s\n", date, comm->size, n_nodes,
           options->fake_nodes > 0 ? " (pretended)" : "", machine.cpu,
           machine.allowed_cores, library);
    printf("medians of %d rounds; %s\n", clock->rounds, why_rounds);

    *report = (bench_report){.path = comm->rank == 0 ? options->json : NULL};
    ZERO_TRY(zero_agree(comm, open_file(report)));
    report->root = json_pack(
        "{s:s, s:i, s:i, s:b, s:s, s:i, s:s, s:s, s:o, s:[]}", "date", date, "ranks",
        comm->size, "nodes", n_nodes, "pretended", options->fake_nodes > 0, "cpu",
        machine.cpu, "cores", machine.allowed_cores, "mpi", library, "rounds", why_rounds,
        "wire_bytes_per_second",
        options->wire > 0.0 ? json_real(options->wire) : json_null(), "rows");
    return report->root ? ZERO_OK : no_memory();
}

zero_status bench_report_add(bench_report *report, json_t *row)
{
    if (!row || json_array_append_new(json_object_get(report->root, "rows"), row) != 0)
        return no_memory();
    return ZERO_OK;
}

json_t *bench_number(double x)
{
    json_t *number = json_real(x);
    return number ? number : json_null();
}

void bench_print_number(const char *format, int width, double x)
{
    if (isfinite(x))
        printf(format, width, x);
    else
        printf("%*s", width, "-");
}

zero_status bench_report_close(bench_report *report)
{
    const size_t flags = JSON_INDENT(1) | JSON_REAL_PRECISION(6);
    bool written = true;
    errno = 0;
    if (report->file) {
        written = json_dumpf(report->root, report->file, flags) == 0;
        written = fclose(report->file) == 0 && written;
    }
    int error = errno;
    json_decref(report->root);
    return written ? ZERO_OK : cannot_write(report, error);
}

const char *bench_mark(const bench_series *series)
{
    return series->kept < 3 ? "*" : "";
}

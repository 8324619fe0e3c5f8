#include "trace/kineto.h"

#include "io/whole_file.h"

enum { COMPUTE_STREAM = 7, FILE_STREAM = 8, FLIGHT_STREAM = 20 };

typedef struct {
    json_t *events;
    int n; /* kernels so far, which is what ties one to its launch */
} list;

static double microseconds(int64_t nanoseconds)
{
    return (double)nanoseconds / 1e3;
}

static void put(list *of, const char *kind, json_t *name, int stream, int64_t begin,
                int64_t end, json_t *args)
{
    zero_put_item(of->events, "{s:s, s:s, s:o, s:i, s:i, s:f, s:f, s:o}", "ph", "X", "cat",
                  kind, "name", name, "pid", stream > 0 ? 0 : 1, "tid", stream, "ts",
                  microseconds(begin), "dur", microseconds(end - begin), "args", args);
}

static void put_kernel(list *of, const char *before, const zero_traced_span *s, int stream)
{
    const int tie = ++of->n;
    put(of, "cuda_runtime", json_string("cudaLaunchKernel"), 0, s->begin, s->begin,
        json_pack("{s:i, s:i}", "correlation", tie, "External id", tie));
    put(of, "kernel", json_sprintf("%s%s", before, s->name), stream, s->begin, s->end,
        json_pack("{s:i, s:i, s:i}", "stream", stream, "correlation", tie, "device", 0));
}

static json_t *rank_facts(const zero_traced *trace, const zero_traced_rank *r)
{
    list of = {.events = json_array()};
    for (int64_t i = 0; i < r->n_spans; i++)
        if (r->spans[i].kind == ZERO_TRACED_COMPUTE)
            put_kernel(&of, "", &r->spans[i], COMPUTE_STREAM);
        else if (r->spans[i].kind == ZERO_TRACED_DISK)
            put_kernel(&of, "Memcpy ", &r->spans[i], FILE_STREAM);
    for (int64_t i = 0; i < r->n_flights; i++)
        put_kernel(&of, "ncclKernel ", &r->flights[i], FLIGHT_STREAM + r->flights[i].row);
    /* From its first span to its last one. */
    for (int64_t i = 0, first = 0; i < r->n_spans; i++) {
        const zero_traced_span *s = &r->spans[i];
        if (i + 1 < r->n_spans && s[1].step == s->step) continue;
        put(&of, "user_annotation", json_sprintf("ProfilerStep#%" PRId64, s->step), 0,
            r->spans[first].begin, s->end, json_object());
        first = i + 1;
    }
    return json_pack("{s:i, s:{s:s, s:i, s:i}, s:[], s:o}", "schemaVersion", 1,
                     "distributedInfo", "backend", "mpi", "rank", r->rank, "world_size",
                     trace->world, "deviceProperties", "traceEvents", of.events);
}

zero_status zero_kineto_write(const zero_traced *trace, const char *directory)
{
    zero_storage_dir dir = {0};
    ZERO_TRY(zero_storage_open_or_make(directory, &dir));
    zero_storage_close(&dir);
    for (int64_t k = 0; k < trace->n_ranks; k++) {
        const zero_traced_rank *r = &trace->ranks[k];
        json_auto_t *facts = rank_facts(trace, r);
        /* Its reader looks for `"rank": R,` with this blank. */
        ZERO_FREED char *text = facts ? json_dumps(facts, JSON_REAL_PRECISION(15)) : NULL;
        char path[ZERO_STORAGE_FILE_PATH];
        ZERO_TRY(zero_allocated(text, "no memory for the trace of rank %d", r->rank));
        zero_print(path, "%.1023s/rank-%d.json", directory, r->rank);
        ZERO_TRY(zero_whole_file_put(path, text, strlen(text)));
    }
    return ZERO_OK;
}

/* All ranks beside each other in the last line of the metrics. */
#include "train/metrics.h"
#include "train/metrics_parts.h"

static json_t *row(const int64_t *cells, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, json_integer(cells[i]));
    return list;
}

static json_t *matrix(const int64_t *cells, int n)
{
    json_t *rows = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(rows, row(cells + (int64_t)i * n, n));
    return rows;
}

static json_t *nodes(const zero_layout *layout)
{
    json_t *list = json_array();
    for (int r = 0; r < layout->size; r++)
        json_array_append_new(list, json_integer(layout->node_of[r]));
    return list;
}

json_t *zero_metrics_peers(const zero_rank_bytes *bytes, const zero_layout *layout)
{
    return json_pack("{s:o, s:o, s:o}", "node_of", nodes(layout), "planned",
                     matrix(bytes->planned, bytes->n), "sent",
                     matrix(bytes->sent, bytes->n));
}

static json_t *of_ranks(const zero_rank_seconds *s, zero_rank_time time)
{
    json_t *list = json_array();
    for (int r = 0; r < s->n; r++)
        json_array_append_new(
            list, zero_metrics_real(s->of_rank[(int64_t)r * ZERO_RANK_TIMES + time]));
    return list;
}

json_t *zero_metrics_rank_seconds(const zero_rank_seconds *s)
{
    json_t *object = json_object();
    for (int t = 0; t < ZERO_RANK_TIMES; t++) {
        json_t *one =
            json_pack("{s:o, s:o, s:o}", "least", zero_metrics_real(s->least[t]), "mean",
                      zero_metrics_real(s->mean[t]), "most", zero_metrics_real(s->most[t]));
        if (s->n <= ZERO_METRICS_RANKS)
            json_object_set_new(one, "ranks", of_ranks(s, (zero_rank_time)t));
        json_object_set_new(object, zero_rank_time_name((zero_rank_time)t), one);
    }
    return object;
}

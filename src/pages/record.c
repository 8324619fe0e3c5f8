#include "pages/record.h"

#include <stdlib.h>

const char *zero_record_spent_name(zero_record_spent spent)
{
    static const char *const names[ZERO_SPENT] = {"step",      "compute", "exchange",
                                                  "exposed",   "waited",  "transfers",
                                                  "in_flight", "awaited"};
    return names[spent];
}

void zero_record_destroy(zero_record *record)
{
    free(record->steps);
    free(record->classes);
    free(record->host);
    free(record->moved);
    free(record->traffic);
    free(record->profile);
    free(record->program);
    for (int i = 0; i < ZERO_SPENT; i++) free(record->rank_seconds[i].ranks);
    free(record->planned_peer);
    free(record->peer);
    free(record->node_of);
    zero_metrics_file_destroy(&record->file);
    *record = (zero_record){0};
}

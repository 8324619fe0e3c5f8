#include "report/plan_columns.h"

#include "report/text.h"

void zero_plan_show_columns(const zero_schedule *s, const zero_plan_ledger *l,
                            const zero_plan_columns *columns, FILE *out)
{
    char text[ZERO_PLAN_TEXT];
    fprintf(out, "\n%-22s %31s %18s %18s\n", "memory, bytes", columns->own_peak,
            columns->at_peak, columns->third);
    for (int c = 0; c < ZERO_CLASSES; c++) {
        if (s->class_peak[c] == 0 && columns->bytes[c] == 0) continue;
        zero_text_bytes((double)s->class_peak[c], text);
        fprintf(out, "  %-20s %12s %18zu %18zu %18zu\n", zero_class_name((zero_class)c),
                text, s->class_peak[c], l->at_peak[c], columns->bytes[c]);
    }
    fprintf(out, "  %-20s %12s %18s %18zu %18zu\n", "all", "", "", s->peak_bytes,
            columns->sum);
}

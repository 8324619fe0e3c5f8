#include "comm/fields.h"

zero_status zero_compare_fields(zero_comm *comm, const char *what, int n,
                                const zero_field *fields, const void *mine)
{
    zero_status verdict = ZERO_OK;
    for (const zero_field *field = fields; field < fields + n; field++) {
        char here[ZERO_FIELD_TEXT_BYTES] = "", first[ZERO_FIELD_TEXT_BYTES];
        zero_field_write(field, mine, here);
        memcpy(first, here, sizeof first);
        ZERO_TRY(zero_comm_broadcast(comm, 0, first, sizeof first));
        if (!zero_same_text(here, first) && verdict == ZERO_OK)
            verdict = zero_fail(
                ZERO_ERR_INVALID,
                "%s's %s is %s here and %s on rank 0: expected the same on all ranks", what,
                field->name, here, first);
    }
    return zero_agree(comm, verdict);
}

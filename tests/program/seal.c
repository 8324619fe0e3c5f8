/* seal.c - gives a manifest that was changed the checksum of its bytes: seal manifest.json
 *
 * Forgers can compute checksums, too; test scripts play them. */
#include <stdio.h>
#include <string.h>

#include "checkpoint/manifest.h"

#define TAIL " \"checksum\": \""

/* Without the last line of a manifest, if there is one. */
static size_t body_of(const zero_bytes *text)
{
    const size_t tail = ZERO_MANIFEST_TAIL - 1, begin = sizeof TAIL - 1;
    if (text->len < tail || memcmp(text->bytes + text->len - tail, TAIL, begin) != 0)
        return text->len;
    return text->len - tail;
}

int main(int argc, char **argv)
{
    zero_bytes text = {0};
    char tail[ZERO_MANIFEST_TAIL];
    if (argc != 2 || zero_bytes_read(&text, argv[1]) != ZERO_OK) return 1;
    size_t body = body_of(&text);
    zero_manifest_tail(text.bytes, body, tail);
    FILE *out = fopen(argv[1], "wb");
    if (!out) return 1;
    fwrite(text.bytes, 1, body, out);
    fputs(tail, out);
    zero_bytes_destroy(&text);
    return fclose(out) != 0;
}

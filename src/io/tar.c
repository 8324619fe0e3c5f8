#include "io/tar.h"

#define BLOCK 512
#define LIMIT ((size_t)8 << 30) /* bytes of a file: eleven octal digits */

/* A file begins with one, and is filled up with zeros to whole blocks. Numbers are octal. */
typedef union {
    struct {
        char name[100], mode[8], owner[8], group[8], size[12], time[12], sum[8], kind,
            link[100];
        char magic[6], version[2];
    } of;
    unsigned char bytes[BLOCK];
} header;

zero_status zero_tar_add(zero_bytes *tar, const char *name, const void *data, size_t len)
{
    static const unsigned char zeros[BLOCK];
    header h = {.of = {.mode = "0000644",
                       .owner = "0000000",
                       .group = "0000000",
                       .time = "00000000000",
                       .sum = {' ', ' ', ' ', ' ', ' ', ' ', ' ', ' '},
                       .kind = '0',
                       .magic = "ustar",
                       .version = {'0', '0'}}};
    unsigned sum = 0;
    ZERO_INVALID_IF(len >= LIMIT, "%s has %zu bytes: a tar file takes less than %zu", name,
                    len, LIMIT);
    zero_print(h.of.name, "%s", name);
    zero_print(h.of.size, "%011zo", len);
    for (int i = 0; i < BLOCK; i++) sum += h.bytes[i];
    zero_print(h.of.sum, "%06o", sum);
    ZERO_TRY(zero_bytes_append(tar, &h, sizeof h));
    ZERO_TRY(zero_bytes_append(tar, data, len));
    return zero_bytes_append(tar, zeros, (BLOCK - len % BLOCK) % BLOCK);
}

zero_status zero_tar_end(zero_bytes *tar)
{
    static const unsigned char zeros[2 * BLOCK];
    return zero_bytes_append(tar, zeros, sizeof zeros);
}

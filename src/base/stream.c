#include "base/stream.h"

#include <string.h>

#include "base/vector.h"

#if defined(__SSE2__)
#include <immintrin.h>

void zero_stream_fence(void)
{
    _mm_sfence();
}
#else
void zero_stream_fence(void)
{
}
#endif

#define LINE 64

void zero_stream_copy(void *to, const void *from, size_t bytes)
{
    size_t head = -(uintptr_t)to % LINE;
    if (head > bytes) head = bytes;
    memcpy(to, from, head);

    char *out = (char *)to + head;
    const char *in = (const char *)from + head;
    size_t body = (bytes - head) / LINE * LINE;
    zero_vector_kernels_best()->copy_lines((int64_t)(body / LINE), in, out);
    memcpy(out + body, in + body, bytes - head - body);
    zero_stream_fence();
}

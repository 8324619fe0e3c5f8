/* api.h - the frame of every public header: C linkage, also from C++, and visibility.
 *
 * libzero is compiled with hidden visibility: libzero.so exports what is declared between
 * ZERO_API_BEGIN and ZERO_API_END, and nothing else. */
#pragma once

#ifdef __cplusplus
#define ZERO_API_BEGIN \
    extern "C" { \
    _Pragma("GCC visibility push(default)")
#define ZERO_API_END \
    _Pragma("GCC visibility pop") \
    }
#else
#define ZERO_API_BEGIN _Pragma("GCC visibility push(default)")
#define ZERO_API_END   _Pragma("GCC visibility pop")
#endif

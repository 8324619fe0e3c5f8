/* plugin_wrong.c - libraries that the program must refuse, one by definition: of another version,
 * with another table, without the symbol, and with a function that nobody has. */
#include "math/plugin.h"

#ifdef WRONG_VERSION
#define VERSION (ZERO_PLUGIN_VERSION + 1)
#else
#define VERSION ZERO_PLUGIN_VERSION
#endif

#ifdef WRONG_SYMBOL
#define zero_plugin_table zero_plugin_other
#endif

#ifdef WRONG_LIBRARY
void zero_function_that_nobody_has(zero_plugin_fail fail);
#define HEAR zero_function_that_nobody_has
#else
static void hear(zero_plugin_fail fail)
{
    (void)fail;
}
#define HEAR hear
#endif

#ifdef WRONG_TABLE
#define BYTES (sizeof(zero_backend) - sizeof(void *))
#else
#define BYTES sizeof(zero_backend)
#endif

extern const zero_plugin zero_plugin_table;
const zero_plugin zero_plugin_table = {
    .version = VERSION, .backend_bytes = BYTES, .hear = HEAR};

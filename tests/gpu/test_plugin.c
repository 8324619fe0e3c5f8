/* Plugins are found by name and refused with a reason. PLACE and RIGHT are folders of the build. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "math/device.h"

static const char *refused(const char *folders, zero_status expected)
{
    const zero_plugin *plugin = NULL;
    if (folders)
        setenv("ZERO_PLUGINS", folders, 1);
    else
        unsetenv("ZERO_PLUGINS");
    assert_int_equal(zero_plugin_open("cuda-emulated", &plugin), expected);
    assert_null(plugin);
    return zero_last_error();
}

static void assert_says(const char *message, const char *text)
{
    if (!strstr(message, text)) fail_msg("'%s' is not in: %s", text, message);
}

static void a_plugin_that_is_nowhere_names_the_remedy(void **state)
{
    (void)state;
    const char *const nowhere[] = {NULL, "", ":", "/nonexistent", "/nonexistent::" PLACE};
    for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++) {
        const char *message = refused(nowhere[i], ZERO_ERR_UNSUPPORTED);
        assert_says(message, "configure with -DZERO_CUDA=ON");
        assert_says(message, "ZERO_PLUGINS to the folder of libzero_cuda_emulated.so");
    }
}

static void a_wrong_plugin_is_refused_with_its_reason(void **state)
{
    (void)state;
    assert_says(refused(PLACE "wrong_version", ZERO_ERR_ENV), "is a plugin of version 4");
    assert_says(refused(PLACE "wrong_table", ZERO_ERR_ENV), "has a table of");
    assert_says(refused(PLACE "wrong_symbol", ZERO_ERR_ENV), "it has no zero_plugin_table");
    const char *message = refused(PLACE "wrong_library", ZERO_ERR_ENV);
    assert_says(message, "wrong_library/libzero_cuda_emulated.so cannot be loaded");
    assert_says(message, "zero_function_that_nobody_has");
}

static void the_first_folder_that_has_it_counts(void **state)
{
    (void)state;
    const zero_plugin *plugin = NULL, *again = NULL;
    refused(PLACE "wrong_version:" RIGHT, ZERO_ERR_ENV);
    setenv("ZERO_PLUGINS", "/nonexistent:" RIGHT ":" PLACE "wrong_version", 1);
    assert_int_equal(zero_plugin_open("cuda-emulated", &plugin), ZERO_OK);
    assert_string_equal(plugin->backend->name, "cuda-emulated");
    assert_non_null(plugin->backend->memory);
    assert_int_equal(zero_plugin_open("cuda-emulated", &again), ZERO_OK);
    assert_ptr_equal(plugin, again);
}

static void devices_are_read_from_text(void **state)
{
    (void)state;
    zero_device_choice c;
    assert_int_equal(zero_device_read("cuda", "--device", &c), ZERO_OK);
    assert_int_equal(c.n, 0);
    assert_int_equal(zero_device_read("cuda-emulated:3,0,12", "--device", &c), ZERO_OK);
    assert_int_equal(c.n, 3);
    assert_int_equal(c.numbers[0], 3);
    assert_int_equal(c.numbers[2], 12);
    const char *const wrong[] = {
        "",        "cud",     "cudax",     "cuda:",   "cuda:,",     "cuda:1,",
        "cuda:-1", "cuda:1 ", "cuda:1,01", "cuda: 1", "cuda:99999", "cpu:0"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(zero_device_read(wrong[i], "--device", &c), ZERO_ERR_INVALID);
    assert_int_equal(c.n, 3); /* set only on success */
}

/* The emulator has two devices. */
static void devices_that_a_machine_lacks_are_refused(void **state)
{
    (void)state;
    const zero_backend *backend;
    const zero_plugin *plugin;
    zero_device_choice c;
    zero_device_about about;
    int n = 0;
    setenv("ZERO_PLUGINS", RIGHT, 1);
    assert_int_equal(zero_device_find("cuda-emulated:0,2", &backend, &plugin), ZERO_OK);
    assert_int_equal(zero_device_read("cuda-emulated:0,2", "--device", &c), ZERO_OK);
    assert_int_equal(zero_device_count(plugin, &c, &n), ZERO_ERR_INVALID);
    assert_says(zero_last_error(), "no device cuda-emulated:2: this machine has 2");
    c.n = 1;
    assert_int_equal(zero_device_count(plugin, &c, &n), ZERO_OK);
    assert_int_equal(n, 2);
    assert_int_equal(plugin->describe(2, &about), ZERO_ERR_INVALID);
    assert_int_equal(plugin->describe(1, &about), ZERO_OK);
    assert_int_equal(about.capability, 80);
    assert_true(about.bytes >= about.bytes_free && about.bytes_free > about.bytes_own);
    assert_true(strlen(about.bus) > 0 && strlen(about.name) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plugin_that_is_nowhere_names_the_remedy),
        cmocka_unit_test(a_wrong_plugin_is_refused_with_its_reason),
        cmocka_unit_test(the_first_folder_that_has_it_counts),
        cmocka_unit_test(devices_are_read_from_text),
        cmocka_unit_test(devices_that_a_machine_lacks_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

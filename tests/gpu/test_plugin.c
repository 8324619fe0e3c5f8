/* Plugins are found by name and refused with a reason. PLACE and RIGHT are folders of the build. */

#include "support/test.h"

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

TEST(a_plugin_that_is_nowhere_names_the_remedy)
{
    const char *const nowhere[] = {NULL, "", ":", "/nonexistent", "/nonexistent::" PLACE};
    for (size_t i = 0; i < COUNT(nowhere); i++) {
        const char *message = refused(nowhere[i], ZERO_ERR_UNSUPPORTED);
        assert_says(message, "configure with -DZERO_CUDA=ON");
        assert_says(message, "ZERO_PLUGINS to the folder of libzero_cuda_emulated.so");
    }
}

TEST(a_wrong_plugin_is_refused_with_its_reason)
{
    assert_says(refused(PLACE "wrong_version", ZERO_ERR_ENV), "is a plugin of version 4");
    assert_says(refused(PLACE "wrong_table", ZERO_ERR_ENV), "has a table of");
    assert_says(refused(PLACE "wrong_symbol", ZERO_ERR_ENV), "it has no zero_plugin_table");
    const char *message = refused(PLACE "wrong_library", ZERO_ERR_ENV);
    assert_says(message, "wrong_library/libzero_cuda_emulated.so cannot be loaded");
    assert_says(message, "zero_function_that_nobody_has");
}

TEST(the_first_folder_that_has_it_counts)
{
    const zero_plugin *plugin = NULL, *again = NULL;
    refused(PLACE "wrong_version:" RIGHT, ZERO_ERR_ENV);
    setenv("ZERO_PLUGINS", "/nonexistent:" RIGHT ":" PLACE "wrong_version", 1);
    assert_ok(zero_plugin_open("cuda-emulated", &plugin));
    assert_string_equal(plugin->backend->name, "cuda-emulated");
    assert_non_null(plugin->backend->memory);
    assert_ok(zero_plugin_open("cuda-emulated", &again));
    assert_ptr_equal(plugin, again);
}

TEST(devices_are_read_from_text)
{
    zero_device_choice c;
    assert_ok(zero_device_read("cuda", "--device", &c));
    assert_int_equal(c.n, 0);
    assert_ok(zero_device_read("cuda-emulated:3,0,12", "--device", &c));
    assert_int_equal(c.n, 3);
    assert_int_equal(c.numbers[0], 3);
    assert_int_equal(c.numbers[2], 12);
    const char *const wrong[] = {
        "",        "cud",     "cudax",     "cuda:",   "cuda:,",     "cuda:1,",
        "cuda:-1", "cuda:1 ", "cuda:1,01", "cuda: 1", "cuda:99999", "cpu:0"};
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_equal(zero_device_read(wrong[i], "--device", &c), ZERO_ERR_INVALID);
    assert_int_equal(c.n, 3); /* set only on success */
}

/* The emulator has two devices. */
TEST(devices_that_a_machine_lacks_are_refused)
{
    const zero_backend *backend;
    const zero_plugin *plugin;
    zero_device_choice c;
    zero_device_about about;
    int n = 0;
    setenv("ZERO_PLUGINS", RIGHT, 1);
    assert_ok(zero_device_find("cuda-emulated:0,2", &backend, &plugin));
    assert_ok(zero_device_read("cuda-emulated:0,2", "--device", &c));
    assert_int_equal(zero_device_count(plugin, &c, &n), ZERO_ERR_INVALID);
    assert_says(zero_last_error(), "no device cuda-emulated:2: this machine has 2");
    c.n = 1;
    assert_ok(zero_device_count(plugin, &c, &n));
    assert_int_equal(n, 2);
    assert_int_equal(plugin->describe(2, &about), ZERO_ERR_INVALID);
    assert_ok(plugin->describe(1, &about));
    assert_int_equal(about.capability, 80);
    assert_true(about.bytes >= about.bytes_free && about.bytes_free > about.bytes_own);
    assert_true(strlen(about.bus) > 0 && strlen(about.name) > 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/size.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int64_t bytes;
} units[] = {
    { "TiB", INT64_C(1) << 40 },
    { "GiB", INT64_C(1) << 30 },
    { "MiB", INT64_C(1) << 20 },
    { "KiB", INT64_C(1) << 10 },
    { "TB", INT64_C(1000000000000) },
    { "GB", INT64_C(1000000000) },
    { "MB", INT64_C(1000000) },
    { "kB", INT64_C(1000) },
    { "B", 1 },
    { "", 1 },
};
#define BINARY_UNITS 4

static int refuse(const char *text, struct rp_error *err)
{
    return rp_error_set(err, RP_EINVAL, "expected a size such as 500, 64KiB or 10MiB, found '%.40s'", text);
}

int rp_size_parse(const char *text, int64_t *out_bytes, struct rp_error *err)
{
    size_t digits = strspn(text, "0123456789"), unit = 0;
    int64_t number = 0;
    if (digits == 0 || digits > 18 || (text[0] == '0' && digits > 1)) return refuse(text, err);
    for (size_t i = 0; i < digits; i++)
        number = number * 10 + (text[i] - '0');
    while (unit < sizeof units / sizeof units[0] && strcmp(units[unit].name, text + digits) != 0)
        unit++;
    if (unit == sizeof units / sizeof units[0]) return refuse(text, err);
    if (number > RP_SIZE_MAX / units[unit].bytes) return refuse(text, err);
    *out_bytes = number * units[unit].bytes;
    return 0;
}

const char *rp_size_format(int64_t bytes, char out[RP_SIZE_EXACT_TEXT])
{
    size_t unit = 0;
    while (unit < BINARY_UNITS && (bytes == 0 || bytes % units[unit].bytes != 0))
        unit++;
    bool binary = unit < BINARY_UNITS;
    snprintf(out, RP_SIZE_EXACT_TEXT, "%" PRId64 "%s", binary ? bytes / units[unit].bytes : bytes,
             binary ? units[unit].name : "B");
    return out;
}

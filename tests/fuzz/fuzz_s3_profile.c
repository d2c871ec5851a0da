/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds the reader of AWS profile files. The first byte chooses the file's kind and the profile;
 * the rest is the file. What is accepted ends where it should and was in the file; what is refused
 * leaves the output alone and names a line. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "store/s3/credentials/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_value(const char *text, size_t n, const char *value, size_t size)
{
    size_t value_n = strnlen(value, size);
    RP_ASSERT(value_n < size);
    RP_ASSERT(value_n == 0 || memmem(text, n, value, value_n) != NULL);
    RP_ASSERT(memchr(value, '\n', value_n) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const names[] = { "default", "media", "with space", "]" };
    if (n < 1) return 0;
    char *text = malloc(n > 1 ? n - 1 : 1); /* exactly as large as needed, so that a read past the end is seen */
    RP_ASSERT(text != NULL);
    memcpy(text, data + 1, n - 1);
    struct s3_profile p, untouched;
    struct rp_error err = { 0 };
    memset(&p, 0x5a, sizeof p);
    memset(&untouched, 0x5a, sizeof untouched);
    int r = rp_s3_profile_parse(text, n - 1, names[data[0] >> 1 & 3], (data[0] & 1) != 0, &p, &err);
    if (r < 0) {
        RP_ASSERT(r == RP_ECONFIG && strncmp(err.text, "line ", 5) == 0);
        RP_ASSERT(memcmp(&p, &untouched, sizeof p) == 0);
    } else {
        check_value(text, n - 1, p.access, sizeof p.access);
        check_value(text, n - 1, p.secret, sizeof p.secret);
        check_value(text, n - 1, p.token, sizeof p.token);
        RP_ASSERT(p.found || (p.access[0] == 0 && p.secret[0] == 0 && p.token[0] == 0));
        RP_ASSERT(p.found || (p.role[0] == 0 && p.others[0] == 0));
    }
    free(text);
    return 0;
}

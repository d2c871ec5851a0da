/* SPDX-License-Identifier: Apache-2.0 */
/* size.h - numbers of bytes as people write them: 500, 500B, 64KiB, 10MiB, 5GiB, 2TiB; also kB, MB,
 * GB, TB in powers of ten. Digits only before the unit: no sign, no fraction, no leading zero, no
 * space. The largest is RP_SIZE_MAX. */
#ifndef RP_BASE_TEXT_SIZE_H
#define RP_BASE_TEXT_SIZE_H

#include <stdint.h>

struct rp_error;

#define RP_SIZE_MAX        (INT64_C(1) << 60)
#define RP_SIZE_EXACT_TEXT 32

int rp_size_parse(const char *text, int64_t *out_bytes, struct rp_error *err);
/* The largest binary unit that is exact: 5GiB, 1536KiB, 1000B. */
const char *rp_size_format(int64_t bytes, char out[RP_SIZE_EXACT_TEXT]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "http/route/percent.h"

#include <string.h>

#include "base/text/hex.h"
#include "base/text/utf8.h"

bool rp_percent_decode(char *text)
{
    const int64_t n = rp_unescape(text, '%', false);
    return n >= 0 && strlen(text) == (size_t)n && rp_utf8_valid(text, (size_t)n);
}

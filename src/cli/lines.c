/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lines.h"

#include "base/error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>

/* One line without its separator; false at the end of the stream. */
static bool read_line(struct rp_lines *l, size_t *length, bool *nul)
{
    size_t n = 0;
    int c;
    *nul = false;
    while ((c = getc_unlocked(l->from)) != EOF && c != l->separator) {
        if (c == 0) *nul = true;
        if (n < RP_LINE_MAX - 1) l->text[n] = (char)c;
        n++;
    }
    l->text[n < RP_LINE_MAX ? n : RP_LINE_MAX - 1] = 0;
    *length = n;
    return n > 0 || c != EOF;
}

int rp_lines_next(struct rp_lines *l, struct rp_error *err)
{
    size_t n;
    bool nul;
    do {
        if (!read_line(l, &n, &nul)) {
            if (ferror(l->from)) return rp_error_errno(err, errno, "read the list of subjects");
            return 0;
        }
        l->number++;
    } while (n == 0);
    if (n >= RP_LINE_MAX)
        return rp_error_set(err, RP_EINVAL, "line %" PRId64 " has %zu bytes: no subject is that long", l->number, n);
    if (nul) {
        rp_error_set(err, RP_EINVAL, "line %" PRId64 " holds a NUL byte", l->number);
        return rp_error_hint(err, "-0 reads subjects that are separated by NUL bytes");
    }
    return 1;
}

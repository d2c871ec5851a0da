/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/framing.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

/* libmicrohttpd below 1.0 parses a request where it lies: separators become NULs, and nothing is
 * moved. So the parts that it hands over touch each other, but for those NULs, and what lies in
 * between came and was left out. Later versions refuse all of it themselves. */
#define LIES_AS_IT_CAME (MHD_VERSION < 0x01000000)

struct look {
    const char *at; /* where the next part must begin */
    int lengths, codings, hosts;
    bool chunked, sound;
};

/* The part begins where it must; `gap` is what separates it from the next. */
static void pass(struct look *l, const char *part, size_t n, size_t gap)
{
    l->sound = l->sound && (!LIES_AS_IT_CAME || (uintptr_t)part == (uintptr_t)l->at);
    l->at = part + n + gap;
}

static bool is_token(const char *name, size_t n)
{
    static const char others[] = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    return n > 0 && strspn(name, others) == n;
}

static bool is_text(const char *value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)value[i] < ' ' && value[i] != '\t') || value[i] == 0x7f) return false;
    return true;
}

static bool is(const char *name, size_t n, const char *known)
{
    return n == strlen(known) && strncasecmp(name, known, n) == 0;
}

static enum MHD_Result look_at_header(void *ctx, enum MHD_ValueKind kind, const char *name, size_t name_n,
                                      const char *value, size_t value_n)
{
    struct look *l = ctx;
    (void)kind;
    bool coding = is(name, name_n, "Transfer-Encoding");
    pass(l, name, name_n, 1);
    l->sound = l->sound && value != NULL && is_token(name, name_n) && is_text(value, value_n);
    if (!l->sound) return MHD_NO;
    if (LIES_AS_IT_CAME) l->at += strspn(l->at, " \t");
    pass(l, value, value_n, 2);
    l->lengths += is(name, name_n, "Content-Length");
    l->hosts += is(name, name_n, "Host");
    l->codings += coding;
    if (coding) l->chunked = is(value, value_n, "chunked");
    return l->sound ? MHD_YES : MHD_NO;
}

/* "a=1&b&c=": a separator behind each name and each value. */
static enum MHD_Result look_at_argument(void *ctx, enum MHD_ValueKind kind, const char *name, size_t name_n,
                                        const char *value, size_t value_n)
{
    struct look *l = ctx;
    (void)kind;
    pass(l, name, name_n, 1);
    if (value != NULL) pass(l, value, value_n, 1);
    return l->sound ? MHD_YES : MHD_NO;
}

/* "GET /path?a=1 HTTP/1.1": each separator is one character. */
static void look_at_request_line(const struct rp_request *q, const char *version, struct look *l)
{
    const char *method = q->inner->method, *path = q->inner->path;
    l->at = method;
    pass(l, method, strlen(method), 1);
    pass(l, path, strlen(path), 1);
    l->sound = l->sound && is_text(path, strlen(path));
    MHD_get_connection_values_n(q->connection, MHD_GET_ARGUMENT_KIND, look_at_argument, l);
    /* "/path?" and "/path?a&" have a separator and no argument behind it. A NUL in its place has
     * been seen before (rp_framing_line). */
    if (LIES_AS_IT_CAME && (uintptr_t)version == (uintptr_t)l->at + 1) l->at++;
    pass(l, version, strlen(version), 2);
}

static void look_at_end(const struct rp_request *q, struct look *l)
{
    size_t n = MHD_get_connection_info(q->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)->header_size;
    pass(l, q->inner->method + n - 2, 0, 2); /* the empty line */
}

static char cut_short;

void *rp_framing_line(void *cls, const char *address, struct MHD_Connection *connection)
{
    (void)cls, (void)connection;
    if (!LIES_AS_IT_CAME || address == NULL) return NULL;
    return strncmp(address + strlen(address) + 1, "HTTP/", 5) == 0 ? NULL : &cut_short;
}

bool rp_framing_is_cut(const void *context)
{
    return context == &cut_short;
}

int rp_framing_check(const struct rp_request *q, const char *version, struct rp_error *err)
{
    struct look l = { .sound = true };
    look_at_request_line(q, version, &l);
    if (l.sound) MHD_get_connection_values_n(q->connection, MHD_HEADER_KIND, look_at_header, &l);
    if (l.sound) look_at_end(q, &l);
    if (!l.sound) return rp_error_set(err, RP_EINVAL, "the headers can be read in more than one way");
    if (l.lengths > 1 || l.codings > 1 || l.hosts > 1)
        return rp_error_set(err, RP_EINVAL, "Content-Length, Transfer-Encoding and Host may come once");
    if (l.lengths + l.codings > 1)
        return rp_error_set(err, RP_EINVAL, "Content-Length and Transfer-Encoding exclude each other");
    if (l.codings == 0 || (l.chunked && strcmp(version, "HTTP/1.1") == 0)) return 0;
    return rp_error_set(err, RP_EINVAL, "Transfer-Encoding: chunked, in HTTP/1.1, is the only one known here");
}

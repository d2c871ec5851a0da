/* SPDX-License-Identifier: Apache-2.0 */
#include "db/statements.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static int *bucket_of(struct rp_statements *c, const struct rp_sql *sql, size_t n_rows)
{
    uint64_t h = ((uint64_t)(uintptr_t)sql ^ ((uint64_t)n_rows << 40)) * UINT64_C(0x9e3779b97f4a7c15);
    return &c->buckets[(h >> 32) % RP_STATEMENTS_BUCKETS];
}

static struct rp_statement *look_up(struct rp_statements *c, const struct rp_sql *sql, size_t n_rows)
{
    for (int i = *bucket_of(c, sql, n_rows); i != 0; i = c->slots[i - 1].next) {
        struct rp_statement *s = &c->slots[i - 1];
        if (s->sql == sql && s->n_rows == n_rows) return s;
    }
    return NULL;
}

struct rp_statement *rp_statements_find(struct rp_statements *c, const struct rp_sql *sql, size_t n_rows,
                                        const char *text)
{
    struct rp_statement *s = look_up(c, sql, n_rows);
    if (s == NULL || strcmp(s->text, text) != 0) return NULL;
    s->used = ++c->ticks;
    return s;
}

void rp_statements_drop(struct rp_statements *c, struct rp_statement *s)
{
    RP_ASSERT(s->sql != NULL);
    int index = (int)(s - c->slots) + 1, *link = bucket_of(c, s->sql, s->n_rows);
    while (*link != index)
        link = &c->slots[*link - 1].next;
    *link = s->next;
    /* The slot is empty before `release` is called: an owner that loses its connection there clears
     * everything. */
    struct rp_statement gone = *s;
    *s = (struct rp_statement){ 0 };
    c->release(c->owner, &gone);
    free(gone.text);
}

static struct rp_statement *make_room(struct rp_statements *c)
{
    struct rp_statement *oldest = &c->slots[0];
    for (size_t i = 0; i < RP_STATEMENTS_MAX; i++) {
        if (c->slots[i].sql == NULL) return &c->slots[i];
        if (c->slots[i].used < oldest->used) oldest = &c->slots[i];
    }
    rp_statements_drop(c, oldest);
    return oldest;
}

struct rp_statement *rp_statements_add(struct rp_statements *c, const struct rp_sql *sql, size_t n_rows,
                                       const char *text)
{
    struct rp_statement *stale = look_up(c, sql, n_rows);
    if (stale != NULL) rp_statements_drop(c, stale);
    char *copy = strdup(text);
    if (copy == NULL) return NULL;
    struct rp_statement *s = make_room(c);
    int *bucket = bucket_of(c, sql, n_rows);
    uint64_t tick = ++c->ticks;
    *s = (struct rp_statement){ sql, n_rows, copy, NULL, tick, tick, *bucket };
    *bucket = (int)(s - c->slots) + 1;
    return s;
}

void rp_statements_clear(struct rp_statements *c)
{
    for (size_t i = 0; i < RP_STATEMENTS_MAX; i++)
        if (c->slots[i].sql != NULL) rp_statements_drop(c, &c->slots[i]);
}

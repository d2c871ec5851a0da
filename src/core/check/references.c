/* SPDX-License-Identifier: Apache-2.0 */
/* references.c - the places of a store's list, asked one after the other, and what they know together. */
#include "core/check/references.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "core/check/reference_source.h"
#include "core/check/waits.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 80

/* One entry of the list. */
struct place {
    const struct rp_reference *reference;
    struct rp_sql_source *sql; /* NULL: a webhook */
    char name[NAME_MAX_BYTES]; /* in errors */
    char words[RP_REFERENCED_TEXT - 32];
    struct rp_whom whom;
    char whom_name[NAME_MAX_BYTES]; /* of a webhook */
};

struct rp_references {
    const char *store;
    struct place *places;
    size_t n_places;
    struct rp_sql_connection *connections;
    size_t n_connections;
    const char *allow;      /* atomic */
    struct rp_waits *waits; /* NULL: nobody is left alone */
    pthread_mutex_t lock;   /* of the connections: one question at a time */
};

static struct rp_sql_connection *connection_of(struct rp_references *refs, const struct rp_database_config *config)
{
    size_t i = 0;
    while (i < refs->n_connections && refs->connections[i].config != config)
        i++;
    if (i == refs->n_connections) refs->connections[refs->n_connections++].config = config;
    return &refs->connections[i];
}

static void name_place(struct place *p, const char *store, size_t index)
{
    const struct rp_reference *ref = p->reference;
    p->whom = (struct rp_whom){ .kind = "database", .name = ref->database };
    if (p->sql == NULL) {
        snprintf(p->name, sizeof p->name, "webhook referenced_by[%zu]", index);
        snprintf(p->words, sizeof p->words, "%s", p->name);
        snprintf(p->whom_name, sizeof p->whom_name, "%s[%zu]", store, index);
        p->whom = (struct rp_whom){ .kind = "webhook", .name = p->whom_name };
    } else if (ref->sql != NULL) {
        snprintf(p->name, sizeof p->name, "%s.sql", ref->database);
        snprintf(p->words, sizeof p->words, "sql referenced_by[%zu] in %s", index, ref->database);
    } else {
        snprintf(p->name, sizeof p->name, "%s.%s", ref->database, ref->table);
        snprintf(p->words, sizeof p->words, "%s.%s in %s", ref->table, ref->column, ref->database);
    }
}

static int add_place(struct rp_references *refs, const struct rp_config *config, const struct rp_reference *ref,
                     struct rp_error *err)
{
    struct place *p = &refs->places[refs->n_places];
    size_t index = refs->n_places++;
    int r = 0;
    p->reference = ref;
    if (ref->database != NULL) {
        const struct rp_database_config *database = rp_config_database(config, ref->database);
        RP_ASSERT(database != NULL);
        r = rp_sql_source_new(ref, connection_of(refs, database), &p->sql, err);
    }
    if (r == 0) name_place(p, refs->store, index);
    return r;
}

static void free_references(struct rp_references **refs)
{
    rp_references_free(*refs);
}

int rp_references_new(const struct rp_config *config, const struct rp_store_config *store, struct rp_references **out,
                      struct rp_error *err)
{
    size_t n = store->n_referenced_by;
    if (n == 0) {
        *out = NULL;
        return 0;
    }
    RP_CLEANUP(free_references) struct rp_references *refs = calloc(1, sizeof *refs);
    if (refs != NULL) pthread_mutex_init(&refs->lock, NULL);
    if (refs != NULL) refs->places = calloc(n, sizeof *refs->places);
    if (refs != NULL) refs->connections = calloc(n, sizeof *refs->connections);
    if (refs == NULL || refs->places == NULL || refs->connections == NULL)
        return rp_error_set(err, RP_ENOMEM, "out of memory");
    refs->store = store->name;
    refs->allow = config->outbound_allow;
    for (size_t i = 0; i < n; i++) {
        int r = add_place(refs, config, &store->referenced_by[i], err);
        if (r < 0)
            return rp_error_wrap(err, r == RP_ENOMEM ? r : RP_ECONFIG, "stores.%s.referenced_by[%zu]", store->name, i);
    }
    *out = refs;
    refs = NULL;
    return 0;
}

void rp_references_free(struct rp_references *refs)
{
    if (refs == NULL) return;
    for (size_t i = 0; i < refs->n_places; i++)
        rp_sql_source_free(refs->places[i].sql);
    for (size_t i = 0; i < refs->n_connections; i++)
        rp_sql_connection_close(&refs->connections[i]);
    free(refs->places);
    free(refs->connections);
    pthread_mutex_destroy(&refs->lock);
    free(refs);
}

/* ---- counting ---- */

void rp_counting_add(struct rp_counting *c, size_t i, int64_t rows)
{
    struct rp_referenced *found = &c->found[i];
    RP_ASSERT(rows >= 0);
    if (rows == 0 || found->rows < 0) return;
    if (found->first == NULL) found->first = c->words;
    found->rows = rows < INT64_MAX - found->rows ? found->rows + rows : INT64_MAX;
}

void rp_counting_lose(struct rp_counting *c, size_t i)
{
    if (c->found[i].rows == 0) c->found[i].rows = -1;
}

static int ask(struct rp_references *refs, struct place *p, struct rp_counting *c, struct rp_error *err)
{
    int64_t asked_ms = rp_waits_ask(refs->waits);
    c->words = p->words;
    c->silent = false;
    int r =
        p->sql != NULL ? rp_sql_source_ask(p->sql, c, err) : rp_webhook_source_ask(p->reference, refs->store, c, err);
    if (r < 0 && c->silent)
        rp_waits_failed(refs->waits, &p->whom, asked_ms, err);
    else
        rp_waits_answered(refs->waits, &p->whom);
    return r;
}

/* Whatever went wrong, the answer is "we do not know": try again later. What is to be done stands
 * in the text: of the note of a mark there is nothing else. */
static void say_unknown(const struct rp_references *refs, const struct place *p, bool others, struct rp_error *err)
{
    struct rp_error why = *err;
    rp_error_set(err, RP_EUNAVAILABLE, "references of store '%s' in %s%s: %s%s%s", refs->store,
                 others ? "one of its places, such as " : "", p->name, why.text, why.hint[0] != 0 ? "; " : "",
                 why.hint);
}

/* Of a server that would be asked about no key nothing is learned. */
static bool is_asked(const struct place *p, const struct rp_counting *c)
{
    bool any = p->sql != NULL;
    for (size_t i = 0; i < c->n && !any; i++)
        any = c->found[i].rows == 0;
    return any;
}

static bool is_any_known(const struct rp_referenced *found, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (found[i].rows >= 0) return true;
    return n == 0;
}

int rp_references_count(struct rp_references *refs, const char *const *keys, size_t n, struct rp_referenced *found,
                        struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct rp_referenced *made = calloc(n + 1, sizeof *made);
    struct rp_counting c = { .keys = keys, .found = made, .n = n, .clock = rp_waits_clock(refs->waits) };
    if (made == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    const struct place *failed = NULL; /* the first one */
    bool known = true, others = false;
    pthread_mutex_lock(&refs->lock);
    c.allow = __atomic_load_n(&refs->allow, __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < refs->n_places && known; i++) {
        struct rp_error why = { 0 };
        if (!is_asked(&refs->places[i], &c) || ask(refs, &refs->places[i], &c, &why) == 0) continue;
        others = failed != NULL;
        if (failed == NULL) *err = why;
        if (failed == NULL) failed = &refs->places[i];
        known = is_any_known(made, n);
    }
    pthread_mutex_unlock(&refs->lock);
    if (failed != NULL) say_unknown(refs, failed, others, err);
    if (!known) return err->code;
    memcpy(found, made, n * sizeof *found);
    return 0;
}

const char *rp_referenced_text(const struct rp_referenced *found, char out[RP_REFERENCED_TEXT])
{
    RP_ASSERT(found->rows > 0 && found->first != NULL);
    snprintf(out, RP_REFERENCED_TEXT, "%" PRId64 " %s (%s)", found->rows, found->rows == 1 ? "row" : "rows",
             found->first);
    return out;
}

/* ---- settings, and who is left alone ---- */

void rp_references_use(struct rp_references *refs, struct rp_waits *waits)
{
    if (refs != NULL) refs->waits = waits;
}

void rp_references_allow(struct rp_references *refs, const char *allow)
{
    if (refs != NULL) __atomic_store_n(&refs->allow, allow, __ATOMIC_RELEASE);
}

int64_t rp_references_left_alone_ms(const struct rp_references *refs, struct rp_error *why)
{
    struct rp_error of_longest = { 0 };
    int64_t longest_ms = 0;
    for (size_t i = 0; i < refs->n_places; i++) {
        struct rp_error of_place = { 0 };
        int64_t left_ms = rp_waits_left_ms(refs->waits, &refs->places[i].whom, &of_place);
        if (left_ms <= longest_ms) continue;
        longest_ms = left_ms;
        of_longest = of_place;
    }
    if (longest_ms == 0 || why == NULL) return longest_ms;
    *why = of_longest;
    rp_error_wrap(why, RP_EUNAVAILABLE, "references of store '%s'", refs->store);
    return longest_ms;
}

int rp_references_check(struct rp_references *refs, struct rp_error *err)
{
    const char *key = "reprieve-doctor-asks-whether-this-works";
    struct rp_referenced found;
    return rp_references_count(refs, &key, 1, &found, err);
}

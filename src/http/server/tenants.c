/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/tenants.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/json.h"
#include "catalog/file/file.h"
#include "catalog/writer/idempotency.h"
#include "http/server/inner.h"

#define ENTRIES 1024

struct rp_tenants {
    pthread_rwlock_t lock;
    struct {
        char name[64];
        int64_t id; /* 0: empty */
    } at[ENTRIES];
};

int rp_tenants_new(struct rp_tenants **out, struct rp_error *err)
{
    struct rp_tenants *t = calloc(1, sizeof *t);
    if (t == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for tenants");
    pthread_rwlock_init(&t->lock, NULL);
    *out = t;
    return 0;
}

void rp_tenants_free(struct rp_tenants *t)
{
    if (t == NULL) return;
    pthread_rwlock_destroy(&t->lock);
    free(t);
}

static size_t slot(const char *name)
{
    return (size_t)((uint64_t)rp_key_hash(0, name) % ENTRIES);
}

bool rp_tenants_find(struct rp_tenants *t, const char *name, int64_t *id)
{
    size_t i = slot(name);
    pthread_rwlock_rdlock(&t->lock);
    bool found = t->at[i].id != 0 && strcmp(t->at[i].name, name) == 0;
    if (found) *id = t->at[i].id;
    pthread_rwlock_unlock(&t->lock);
    return found;
}

void rp_tenants_put(struct rp_tenants *t, const char *name, int64_t id)
{
    size_t i = slot(name);
    pthread_rwlock_wrlock(&t->lock);
    (void)snprintf(t->at[i].name, sizeof t->at[i].name, "%s", name);
    t->at[i].id = id;
    pthread_rwlock_unlock(&t->lock);
}

/* ---- request.h ---- */

static const char *named(const struct rp_request *q)
{
    const char *name = rp_json_get_text(q->body, "tenant", NULL);
    return name != NULL ? name : rp_json_get_text(q->query, "tenant", NULL);
}

/* Whoever only looks does not make a tenant by a slip of the pen; the default one is always
 * there. */
static int look_up(struct rp_request *q, const char *name, struct rp_tenant *tenant, struct rp_error *err)
{
    struct rp_catalog *catalog = rp_request_catalog(q);
    bool only_looks = strcmp(q->route->method, "GET") == 0 && strcmp(name, "default") != 0;
    return only_looks ? rp_tenant_find(catalog->db, name, tenant, err) : rp_tenant_make(catalog, name, tenant, err);
}

int rp_request_tenant(struct rp_request *q, int64_t *tenant_id, struct rp_error *err)
{
    struct rp_tenant tenant;
    const char *name = named(q);
    if (q->who.tenant_id != 0) {
        if (name != NULL && strcmp(name, q->who.tenant) != 0)
            return rp_error_set(err, RP_EFORBIDDEN,
                                "this token is of another tenant"); /* whether there is such a one or not */
        *tenant_id = q->who.tenant_id;
        return 0;
    }
    if (name == NULL) name = "default";
    if (rp_tenants_find(q->server->tenants, name, tenant_id)) return 0;
    if (!q->inner->on_pool) return rp_error_set(err, RP_EBUSY, "tenant %.63s is not known here yet", name);
    int r = look_up(q, name, &tenant, err);
    if (r < 0) return r;
    rp_tenants_put(q->server->tenants, tenant.name, tenant.id);
    *tenant_id = tenant.id;
    return 0;
}

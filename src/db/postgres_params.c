/* SPDX-License-Identifier: Apache-2.0 */
#include <endian.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "db/postgres.h"

#define ARRAY_HEADER 20
#define ARRAYS_KEPT  ((size_t)1 << 20)

/* Numbers of types that PostgreSQL has built in and never changes. */
static const struct {
    char letter;
    Oid one, array;
} types[] = { { 'i', 20, 1016 }, { 's', 25, 1009 }, { 'b', 17, 1001 } };

static size_t type_of(char letter)
{
    size_t i = 0;
    while (types[i].letter != letter) {
        i++;
        RP_ASSERT(i < sizeof types / sizeof *types);
    }
    return i;
}

/* ---- the fixed ones ---- */

static int set_one(struct rp_pg_params *p, size_t i, const struct rp_value *v)
{
    p->lengths[i] = (int)sizeof p->ints[i];
    p->values[i] = NULL;
    if (v->type == RP_INT_T) {
        p->ints[i] = htobe64((uint64_t)v->i);
        p->values[i] = (const char *)&p->ints[i];
    } else if (v->type != RP_NULL_T) {
        if (v->n > INT_MAX) return RP_ETOOBIG;
        p->values[i] = v->p;
        p->lengths[i] = (int)v->n;
    }
    return 0;
}

/* ---- one array a column ---- */

static size_t value_bytes(const struct rp_value *v)
{
    return v->type == RP_NULL_T ? 0 : v->type == RP_INT_T ? sizeof v->i : v->n;
}

static size_t array_bytes(const struct rp_value *column, size_t width, size_t n)
{
    size_t sum = ARRAY_HEADER + n * sizeof(uint32_t);
    for (size_t i = 0; i < n; i++)
        sum += value_bytes(&column[i * width]);
    return sum;
}

static char *put_number(char *at, uint32_t number)
{
    uint32_t sent = htobe32(number);
    memcpy(at, &sent, sizeof sent);
    return at + sizeof sent;
}

static char *put_value(char *at, const struct rp_value *v)
{
    if (v->type == RP_NULL_T) return put_number(at, UINT32_MAX);
    size_t n = value_bytes(v);
    uint64_t sent = htobe64((uint64_t)v->i);
    at = put_number(at, (uint32_t)n);
    if (n > 0) memcpy(at, v->type == RP_INT_T ? (const char *)&sent : v->p, n);
    return at + n;
}

/* What array_recv reads: dimensions, whether there are NULLs, the elements' type, and for the one
 * dimension its length and first index; then each element's length, -1 for NULL, and its bytes. */
static char *put_array(char *at, Oid type, const struct rp_value *column, size_t width, size_t n)
{
    uint32_t nulls = 0;
    for (size_t i = 0; i < n && nulls == 0; i++)
        nulls = column[i * width].type == RP_NULL_T;
    at = put_number(at, 1);
    at = put_number(at, nulls);
    at = put_number(at, type);
    at = put_number(at, (uint32_t)n);
    at = put_number(at, 1);
    for (size_t i = 0; i < n; i++)
        at = put_value(at, &column[i * width]);
    return at;
}

static int make_room(struct rp_pg_params *p, size_t bytes)
{
    if (bytes <= p->arrays_cap) return 0;
    free(p->arrays);
    p->arrays = malloc(bytes);
    p->arrays_cap = p->arrays != NULL ? bytes : 0;
    return p->arrays != NULL ? 0 : RP_ENOMEM;
}

static int set_arrays(struct rp_pg_params *p, size_t first, const char *letters, const struct rp_value *rows,
                      size_t n_rows)
{
    size_t width = strlen(letters), sum = 0;
    for (size_t i = 0; i < width; i++) {
        size_t bytes = array_bytes(rows + i, width, n_rows);
        if (bytes > INT_MAX) return RP_ETOOBIG;
        p->lengths[first + i] = (int)bytes;
        sum += bytes;
    }
    int r = make_room(p, sum);
    if (r < 0) return r;
    char *at = p->arrays;
    for (size_t i = 0; i < width; i++) {
        size_t type = type_of(letters[i]);
        p->types[first + i] = types[type].array;
        p->values[first + i] = at;
        at = put_array(at, types[type].one, rows + i, width, n_rows);
    }
    RP_ASSERT(at == p->arrays + sum);
    return 0;
}

/* ---- all of them ---- */

int rp_pg_params_set(struct rp_pg_params *p, const struct rp_sql *sql, const struct rp_value *args,
                     const struct rp_value *rows, size_t n_rows, struct rp_error *err)
{
    size_t n_fixed = rp_types_count(sql->params);
    int r = 0;
    RP_ASSERT((sql->rows != NULL) == (n_rows > 0));
    p->n = n_fixed + rp_types_count(sql->rows);
    RP_ASSERT(p->n <= RP_PG_PARAMS_MAX);
    for (size_t i = 0; i < p->n; i++)
        p->formats[i] = 1;
    for (size_t i = 0; r == 0 && i < n_fixed; i++) {
        p->types[i] = types[type_of(sql->params[i])].one;
        r = set_one(p, i, &args[i]);
    }
    if (r == 0 && n_rows > 0) r = set_arrays(p, n_fixed, sql->rows, rows, n_rows);
    if (r == RP_ETOOBIG) return rp_error_set(err, r, "postgres: %s: value too big", sql->name);
    if (r < 0) return rp_error_set(err, r, "postgres: %s", sql->name);
    return 0;
}

void rp_pg_params_trim(struct rp_pg_params *p)
{
    if (p->arrays_cap > ARRAYS_KEPT) rp_pg_params_done(p);
}

void rp_pg_params_done(struct rp_pg_params *p)
{
    free(p->arrays);
    p->arrays = NULL;
    p->arrays_cap = 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "http_plain.h"

#include "base/digest.h"
#include "base/id.h"
#include "base/time.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LANE      "250"
#define LANE_N    250
#define SIZE      "100"
#define PARAMS    16
#define NUMBER    24
#define EXPIRE_MS RP_HOUR_MS

enum { MARK, FILE_ROW, LEDGER, TENANT, AUDIT, LANE_ROW, STATEMENTS };

static const char *const statements[STATEMENTS] = {
    [MARK] =
        "INSERT INTO mark (id, store_id, key, active, state, was, next_at, due_at, marked_at, checks, tenant_id, "
        "run_id, annotated, etag, version, size_bytes, modified_ms, reason, actor, file_id) VALUES ($1, $2, $3, 1, "
        "1, 1, $4, $4, $5, 0, $6, NULL, 0, '', '', " SIZE ", 0, 'abandoned', 'plain', $7)",
    [FILE_ROW] =
        "INSERT INTO file (id, tenant_id, name, store_id, key, status, size_bytes, content_type, etag, version, "
        "modified_ms, mark_id, was, url_ends_at, created_at, changed_at) VALUES ($1, $2, $3, $4, $5, 1, " SIZE
        ", 'image/jpeg', '', '', 0, $6, 1, $7, $8, $8)",
    [LEDGER] = "INSERT INTO ledger (file_id, kind, tenant_id, bytes, at) VALUES ($1, 1, $2, " SIZE ", $3)",
    [TENANT] = "UPDATE tenant SET reserved_bytes = reserved_bytes + " SIZE ", open_uploads = open_uploads + 1 "
               "WHERE id = $1 AND used_bytes + reserved_bytes + " SIZE " <= 107374182400",
    [AUDIT] = "INSERT INTO audit (lane, seq, at, event, actor, mark_id, tenant_id, details, digest, hash) "
              "VALUES (" LANE ", $1, $2, 'file.pending', 'plain', $3, $4, $5, $6, $7)",
    [LANE_ROW] = ("UPDATE lane SET seq = $1, head = $2, last_id = $3 WHERE lane = " LANE),
};

struct plain {
    PGconn *pg;
    struct rp_digest *digest;
    uint8_t head[RP_DIGEST_BYTES];
    int64_t seq, last_id;
    char tenants[BENCH_TENANTS][NUMBER], store[NUMBER];
};

static void expect(struct plain *p, PGresult *result, ExecStatusType wanted, const char *what)
{
    if (PQresultStatus(result) != wanted) bench_fail("%s: %s", what, PQerrorMessage(p->pg));
    PQclear(result);
}

static void command(struct plain *p, const char *sql)
{
    expect(p, PQexec(p->pg, sql), PGRES_COMMAND_OK, sql);
}

static void run(struct plain *p, int statement, const char *const *values, int n)
{
    char name[8];
    snprintf(name, sizeof name, "s%d", statement);
    PGresult *result = PQexecPrepared(p->pg, name, n, values, NULL, NULL, 0);
    if (strcmp(PQcmdTuples(result), "1") != 0) bench_fail("%s: %s", statements[statement], PQerrorMessage(p->pg));
    expect(p, result, PGRES_COMMAND_OK, statements[statement]);
}

static void ask_number(struct plain *p, const char *sql, char out[NUMBER])
{
    PGresult *result = PQexec(p->pg, sql);
    if (PQntuples(result) != 1) bench_fail("%s: no row", sql);
    snprintf(out, NUMBER, "%s", PQgetvalue(result, 0, 0));
    expect(p, result, PGRES_TUPLES_OK, sql);
}

/* The server's address without the schema, which is set by a command. */
static void connect_to(struct plain *p, const char *url)
{
    char address[BENCH_PATH], sql[256];
    snprintf(address, sizeof address, "%s", url);
    char *schema = strstr(address, "schema=");
    if (schema == NULL) bench_fail("%s has no schema", url);
    schema[-1] = '\0';
    p->pg = PQconnectdb(address);
    if (PQstatus(p->pg) != CONNECTION_OK) bench_fail("%s", PQerrorMessage(p->pg));
    snprintf(sql, sizeof sql, "SET search_path = %s", schema + strlen("schema="));
    command(p, sql);
}

static void prepare(struct plain *p)
{
    char sql[128], name[8];
    for (int i = 0; i < STATEMENTS; i++) {
        snprintf(name, sizeof name, "s%d", i);
        expect(p, PQprepare(p->pg, name, statements[i], 0, NULL), PGRES_COMMAND_OK, statements[i]);
    }
    for (int i = 0; i < BENCH_TENANTS; i++) {
        snprintf(sql, sizeof sql, "SELECT id FROM tenant WHERE name = 'tenant-%d'", i);
        ask_number(p, sql, p->tenants[i]);
    }
    command(p, "INSERT INTO store (id, kind, name) VALUES (1, 1, 'main')");
    ask_number(p, "SELECT id FROM store WHERE name = 'main'", p->store);
    command(p, "INSERT INTO lane (lane, seq, head, last_id, heads_at) VALUES (" LANE ", 0, '', 0, 0)");
    p->digest = rp_digest_new();
    if (p->digest == NULL) bench_fail("no memory");
}

static void hex_bytes(const uint8_t digest[RP_DIGEST_BYTES], char out[RP_DIGEST_HEX + 2])
{
    out[0] = '\\';
    out[1] = 'x';
    rp_digest_hex(digest, out + 2);
}

static void next_link(struct plain *p, const char *details, char digest_hex[RP_DIGEST_HEX + 2])
{
    uint8_t digest[RP_DIGEST_BYTES];
    rp_digest_begin(p->digest);
    rp_digest_add(p->digest, details, strlen(details));
    rp_digest_end(p->digest, digest);
    hex_bytes(digest, digest_hex);
    rp_digest_begin(p->digest);
    rp_digest_add(p->digest, p->head, sizeof p->head);
    rp_digest_add(p->digest, digest, sizeof digest);
    rp_digest_end(p->digest, p->head);
    p->seq++;
}

struct texts {
    char file[NUMBER], mark[NUMBER], now[NUMBER], due[NUMBER], seq[NUMBER], last[NUMBER];
    char name[64], key[64], details[512];
    char digest[RP_DIGEST_HEX + 2], head[RP_DIGEST_HEX + 2];
};

static void write_texts(struct plain *p, size_t i, struct texts *t)
{
    struct timespec clock;
    char id[RP_ID_TEXT];
    clock_gettime(CLOCK_REALTIME, &clock);
    int64_t now_ms = (int64_t)clock.tv_sec * 1000 + clock.tv_nsec / 1000000;
    int64_t file_id = rp_id_next(p->last_id, now_ms, LANE_N), mark_id = rp_id_next(file_id, now_ms, LANE_N);
    p->last_id = mark_id;
    snprintf(t->file, sizeof t->file, "%" PRId64, file_id);
    snprintf(t->mark, sizeof t->mark, "%" PRId64, mark_id);
    snprintf(t->now, sizeof t->now, "%" PRId64, now_ms);
    snprintf(t->due, sizeof t->due, "%" PRId64, now_ms + EXPIRE_MS);
    snprintf(t->name, sizeof t->name, "photos/plain/%08zu.jpg", i);
    snprintf(t->key, sizeof t->key, "tenant-%zu/%s", i % BENCH_TENANTS, rp_id_format(RP_ID_FILE, file_id, id));
    snprintf(t->details, sizeof t->details,
             "{\"file\":\"%s\",\"name\":\"%s\",\"status\":\"pending\",\"store\":\"main\",\"key\":\"%s\",\"size\":" SIZE
             ",\"mark\":\"%s\",\"due_at\":\"%s\",\"reason\":\"abandoned\"}",
             id, t->name, t->key, t->mark, t->due);
    next_link(p, t->details, t->digest);
    hex_bytes(p->head, t->head);
    snprintf(t->seq, sizeof t->seq, "%" PRId64, p->seq);
    snprintf(t->last, sizeof t->last, "%" PRId64, p->last_id);
}

static void begin_upload(struct plain *p, size_t i)
{
    struct texts t;
    const char *tenant = p->tenants[i % BENCH_TENANTS];
    write_texts(p, i, &t);
    command(p, "BEGIN");
    run(p, TENANT, (const char *[]){ tenant }, 1);
    run(p, MARK, (const char *[]){ t.mark, p->store, t.key, t.due, t.now, tenant, t.file }, 7);
    run(p, FILE_ROW, (const char *[]){ t.file, tenant, t.name, p->store, t.key, t.mark, t.due, t.now }, 8);
    run(p, LEDGER, (const char *[]){ t.file, tenant, t.now }, 3);
    run(p, AUDIT, (const char *[]){ t.seq, t.now, t.mark, tenant, t.details, t.digest, t.head }, 7);
    run(p, LANE_ROW, (const char *[]){ t.seq, t.head, t.last }, 3);
    command(p, "COMMIT");
}

struct bench_plain bench_plain_run(const struct bench_daemon *d, double seconds)
{
    struct plain p = { 0 };
    size_t n = 0;
    connect_to(&p, d->catalog_url);
    prepare(&p);
    double start = bench_now_s();
    while (bench_now_s() - start < seconds)
        begin_upload(&p, n++);
    double spent = bench_now_s() - start;
    rp_digest_free(p.digest);
    PQfinish(p.pg);
    return (struct bench_plain){ .uploads = n, .seconds = spent };
}

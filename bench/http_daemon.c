/* SPDX-License-Identifier: Apache-2.0 */
#include "http_daemon.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "db/db.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

const char *bench_binary(void)
{
    const char *path = getenv("REPRIEVE_BIN");
    if (path == NULL) bench_fail("REPRIEVE_BIN is not set; `make bench` sets it");
    return path;
}

/* ---- make ---- */

static const char *tenant_name(int i, char out[16])
{
    snprintf(out, 16, "tenant-%d", i);
    return out;
}

/* Runs the binary and returns a member of the first line of its JSON. */
static void ask_binary(const struct bench_daemon *d, const char *args, const char *member, char *out, size_t size)
{
    char command[2 * BENCH_PATH + 256], line[4096];
    snprintf(command, sizeof command, "'%s' --config '%s' --json %s", bench_binary(), d->config, args);
    FILE *from = popen(command, "re");
    bool read = from != NULL && fgets(line, sizeof line, from) != NULL;
    if (from == NULL || pclose(from) != 0 || !read) bench_fail("reprieve %s did not answer", args);
    json_t *answer = json_loads(line, 0, NULL);
    const char *text = json_string_value(json_object_get(answer, member));
    if (text == NULL) bench_fail("reprieve %s: no %s in %s", args, member, line);
    snprintf(out, size, "%s", text);
    json_decref(answer);
}

static void make_tokens(const struct bench_daemon *d)
{
    char name[16], args[64], secret[128];
    FILE *out = fopen(d->tokens, "we");
    if (out == NULL) bench_fail("%s: %s", d->tokens, strerror(errno));
    for (int i = 0; i < BENCH_TENANTS; i++) {
        snprintf(args, sizeof args, "token create bench --tenant %s", tenant_name(i, name));
        ask_binary(d, args, "secret", secret, sizeof secret);
        fprintf(out, "%s\n", secret);
    }
    if (fclose(out) != 0) bench_fail("%s: %s", d->tokens, strerror(errno));
}

static void make_admin(const struct bench_daemon *d)
{
    char secret[128], line[160];
    ask_binary(d, "token create admin", "secret", secret, sizeof secret);
    snprintf(line, sizeof line, "%s\n", secret);
    bench_write(d->admin, line);
}

static void run_sql(const char *url, const char *sql)
{
    struct rp_error err = { 0 };
    RP_CLEANUP(rp_db_closep) struct rp_db *db = NULL;
    if (rp_db_open(url, &(struct rp_db_options){ 0 }, &db, &err) < 0 || rp_db_script(db, sql, &err) < 0)
        bench_fail("%s", err.text);
}

void bench_daemon_make(struct bench_daemon *d, const char *base, const char *name, const char *postgres_url,
                       const char *more)
{
    char config[3 * BENCH_PATH], *here = realpath(base, NULL);
    if (here == NULL) bench_fail("%s: %s", base, strerror(errno));
    *d = (struct bench_daemon){ 0 };
    snprintf(d->dir, sizeof d->dir, "%s/reprieve-bench-%s-%ld", here, name, (long)getpid());
    free(here);
    snprintf(d->config, sizeof d->config, "%s/reprieve.yaml", d->dir);
    snprintf(d->objects, sizeof d->objects, "%s/objects", d->dir);
    snprintf(d->tokens, sizeof d->tokens, "%s/tokens", d->dir);
    snprintf(d->admin, sizeof d->admin, "%s/admin", d->dir);
    if (postgres_url == NULL)
        snprintf(d->catalog_url, sizeof d->catalog_url, "sqlite:%s/catalog.db", d->dir);
    else
        snprintf(d->catalog_url, sizeof d->catalog_url, "%s%cschema=bench_%s", postgres_url,
                 strchr(postgres_url, '?') != NULL ? '&' : '?', name);
    bench_make_dir(d->dir);
    bench_make_dir(d->objects);
    snprintf(config, sizeof config,
             "listen: 127.0.0.1:0\ncatalog: { url: \"%s\" }\n"
             "stores: { main: { path: objects, mode: purge, allow_any_grace: true } }\n%s",
             d->catalog_url, more);
    bench_write(d->config, config);
    make_tokens(d);
    make_admin(d);
}

void bench_daemon_remove(struct bench_daemon *d)
{
    char sql[BENCH_PATH];
    const char *schema = strstr(d->catalog_url, "schema=");
    if (schema != NULL) {
        snprintf(sql, sizeof sql, "DROP SCHEMA %.64s CASCADE", schema + strlen("schema="));
        run_sql(d->catalog_url, sql);
    }
    bench_remove_tree(d->dir);
}

/* ---- run ---- */

static _Noreturn void become_daemon(const struct bench_daemon *d, int out)
{
    /* It does not outlive a benchmark that was stopped. */
    if (dup2(out, STDOUT_FILENO) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) _exit(126);
    execl(bench_binary(), "reprieve", "--config", d->config, "--json", "--quiet", "serve", (char *)NULL);
    _exit(127);
}

/* It says where it listens when it is ready. */
void bench_daemon_start(struct bench_daemon *d)
{
    int ends[2];
    char line[1024];
    fflush(stdout);
    if (pipe(ends) < 0) bench_fail("pipe: %s", strerror(errno));
    d->pid = fork();
    if (d->pid < 0) bench_fail("fork: %s", strerror(errno));
    if (d->pid == 0) {
        close(ends[0]);
        become_daemon(d, ends[1]);
    }
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    if (from == NULL || fgets(line, sizeof line, from) == NULL) bench_fail("the daemon did not start");
    json_t *ready = json_loads(line, 0, NULL);
    const char *url = json_string_value(json_object_get(ready, "url"));
    if (url == NULL) bench_fail("the daemon does not say where it listens: %s", line);
    snprintf(d->url, sizeof d->url, "%s", url);
    json_decref(ready);
    fclose(from);
}

void bench_daemon_stop(struct bench_daemon *d)
{
    int status = -1;
    if (kill(d->pid, SIGTERM) < 0 || waitpid(d->pid, &status, 0) != d->pid || status != 0)
        bench_fail("the daemon ended with status %#x", (unsigned)status);
    d->pid = 0;
}

void bench_daemon_died(struct bench_daemon *d)
{
    int status = -1;
    if (waitpid(d->pid, &status, 0) != d->pid || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        bench_fail("the daemon was to be killed and ended with status %#x", (unsigned)status);
    d->pid = 0;
}

double bench_daemon_cpu_s(const struct bench_daemon *d)
{
    char path[64], line[1024];
    unsigned long user = 0, kernel = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)d->pid);
    FILE *from = fopen(path, "re");
    if (from == NULL || fgets(line, sizeof line, from) == NULL) bench_fail("%s: the daemon is gone", path);
    fclose(from);
    const char *after_name = strrchr(line, ')');
    if (after_name == NULL ||
        sscanf(after_name, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel) != 2)
        bench_fail("%s is not as expected", path);
    return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

static void forget_peak(const struct bench_daemon *d)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/clear_refs", (long)d->pid);
    FILE *to = fopen(path, "we");
    if (to == NULL) return;
    fputs("5", to);
    fclose(to);
}

double bench_daemon_peak_mib(const struct bench_daemon *d)
{
    char path[64], line[256];
    long kib = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)d->pid);
    FILE *from = fopen(path, "re");
    if (from == NULL) bench_fail("%s: the daemon is gone", path);
    while (fgets(line, sizeof line, from) != NULL)
        if (strncmp(line, "VmHWM:", 6) == 0) kib = strtol(line + 6, NULL, 10);
    fclose(from);
    forget_peak(d);
    return (double)kib / 1024;
}

/* ---- the catalog ---- */

static int take_number(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    (void)err;
    *(int64_t *)ctx = row[0].i;
    return 0;
}

int64_t bench_daemon_count(const struct bench_daemon *d, const char *sql)
{
    struct rp_error err = { 0 };
    const struct rp_sql query = { .name = "bench_count", .text = sql, .params = "", .columns = "i" };
    RP_CLEANUP(rp_db_closep) struct rp_db *db = NULL;
    int64_t n = -1;
    int r = rp_db_open(d->catalog_url, &(struct rp_db_options){ 0 }, &db, &err);
    if (r == 0) r = rp_db_query(db, &query, NULL, take_number, &n, &err);
    if (r < 0) bench_fail("%s", err.text);
    return n;
}

struct listing {
    const struct bench_daemon *daemon;
    FILE *out;
    bool objects;
    size_t n;
};

static int list_file(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct listing *l = ctx;
    char id[RP_ID_TEXT], path[BENCH_PATH + 128], bytes[101];
    (void)err;
    fprintf(l->out, "%s %s\n", rp_id_format(RP_ID_FILE, row[0].i, id), row[2].p + strlen("tenant-"));
    l->n++;
    if (!l->objects) return 0;
    memset(bytes, 'x', sizeof bytes - 1);
    bytes[row[3].i] = '\0';
    snprintf(path, sizeof path, "%s/%s", l->daemon->objects, row[1].p);
    bench_write(path, bytes);
    return 0;
}

static void make_tenant_dirs(const struct bench_daemon *d)
{
    char path[BENCH_PATH + 32], name[16];
    for (int i = 0; i < BENCH_TENANTS; i++) {
        snprintf(path, sizeof path, "%s/%s", d->objects, tenant_name(i, name));
        bench_make_dir(path);
    }
}

size_t bench_daemon_list(const struct bench_daemon *d, const struct bench_listing *what, const char *file)
{
    static const struct rp_sql query = {
        .name = "bench_list",
        .text = "SELECT f.id, f.key, t.name, f.size_bytes FROM file f JOIN tenant t ON t.id = f.tenant_id "
                "WHERE f.status = $1 ORDER BY (f.id % 65521) * 40503 % 65521 * $3, f.id LIMIT $2",
        .params = "iii",
        .columns = "issi",
    };
    struct rp_error err = { 0 };
    struct rp_value args[] = { rp_int(what->status), rp_int((int64_t)what->limit), rp_int(what->scattered ? 1 : 0) };
    struct listing l = { .daemon = d, .objects = what->objects, .out = fopen(file, "we") };
    RP_CLEANUP(rp_db_closep) struct rp_db *db = NULL;
    if (l.out == NULL) bench_fail("%s: %s", file, strerror(errno));
    if (what->objects) make_tenant_dirs(d);
    int r = rp_db_open(d->catalog_url, &(struct rp_db_options){ 0 }, &db, &err);
    if (r == 0) r = rp_db_query(db, &query, args, list_file, &l, &err);
    if (r < 0) bench_fail("%s", err.text);
    if (fclose(l.out) != 0) bench_fail("%s: %s", file, strerror(errno));
    return l.n;
}

void bench_daemon_objects(const struct bench_daemon *d, size_t n, const char *file)
{
    char path[BENCH_PATH + 64];
    FILE *out = fopen(file, "we");
    if (out == NULL) bench_fail("%s: %s", file, strerror(errno));
    for (size_t i = 0; i < n; i++) {
        if (i % 1000 == 0) {
            snprintf(path, sizeof path, "%s/plain-%04zu", d->objects, i / 1000);
            bench_make_dir(path);
        }
        snprintf(path, sizeof path, "%s/plain-%04zu/%06zu", d->objects, i / 1000, i);
        bench_write(path, "bytes of nobody's");
        fprintf(out, "plain-%04zu/%06zu 0\n", i / 1000, i);
    }
    if (fclose(out) != 0) bench_fail("%s: %s", file, strerror(errno));
}

static int list_mark(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct listing *l = ctx;
    char id[RP_ID_TEXT];
    (void)err;
    fprintf(l->out, "%s 0\n", rp_id_format(RP_ID_MARK, row[0].i, id));
    l->n++;
    return 0;
}

size_t bench_daemon_marks(const struct bench_daemon *d, const char *file)
{
    static const struct rp_sql query = { .name = "bench_marks",
                                         .text = "SELECT id FROM mark WHERE file_id IS NULL AND state = 1 ORDER BY id",
                                         .params = "",
                                         .columns = "i" };
    struct rp_error err = { 0 };
    struct listing l = { .daemon = d, .out = fopen(file, "we") };
    RP_CLEANUP(rp_db_closep) struct rp_db *db = NULL;
    if (l.out == NULL) bench_fail("%s: %s", file, strerror(errno));
    int r = rp_db_open(d->catalog_url, &(struct rp_db_options){ 0 }, &db, &err);
    if (r == 0) r = rp_db_query(db, &query, NULL, list_mark, &l, &err);
    if (r < 0) bench_fail("%s", err.text);
    if (fclose(l.out) != 0) bench_fail("%s: %s", file, strerror(errno));
    return l.n;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "base/json.h"
#include "base/time.h"
#include "catalog/writer.h"
#include "daemon/inner.h"
#include "daemon/interrupt.h"
#include "hook/hook.h"
#include "http/route/route.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define QUEUE_MAX        16384 /* commands that wait for a writer */
#define RING_EVENTS      8192
#define RING_BYTES       ((size_t)4 << 20)
#define LIVE_CLIENTS_MAX 20000

/* How long a stop may take. Buckets are interrupted STORES_MS after the signal, and requests that
 * still wait PATIENCE_MS after it; then the last raises go to the buckets, over connections of
 * their own. Whatever hangs all the same ends with the process. */
#define STORES_MS   (5 * RP_SECOND_MS)
#define PATIENCE_MS (10 * RP_SECOND_MS)
#define STOP_MS     (15 * RP_SECOND_MS)
_Static_assert(STORES_MS < PATIENCE_MS && PATIENCE_MS + RP_LAST_RAISE_MS < STOP_MS, "there is time for each of them");

void rp_daemon_log(struct rp_daemon *d, enum rp_log_level level, const char *event, json_t *fields)
{
    json_t *o = fields != NULL ? fields : json_object();
    rp_json_set(o, "node", rp_json_text(d->node));
    rp_log_event(d->session.log, level, rp_session_now_ms(&d->session), event, o);
    rp_log_flush(d->session.log);
}

/* ---- who this daemon is ---- */

static bool is_sqlite(const struct rp_daemon *d)
{
    return strncmp(d->session.config.catalog_url, "sqlite:", 7) == 0;
}

static void name_node(struct rp_daemon *d)
{
    const struct rp_config *config = &d->session.config;
    char host[40] = "host";
    (void)gethostname(host, sizeof host - 1);
    host[sizeof host - 1] = 0;
    if (config->node[0] != 0)
        snprintf(d->node, sizeof d->node, "%s", config->node);
    else
        snprintf(d->node, sizeof d->node, "%s%s", host, strrchr(config->listen, ':'));
    snprintf(d->session.actor, sizeof d->session.actor, "daemon:%s", d->node);
}

/* SQLite has one writer and this is its only daemon: one lane. Else each connection that writes leases its own. */
static int lane_of(const struct rp_daemon *d)
{
    return is_sqlite(d) ? 1 : RP_LANE_LEASED;
}

/* SQLite has one writer: two daemons would only wait for each other's lock, and their streams would
 * miss what the other writes. */
static int lock_catalog(struct rp_daemon *d, struct rp_error *err)
{
    char path[4200], holder[64] = "";
    d->lock_fd = -1;
    if (!is_sqlite(d)) return 0;
    snprintf(path, sizeof path, "%s.daemon", d->session.config.catalog_url + strlen("sqlite:"));
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return rp_error_errno(err, errno, "lock %s", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        ssize_t n = read(fd, holder, sizeof holder - 1);
        holder[n > 0 ? strcspn(holder, "\n") : 0] = 0;
        close(fd);
        rp_error_set(err, RP_ERUNNING, "another daemon (pid %s) serves this catalog already", holder);
        return rp_error_hint(err, "stop it first, or use another --data directory");
    }
    if (ftruncate(fd, 0) == 0) (void)dprintf(fd, "%ld\n", (long)getpid());
    d->lock_fd = fd;
    return 0;
}

/* ---- what the parts tell each other ---- */

static void committed(void *ctx, size_t commands, int64_t due_at_ms)
{
    struct rp_daemon *d = ctx;
    rp_feed_poke(d->feed);
    rp_metrics_round(d->metrics, commands);
    struct rp_sweeper *sweeper = __atomic_load_n(&d->sweeper, __ATOMIC_ACQUIRE);
    if (due_at_ms != 0 && sweeper != NULL) rp_sweeper_due(sweeper, due_at_ms);
}

/* A token was revoked, on this node, another one, or by the command line. */
static void forget_tokens(struct rp_daemon *d)
{
    pthread_mutex_lock(&d->lock);
    if (d->server != NULL) rp_server_forget_token(d->server, 0);
    pthread_mutex_unlock(&d->lock);
}

/* Whoever has found it out: what a store guarantees is other than it was. */
static void tell_store(struct rp_daemon *d, const struct rp_feed_event *event)
{
    json_t *o = NULL;
    struct rp_error ignored = { 0 };
    if (rp_json_parse(event->json, event->json_bytes, &o, &ignored) < 0) o = json_object();
    (void)json_object_del(o, "actor");
    rp_daemon_log(d, RP_LOG_WARNING, event->name, o);
}

#define REVOKED "token.revoked"
static const char *const followed[] = { REVOKED, "store.level_changed", "store.keys_changed", NULL };

static int follow(void *ctx, const struct rp_feed_batch *batch, struct rp_error *err)
{
    (void)err;
    for (size_t i = 0; i < batch->n; i++) {
        if (strcmp(batch->events[i]->name, REVOKED) == 0)
            forget_tokens(ctx);
        else
            tell_store(ctx, batch->events[i]);
    }
    return 0;
}

static int reserve_run(void *ctx, const struct rp_worker **worker, struct rp_error *err)
{
    struct rp_daemon *d = ctx;
    *worker = &d->session.worker;
    return rp_runs_reserve(d->runs, err);
}

static void start_run(void *ctx, const char *store, const char *actor, const struct rp_run *begun)
{
    struct rp_daemon *d = ctx;
    rp_runs_start(d->runs, store, actor, begun);
}

static int64_t sweeper_idle_ms(void *ctx)
{
    const struct rp_daemon *d = ctx;
    return rp_sweeper_idle_ms(d->sweeper);
}

/* ---- the parts ---- */

/* The embedded default is nobody else's: its catalog is brought up to date without asking. */
static int open_session(struct rp_daemon *d, struct rp_error *err)
{
    struct rp_session_options options = { .config_file = d->options->config_file, .data = d->options->data };
    int r = rp_session_open(&d->session, &options, err);
    if (r != RP_ESCHEMA || d->session.config.file != NULL) return r;
    rp_session_close(&d->session);
    options.migrate = true;
    return rp_session_open(&d->session, &options, err);
}

/* The writers and everybody beside them need its hook; its threads need the writers. */
static int make_raiser(struct rp_daemon *d, struct rp_error *err)
{
    const struct rp_raiser_options options = { .session = &d->session, .node = d->node, .lane = lane_of(d) };
    int r = rp_raiser_new(&options, &d->raiser, err);
    if (r == 0) d->session.catalog->raise_hook = rp_raiser_hook(d->raiser);
    return r;
}

static int start_feed(struct rp_daemon *d, struct rp_error *err)
{
    const struct rp_feed_options feed = { .catalog_url = d->session.config.catalog_url,
                                          .log = d->session.log,
                                          .clock = d->session.catalog->clock,
                                          .ring_events = RING_EVENTS,
                                          .ring_bytes = RING_BYTES };
    const struct rp_feed_reader reader = { .want = { .names = followed }, .deliver = follow, .ctx = d };
    int r = rp_feed_start(&feed, &d->feed, err);
    if (r == 0) r = rp_feed_subscribe(d->feed, &reader, &d->follows, err);
    if (r < 0) return r;
    const struct rp_live_options live = {
        .feed = d->feed, .log = d->session.log, .clock = d->session.catalog->clock, .clients_max = LIVE_CLIENTS_MAX
    };
    return rp_live_start(&live, &d->live, err);
}

static int start_writers(struct rp_daemon *d, struct rp_error *err)
{
    const struct rp_config *config = &d->session.config;
    const struct rp_writers_options writers = { .url = config->catalog_url,
                                                .n = is_sqlite(d) ? 1 : (size_t)config->writers,
                                                .first_lane = lane_of(d),
                                                .holder = d->session.actor,
                                                .queue_max = QUEUE_MAX,
                                                .clock = d->session.catalog->clock,
                                                .committed = committed,
                                                .ctx = d,
                                                .raise_hook = rp_raiser_hook(d->raiser) };
    int r = rp_writers_start(&writers, &d->writers, err);
    if (r == 0) rp_writers_attach(d->writers, d->session.catalog);
    return r;
}

static int open_stores(struct rp_daemon *d, struct rp_error *err)
{
    struct rp_store *stores[RP_STORES_MAX];
    size_t n;
    int r = rp_session_stores(&d->session, stores, &n, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        if (stores[i]->backend != NULL) continue;
        json_t *o = json_object();
        rp_json_set(o, "store", json_string(stores[i]->config->name));
        rp_json_set(o, "error", rp_json_text(stores[i]->closed.text));
        rp_daemon_log(d, RP_LOG_ERROR, "store.closed", o);
    }
    return r;
}

static int start_runs(struct rp_daemon *d, struct rp_error *err)
{
    const struct rp_runs_options runs = {
        .session = &d->session, .writers = d->writers, .metrics = d->metrics, .lane = lane_of(d)
    };
    return rp_runs_new(&runs, &d->runs, err);
}

static int start_sweeper(struct rp_daemon *d, struct rp_error *err)
{
    const struct rp_sweeper_options options = {
        .session = &d->session, .writers = d->writers, .metrics = d->metrics, .node = d->node, .lane = lane_of(d)
    };
    struct rp_sweeper *sweeper = NULL;
    int r = rp_sweeper_start(&options, &sweeper, err);
    __atomic_store_n(&d->sweeper, sweeper, __ATOMIC_RELEASE); /* the writers look at it */
    return r;
}

static bool has_bucket(const struct rp_config *config)
{
    for (size_t i = 0; i < config->n_stores; i++)
        if (rp_config_is_s3(&config->stores[i])) return true;
    return false;
}

static int start_watches(struct rp_daemon *d, struct rp_error *err)
{
    const struct rp_watch_kind *const kinds[RP_WATCHES] = { &rp_restore_watch, &rp_alert_watch,
                                                            has_bucket(&d->session.config) ? &rp_store_watch : NULL };
    const struct rp_watch_options options = {
        .session = &d->session, .writers = d->writers, .metrics = d->metrics, .node = d->node
    };
    int r = 0;
    for (size_t i = 0; i < RP_WATCHES && r == 0; i++)
        if (kinds[i] != NULL) r = rp_watch_start(kinds[i], &options, &d->watches[i], err);
    return r;
}

static int start_server(struct rp_daemon *d, struct rp_error *err)
{
    struct rp_server *server = NULL;
    struct rp_server_options options = {
        .config = &d->session.config,
        .catalog_url = d->session.config.catalog_url,
        .writers = d->writers,
        .stores = d->session.stores,
        .n_stores = d->session.config.n_stores,
        .log = d->session.log,
        .clock = d->session.catalog->clock,
        .metrics = d->metrics,
        .live = d->live,
        .beside = { .ctx = d, .reserve_run = reserve_run, .start_run = start_run, .sweeper_idle_ms = sweeper_idle_ms },
        .url_key = d->url_key
    };
    int r = rp_server_start(&options, &server, err);
    if (r < 0) return r;
    pthread_mutex_lock(&d->lock);
    d->server = server;
    pthread_mutex_unlock(&d->lock);
    return 0;
}

static void stop_server(struct rp_daemon *d)
{
    pthread_mutex_lock(&d->lock);
    struct rp_server *server = d->server;
    d->server = NULL;
    pthread_mutex_unlock(&d->lock);
    rp_live_end(d->live);
    if (server != NULL) rp_server_stop(server, PATIENCE_MS);
}

/* ---- start and stop ---- */

static void tell_ready(struct rp_daemon *d, const struct rp_welcome *welcome)
{
    const struct rp_config *config = &d->session.config;
    char url[2100], sign_in[2300];
    if (config->public_url[0] != 0)
        snprintf(url, sizeof url, "%s", config->public_url);
    else
        snprintf(url, sizeof url, "%s://%s", config->tls_certificate[0] != 0 ? "https" : "http",
                 rp_server_address(d->server));
    snprintf(sign_in, sizeof sign_in, "%s/signin?link=%s", url, welcome->link);
    json_t *o = json_object();
    rp_json_set(o, "address", rp_json_text(rp_server_address(d->server)));
    rp_daemon_log(d, RP_LOG_INFO, "daemon.ready", o);
    struct rp_daemon_ready ready = { .url = url,
                                     .node = d->node,
                                     .token_file = welcome->token_file[0] != 0 ? welcome->token_file : NULL,
                                     .sign_in = welcome->link[0] != 0 ? sign_in : NULL,
                                     .no_token = welcome->no_token,
                                     .log_file = config->log_file };
    if (d->options->ready != NULL) d->options->ready(d->options->ctx, &ready);
}

static void log_start(struct rp_daemon *d)
{
    json_t *o = json_object();
    rp_json_set(o, "version", json_string(REPRIEVE_VERSION));
    rp_json_set(o, "pid", json_integer(getpid()));
    rp_json_set(o, "configuration", rp_json_text(d->session.config.file != NULL ? d->session.config.file : "embedded"));
    rp_daemon_log(d, RP_LOG_INFO, "daemon.started", o);
    if (geteuid() == 0)
        rp_daemon_log(d, RP_LOG_WARNING, "daemon.is_root",
                      json_pack("{s:s}", "note", "root is not needed: run it as a user of its own"));
}

static int start(struct rp_daemon *d, struct rp_error *err)
{
    struct rp_welcome welcome;
    int r = open_session(d, err);
    if (r == 0) name_node(d);
    if (r == 0) r = lock_catalog(d, err);
    if (r < 0) return r;
    log_start(d);
    r = rp_hook_start(err);
    if (r == 0) r = rp_metrics_new(rp_route_for_metrics, &d->metrics, err);
    if (r == 0) r = make_raiser(d, err);
    if (r == 0) r = start_feed(d, err);
    if (r == 0) r = start_writers(d, err);
    if (r == 0) r = open_stores(d, err);
    if (r == 0) r = rp_welcome_url_key(d->session.catalog, d->url_key, err);
    if (r == 0) r = rp_welcome_tokens(d, &welcome, err);
    if (r == 0) r = rp_raiser_start(d->raiser, d->writers, err);
    if (r == 0) r = start_runs(d, err);
    if (r == 0) r = start_sweeper(d, err);
    if (r == 0) r = start_watches(d, err);
    if (r == 0) r = start_server(d, err);
    if (r == 0) tell_ready(d, &welcome);
    return r;
}

/* Who begins work by itself is told to begin no more. Then they end from the last to the first:
 * nobody asks somebody who is gone. What never started is NULL. */
static void stop(struct rp_daemon *d)
{
    struct rp_interrupt interrupt;
    for (size_t i = 0; i < RP_WATCHES; i++)
        rp_watch_halt(d->watches[i]);
    rp_sweeper_halt(d->sweeper);
    rp_runs_halt(d->runs);
    rp_interrupt_begin(&interrupt, d->session.stores, d->session.config.n_stores, STORES_MS);
    stop_server(d);
    for (size_t i = 0; i < RP_WATCHES; i++)
        rp_watch_stop(d->watches[i]);
    rp_sweeper_stop(d->sweeper);
    rp_runs_stop(d->runs);
    rp_raiser_stop(d->raiser);
    rp_interrupt_end(&interrupt);
    rp_writers_stop(d->writers);
    rp_live_stop(d->live);
    rp_feed_unsubscribe(d->follows);
    rp_feed_stop(d->feed);
    rp_metrics_free(d->metrics);
}

static void close_all(struct rp_daemon *d)
{
    rp_session_close(&d->session);
    rp_raiser_free(d->raiser);
    rp_daemon_forget_setups(d);
    if (d->lock_fd >= 0) close(d->lock_fd);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

/* ---- a stop that hangs ---- */

/* A process that ends here has lost no more than one that is killed, and that is nothing. */
static void *end_it(void *arg)
{
    const struct timespec patience = { .tv_sec = STOP_MS / RP_SECOND_MS };
    (void)arg;
    nanosleep(&patience, NULL);
    (void)dprintf(STDERR_FILENO, "reprieve: something hangs: ended %d s after the signal; nothing is lost\n",
                  (int)(STOP_MS / RP_SECOND_MS));
    _exit(1);
}

static void bound_the_stop(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, end_it, NULL) == 0) pthread_detach(thread);
}

/* ---- signals ---- */

static void signals_of_interest(sigset_t *out)
{
    sigemptyset(out);
    sigaddset(out, SIGTERM);
    sigaddset(out, SIGINT);
    sigaddset(out, SIGHUP);
}

/* Before there are threads, so that all of them have it: signals come to the one that waits for them. */
static void block_signals(void)
{
    sigset_t set;
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    signals_of_interest(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
}

static void let_signals_end_it(void)
{
    sigset_t set;
    signals_of_interest(&set);
    sigdelset(&set, SIGHUP);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static int wait_for_the_end(struct rp_daemon *d)
{
    sigset_t set;
    const struct timespec second = { .tv_sec = 1 };
    signals_of_interest(&set);
    for (;;) {
        int signal = sigtimedwait(&set, NULL, &second);
        if (signal == SIGHUP) rp_daemon_reload(d);
        if (signal == SIGTERM || signal == SIGINT) return signal;
        rp_log_flush(d->session.log);
    }
}

int rp_daemon_serve(const struct rp_daemon_options *options, struct rp_error *err)
{
    struct rp_daemon *d = calloc(1, sizeof *d);
    if (d == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the daemon");
    d->options = options;
    d->lock_fd = -1;
    pthread_mutex_init(&d->lock, NULL);
    umask(umask(0077) | 0027); /* the catalog, its log and objects are not for everybody on this host */
    block_signals();
    int r = start(d, err);
    if (r == 0) {
        int signal = wait_for_the_end(d);
        bound_the_stop();
        rp_daemon_log(d, RP_LOG_INFO, "daemon.draining",
                      json_pack("{s:s}", "signal", signal == SIGINT ? "INT" : "TERM"));
    }
    if (r < 0 && d->session.log != NULL)
        rp_daemon_log(d, RP_LOG_ERROR, "daemon.not_started", json_pack("{s:o}", "error", rp_json_text(err->text)));
    let_signals_end_it();
    stop(d);
    if (r == 0) rp_daemon_log(d, RP_LOG_INFO, "daemon.stopped", NULL);
    close_all(d);
    return r;
}

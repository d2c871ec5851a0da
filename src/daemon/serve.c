/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/time.h"
#include "daemon/inner.h"
#include "http/content/signed_url.h"

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

void rp_daemon_log(struct rp_daemon *d, enum rp_log_level level, const char *event, json_t *fields)
{
    json_t *o = fields != NULL ? fields : json_object();
    rp_json_set(o, "node", rp_json_text(d->node));
    rp_session_log(&d->session, level, event, o);
}

/* ---- who this daemon is ---- */

bool rp_daemon_is_sqlite(const struct rp_daemon *d)
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

/* SQLite has one writer: two daemons would only wait for each other's lock, and their streams would
 * miss what the other writes. */
static int lock_catalog(struct rp_daemon *d, struct rp_error *err)
{
    char path[4200], holder[64] = "";
    d->lock_fd = -1;
    if (!rp_daemon_is_sqlite(d)) return 0;
    snprintf(path, sizeof path, "%s.daemon", d->session.config.catalog_url + strlen("sqlite:"));
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return rp_error_errno(err, errno, "lock %s", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        ssize_t n = read(fd, holder, sizeof holder - 1);
        holder[n > 0 ? strcspn(holder, "\n") : 0] = 0;
        close(fd);
        return rp_error_advise(err, RP_ERUNNING,
                               d->session.config.file != NULL ? "stop it first, or give this one another catalog.url"
                                                              : "stop it first, or use another --data directory",
                               "another daemon (pid %s) serves this catalog already", holder);
    }
    if (ftruncate(fd, 0) == 0) (void)dprintf(fd, "%ld\n", (long)getpid());
    d->lock_fd = fd;
    return 0;
}

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

/* ---- start and stop ---- */

static void tell_ready(struct rp_daemon *d, const struct rp_welcome *welcome)
{
    const struct rp_config *config = &d->session.config;
    char sign_in[2300];
    const char *url = rp_url_base(config, rp_server_address(d->server), &d->session.arena);
    if (url == NULL) url = "";
    snprintf(sign_in, sizeof sign_in, "%s/signin?link=%s", url, welcome->link);
    rp_daemon_log(d, RP_LOG_INFO, "daemon.ready",
                  rp_json_object("address", rp_json_text(rp_server_address(d->server)), NULL));
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
    json_t *o =
        rp_json_object("version", json_string(REPRIEVE_VERSION), "pid", json_integer(getpid()), "configuration",
                       rp_json_text(d->session.config.file != NULL ? d->session.config.file : "embedded"), NULL);
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
    r = rp_parts_start(d, &welcome, err);
    if (r == 0) tell_ready(d, &welcome);
    return r;
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
    const struct timespec patience = { .tv_sec = RP_STOP_MS / RP_SECOND_MS };
    (void)arg;
    nanosleep(&patience, NULL);
    (void)dprintf(STDERR_FILENO, "reprieve: something hangs: ended %d s after the signal; nothing is lost\n",
                  (int)(RP_STOP_MS / RP_SECOND_MS));
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

/* Before there are threads, so that all of them have it: signals come to the one that waits for
 * them. */
static void block_signals(void)
{
    sigset_t set;
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    signals_of_interest(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL); /* a file at its size limit: the write fails with EFBIG */
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
    rp_rooms_init(&d->rooms);
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
    rp_parts_stop(d);
    if (r == 0) rp_daemon_log(d, RP_LOG_INFO, "daemon.stopped", NULL);
    close_all(d);
    return r;
}

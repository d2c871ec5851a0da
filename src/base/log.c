/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "base/time.h"

#define WAITING_MAX_BYTES ((size_t)256 << 10)

struct rp_log {
    pthread_mutex_t lock; /* of everything below but what rp_log_open fixes */
    int fd;               /* -1: drop everything */
    bool owned;
    enum rp_log_level least;
    struct rp_buf waiting; /* whole lines */
    bool torn;             /* the file ends in part of a line */
    uint64_t lost;         /* lines */
};

static const char *const level_names[] = {
    [RP_LOG_DEBUG] = "debug",
    [RP_LOG_INFO] = "info",
    [RP_LOG_WARNING] = "warning",
    [RP_LOG_ERROR] = "error",
};
#define LEVELS (sizeof level_names / sizeof level_names[0])

/* Non-blocking, so that a pipe that nobody reads loses lines instead of stopping the work. */
static int open_file(struct rp_log *log, const char *path, struct rp_error *err)
{
    log->fd = -1;
    if (path == NULL || path[0] == '\0') return 0;
    if (strcmp(path, "-") == 0) {
        log->fd = STDERR_FILENO;
        return 0;
    }
    log->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640);
    if (log->fd < 0) return rp_error_errno(err, errno, "open log %s", path);
    log->owned = true;
    return 0;
}

int rp_log_open(const char *path, enum rp_log_level least, struct rp_log **out, struct rp_error *err)
{
    RP_ASSERT((size_t)least < LEVELS);
    RP_CLEANUP(rp_freep) struct rp_log *log = calloc(1, sizeof *log);
    if (log == NULL) return rp_error_set(err, RP_ENOMEM, "open log: out of memory");
    log->least = least;
    log->waiting = RP_BUF(WAITING_MAX_BYTES);
    int r = open_file(log, path, err);
    if (r < 0) return r;
    r = pthread_mutex_init(&log->lock, NULL);
    RP_ASSERT(r == 0);
    *out = log;
    log = NULL;
    return 0;
}

static uint64_t count_lines(const char *text, size_t n)
{
    uint64_t lines = 0;
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

/* Bytes written; fewer than n only if the rest cannot be. */
static size_t write_all(int fd, const char *bytes, size_t n)
{
    size_t done = 0;
    while (done < n) {
        ssize_t r = write(fd, bytes + done, n - done);
        if (r > 0) done += (size_t)r;
        if (r < 0 && errno != EINTR) break;
        if (r == 0) break;
    }
    return done;
}

/* A line that was cut short (a full disk) is ended first, so that it does not swallow the next
 * one. */
static void write_waiting(struct rp_log *log)
{
    struct rp_buf *w = &log->waiting;
    if (w->len == 0) return;
    if (log->torn) log->torn = write_all(log->fd, "\n", 1) != 1;
    size_t done = log->torn ? 0 : write_all(log->fd, w->data, w->len);
    if (done < w->len) {
        log->lost += count_lines(w->data + done, w->len - done);
        if (done > 0) log->torn = w->data[done - 1] != '\n';
    }
    rp_buf_clear(w);
}

/* What every line has comes first and cannot be replaced by a field of the same name. */
static int make_line(struct rp_buf *line, enum rp_log_level level, int64_t at_ms, const char *event, json_t *fields)
{
    RP_CLEANUP(rp_json_decrefp) json_t *object = json_object();
    int r = rp_json_set(object, "at", rp_json_time(at_ms));
    if (r == 0) r = rp_json_set(object, "level", json_string(level_names[level]));
    if (r == 0) r = rp_json_set(object, "event", rp_json_text(event));
    if (r == 0 && fields != NULL && json_object_update_missing(object, fields) != 0) r = RP_ENOMEM;
    if (r == 0) r = rp_json_write(line, object);
    return r < 0 ? r : rp_buf_char(line, '\n');
}

static void add_line(struct rp_log *log, const struct rp_buf *line)
{
    if (line->len > log->waiting.max - log->waiting.len) write_waiting(log);
    if (rp_buf_add(&log->waiting, line->data, line->len) == 0) return;
    log->waiting.failed = 0; /* this line is lost, not those after it */
    log->lost++;
}

bool rp_log_takes(const struct rp_log *log, enum rp_log_level level)
{
    return log != NULL && log->fd >= 0 && level >= __atomic_load_n(&log->least, __ATOMIC_RELAXED);
}

void rp_log_event(struct rp_log *log, enum rp_log_level level, int64_t at_ms, const char *event, json_t *fields)
{
    RP_CLEANUP(rp_json_decrefp) json_t *owned = fields;
    RP_ASSERT((size_t)level < LEVELS && (fields == NULL || json_is_object(fields)));
    if (!rp_log_takes(log, level)) return;
    RP_CLEANUP(rp_buf_done) struct rp_buf line = RP_BUF(WAITING_MAX_BYTES);
    int r = make_line(&line, level, at_ms, event, owned);
    pthread_mutex_lock(&log->lock);
    if (r == 0) add_line(log, &line);
    if (r < 0) log->lost++;
    pthread_mutex_unlock(&log->lock);
}

void rp_log_members(struct rp_log *log, enum rp_log_level level, int64_t at_ms, const char *event, const char *members)
{
    RP_ASSERT((size_t)level < LEVELS);
    if (!rp_log_takes(log, level)) return;
    RP_CLEANUP(rp_buf_done) struct rp_buf line = RP_BUF(WAITING_MAX_BYTES);
    char at[RP_TIME_TEXT];
    rp_buf_fmt(&line, "{\"at\":\"%s\",\"level\":\"%s\",\"event\":", rp_time_format(at_ms, at), level_names[level]);
    rp_json_quote(&line, event);
    if (members[0] != 0) rp_buf_char(&line, ',');
    rp_buf_str(&line, members);
    rp_buf_str(&line, "}\n");
    pthread_mutex_lock(&log->lock);
    if (line.failed == 0) add_line(log, &line);
    if (line.failed < 0) log->lost++;
    pthread_mutex_unlock(&log->lock);
}

void rp_log_flush(struct rp_log *log)
{
    if (log == NULL) return;
    pthread_mutex_lock(&log->lock);
    write_waiting(log);
    pthread_mutex_unlock(&log->lock);
}

/* The descriptor keeps its number, so that nobody who writes has to look. */
int rp_log_reopen(struct rp_log *log, const char *path, enum rp_log_level least, struct rp_error *err)
{
    RP_ASSERT(log != NULL && (size_t)least < LEVELS);
    if (log->owned) {
        struct rp_log next = { 0 };
        int r = open_file(&next, path, err);
        if (r < 0) return r;
        if (!next.owned) return rp_error_set(err, RP_EINVAL, "reopen log: '%s' is no file", path);
        pthread_mutex_lock(&log->lock);
        write_waiting(log);
        log->torn = false;
        r = dup3(next.fd, log->fd, O_CLOEXEC) < 0 ? rp_error_errno(err, errno, "reopen log %s", path) : 0;
        pthread_mutex_unlock(&log->lock);
        close(next.fd);
        if (r < 0) return r;
    }
    __atomic_store_n(&log->least, least, __ATOMIC_RELAXED);
    return 0;
}

uint64_t rp_log_lost(const struct rp_log *log)
{
    if (log == NULL) return 0;
    struct rp_log *l = (struct rp_log *)log; /* reading takes the lock, which changes nothing that a caller can see */
    pthread_mutex_lock(&l->lock);
    uint64_t lost = l->lost;
    pthread_mutex_unlock(&l->lock);
    return lost;
}

void rp_log_close(struct rp_log *log)
{
    if (log == NULL) return;
    rp_log_flush(log);
    if (log->owned) close(log->fd);
    pthread_mutex_destroy(&log->lock);
    rp_buf_done(&log->waiting);
    free(log);
}

int rp_log_level_parse(const char *text, enum rp_log_level *out, struct rp_error *err)
{
    for (size_t i = 0; i < LEVELS; i++) {
        if (strcmp(text, level_names[i]) != 0) continue;
        *out = (enum rp_log_level)i;
        return 0;
    }
    return rp_error_set(err, RP_EINVAL, "'%.64s' is not a log level; expected debug, info, warning or error", text);
}

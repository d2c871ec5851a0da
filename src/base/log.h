/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - one JSON object a line: {"at":..., "level":..., "event":..., then the fields}.
 * L1  A line is written with one write() to a file opened O_APPEND: lines of several processes
 *     never mix.
 * L2  Lines wait in a buffer of at most 256 KiB; rp_log_flush or a full buffer writes them.
 * L3  A log that cannot be written never stops the work: the failure is counted in `lost`. It
 *     counts lines: those over 256 KiB, those for which there was no memory, those the file did not
 *     take.
 * L4  Nothing is escaped by hand: the line is a jansson object, or made by rp_json_quote, so a key
 *     with a newline stays one line. */
#ifndef RP_BASE_LOG_H
#define RP_BASE_LOG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct rp_error;
struct rp_log;

enum rp_log_level { RP_LOG_DEBUG, RP_LOG_INFO, RP_LOG_WARNING, RP_LOG_ERROR };

/* `path` "-" is standard error; NULL or "" makes a log that drops everything. Creates the file
 * 0640. Thread-safe. */
int rp_log_open(const char *path, enum rp_log_level least, struct rp_log **out, struct rp_error *err);
/* Steals `fields` (an object, or NULL). A NULL log drops it. A field named at, level or event is
 * left out. */
void rp_log_event(struct rp_log *log, enum rp_log_level level, int64_t at_ms, const char *event, json_t *fields);
/* The same where lines come by the thousand a second and a tree each would cost too much: `members`
 * is the inside of a JSON object, texts in it by rp_json_quote ("\"mark\":\"mrk_...\",\"size\":7"),
 * and none of them at, level or event. */
void rp_log_members(struct rp_log *log, enum rp_log_level level, int64_t at_ms, const char *event, const char *members);
/* Whether a line of this level would be written: asked where building the fields costs more than a
 * look. */
bool rp_log_takes(const struct rp_log *log, enum rp_log_level level);
void rp_log_flush(struct rp_log *log);
/* A log that writes to a file goes on in this one: after a rotation, or another path. On failure it
 * stays as it was. Standard error and a log that drops everything stay what they are; only the
 * level is taken. */
int rp_log_reopen(struct rp_log *log, const char *path, enum rp_log_level least, struct rp_error *err);
uint64_t rp_log_lost(const struct rp_log *log);
void rp_log_close(struct rp_log *log); /* flushes */
int rp_log_level_parse(const char *text, enum rp_log_level *out, struct rp_error *err);

#endif

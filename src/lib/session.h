/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - everything that a surface needs to call the core: configuration, catalog, stores,
 * log, and who is asking. Stores are opened when they are first named. Opening a bucket reaches for
 * nothing: one that does not answer is open, and whoever needs it is told. What is known of its
 * guarantee comes from the catalog; it is probed when somebody needs that (core/guarantee.h). */
#ifndef RP_LIB_SESSION_H
#define RP_LIB_SESSION_H

#include "base/arena.h"
#include "base/log.h"
#include "base/time.h"
#include "catalog/catalog.h"
#include "config/config.h"
#include "core/mark/mark.h"
#include "core/retention/retention.h"
#include "core/run/run.h"
#include "core/safety_net/safety_net.h"
#include "core/store.h"
#include "core/sweep/sweep.h"
#include "store/open.h"

struct rp_session_options {
    const char *config_file;      /* NULL: looked for */
    const char *data;             /* NULL: ./reprieve-data */
    const char *actor;            /* NULL: cli:USER */
    const struct rp_clock *clock; /* NULL: the host's */
    bool migrate;
    bool patient;                    /* as in struct rp_catalog_options */
    bool no_catalog;                 /* configuration and log only */
    struct rp_on_silence on_silence; /* of its buckets */
};

struct rp_session {
    struct rp_arena arena;
    struct rp_config config;
    struct rp_catalog *catalog;
    struct rp_log *log;
    struct rp_clock clock; /* the host's, with what is known of its boot, unless the options give one */
    int64_t booted_at_ms;  /* clock.booted_at_ms points here */
    struct rp_worker worker;
    char actor[RP_ACTOR_MAX];
    struct rp_store stores[RP_STORES_MAX]; /* as config.stores; .backend NULL: not open yet */
    struct rp_raises *raises;        /* of this process: when epochs were raised, and for what (core/owner/raise.h) */
    struct rp_raise_hook raise_hook; /* raises on the thread that asks; a daemon has another (daemon/raiser.h) */
    struct rp_waits *waits;          /* which users' databases are left alone */
    const struct rp_session *of;     /* beside another one, whose configuration and log these are; NULL: not */
    bool own_buckets;                /* it does not share those of `of` */
    uint64_t looked;                 /* at which stores, by rp_session_look: bits by their place in the configuration */
    struct rp_on_silence on_silence; /* who is told that a bucket says nothing */
};

int rp_session_open(struct rp_session *session, const struct rp_session_options *options, struct rp_error *err);
/* A second session for another thread of the same process: the configuration and the log are those
 * of `of`, which outlives it; the catalog's connection, on this lane, and the directories are its
 * own; buckets that `of` has open are shared, so that connections are reused and one probe serves
 * all. `of` opens no more stores from now on. */
int rp_session_beside(const struct rp_session *of, int lane, struct rp_session *session, struct rp_error *err);
/* Raises epochs first, if something was kept alive since the last raise. Harmless on a zeroed one;
 * also the RP_CLEANUP function. */
void rp_session_close(struct rp_session *session);

/* RP_ENOTFOUND names the stores that there are. The store is noted in the catalog if it is new. */
int rp_session_store(struct rp_session *session, const char *name, struct rp_store **out, struct rp_error *err);
/* Looks whose it is, once: what this process makes there is refused if it has another name
 * (core/owner/raise.h, R9). One that gives no answer is taken for ours. */
void rp_session_look(struct rp_session *session, struct rp_store *store);
/* Every configured store; one that cannot be opened has no .backend, and .closed says why. */
int rp_session_stores(struct rp_session *session, struct rp_store **out, size_t *n, struct rp_error *err);
const char *rp_session_store_name(const struct rp_session *session,
                                  int64_t store_id); /* "?" for a store no longer configured */
/* A sweep with this session's settings; stores, name and whom to tell are left to the caller. */
struct rp_sweep rp_session_sweep(struct rp_session *session);
/* The same of a retention. */
struct rp_retention rp_session_retention(struct rp_session *session);
/* And of a safety net; `uploads` is filled, and lent to it. */
struct rp_safety_net rp_session_safety_net(struct rp_session *session, struct rp_upload_rules *uploads);
int64_t rp_session_now_ms(const struct rp_session *session);
/* Lines of the log, now, in this session's name. */
struct rp_journal;
struct rp_journal rp_session_journal(const struct rp_session *session);
/* A line of the log, now, written out at once. Steals the fields. */
void rp_session_log(const struct rp_session *session, enum rp_log_level level, const char *event, json_t *fields);

/* A subject as people write it: STORE:KEY, or the id of a mark or a file. */
struct rp_subject {
    struct rp_store *store; /* STORE:KEY */
    const char *key;        /* borrowed from the text */
    int64_t mark_id;        /* 0: none */
    int64_t file_id;        /* 0: none */
};
int rp_session_subject(struct rp_session *session, const char *text, struct rp_subject *out, struct rp_error *err);

/* Marks a file, and what belongs to it: the verb delete in the words of a mark. `store` takes the
 * file's store. */
int rp_session_mark_file(struct rp_session *session, int64_t file_id, const struct rp_mark_request *request,
                         struct rp_store **store, struct rp_mark_answer *answer, struct rp_error *err);

/* This process, as locks and leases name it: host/pid/start/boot; and whether such a one is
 * certainly gone. */
void rp_worker_self(struct rp_worker *out);
bool rp_worker_is_dead(const char *name);

#endif

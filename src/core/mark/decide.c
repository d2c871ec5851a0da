/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id.h"
#include "base/time.h"
#include "core/check/references.h"
#include "core/mark/inner.h"

#include <inttypes.h>
#include <string.h>

const char *rp_marking_name(enum rp_marking what)
{
    static const char *const names[] = { [RP_MARK_REFUSED] = "refused",
                                         [RP_MARK_SAME] = "already marked",
                                         [RP_MARK_EXTENDED] = "extended",
                                         [RP_MARK_CREATED] = "marked",
                                         [RP_MARK_REPLACED] = "marked" };
    return names[what];
}

static int refuse_absent(const struct rp_mark_request *request, const struct rp_mark_facts *facts, const char *store,
                         struct rp_error *err)
{
    switch (facts->found) {
    case RP_OUT_FOUND:
        return 0;
    case RP_OUT_GONE:
        return rp_error_set(err, RP_ENOTFOUND, "%s:%s does not exist", store, request->key);
    case RP_OUT_DENIED:
        return rp_error_set(err, RP_EDENIED, "%s:%s: %s", store, request->key, facts->note);
    default:
        return rp_error_set(err, RP_EUNAVAILABLE, "%s:%s: %s", store, request->key, facts->note);
    }
}

static int refuse_other(const struct rp_mark_request *request, const struct rp_mark_facts *facts, const char *store,
                        struct rp_error *err)
{
    if (request->imported == NULL || rp_identity_equal(request->imported, &facts->identity)) return 0;
    rp_error_set(err, RP_ECHANGED, "%s:%s was uploaded anew since its annotation was read", store, request->key);
    return rp_error_hint(err, "import it again");
}

/* The object of a file goes with its file, or the file would point at nothing. */
static int refuse_file(const struct rp_mark_request *request, const struct rp_mark_facts *facts, const char *store,
                       struct rp_error *err)
{
    char id[RP_ID_TEXT];
    if (facts->file_id == 0) return 0;
    rp_id_format(RP_ID_FILE, facts->file_id, id);
    rp_error_set(err, RP_EISFILE, "%s:%s is the object of file %s", store, request->key, id);
    return rp_error_hint(err, "delete the file: `reprieve mark %s`", id);
}

static int refuse_references(const struct rp_mark_request *request, const struct rp_mark_facts *facts,
                             const char *store, struct rp_error *err)
{
    if (!request->if_unreferenced) return 0;
    if (facts->references < 0 || facts->references_code < 0) { /* one that never happened is no zero */
        rp_error_set(err, facts->references_code < 0 ? facts->references_code : RP_EUNAVAILABLE,
                     "%s:%s: its references could not be counted: %s", store, request->key, facts->note);
        return rp_error_hint(err, "nothing was marked: `reprieve doctor` says which of the places does not answer");
    }
    if (facts->references == 0) return 0;
    const struct rp_referenced found = { .rows = facts->references, .first = facts->references_in };
    char text[RP_REFERENCED_TEXT];
    rp_error_set(err, RP_EREFERENCED, "%s:%s is still referenced by %s", store, request->key,
                 rp_referenced_text(&found, text));
    return rp_error_hint(err,
                         "nothing was marked: delete what names it and mark again, or mark without if_unreferenced "
                         "(--if-unreferenced)");
}

bool rp_mark_same_upload(const struct rp_mark *mark, const struct rp_identity *identity)
{
    return strcmp(mark->etag, identity->etag) == 0 && strcmp(mark->version, identity->version) == 0 &&
           mark->size_bytes == identity->size_bytes;
}

/* Whoever asks for more time is not told "already marked" and left without it. */
static int refuse_extension(const struct rp_mark_request *request, const struct rp_mark_facts *facts, const char *store,
                            struct rp_error *err)
{
    static const char *const why[RP_STATES] = { [RP_CHECKING] = "whether it may go is being asked",
                                                [RP_PURGING] = "its purge has begun",
                                                [RP_DEAD] = "its purge has failed, and waits for a person" };
    enum rp_state state = facts->active->state;
    rp_error_set(err, RP_EMARKED, "%s:%s is already marked and gets no more time: %s", store, request->key, why[state]);
    return rp_error_hint(err,
                         state == RP_DEAD ? "decide with `reprieve dead`, then mark again"
                                          : "`reprieve explain %s:%s` says what becomes of it",
                         store, request->key);
}

/* An active mark: the same, a later one, or - for a newer upload - a new one. */
static struct rp_mark_decision decide_again(const struct rp_mark_request *request, const struct rp_mark_facts *facts,
                                            const char *store, int64_t due_at_ms, struct rp_error *err)
{
    const struct rp_mark *active = facts->active;
    bool explicit_time = request->imported == NULL && (request->at_ms >= 0 || request->grace_ms >= 0);
    char text[RP_TIME_TEXT];
    /* a file's mark without an identity waits for whatever comes to stand there */
    bool any = active->file_id != 0 && active->etag[0] == '\0' && active->version[0] == '\0';
    bool same = any || rp_mark_same_upload(active, &facts->identity);
    if (active->state == RP_MARKED && !same)
        return (struct rp_mark_decision){ .what = RP_MARK_REPLACED, .due_at_ms = due_at_ms };
    if (!same) {
        rp_error_set(err, RP_EMARKED, "%s:%s: an older upload is being purged under this key right now", store,
                     request->key);
        rp_error_hint(err, active->state == RP_DEAD
                               ? "its purge has failed: decide with `reprieve dead`, then mark again"
                               : "the newer one stays; mark it again in a moment");
        return (struct rp_mark_decision){ .code = RP_EMARKED };
    }
    bool later = explicit_time && due_at_ms > active->due_at_ms;
    if (active->state != RP_MARKED && later)
        return (struct rp_mark_decision){ .code = refuse_extension(request, facts, store, err) };
    if (!explicit_time || active->state != RP_MARKED || due_at_ms == active->due_at_ms)
        return (struct rp_mark_decision){ .what = RP_MARK_SAME, .due_at_ms = active->due_at_ms };
    if (later) return (struct rp_mark_decision){ .what = RP_MARK_EXTENDED, .due_at_ms = due_at_ms };
    rp_error_set(err, RP_EMARKED, "%s:%s is already marked, due %s", store, request->key,
                 rp_time_format(active->due_at_ms, text));
    rp_error_hint(err, "a promise is never shortened: restore it and mark it again");
    return (struct rp_mark_decision){ .code = RP_EMARKED };
}

struct rp_mark_decision rp_mark_decide(const struct rp_mark_request *request, const struct rp_mark_facts *facts,
                                       const struct rp_store_config *config, int64_t now_ms, struct rp_error *err)
{
    struct rp_due asked = { .at_ms = request->at_ms, .grace_ms = request->grace_ms, .config = config };
    int64_t due = rp_due(&asked, now_ms);
    int64_t span = request->at_ms >= 0 ? request->at_ms - now_ms : due - now_ms;
    int code = refuse_absent(request, facts, config->name, err);
    if (code == 0) code = refuse_other(request, facts, config->name, err);
    if (code == 0) code = refuse_file(request, facts, config->name, err);
    if (code == 0 && request->imported == NULL) code = rp_grace_check(config, span, err);
    if (code == 0) code = refuse_references(request, facts, config->name, err);
    if (code < 0) return (struct rp_mark_decision){ .code = code };
    if (facts->active != NULL) return decide_again(request, facts, config->name, due, err);
    return (struct rp_mark_decision){ .what = RP_MARK_CREATED, .due_at_ms = due };
}

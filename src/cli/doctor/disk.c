/* SPDX-License-Identifier: Apache-2.0 */
/* Room on disks, and a place for the segments of the audit log. */
#include "cli/doctor/doctor.h"

#include "core/room.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void rp_doctor_room(struct rp_doctor *d, const struct rp_store_config *store)
{
    char path[RP_RESERVE_PATH], room_text[RP_SIZE_TEXT], reserve_text[RP_SIZE_TEXT];
    struct rp_error why = { 0 };
    struct rp_room room;
    if (!rp_room_reserve(&d->cli->session.config, store, path)) return;
    if (rp_reserve_look(path, &room, &why) < 0) {
        rp_judge_error(d, &why, "see that the directory exists and this user may read it");
        return;
    }
    rp_judge(d, room.full ? RP_WRONG : RP_FINE,
             "free space on its disk; deletes and sweeps go on meanwhile, and the reserve is made again by itself",
             "%s%s free; reserve of %s %s", room.full ? "no space left for what is new: " : "",
             rp_show_size(room.free_bytes, room_text), rp_show_size(room.reserve_bytes, reserve_text),
             room.held ? "kept" : "not there (`reprieve serve` keeps it)");
}

void rp_doctor_disk(struct rp_doctor *d)
{
    rp_doctor_room(d, NULL);
}

/* Why no segment can be written there; NULL: nothing speaks against it. Like the writer, which
 * makes the last directory of the path and no other. */
static const char *segments_trouble(const char *dir)
{
    struct stat st;
    char parent[4096];
    if (stat(dir, &st) == 0) {
        if (!S_ISDIR(st.st_mode)) return "is no directory";
        return access(dir, R_OK | W_OK | X_OK) < 0 ? "cannot be read and written by this user" : NULL;
    }
    if (errno != ENOENT && errno != ENOTDIR) return "cannot be looked at by this user";
    snprintf(parent, sizeof parent, "%s", dir);
    for (size_t n = strlen(parent); n > 1 && parent[n - 1] == '/';)
        parent[--n] = 0;
    char *slash = strrchr(parent, '/');
    if (slash != NULL) slash[slash == parent] = 0;
    const char *above = slash != NULL ? parent : ".";
    if (stat(above, &st) < 0 || !S_ISDIR(st.st_mode)) return "has no parent directory";
    return access(above, W_OK | X_OK) < 0 ? "cannot be made by this user" : NULL;
}

/* Needed once rows of the audit log are to go. */
void rp_doctor_segments(struct rp_doctor *d)
{
    const struct rp_retention_config *retention = &d->cli->session.config.retention;
    bool needed = retention->audit_ms != RP_FOREVER_MS;
    if (retention->segments[0] == 0) return;
    const char *why = segments_trouble(retention->segments);
    if (why == NULL && !needed) return;
    enum rp_verdict bad = needed ? RP_WRONG : RP_DOUBTFUL;
    rp_judge(
        d, why == NULL ? RP_FINE : bad,
        "set retention.segments to a directory that this user may write to; only the last directory of the path is "
        "made",
        "%s%s%s", retention->segments, why != NULL ? " " : "", why != NULL ? why : "");
}

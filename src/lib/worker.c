/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - the name under which this process holds locks: HOST/PID/START/SPACE. SPACE names the
 * boot and the process namespace, START the process's start in ticks since boot: together they say
 * whether a holder can still live. */
#include "lib/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOST_MAX 64

static unsigned long long start_of(long pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "re");
    if (f == NULL) return 0;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    /* the command's name, in parentheses, may hold anything; the start is field 22 */
    const char *at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < 22; field++) {
        at = strchr(at, ' ');
        if (at != NULL) at++;
    }
    return at != NULL ? strtoull(at, NULL, 10) : 0;
}

static void space_of_self(char out[64])
{
    char boot[16] = "";
    struct stat ns = { .st_ino = 0 };
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f != NULL) {
        if (fscanf(f, "%8[0-9a-f]", boot) != 1) boot[0] = 0;
        fclose(f);
    }
    (void)stat("/proc/self/ns/pid", &ns);
    snprintf(out, 64, "%s-%llx", boot, (unsigned long long)ns.st_ino);
}

void rp_worker_self(struct rp_worker *out)
{
    char host[HOST_MAX] = "host", space[64];
    (void)gethostname(host, sizeof host - 1);
    for (char *c = host; *c != 0; c++)
        if (*c == '/') *c = '-';
    space_of_self(space);
    long pid = (long)getpid();
    snprintf(out->name, sizeof out->name, "%s/%ld/%llu/%s", host, pid, start_of(pid), space);
    out->is_dead = rp_worker_is_dead;
}

/* HOST/PID/START/SPACE, cut at the slashes. */
static bool split(char *name, char *parts[4])
{
    char *rest = name;
    for (int i = 0; i < 4; i++)
        parts[i] = strsep(&rest, "/");
    return parts[3] != NULL && rest == NULL;
}

bool rp_worker_is_dead(const char *name)
{
    char copy[sizeof((struct rp_worker *)0)->name], ours_text[sizeof copy];
    char *parts[4], *ours[4];
    struct rp_worker self;
    rp_worker_self(&self);
    snprintf(copy, sizeof copy, "%s", name);
    snprintf(ours_text, sizeof ours_text, "%s", self.name);
    if (!split(copy, parts) || !split(ours_text, ours)) return false;
    if (strcmp(parts[0], ours[0]) != 0 || strcmp(parts[3], ours[3]) != 0) return false;
    long pid = strtol(parts[1], NULL, 10);
    unsigned long long start = strtoull(parts[2], NULL, 10);
    if (pid <= 0) return false;
    if (kill((pid_t)pid, 0) < 0 && errno == ESRCH) return true;
    unsigned long long now = start_of(pid);
    return now != 0 && start != 0 && now != start;
}

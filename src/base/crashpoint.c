/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crashpoint.h"

#ifdef RP_CRASHPOINTS

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *wanted = "";
static size_t wanted_len;
static atomic_long left = 1;

static void read_environment(void)
{
    const char *text = getenv("REPRIEVE_CRASH_AT");
    if (text == NULL) return;
    const char *colon = strchr(text, ':');
    wanted = text;
    wanted_len = colon != NULL ? (size_t)(colon - text) : strlen(text);
    if (colon != NULL) atomic_store(&left, strtol(colon + 1, NULL, 10));
}

void rp_crashpoint(const char *name)
{
    pthread_once(&once, read_environment);
    if (wanted_len == 0 || strlen(name) != wanted_len || memcmp(name, wanted, wanted_len) != 0) return;
    if (atomic_fetch_sub(&left, 1) == 1) kill(getpid(), SIGKILL);
}

#endif

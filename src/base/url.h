/* SPDX-License-Identifier: Apache-2.0 */
/* url.h - what the URL of a database says by itself. Opening one is for db/. */
#ifndef RP_BASE_URL_H
#define RP_BASE_URL_H

#include <stddef.h>
#include <string.h>

#define RP_SQLITE_SCHEME "sqlite:"

/* The path of its file, in the URL, or ":memory:"; NULL: the URL is of another engine. */
static inline const char *rp_sqlite_path(const char *url)
{
    size_t n = sizeof RP_SQLITE_SCHEME - 1;
    return url != NULL && strncmp(url, RP_SQLITE_SCHEME, n) == 0 ? url + n : NULL;
}

#endif

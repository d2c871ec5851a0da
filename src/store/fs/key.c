/* SPDX-License-Identifier: Apache-2.0 */
#include "store/fs/key.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/text/hex.h"

#define CHUNK_BYTES 64 /* of key in a component: 129 characters, within the limit of every file system we know */

static bool component_is(const char *name, size_t n, const char *text)
{
    return n == strlen(text) && memcmp(name, text, n) == 0;
}

bool rp_fs_name_internal(const char *name, size_t n)
{
    return component_is(name, n, "keys") || component_is(name, n, "meta") || component_is(name, n, "tmp");
}

static bool component_plain(const char *name, size_t n)
{
    if (n == 0 || n > RP_FS_NAME_MAX || component_is(name, n, ".") || component_is(name, n, "..")) return false;
    return n < strlen(RP_FS_REMOVING) || memcmp(name, RP_FS_REMOVING, strlen(RP_FS_REMOVING)) != 0;
}

static bool path_plain(const char *path, size_t n)
{
    bool own = false;
    for (size_t start = 0, index = 0; start <= n; index++) {
        const char *slash = memchr(path + start, '/', n - start);
        size_t length = slash ? (size_t)(slash - path) - start : n - start;
        if (!component_plain(path + start, length)) return false;
        if (index == 0) own = component_is(path, length, RP_FS_OWN);
        if (index == 1 && own && rp_fs_name_internal(path + start, length)) return false;
        start += length + 1;
    }
    return true;
}

bool rp_fs_key_plain(const char *key)
{
    size_t n = strlen(key);
    return n <= RP_KEY_MAX && path_plain(key, n) && strcmp(key, RP_FS_OWN) != 0;
}

bool rp_fs_prefix_plain(const char *directory, size_t n)
{
    if (n == 0) return true;
    return n <= RP_KEY_MAX && directory[n - 1] == '/' && path_plain(directory, n - 1);
}

void rp_fs_key_escape(const char *key, char out[RP_FS_PATH_MAX])
{
    size_t n = strlen(key), used = 0;
    RP_ASSERT(n <= RP_KEY_MAX);
    for (size_t at = 0; at < n; at += CHUNK_BYTES) {
        size_t chunk = n - at < CHUNK_BYTES ? n - at : CHUNK_BYTES;
        if (at > 0) {
            out[used++] = '+';
            out[used++] = '/';
        }
        rp_hex_write(key + at, chunk, out + used);
        used += 2 * chunk;
    }
    RP_ASSERT(used < RP_FS_PATH_MAX - strlen(RP_FS_KEYS));
    out[used] = '\0';
}

/* Small letters only, or a key would have two paths (K2). */
static int digit(char c)
{
    return c >= 'A' && c <= 'F' ? -1 : rp_hex_digit(c);
}

bool rp_fs_key_unescape(const char *path, char out[RP_KEY_MAX + 1])
{
    char key[RP_KEY_MAX + 1];
    size_t n = 0;
    for (const char *p = path; *p;) {
        if (n > 0 && n % CHUNK_BYTES == 0) {
            if (p[0] != '+' || p[1] != '/') return false;
            p += 2;
        }
        int high = digit(p[0]), low = high < 0 ? -1 : digit(p[1]);
        if (low < 0 || (high == 0 && low == 0) || n == RP_KEY_MAX) return false;
        key[n++] = (char)(high * 16 + low);
        p += 2;
    }
    if (n == 0) return false;
    memcpy(out, key, n);
    out[n] = '\0';
    return true;
}

bool rp_fs_key_path(const char *key, enum rp_fs_home home, char out[RP_FS_PATH_MAX])
{
    if (home == RP_FS_PLAIN) {
        if (!rp_fs_key_plain(key)) return false;
        memcpy(out, key, strlen(key) + 1);
        return true;
    }
    char escaped[RP_FS_PATH_MAX];
    rp_fs_key_escape(key, escaped);
    int n = snprintf(out, RP_FS_PATH_MAX, "%s%s", RP_FS_KEYS, escaped);
    RP_ASSERT(n > 0 && n < RP_FS_PATH_MAX);
    return true;
}

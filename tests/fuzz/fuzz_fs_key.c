/* SPDX-License-Identifier: Apache-2.0 */
/* Key to path and back, on two keys at once: safe, reversible, injective, in order.
 * The first byte says where the input is cut into two keys. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "store/fs/key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void path_is_safe(const char *path)
{
    RP_ASSERT(path[0] != '/' && strlen(path) < RP_FS_PATH_MAX);
    for (const char *p = path;; p++) {
        size_t n = strcspn(p, "/");
        RP_ASSERT(n > 0 && n <= RP_FS_NAME_MAX);
        RP_ASSERT(!(n == 1 && p[0] == '.') && !(n == 2 && memcmp(p, "..", 2) == 0));
        RP_ASSERT(strncmp(p, RP_FS_REMOVING, strlen(RP_FS_REMOVING)) != 0);
        p += n;
        if (!*p) return;
    }
}

static void key_is_kept(const char *key)
{
    char path[RP_FS_PATH_MAX], back[RP_KEY_MAX + 1];
    if (rp_fs_key_path(key, RP_FS_PLAIN, path)) {
        path_is_safe(path);
        RP_ASSERT(strcmp(path, key) == 0);
        RP_ASSERT(strncmp(path, RP_FS_KEYS, strlen(RP_FS_KEYS)) != 0);
    }
    RP_ASSERT(rp_fs_key_path(key, RP_FS_ESCAPED, path));
    path_is_safe(path);
    RP_ASSERT(strncmp(path, RP_FS_KEYS, strlen(RP_FS_KEYS)) == 0);
    RP_ASSERT(rp_fs_key_unescape(path + strlen(RP_FS_KEYS), back) && strcmp(back, key) == 0);
}

static int sign(int r)
{
    return (r > 0) - (r < 0);
}

static void order_is_kept(const char *a, const char *b)
{
    char path_a[RP_FS_PATH_MAX], path_b[RP_FS_PATH_MAX];
    rp_fs_key_escape(a, path_a);
    rp_fs_key_escape(b, path_b);
    RP_ASSERT(sign(strcmp(a, b)) == sign(strcmp(path_a, path_b)));
    if (strncmp(a, b, strlen(b)) == 0) RP_ASSERT(strncmp(path_a, path_b, strlen(path_b)) == 0);
}

/* A path from the disk that is taken for a key is the one path of that key. */
static void only_own_paths_are_read(const char *path)
{
    char key[RP_KEY_MAX + 1], again[RP_FS_PATH_MAX];
    if (!rp_fs_key_unescape(path, key)) return;
    rp_fs_key_escape(key, again);
    RP_ASSERT(strcmp(path, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char a[RP_KEY_MAX + 1] = "", b[RP_KEY_MAX + 1] = "", path[4096] = "";
    if (size < 3) return 0;
    size_t cut = 1 + data[0] % (size - 1), n_a = cut - 1, n_b = size - cut;
    memcpy(path, data, size < sizeof path ? size : sizeof path - 1);
    only_own_paths_are_read(path);
    only_own_paths_are_read(path + 1);
    if (rp_key_check((const char *)data + 1, n_a, NULL) < 0 || rp_key_check((const char *)data + cut, n_b, NULL) < 0)
        return 0;
    memcpy(a, data + 1, n_a);
    memcpy(b, data + cut, n_b);
    key_is_kept(a);
    key_is_kept(b);
    order_is_kept(a, b);
    order_is_kept(b, a);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* key.h - where a key lives under the root of a directory store. Pure functions of text.
 *
 * K1  Plain home: path = key, where that is a path that leads nowhere else: no empty, "." or ".."
 *     component, none over 255 bytes or beginning with the reserved ".reprieve~", none of the
 *     store's internal directories.
 * K2  Escaped home, for every other key and for those whose plain path is blocked: the key in hex,
 *     cut into components of 64 bytes of key; all but the last end in '+'. It is reversible and
 *     injective, and the order in which a walk meets the paths (directories compared as "name/") is
 *     the byte order of the keys.
 * K3  A file of either home has another name for the moment of its removal (removing.c). */
#ifndef RP_STORE_FS_KEY_H
#define RP_STORE_FS_KEY_H

#include <stdbool.h>

#include "store/backend.h"

#define RP_FS_OWN      ".reprieve"
#define RP_FS_KEYS     ".reprieve/keys/"
#define RP_FS_META     ".reprieve/meta"
#define RP_FS_TMP      ".reprieve/tmp"
#define RP_FS_REMOVING ".reprieve~"
#define RP_FS_NAME_MAX 255
#define RP_FS_PATH_MAX 2304 /* any path made here, NUL included */

enum rp_fs_home { RP_FS_PLAIN, RP_FS_ESCAPED, RP_FS_HOMES };

/* True for the directories under .reprieve/ that hold no objects under their plain names. */
bool rp_fs_name_internal(const char *name, size_t n);
/* May this relative path be used as it is? `directory`: it is the "a/b/" of a prefix, so it ends in
 * a slash. */
bool rp_fs_key_plain(const char *key);
bool rp_fs_prefix_plain(const char *directory, size_t n);
/* The path below RP_FS_KEYS; also of a prefix: every key that begins with it has a path that begins
 * with the result. */
void rp_fs_key_escape(const char *key, char out[RP_FS_PATH_MAX]);
bool rp_fs_key_unescape(const char *path, char out[RP_KEY_MAX + 1]);
/* The path from the root in that home; false if the key cannot be there. */
bool rp_fs_key_path(const char *key, enum rp_fs_home home, char out[RP_FS_PATH_MAX]);

#endif

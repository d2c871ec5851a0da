/* SPDX-License-Identifier: Apache-2.0 */
/* cleanup.h - memory and handles are released where their scope ends.
 * RP_CLEANUP(fn) calls fn(&variable). Every type that is owned has a `..._freep`/`..._closep` for
 * it. */
#ifndef RP_BASE_CLEANUP_H
#define RP_BASE_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

#define RP_CLEANUP(fn) __attribute__((cleanup(fn)))

static inline void rp_freep(void *pointer) /* RP_CLEANUP(rp_freep) char *s = NULL; */
{
    free(*(void **)pointer);
}

static inline void rp_fd_closep(const int *fd) /* RP_CLEANUP(rp_fd_closep) int fd = -1; */
{
    if (*fd >= 0) close(*fd);
}

#endif

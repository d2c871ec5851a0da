/* SPDX-License-Identifier: Apache-2.0 */
/* lossy_disk.c - a disk that forgets what was not synced, beneath the program as it is shipped
 * (LD_PRELOAD): what SQLite writes and what the directory store writes alike. It stands below
 * SQLite's own VFS, so that the one in use is the real one.
 *
 * D1  Every call goes through. Before a file changes, what stood there goes to LOSSY_DIR/journal:
 *     bytes and size of every write and truncation, and every name that is made, removed or moved.
 *     What loses a name is kept by a link in LOSSY_DIR.
 * D2  After an fsync, fdatasync or syncfs that succeeded, the journal says up to where the inode's
 *     changes are durable; for a directory these are its names. A new file's name is durable by its
 *     directory alone.
 * D3  Any number of processes and threads share a journal: a record is one appending write. A
 *     record of a change stands before the change, a record of a sync behind it: whenever a process
 *     dies, the journal promises less than the disk, never more.
 * D4  LOSSY_SWALLOW=files or directories: syncs of that kind do nothing and say that they did (the
 *     twin that must be noticed).
 *
 * Nothing is lost here: tests/crash/power.py reads the journal when all processes are dead, and
 * takes back what it chooses. Not seen: stdio's own writes, mappings (SQLite's -shm, which is
 * rebuilt anyway), names made by openat2. */
#undef _FILE_OFFSET_BITS /* with it, open and open64 would be one name */
#undef _FORTIFY_SOURCE   /* it has bodies of its own for the calls below */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILES       "files"
#define DIRECTORIES "directories"

struct record { /* as power.py reads it; n bytes follow */
    uint64_t type, a, b, c, d, n;
};

struct entry {
    char name[256];
    ino_t dir, inode; /* inode 0: no such name */
    bool seen;        /* it is on this disk */
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int journal = -1;
static dev_t device;
static char directory[3072];
static const char *swallow = "";

#define REAL(name) ((__typeof__(&(name)))real_##name)
/* clang-format off */
#define EACH(X) \
    X(open) X(open64) X(write) X(pwrite) X(pwrite64) X(ftruncate) X(ftruncate64) X(fsync) X(fdatasync) \
    X(syncfs) X(rename) X(renameat) X(renameat2) X(link) X(linkat) X(unlink) X(unlinkat) X(rmdir) \
    X(mkdir) X(mkdirat)
/* clang-format on */
#define DECLARE(name) static void *real_##name;
EACH(DECLARE)

static void find_all(void)
{
#define FIND(name) real_##name = dlsym(RTLD_NEXT, #name);
    EACH(FIND)
    const char *where = getenv("LOSSY_DIR");
    char path[sizeof directory + 16];
    struct stat st;
    if (where == NULL || strlen(where) >= sizeof directory) return;
    memcpy(directory, where, strlen(where) + 1);
    if (getenv("LOSSY_SWALLOW") != NULL) swallow = getenv("LOSSY_SWALLOW");
    (void)snprintf(path, sizeof path, "%s/journal", directory);
    int fd = REAL(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || fstat(fd, &st) < 0) abort();
    device = st.st_dev;
    journal = fd;
}

static bool is_on(void)
{
    pthread_once(&once, find_all);
    return journal >= 0;
}

static void note(const struct record *r, const void *bytes)
{
    struct iovec parts[2] = { { (void *)(uintptr_t)r, sizeof *r }, { (void *)(uintptr_t)bytes, r->n } };
    if (writev(journal, parts, 2) != (ssize_t)(sizeof *r + r->n)) abort(); /* a journal with a hole proves nothing */
}

static uint64_t journal_end(void)
{
    struct stat st;
    if (fstat(journal, &st) < 0) abort();
    return (uint64_t)st.st_size;
}

/* ---- bytes ---- */

static bool is_ours(int fd, struct stat *st)
{
    return is_on() && fd != journal && fstat(fd, st) == 0 && st->st_dev == device;
}

/* The descriptor may be for writing only. */
static void read_before(int fd, char *to, size_t n, off_t at)
{
    char path[64];
    if (pread(fd, to, n, at) == (ssize_t)n) return;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = REAL(open)(path, O_RDONLY | O_CLOEXEC);
    if (again < 0 || pread(again, to, n, at) != (ssize_t)n) abort();
    close(again);
}

static void note_bytes(int fd, struct record *r, off_t at)
{
    char *before = r->n > 0 ? malloc(r->n) : NULL;
    if (r->n > 0 && before == NULL) abort();
    if (r->n > 0) read_before(fd, before, r->n, at);
    note(r, before);
    free(before);
}

static void before_write(int fd, off_t at, size_t n)
{
    int failure = errno;
    struct stat st;
    if (!is_ours(fd, &st) || !S_ISREG(st.st_mode)) return;
    if (at < 0) at = (fcntl(fd, F_GETFL) & O_APPEND) ? st.st_size : lseek(fd, 0, SEEK_CUR);
    uint64_t there = at < st.st_size ? (uint64_t)(st.st_size - at) : 0;
    struct record r = { .type = 'W', .a = st.st_ino, .b = (uint64_t)at, .c = (uint64_t)st.st_size, .d = n };
    r.n = there < n ? there : n;
    note_bytes(fd, &r, at);
    errno = failure;
}

static void before_truncate(int fd, off_t size)
{
    struct stat st;
    if (!is_ours(fd, &st) || !S_ISREG(st.st_mode)) return;
    struct record r = { .type = 'T', .a = st.st_ino, .b = (uint64_t)size, .c = (uint64_t)st.st_size };
    r.n = size < st.st_size ? (uint64_t)(st.st_size - size) : 0;
    note_bytes(fd, &r, size);
}

/* ---- syncs ---- */

static int synced(int fd, int (*real)(int))
{
    struct stat st;
    if (!is_ours(fd, &st)) return real(fd);
    uint64_t upto = journal_end();
    if (strcmp(swallow, S_ISDIR(st.st_mode) ? DIRECTORIES : FILES) == 0) return 0;
    int r = real(fd);
    if (r == 0) note(&(struct record){ .type = 'S', .a = st.st_ino, .b = upto }, NULL);
    return r;
}

/* ---- names ---- */

static void entry_look(int dir_fd, const char *path, int flags, struct entry *out)
{
    char parent[4096] = ".";
    struct stat st;
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    *out = (struct entry){ .seen = false };
    if (!is_on() || strlen(path) >= sizeof parent || strlen(name) >= sizeof out->name) return;
    if (slash != NULL) memcpy(parent, path, (size_t)(slash - path) + 1);
    if (slash != NULL) parent[slash - path + 1] = '\0';
    memcpy(out->name, name, strlen(name) + 1);
    if (fstatat(dir_fd, parent, &st, 0) < 0 || (st.st_dev != device && flags == 0)) return;
    out->dir = st.st_ino;
    out->seen = true;
    if (fstatat(dir_fd, path, &st, (flags & AT_SYMLINK_FOLLOW) ? 0 : AT_SYMLINK_NOFOLLOW) == 0) out->inode = st.st_ino;
}

/* A second name outside, so that the file is there when its removal is taken back. A directory
 * needs none, nor does what has one. */
static void keep(int dir_fd, const char *path, const struct entry *e)
{
    char kept[sizeof directory + 32];
    int failure = errno;
    if (!e->seen || e->inode == 0) return;
    (void)snprintf(kept, sizeof kept, "%s/%llu", directory, (unsigned long long)e->inode);
    if (REAL(linkat)(dir_fd, path, AT_FDCWD, kept, 0) < 0) errno = failure;
}

static void note_entry(char type, const struct entry *e)
{
    int failure = errno;
    if (!e->seen || e->inode == 0) return;
    struct record r = { .type = (uint64_t)type, .a = e->dir, .b = e->inode, .n = strlen(e->name) };
    note(&r, e->name);
    errno = failure;
}

static void note_made(int dir_fd, const char *path)
{
    int failure = errno;
    struct entry e;
    entry_look(dir_fd, path, 0, &e);
    note_entry('C', &e);
    errno = failure;
}

static void before_unlink(int dir_fd, const char *path)
{
    struct entry e;
    entry_look(dir_fd, path, 0, &e);
    keep(dir_fd, path, &e);
    note_entry('U', &e);
}

static void before_rename(int from_fd, const char *from, int to_fd, const char *to)
{
    struct entry old, new;
    char names[2 * sizeof old.name];
    entry_look(from_fd, from, 0, &old);
    entry_look(to_fd, to, 0, &new);
    if (!old.seen || !new.seen || old.inode == 0) return;
    keep(to_fd, to, &new);
    struct record r = { .type = 'R', .a = old.dir, .b = old.inode, .c = new.dir, .d = new.inode };
    r.n = (uint64_t)snprintf(names, sizeof names, "%s/%s", old.name, new.name);
    note(&r, names);
}

static void before_link(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    struct entry old, new;
    entry_look(from_fd, from, flags, &old);
    entry_look(to_fd, to, 0, &new);
    if (new.inode != 0) return; /* it will be refused */
    new.inode = old.inode;
    note_entry('C', &new);
}

/* ---- the calls ---- */

static bool is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static int open_noted(int (*real)(const char *, int, ...), const char *path, int flags, mode_t mode)
{
    bool making = is_on() && (flags & O_CREAT) != 0 && !is_there(path);
    int fd = real(path, flags, mode);
    if (fd >= 0 && making) note_made(AT_FDCWD, path);
    return fd;
}

#define OPEN(name)                                                                                                     \
    int name(const char *file, int oflag, ...)                                                                         \
    {                                                                                                                  \
        va_list more;                                                                                                  \
        va_start(more, oflag);                                                                                         \
        mode_t mode = (oflag & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;                                               \
        va_end(more);                                                                                                  \
        (void)is_on();                                                                                                 \
        return open_noted(REAL(name), file, oflag, mode);                                                              \
    }
OPEN(open)
OPEN(open64)

ssize_t write(int fd, const void *buf, size_t n)
{
    before_write(fd, -1, n);
    return REAL(write)(fd, buf, n);
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    before_write(fd, offset, n);
    return REAL(pwrite)(fd, buf, n, offset);
}

ssize_t pwrite64(int fd, const void *buf, size_t n, off64_t offset)
{
    before_write(fd, offset, n);
    return REAL(pwrite64)(fd, buf, n, offset);
}

int ftruncate(int fd, off_t length)
{
    before_truncate(fd, length);
    return REAL(ftruncate)(fd, length);
}

int ftruncate64(int fd, off64_t length)
{
    before_truncate(fd, length);
    return REAL(ftruncate64)(fd, length);
}

int fsync(int fd)
{
    (void)is_on();
    return synced(fd, REAL(fsync));
}

int fdatasync(int fildes)
{
    (void)is_on();
    return synced(fildes, REAL(fdatasync));
}

int syncfs(int fd)
{
    struct stat st;
    if (!is_ours(fd, &st)) return REAL(syncfs)(fd);
    uint64_t upto = journal_end();
    if (*swallow != '\0') return 0;
    int r = REAL(syncfs)(fd);
    if (r == 0) note(&(struct record){ .type = 'A', .b = upto }, NULL);
    return r;
}

int rename(const char *old, const char *new)
{
    before_rename(AT_FDCWD, old, AT_FDCWD, new);
    return REAL(rename)(old, new);
}

int renameat(int oldfd, const char *old, int newfd, const char *new)
{
    before_rename(oldfd, old, newfd, new);
    return REAL(renameat)(oldfd, old, newfd, new);
}

int renameat2(int oldfd, const char *old, int newfd, const char *new, unsigned flags)
{
    before_rename(oldfd, old, newfd, new);
    return REAL(renameat2)(oldfd, old, newfd, new, flags);
}

int link(const char *from, const char *to)
{
    before_link(AT_FDCWD, from, AT_FDCWD, to, 0);
    return REAL(link)(from, to);
}

int linkat(int fromfd, const char *from, int tofd, const char *to, int flags)
{
    before_link(fromfd, from, tofd, to, flags);
    return REAL(linkat)(fromfd, from, tofd, to, flags);
}

int unlink(const char *name)
{
    before_unlink(AT_FDCWD, name);
    return REAL(unlink)(name);
}

int unlinkat(int fd, const char *name, int flag)
{
    before_unlink(fd, name);
    return REAL(unlinkat)(fd, name, flag);
}

int rmdir(const char *path)
{
    before_unlink(AT_FDCWD, path);
    return REAL(rmdir)(path);
}

int mkdir(const char *path, mode_t mode)
{
    (void)is_on();
    int r = REAL(mkdir)(path, mode);
    if (r == 0) note_made(AT_FDCWD, path);
    return r;
}

int mkdirat(int fd, const char *path, mode_t mode)
{
    (void)is_on();
    int r = REAL(mkdirat)(fd, path, mode);
    if (r == 0) note_made(fd, path);
    return r;
}

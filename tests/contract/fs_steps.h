/* SPDX-License-Identifier: Apache-2.0 */
/* fs_steps.h - a directory store under a directory of its own, and the ways in which tests get in
 * its way. */
#ifndef RP_TESTS_FS_STEPS_H
#define RP_TESTS_FS_STEPS_H

#include <sys/stat.h>
#include <sys/wait.h>

#include "store/fs/fs.h"
#include "store_steps.h"

#define CRASHED 77

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static struct rp_error error;

struct fixture {
    struct rp_backend *backend;
    char dir[64]; /* holds root/ and outside/ */
    char root[80];
};

static inline int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    *state = f;
    tree_make(f->dir, sizeof f->dir, "/tmp");
    snprintf(f->root, sizeof f->root, "%s/root", f->dir);
    ok(rp_fs_open(f->root, true, &f->backend, &error));
    return 0;
}

static inline int close_fixture(void **state)
{
    struct fixture *f = *state;
    rp_backend_close(f->backend);
    tree_remove(f->dir);
    free(f);
    return 0;
}

static inline const char *at(const struct fixture *f, const char *path)
{
    static char text[8][2600];
    static unsigned turn;
    char *out = text[turn++ % 8];
    snprintf(out, sizeof text[0], "%s/%s", f->root, path);
    return out;
}

static inline void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static inline void expect_file(const char *path, const char *text)
{
    char got[256] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    got[fread(got, 1, sizeof got - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(got, text);
}

static inline bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static size_t counted;

static inline int count_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)ftw;
    counted += type == FTW_F && !strstr(path, "/tmp/lock");
    return 0;
}

static inline size_t files_below(const char *path)
{
    counted = 0;
    nftw(path, count_file, 32, FTW_PHYS);
    return counted;
}

/* Another program's atomic replacement: no lock, just a rename. */
static inline void replace_outside(const struct fixture *f, const char *path, const char *text)
{
    char temp[128];
    snprintf(temp, sizeof temp, "%s/outside-temp", f->dir);
    write_file(temp, text);
    assert_int_equal(rename(temp, at(f, path)), 0);
}

/* Runs the steps in a child whose failed assertions end the child, not the run. */
static inline void in_child(const char *name, CMUnitTestFunction steps, void *state)
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const struct CMUnitTest tests[] = { { name, steps, NULL, NULL, state } };
        int failed = _cmocka_run_group_tests(name, tests, 1, NULL, NULL);
        fflush(NULL);
        _exit(failed);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static const struct rp_pair old_pair = { "which", "old" }, new_pair = { "which", "new" };
static const struct rp_meta old_meta = { .user = &old_pair, .n_user = 1 },
                            new_meta = { .user = &new_pair, .n_user = 1 };

static inline struct rp_identity put_meta(struct rp_backend *s, const char *key, const char *text,
                                          const struct rp_meta *meta)
{
    struct rp_identity id;
    ok(put_bytes(s, key, text, strlen(text), meta, 0, &id, &error));
    return id;
}

static inline void expect_meta(struct rp_backend *s, const char *key, const char *value)
{
    struct rp_arena arena = RP_ARENA((size_t)1 << 20);
    struct rp_meta meta = { 0 };
    ok(rp_backend_get(s, key, NULL, &arena, &meta, NULL, &error));
    assert_int_equal(meta.n_user, value ? 1 : 0);
    if (value) assert_string_equal(meta.user[0].value, value);
    rp_arena_done(&arena);
}

struct intruder {
    struct fixture *f;
    const char *path, *point, *then; /* at `point` replace; at `then` once more, or stop the process if it is "crash" */
    const char *crash_at;
    int moves;
};

static inline void intrude(void *ctx, const char *point)
{
    struct intruder *i = ctx;
    if (i->point && strcmp(point, i->point) == 0 && i->moves++ == 0) replace_outside(i->f, i->path, "newer");
    if (i->then && strcmp(point, i->then) == 0) replace_outside(i->f, i->path, "newest");
    if (i->crash_at && strcmp(point, i->crash_at) == 0) _exit(CRASHED);
}

static inline void hook(struct fixture *f, struct intruder *i)
{
    rp_fs_of(f->backend)->hook = i ? intrude : NULL;
    rp_fs_of(f->backend)->hook_ctx = i;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "fs_steps.h"

static size_t counted;

int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    *state = f;
    tree_make(f->dir, sizeof f->dir, "/tmp");
    snprintf(f->root, sizeof f->root, "%s/root", f->dir);
    ok(rp_fs_open(f->root, true, &f->backend, &error));
    return 0;
}

int close_fixture(void **state)
{
    struct fixture *f = *state;
    rp_backend_close(f->backend);
    tree_remove(f->dir);
    free(f);
    return 0;
}

const char *at(const struct fixture *f, const char *path)
{
    static char text[8][2600];
    static unsigned turn;
    char *out = text[turn++ % 8];
    snprintf(out, sizeof text[0], "%s/%s", f->root, path);
    return out;
}

void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

void expect_file(const char *path, const char *text)
{
    char got[256] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    got[fread(got, 1, sizeof got - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(got, text);
}

bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static int count_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)ftw;
    counted += type == FTW_F && !strstr(path, "/tmp/lock");
    return 0;
}

size_t files_below(const char *path)
{
    counted = 0;
    nftw(path, count_file, 32, FTW_PHYS);
    return counted;
}

void replace_outside(const struct fixture *f, const char *path, const char *text)
{
    char temp[128];
    snprintf(temp, sizeof temp, "%s/outside-temp", f->dir);
    write_file(temp, text);
    assert_int_equal(rename(temp, at(f, path)), 0);
}

void in_child(const char *name, CMUnitTestFunction steps, void *state)
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

struct rp_identity put_meta(struct rp_backend *s, const char *key, const char *text, const struct rp_meta *meta)
{
    struct rp_identity id;
    ok(put_bytes(s, key, text, strlen(text), meta, 0, &id, &error));
    return id;
}

void expect_meta(struct rp_backend *s, const char *key, const char *value)
{
    struct rp_arena arena = RP_ARENA((size_t)1 << 20);
    struct rp_meta meta = { 0 };
    ok(rp_backend_get(s, key, NULL, &arena, &meta, NULL, &error));
    assert_int_equal(meta.n_user, value ? 1 : 0);
    if (value) assert_string_equal(meta.user[0].value, value);
    rp_arena_done(&arena);
}

static void intrude(void *ctx, const char *point)
{
    struct intruder *i = ctx;
    if (i->point && strcmp(point, i->point) == 0 && i->moves++ == 0) replace_outside(i->f, i->path, "newer");
    if (i->then && strcmp(point, i->then) == 0) replace_outside(i->f, i->path, "newest");
    if (i->crash_at && strcmp(point, i->crash_at) == 0) _exit(CRASHED);
}

void hook(struct fixture *f, struct intruder *i)
{
    rp_fs_of(f->backend)->hook = i ? intrude : NULL;
    rp_fs_of(f->backend)->hook_ctx = i;
}

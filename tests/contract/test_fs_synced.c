/* SPDX-License-Identifier: Apache-2.0 */
/* Which directories the directory store syncs before it answers: every one on the way to an upload
 * once (F9), and not again. The program's own fsync and syncfs stand in between and count. What is
 * lost without them: tests/crash/power_lost. */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include "fs_steps.h"

#define SYNCED_MAX 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ino_t synced[SYNCED_MAX]; /* by inode, files too */
static size_t n_synced, n_all;   /* of whole file systems */
static int refuse;               /* an errno for every directory */

static void note(int fd)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    pthread_mutex_lock(&lock);
    if (n_synced < SYNCED_MAX) synced[n_synced++] = st.st_ino;
    pthread_mutex_unlock(&lock);
}

int fsync(int fd)
{
    struct stat st;
    if (refuse != 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        errno = refuse;
        return -1;
    }
    note(fd);
    return (int)syscall(SYS_fsync, fd);
}

int syncfs(int fd)
{
    pthread_mutex_lock(&lock);
    n_all++;
    pthread_mutex_unlock(&lock);
    return (int)syscall(SYS_syncfs, fd);
}

static void forget(void)
{
    n_synced = n_all = 0;
}

static int open_willing(void **state)
{
    refuse = 0;
    return open_fixture(state);
}

/* How often since forget(); 0 is also what a path has that is not there. */
static size_t times(const char *path)
{
    struct stat st;
    size_t n = 0;
    if (stat(path, &st) < 0) return 0;
    for (size_t i = 0; i < n_synced; i++)
        n += synced[i] == st.st_ino;
    return n;
}

static void upload(struct fixture *f, const char *key)
{
    forget();
    put_text(f->backend, key, "bytes");
}

static void open_again(struct fixture *f)
{
    rp_backend_close(f->backend);
    ok(rp_fs_open(f->root, false, &f->backend, &error));
}

static void make_dirs(const struct fixture *f, const char *const *paths, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(mkdir(at(f, paths[i]), 0777), 0);
}

static void the_way_to_an_upload_is_synced_once(void **state)
{
    struct fixture *f = *state;
    make_dirs(f, (const char *const[]){ "a", "a/b" }, 2);
    upload(f, "a/b/1");
    assert_true(times(f->root) >= 1 && times(at(f, "a")) == 1 && times(at(f, "a/b")) == 1);
    upload(f, "a/b/2");
    assert_true(times(f->root) == 0 && times(at(f, "a")) == 0 && times(at(f, "a/b")) == 1);
    upload(f, "a/3");
    assert_true(times(f->root) == 0 && times(at(f, "a")) == 1);
    open_again(f); /* what another one knew is not known here */
    upload(f, "a/b/4");
    assert_true(times(f->root) >= 1 && times(at(f, "a")) == 1);
}

static void the_root_and_what_is_above_it_are_synced_with_the_first_write(void **state)
{
    struct fixture *f = *state;
    upload(f, "1");
    assert_int_equal(times(f->dir), 1);
    assert_true(times("/tmp") == 1 || n_all > 0);
    upload(f, "2");
    assert_true(times(f->dir) == 0 && times("/tmp") == 0 && n_all == 0);
}

static void what_is_made_here_is_synced_here(void **state)
{
    struct fixture *f = *state;
    upload(f, "new/deep/1");
    assert_true(times(f->root) >= 1 && times(at(f, "new")) == 1 && times(at(f, "new/deep")) == 1);
    upload(f, "new/deep/2");
    assert_true(times(f->root) == 0 && times(at(f, "new")) == 0);
}

static struct rp_fs_dir_id id_of(const char *path)
{
    struct rp_fs_dir_id id;
    int fd = open(path, O_PATH | O_DIRECTORY);
    assert_int_equal(rp_fs_dir_id_of(fd, &id), 0);
    close(fd);
    return id;
}

/* Of the clock that gives directories their time of birth: B2. */
static void let_a_tick_pass(const struct fixture *f, const struct rp_fs_dir_id *since)
{
    struct rp_fs_dir_id now = *since;
    for (int i = 0; now.born_ns == since->born_ns; i++) {
        assert_true(i < 100000); /* seconds */
        assert_int_equal(mkdir(at(f, "tick"), 0777), 0);
        now = id_of(at(f, "tick"));
        assert_int_equal(rmdir(at(f, "tick")), 0);
    }
}

/* Most file systems give the inode of the old one to the new one, if it is asked for often
 * enough. */
static void a_directory_that_was_made_again_is_another_one(void **state)
{
    struct fixture *f = *state;
    char spare[32];
    upload(f, "a/1");
    struct rp_fs_dir_id old = id_of(at(f, "a"));
    struct rp_identity id = identity_of(f->backend, "a/1");
    assert_int_equal(remove_one(f->backend, "a/1", &id), RP_OUT_DELETED);
    assert_int_equal(rmdir(at(f, "a")), 0);
    let_a_tick_pass(f, &old);
    assert_int_equal(mkdir(at(f, "a"), 0777), 0);
    for (int i = 0; i < 64 && id_of(at(f, "a")).ino != old.ino; i++) {
        snprintf(spare, sizeof spare, "spare-%d", i);
        assert_int_equal(rename(at(f, "a"), at(f, spare)), 0);
        assert_int_equal(mkdir(at(f, "a"), 0777), 0);
    }
    if (id_of(at(f, "a")).ino != old.ino) print_message("its inode was not used again\n");
    upload(f, "a/2");
    assert_int_equal(times(f->root), 1);
}

static void a_directory_that_was_moved_here_is_another_one(void **state)
{
    struct fixture *f = *state;
    upload(f, "a/1");
    upload(f, "b/1");
    assert_int_equal(rename(at(f, "a"), at(f, "c")), 0);
    upload(f, "c/2");
    assert_int_equal(times(f->root), 1);
    assert_int_equal(rename(at(f, "b"), at(f, "a")), 0); /* under a name that was known */
    upload(f, "a/2");
    assert_int_equal(times(f->root), 1);
    upload(f, "a/3");
    assert_int_equal(times(f->root), 0);
}

static void sidecars_and_copies_have_durable_ways_too(void **state)
{
    struct fixture *f = *state;
    const struct rp_pair pair = { "content-type", "text/plain" };
    const struct rp_meta meta = { .headers = &pair, .n_headers = 1 };
    make_dirs(f, (const char *const[]){ ".reprieve", ".reprieve/meta", ".reprieve/quarantine" }, 3);
    forget();
    ok(put_bytes(f->backend, "k", "x", 1, &meta, RP_PUT_REPLACE, NULL, &error));
    assert_true(times(at(f, ".reprieve")) >= 2); /* the names tmp and meta */
    struct rp_identity id = identity_of(f->backend, "k");
    forget();
    ok(rp_backend_copy(f->backend, "k", &id, ".reprieve/quarantine/1", NULL, &error));
    assert_int_equal(times(at(f, ".reprieve")), 1);
}

static void look_at(struct rp_backend *backend, const char *key)
{
    struct rp_item items[2] = { { .key = key }, { .key = key } };
    forget();
    ok(rp_backend_stat(backend, items, 2, &error));
    assert_int_equal(items[1].outcome, RP_OUT_FOUND);
}

/* F10 */
static void what_is_found_is_synced_unless_we_have_done_it(void **state)
{
    struct fixture *f = *state;
    struct rp_backend *other;
    upload(f, "a/1");
    look_at(f->backend, "a/1");
    assert_int_equal(n_synced, 0);
    ok(rp_fs_open(f->root, false, &other, &error));
    look_at(other, "a/1");
    assert_true(times(at(f, "a")) == 1 && n_synced == 1);
    look_at(other, "a/1");
    assert_int_equal(n_synced, 0);
    rp_backend_close(other);
    replace_outside(f, "a/1", "of another program");
    look_at(f->backend, "a/1");
    assert_int_equal(times(at(f, "a")), 1);
    replace_outside(f, "a/1", "once more");
    struct rp_item item = { .key = "a/1" };
    refuse = ENOSPC;
    assert_int_equal(rp_backend_stat(f->backend, &item, 1, &error), RP_EFULL);
    refuse = 0;
    look_at(f->backend, "a/1"); /* what failed is not taken for done */
    assert_int_equal(times(at(f, "a")), 1);
}

/* "Gone" must not come back after a loss of power, whoever removed it and in whichever home. */
static void what_is_found_gone_is_synced_in_its_home(void **state)
{
    struct fixture *f = *state;
    static const char *const objects[][3] = { { "a/1", "a/1", "a" },
                                              { "..", ".reprieve/keys/2e2e", ".reprieve/keys" } };
    for (size_t i = 0; i < 2; i++) {
        upload(f, objects[i][0]);
        struct rp_identity id = identity_of(f->backend, objects[i][0]);
        assert_int_equal(unlink(at(f, objects[i][1])), 0);
        forget();
        assert_int_equal(remove_one(f->backend, objects[i][0], &id), RP_OUT_GONE);
        assert_int_equal(times(at(f, objects[i][2])), 1);
    }
}

static void what_cannot_be_synced_is_not_answered_for(void **state)
{
    struct fixture *f = *state;
    upload(f, "1");
    make_dirs(f, (const char *const[]){ "a" }, 1);
    for (int i = 0; i < 2; i++) {
        refuse = ENOSPC;
        int r = put_bytes(f->backend, "a/1", "x", 1, NULL, RP_PUT_REPLACE, NULL, &error);
        refuse = 0;
        assert_true(r < 0);
        expect_absent(f->backend, "a/1");
    }
    upload(f, "a/1");
    assert_int_equal(times(f->root), 1);
}

/* As a user who may pass through a directory and not read it. */
static void through_an_unreadable_directory_everything_is_synced(void **state)
{
    struct fixture *f = *state;
    make_dirs(f, (const char *const[]){ "a", "a/b", ".reprieve", ".reprieve/tmp" }, 4);
    assert_int_equal(chmod(f->dir, 0755), 0);
    assert_true(chmod(f->root, 0777) == 0 && chmod(at(f, "a"), 0711) == 0 && chmod(at(f, "a/b"), 0777) == 0);
    assert_true(chmod(at(f, ".reprieve"), 0777) == 0 && chmod(at(f, ".reprieve/tmp"), 0777) == 0);
    if (geteuid() == 0) assert_int_equal(seteuid(65534), 0);
    if (geteuid() != 65534) assert_int_equal(chmod(at(f, "a"), 0111), 0);
    open_again(f);
    upload(f, "a/b/1");
    assert_true(n_all >= 1);
    upload(f, "a/b/2");
    assert_int_equal(n_all, 0);
}

static void through_an_unreadable_directory(void **state)
{
    in_child(__func__, through_an_unreadable_directory_everything_is_synced, *state);
}

int main(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, open_willing, close_fixture)
    const struct CMUnitTest tests[] = {
        WITH_STORE(the_way_to_an_upload_is_synced_once),
        WITH_STORE(the_root_and_what_is_above_it_are_synced_with_the_first_write),
        WITH_STORE(what_is_made_here_is_synced_here),
        WITH_STORE(a_directory_that_was_made_again_is_another_one),
        WITH_STORE(a_directory_that_was_moved_here_is_another_one),
        WITH_STORE(sidecars_and_copies_have_durable_ways_too),
        WITH_STORE(what_is_found_is_synced_unless_we_have_done_it),
        WITH_STORE(what_is_found_gone_is_synced_in_its_home),
        WITH_STORE(what_cannot_be_synced_is_not_answered_for),
        WITH_STORE(through_an_unreadable_directory),
    };
    char probe[] = "/tmp/rp-synced-XXXXXX";
    assert_non_null(mkdtemp(probe));
    bool told = id_of(probe).born_ns != 0;
    rmdir(probe);
    if (!told) {
        print_message("skipped: the file system of /tmp does not tell when a directory was made\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

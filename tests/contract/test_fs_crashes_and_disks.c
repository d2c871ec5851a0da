/* SPDX-License-Identifier: Apache-2.0 */
/* The directory store in trouble: crashes at every point, full, read-only, hidden and vanished
 * disks, permissions, and a million files. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>

#include "base/time.h"
#include "fs_steps.h"

/* Runs `act` in a child that ends at the named point; true if it got there. */
static bool crash_at(struct fixture *f, struct intruder *i, void (*act)(struct fixture *f, const char *key),
                     const char *key)
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rp_backend *own;
        if (rp_fs_open(f->root, false, &own, NULL) < 0) _exit(1);
        struct fixture child = *f;
        child.backend = own;
        i->f = &child;
        hook(&child, i);
        act(&child, key);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == CRASHED));
    return WEXITSTATUS(status) == CRASHED;
}

static void act_put_new_bytes(struct fixture *f, const char *key)
{
    put_bytes(f->backend, key, "new!", 4, &new_meta, 0, NULL, NULL);
}

static void act_remove(struct fixture *f, const char *key)
{
    struct rp_item item = { .key = key };
    rp_backend_stat(f->backend, &item, 1, NULL);
    rp_backend_remove(f->backend, &item, 1, NULL, NULL);
}

static void act_copy(struct fixture *f, const char *key)
{
    struct rp_item item = { .key = key };
    rp_backend_stat(f->backend, &item, 1, NULL);
    rp_backend_copy(f->backend, key, &item.identity, "target", NULL, NULL);
}

static const char *long_name(void)
{
    static char name[251];
    memset(name, 'l', 250);
    return name;
}

/* A plain key, one whose name is too long for another one in its own directory, one of the escaped
 * home. */
static const char *key_of(size_t kind)
{
    return kind == 0 ? "dir/k" : kind == 1 ? long_name() : "../k";
}

static const char *const put_points[] = { "put-written", "put-sidecar", "put-shown", "put-durable" };
static const char *const remove_points[] = { "remove-seen", "remove-moved", "remove-in-hand", "remove-unlinked" };

static void expect_whole(struct fixture *f, const char *key)
{
    struct rp_buf got = RP_BUF(4096);
    const struct rp_sink to = { buf_write, &got };
    ok(rp_backend_get(f->backend, key, &to, NULL, NULL, NULL, &error));
    bool is_new = strcmp(rp_buf_text(&got), "new!") == 0;
    assert_string_equal(rp_buf_text(&got), is_new ? "new!" : "old");
    expect_meta(f->backend, key, is_new ? "new" : "old");
    rp_buf_done(&got);
}

static void expect_only(struct fixture *f, const char *key)
{
    char lines[RP_KEY_MAX + 2];
    snprintf(lines, sizeof lines, "%s\n", key);
    expect_list(f->backend, "", NULL, lines);
}

static void a_put_that_dies_leaves_the_old_object_or_the_new_one(void **state)
{
    struct fixture *f = *state;
    for (size_t kind = 0; kind < 3; kind++)
        for (size_t p = 0; p < 4; p++) {
            const char *key = key_of(kind);
            struct intruder i = { .crash_at = put_points[p] };
            put_meta(f->backend, key, "old", &old_meta);
            assert_true(crash_at(f, &i, act_put_new_bytes, key));
            expect_whole(f, key);
            expect_only(f, key);
            struct rp_identity id = put_meta(f->backend, key, "new!", &new_meta);
            expect_whole(f, key);
            assert_int_equal(remove_one(f->backend, key, &id), RP_OUT_DELETED);
            assert_true(crash_at(f, &i, act_put_new_bytes, key));
            if (p < 2)
                expect_absent(f->backend, key);
            else
                expect_whole(f, key);
            if (p >= 2) id = identity_of(f->backend, key);
            remove_one(f->backend, key, &id);
        }
}

static void a_remove_that_dies_can_be_asked_again(void **state)
{
    struct fixture *f = *state;
    for (size_t kind = 0; kind < 3; kind++)
        for (size_t p = 0; p < 4; p++) {
            const char *key = key_of(kind);
            struct intruder i = { .crash_at = remove_points[p] };
            struct rp_identity id = put_meta(f->backend, key, "old", &old_meta);
            assert_true(crash_at(f, &i, act_remove, key));
            if (p < 3) {
                expect_whole(f, key);
                expect_only(f, key);
                assert_int_equal(remove_one(f->backend, key, &id), RP_OUT_DELETED);
            } else {
                expect_list(f->backend, "", NULL, "");
                assert_int_equal(remove_one(f->backend, key, &id), RP_OUT_GONE);
            }
            expect_absent(f->backend, key);
            assert_int_equal(files_below(at(f, RP_FS_META)), 0);
            assert_int_equal(files_below(f->root), 0);
        }
}

static void a_copy_that_dies_can_be_asked_again(void **state)
{
    struct fixture *f = *state;
    for (size_t p = 1; p < 4; p++) {
        struct intruder i = { .crash_at = put_points[p] };
        struct rp_identity id = put_meta(f->backend, "k", "old", &old_meta), copied;
        assert_true(crash_at(f, &i, act_copy, "k"));
        int r = rp_backend_copy(f->backend, "k", &id, "target", &copied, &error);
        assert_int_equal(r, p < 2 ? 0 : RP_EEXISTS);
        expect_whole(f, "target");
        copied = identity_of(f->backend, "target");
        assert_int_equal(remove_one(f->backend, "target", &copied), RP_OUT_DELETED);
    }
}

/* Leaves an upload that came in the middle of a remove renamed, as only a crash at that moment
 * does. */
static struct rp_identity strand_newer(struct fixture *f, const char *key, const char *path)
{
    struct intruder i = { .path = path, .point = "remove-seen", .crash_at = "remove-moved" };
    struct rp_identity old = put_text(f->backend, key, "old");
    assert_true(crash_at(f, &i, act_remove, key));
    assert_false(exists(at(f, path)));
    return old;
}

static void an_upload_stranded_by_a_crash_is_still_the_object(void **state)
{
    struct fixture *f = *state;
    const char *const keys[] = { "k", long_name() };
    for (size_t i = 0; i < 2; i++) {
        const char *key = keys[i];
        struct rp_identity old = strand_newer(f, key, key), now = identity_of(f->backend, key);
        expect_text(f->backend, key, "newer");
        expect_only(f, key);
        assert_int_equal(put_bytes(f->backend, key, "x", 1, NULL, RP_PUT_NEW, NULL, &error), RP_EEXISTS);
        expect_file(at(f, key), "newer");
        strand_newer(f, key, key);
        assert_int_equal(remove_one(f->backend, key, &old), RP_OUT_CHANGED);
        expect_file(at(f, key), "newer");
        strand_newer(f, key, key);
        now = identity_of(f->backend, key);
        ok(rp_backend_annotate(f->backend, key, &now, &new_pair, 1, &error));
        struct rp_identity copied;
        ok(rp_backend_copy(f->backend, key, &now, "zz", &copied, &error));
        assert_int_equal(remove_one(f->backend, "zz", &copied), RP_OUT_DELETED);
        assert_int_equal(remove_one(f->backend, key, &now), RP_OUT_DELETED);
        expect_absent(f->backend, key);
        assert_int_equal(files_below(f->root), 0);
    }
}

static void an_upload_over_a_stranded_one_replaces_it_for_good(void **state)
{
    struct fixture *f = *state;
    strand_newer(f, "k", "k");
    struct rp_identity id = put_text(f->backend, "k", "newest");
    assert_int_equal(remove_one(f->backend, "k", &id), RP_OUT_DELETED);
    expect_absent(f->backend, "k");
    strand_newer(f, "k", "k");
    replace_outside(f, "k", "by hand");
    expect_only(f, "k");
    id = identity_of(f->backend, "k");
    assert_int_equal(remove_one(f->backend, "k", &id), RP_OUT_DELETED);
    expect_absent(f->backend, "k");
    strand_newer(f, "k", "k");
    replace_outside(f, "k", "by hand");
    put_text(f->backend, "k", "newest");
    unlink(at(f, "k"));
    expect_absent(f->backend, "k");
    assert_int_equal(files_below(f->root), 0);
}

static void a_stranded_upload_survives_a_directory_in_its_place(void **state)
{
    struct fixture *f = *state;
    strand_newer(f, "k", "k");
    put_text(f->backend, "k/below", "x");
    expect_list(f->backend, "", NULL, "k\nk/below\n");
    expect_text(f->backend, "k", "newer");
    struct rp_identity old = { .etag = "1-1-1" };
    assert_int_equal(remove_one(f->backend, "k", &old), RP_OUT_CHANGED);
    expect_text(f->backend, "k", "newer");
    put_text(f->backend, "k", "newest");
    expect_text(f->backend, "k", "newest");
    expect_list(f->backend, "", NULL, "k\nk/below\n");
    struct rp_identity id = identity_of(f->backend, "k");
    assert_int_equal(remove_one(f->backend, "k", &id), RP_OUT_DELETED);
    expect_list(f->backend, "", NULL, "k/below\n");
}

static void temporary_files_are_not_listed_and_go_when_stale(void **state)
{
    struct fixture *f = *state;
    struct intruder i = { .crash_at = "put-sidecar" };
    struct rp_backend *later;
    assert_true(crash_at(f, &i, act_put_new_bytes, "k"));
    assert_int_equal(files_below(at(f, RP_FS_TMP)), 1);
    assert_int_equal(files_below(at(f, RP_FS_META)), 1);
    expect_list(f->backend, "", NULL, "");
    expect_list(f->backend, ".reprieve/", NULL, "");
    put_text(f->backend, "other", "x");
    assert_int_equal(files_below(at(f, RP_FS_TMP)), 1);
    ok(rp_fs_open(f->root, false, &later, &error));
    rp_fs_of(later)->stale_ms = -RP_HOUR_MS;
    put_text(later, "other", "x");
    assert_int_equal(files_below(at(f, RP_FS_TMP)), 0);
    assert_int_equal(files_below(at(f, RP_FS_META)), 0);
    rp_backend_close(later);
}

static void mount_private(const char *path, const char *options)
{
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", path, "tmpfs", 0, options) < 0)
        fail_msg("this test mounts a small tmpfs and needs root: %s", strerror(errno));
}

static int64_t endless_read(void *ctx, void *to, size_t n, struct rp_error *err)
{
    (void)ctx, (void)err;
    memset(to, 'x', n);
    return (int64_t)n;
}

static void full_disk(void **state)
{
    struct fixture *f = *state;
    struct rp_backend *s;
    const struct rp_source endless = { endless_read, NULL };
    mount_private(f->root, "size=1m");
    ok(rp_fs_open(f->root, false, &s, &error));
    struct rp_identity id = put_meta(s, "old", "old", &old_meta);
    assert_int_equal(rp_backend_put(s, "new", &endless, NULL, 0, NULL, &error), RP_EFULL);
    assert_int_equal(rp_backend_put(s, "old", &endless, NULL, 0, NULL, &error), RP_EFULL);
    expect_absent(s, "new");
    expect_text(s, "old", "old");
    expect_meta(s, "old", "old");
    assert_int_equal(files_below(at(f, RP_FS_TMP)), 0);
    int fd = open(at(f, "filler"), O_CREAT | O_WRONLY, 0666);
    static char block[4096];
    while (write(fd, block, sizeof block) > 0)
        ;
    close(fd);
    assert_int_equal(put_bytes(s, "old", "new!", 4, &new_meta, 0, NULL, &error), RP_EFULL);
    expect_text(s, "old", "old");
    assert_int_equal(remove_one(s, "old", &id), RP_OUT_DELETED);
    unlink(at(f, "filler"));
    put_text(s, "new", "fits");
    rp_backend_close(s);
}

static void a_full_disk_loses_nothing_and_still_deletes(void **state)
{
    in_child("full disk", full_disk, *state);
}

static void expect_unavailable(struct rp_backend *s, const struct rp_identity *id, int code)
{
    struct rp_item items[2] = { { .key = "k", .identity = *id }, { .key = "none", .identity = *id } };
    struct listing l = { .text = RP_BUF(4096) };
    assert_int_equal(rp_backend_remove(s, items, 2, NULL, &error), code);
    for (size_t i = 0; i < 2; i++)
        assert_true(items[i].outcome == RP_OUT_NONE || items[i].outcome == RP_OUT_UNKNOWN);
    assert_int_equal(put_bytes(s, "k", "x", 1, NULL, 0, NULL, &error), code);
    if (code != RP_EUNAVAILABLE) return;
    assert_int_equal(rp_backend_stat(s, items, 2, &error), code);
    assert_int_equal(rp_backend_list(s, "", NULL, listing_add, &l, &error), code);
    assert_int_equal(rp_backend_get(s, "k", NULL, NULL, NULL, NULL, &error), code);
    assert_int_equal(rp_backend_copy(s, "k", id, "x", NULL, &error), code);
}

static void hidden_root(void **state)
{
    struct fixture *f = *state;
    struct rp_identity id = put_text(f->backend, "k", "x");
    mount_private(f->root, "size=1m");
    expect_unavailable(f->backend, &id, RP_EUNAVAILABLE);
    assert_int_equal(umount2(f->root, MNT_DETACH), 0);
    expect_text(f->backend, "k", "x");
}

static void read_only_root(void **state)
{
    struct fixture *f = *state;
    struct rp_backend *s;
    mount_private(f->root, "size=1m");
    ok(rp_fs_open(f->root, false, &s, &error));
    struct rp_identity id = put_text(s, "k", "x");
    rp_backend_close(s); /* its lock file is open for writing */
    assert_int_equal(mount("none", f->root, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
    ok(rp_fs_open(f->root, false, &s, &error));
    expect_unavailable(s, &id, RP_EDENIED);
    expect_text(s, "k", "x");
    rp_backend_close(s);
}

static void mount_inside(void **state)
{
    struct fixture *f = *state;
    struct rp_backend *s;
    struct rp_identity id, copied;
    mkdir(at(f, "inner"), 0777);
    mount_private(at(f, "inner"), "size=1m");
    ok(rp_fs_open(f->root, false, &s, &error));
    write_file(at(f, "inner/k"), "bytes");
    id = identity_of(s, "inner/k");
    assert_int_equal(put_bytes(s, "inner/new", "x", 1, NULL, 0, NULL, &error), RP_EINVAL);
    assert_non_null(strstr(error.text, "mounted"));
    assert_int_equal(rp_backend_copy(s, "inner/k", &id, RP_STORE_QUARANTINE "k", &copied, &error), RP_EDENIED);
    assert_non_null(strstr(error.text, "mounted"));
    expect_absent(s, RP_STORE_QUARANTINE "k");
    assert_int_equal(remove_one(s, "inner/k", &id), RP_OUT_DELETED);
    expect_list(s, "", NULL, "");
    rp_backend_close(s);
}

static void a_mount_over_the_root_does_not_look_empty(void **state)
{
    in_child("hidden root", hidden_root, *state);
}

static void a_read_only_root_fails_the_whole_call(void **state)
{
    in_child("read-only root", read_only_root, *state);
}

static void a_mount_inside_the_root_is_not_quarantined_from_but_purged(void **state)
{
    in_child("mount inside", mount_inside, *state);
}

static void a_missing_root_is_unavailable_and_nothing_is_gone(void **state)
{
    struct fixture *f = *state;
    struct rp_backend *none;
    char moved[96];
    struct rp_identity id = put_text(f->backend, "k", "x");
    snprintf(moved, sizeof moved, "%s/moved", f->dir);
    assert_int_equal(rename(f->root, moved), 0);
    assert_int_equal(rp_fs_open(f->root, false, &none, &error), RP_EUNAVAILABLE);
    expect_unavailable(f->backend, &id, RP_EUNAVAILABLE);
    assert_int_equal(mkdir(f->root, 0777), 0);
    expect_unavailable(f->backend, &id, RP_EUNAVAILABLE);
    assert_int_equal(rmdir(f->root), 0);
    assert_int_equal(rename(moved, f->root), 0);
    expect_text(f->backend, "k", "x");
    write_file(moved, "");
    assert_int_equal(rp_fs_open(moved, false, &none, &error), RP_EINVAL);
}

static void as_nobody(void **state)
{
    struct fixture *f = *state;
    struct rp_backend *s;
    if (setegid(65534) < 0 || seteuid(65534) < 0) fail_msg("this test needs root: %s", strerror(errno));
    ok(rp_fs_open(f->root, false, &s, &error));
    struct rp_item items[] = { { .key = "fixed/k" }, { .key = "free/k" }, { .key = "closed/k" } };
    ok(rp_backend_stat(s, items, 3, &error));
    assert_int_equal(items[0].outcome, RP_OUT_FOUND);
    assert_int_equal(items[1].outcome, RP_OUT_FOUND);
    assert_int_equal(items[2].outcome, RP_OUT_DENIED);
    ok(rp_backend_remove(s, items, 3, NULL, &error));
    assert_int_equal(items[0].outcome, RP_OUT_DENIED);
    assert_string_equal(items[0].note, strerror(EACCES));
    assert_int_equal(items[1].outcome, RP_OUT_DELETED);
    assert_int_equal(items[2].outcome, RP_OUT_DENIED);
    assert_int_equal(put_bytes(s, "fixed/new", "x", 1, NULL, 0, NULL, &error), RP_EDENIED);
    struct listing l = { .text = RP_BUF(4096) };
    assert_int_equal(rp_backend_list(s, "", NULL, listing_add, &l, &error), RP_EDENIED);
    assert_non_null(strstr(error.text, "closed/"));
    rp_buf_done(&l.text);
    expect_list(s, "fixed/", NULL, "fixed/k\n");
    expect_list(s, "", "d", "fixed/k\n");
    rp_backend_close(s);
}

static void what_permissions_forbid_is_denied_item_by_item(void **state)
{
    struct fixture *f = *state;
    const char *const dirs[] = { "fixed", "free", "closed" };
    for (size_t i = 0; i < 3; i++) {
        char file[32];
        snprintf(file, sizeof file, "%s/k", dirs[i]);
        mkdir(at(f, dirs[i]), 0755);
        write_file(at(f, file), "x");
    }
    assert_int_equal(chmod(f->dir, 0755), 0);
    assert_int_equal(chown(f->root, 65534, 65534), 0);
    assert_int_equal(chown(at(f, "free"), 65534, 65534), 0);
    assert_int_equal(chmod(at(f, "closed"), 0700), 0);
    in_child("as nobody", as_nobody, f);
    expect_file(at(f, "fixed/k"), "x");
}

enum { DIRS = SANITIZED ? 10 : 100, IN_DIR = 9000, IN_BIG = SANITIZED ? 40000 : 100000 };
#define TOTAL ((size_t)DIRS * IN_DIR + IN_BIG)

static void make_files(int root_fd, const char *dir, int n)
{
    assert_int_equal(mkdirat(root_fd, dir, 0777), 0);
    int fd = openat(root_fd, dir, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < n; i++) {
        char name[96];
        snprintf(name, sizeof name, "object-%08x-with-a-name-as-long-as-those-of-real-uploads.bin",
                 (unsigned)i * 2654435761u);
        int file = openat(fd, name, O_CREAT | O_WRONLY | O_EXCL, 0666);
        if (file < 0) fail_msg("%s: %s", name, strerror(errno));
        close(file);
    }
    close(fd);
}

struct count {
    size_t n, page;
    char last[RP_KEY_MAX + 1];
};

static int count_entry(void *ctx, const struct rp_entry *entry, struct rp_error *err)
{
    struct count *c = ctx;
    if (strcmp(c->last, entry->key) >= 0) return rp_error_set(err, RP_EFAILED, "'%s' is out of order", entry->key);
    snprintf(c->last, sizeof c->last, "%s", entry->key);
    c->n++;
    return c->page && c->n % c->page == 0 ? 1 : 0;
}

static long memory_kib(const char *field)
{
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, file))
        if (strncmp(line, field, strlen(field)) == 0) kib = atol(line + strlen(field));
    fclose(file);
    return kib;
}

static void list_the_million(void **state)
{
    struct fixture *f = *state;
    struct rp_backend *s;
    struct count all = { 0 }, paged = { .page = 100003 };
    long before = memory_kib("VmRSS:");
    ok(rp_fs_open(f->root, false, &s, &error));
    ok(rp_backend_list(s, "", NULL, count_entry, &all, &error));
    assert_int_equal(all.n, TOTAL);
    size_t seen = 0;
    do {
        seen = paged.n;
        ok(rp_backend_list(s, "", paged.last[0] ? paged.last : NULL, count_entry, &paged, &error));
    } while (paged.n % paged.page == 0 && paged.n != seen);
    assert_int_equal(paged.n, TOTAL);
    assert_string_equal(paged.last, all.last);
    struct count big = { 0 };
    ok(rp_backend_list(s, "d050/", NULL, count_entry, &big, &error));
    assert_int_equal(big.n, IN_BIG);
    long grown = memory_kib("VmHWM:") - before;
    print_message("%zu files, memory grew by %ld KiB\n", all.n, grown);
    if (!SANITIZED) assert_true(grown < 4 * 1024);
    rp_backend_close(s);
}

static void a_million_files_are_listed_in_order_with_bounded_memory(void **state)
{
    struct fixture f = { 0 };
    (void)state;
    tree_make(f.dir, sizeof f.dir, "/dev/shm");
    snprintf(f.root, sizeof f.root, "%s/root", f.dir);
    assert_int_equal(mkdir(f.root, 0777), 0);
    int fd = open(f.root, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < DIRS; i++) {
        char dir[16];
        snprintf(dir, sizeof dir, "d%03d", i < 50 ? i : i + 1);
        make_files(fd, dir, IN_DIR);
    }
    make_files(fd, "d050", IN_BIG);
    close(fd);
    in_child("list a million", list_the_million, &f);
    tree_remove(f.dir);
}

static void deep_directories_are_listed_in_order(void **state)
{
    struct fixture *f = *state;
    char key[RP_KEY_MAX + 1] = "";
    for (size_t depth = 0; depth < 200; depth++) {
        for (int i = 0; i < 40; i++) {
            char name[RP_KEY_MAX + 1];
            snprintf(name, sizeof name, "%s%c%d", key, i % 2 ? 'a' : 'z', i);
            if (depth % 50 == 49) put_text(f->backend, name, "x");
        }
        strcat(key, "m/");
    }
    struct count c = { 0 };
    ok(rp_backend_list(f->backend, "", NULL, count_entry, &c, &error));
    assert_int_equal(c.n, 160);
}

#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STORE(a_put_that_dies_leaves_the_old_object_or_the_new_one),
        WITH_STORE(a_remove_that_dies_can_be_asked_again),
        WITH_STORE(a_copy_that_dies_can_be_asked_again),
        WITH_STORE(an_upload_stranded_by_a_crash_is_still_the_object),
        WITH_STORE(an_upload_over_a_stranded_one_replaces_it_for_good),
        WITH_STORE(a_stranded_upload_survives_a_directory_in_its_place),
        WITH_STORE(temporary_files_are_not_listed_and_go_when_stale),
        WITH_STORE(a_full_disk_loses_nothing_and_still_deletes),
        WITH_STORE(a_mount_over_the_root_does_not_look_empty),
        WITH_STORE(a_read_only_root_fails_the_whole_call),
        WITH_STORE(a_mount_inside_the_root_is_not_quarantined_from_but_purged),
        WITH_STORE(a_missing_root_is_unavailable_and_nothing_is_gone),
        WITH_STORE(what_permissions_forbid_is_denied_item_by_item),
        WITH_STORE(deep_directories_are_listed_in_order),
        cmocka_unit_test(a_million_files_are_listed_in_order_with_bounded_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

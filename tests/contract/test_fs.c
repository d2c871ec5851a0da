/* SPDX-License-Identifier: Apache-2.0 */
/* The directory store: what is an object, metadata on disk, and uploads that come in the middle of
 * a remove. */
#include <fcntl.h>
#include <pthread.h>

#include "fs_steps.h"

static void files_that_were_there_before_are_objects(void **state)
{
    struct fixture *f = *state;
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    mkdir(at(f, "d"), 0777);
    write_file(at(f, "d/old"), "old");
    write_file(at(f, name), "long");
    expect_text(f->backend, "d/old", "old");
    expect_text(f->backend, name, "long");
    struct rp_identity id = identity_of(f->backend, name);
    assert_int_equal(remove_one(f->backend, name, &id), RP_OUT_DELETED);
    assert_false(exists(at(f, RP_FS_REMOVING)));
    expect_list(f->backend, "", NULL, "d/old\n");
    put_text(f->backend, "d/e/new", "new");
    expect_file(at(f, "d/e/new"), "new");
}

static void a_store_that_is_only_read_is_not_written_to(void **state)
{
    struct fixture *f = *state;
    struct rp_probed probed;
    write_file(at(f, "a"), "x");
    expect_text(f->backend, "a", "x");
    expect_absent(f->backend, "b");
    expect_list(f->backend, "", NULL, "a\n");
    ok(rp_backend_probe(f->backend, false, &probed, &error));
    assert_false(exists(at(f, ".reprieve")));
}

static void a_link_leads_nowhere(void **state)
{
    struct fixture *f = *state;
    char outside[96], secret[112];
    snprintf(outside, sizeof outside, "%s/outside", f->dir);
    snprintf(secret, sizeof secret, "%s/secret", outside);
    mkdir(outside, 0777);
    write_file(secret, "secret");
    mkdir(at(f, "d"), 0777);
    assert_int_equal(symlink(outside, at(f, "middle")), 0);
    assert_int_equal(symlink(secret, at(f, "d/end")), 0);
    assert_int_equal(symlink("..", at(f, "up")), 0);
    assert_int_equal(symlink("d", at(f, "inside")), 0);
    const char *const keys[] = {
        "middle/secret", "d/end", "up/outside/secret", "inside/end", "up/root/d/end", "middle"
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct rp_identity id = { .etag = "1-1-1" };
        expect_absent(f->backend, keys[i]);
        assert_int_equal(remove_one(f->backend, keys[i], &id), RP_OUT_GONE);
        id = put_text(f->backend, keys[i], keys[i]);
        expect_text(f->backend, keys[i], keys[i]);
        expect_file(secret, "secret");
    }
    expect_list(f->backend, "", NULL, "d/end\ninside/end\nmiddle\nmiddle/secret\nup/outside/secret\nup/root/d/end\n");
    expect_list(f->backend, "up/", NULL, "up/outside/secret\nup/root/d/end\n");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct rp_identity id = identity_of(f->backend, keys[i]);
        assert_int_equal(remove_one(f->backend, keys[i], &id), RP_OUT_DELETED);
    }
    expect_list(f->backend, "", NULL, "");
    expect_file(secret, "secret");
    assert_int_equal(files_below(outside), 1);
    assert_true(exists(at(f, "middle")) && exists(at(f, "d/end")));
}

static void the_stores_own_directory_cannot_be_a_link(void **state)
{
    struct fixture *f = *state;
    char outside[96];
    snprintf(outside, sizeof outside, "%s/outside", f->dir);
    mkdir(outside, 0777);
    assert_int_equal(symlink(outside, at(f, ".reprieve")), 0);
    assert_true(put_bytes(f->backend, "a", "x", 1, NULL, 0, NULL, &error) < 0);
    assert_int_equal(files_below(outside), 0);
}

static void the_root_itself_may_be_reached_through_a_link(void **state)
{
    struct fixture *f = *state;
    char link[96], root[112];
    struct rp_backend *other;
    snprintf(link, sizeof link, "%s/link", f->dir);
    snprintf(root, sizeof root, "%s/root", link);
    assert_int_equal(symlink(f->dir, link), 0);
    put_text(f->backend, "a", "x");
    ok(rp_fs_open(root, false, &other, &error));
    expect_text(other, "a", "x");
    unlink(link);
    struct rp_item item = { .key = "a" };
    assert_int_equal(rp_backend_stat(other, &item, 1, &error), RP_EUNAVAILABLE);
    rp_backend_close(other);
}

static void only_regular_files_are_objects(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(mkfifo(at(f, "fifo"), 0666), 0);
    assert_int_equal(mknod(at(f, "socket"), S_IFSOCK | 0666, 0), 0);
    assert_int_equal(mkdir(at(f, "dir"), 0777), 0);
    const char *const keys[] = { "fifo", "socket", "dir" };
    for (size_t i = 0; i < 3; i++)
        expect_absent(f->backend, keys[i]);
    expect_list(f->backend, "", NULL, "");
    for (size_t i = 0; i < 3; i++)
        put_text(f->backend, keys[i], keys[i]);
    for (size_t i = 0; i < 3; i++)
        expect_text(f->backend, keys[i], keys[i]);
    struct stat st;
    assert_true(lstat(at(f, "fifo"), &st) == 0 && S_ISFIFO(st.st_mode));
    expect_list(f->backend, "", NULL, "dir\nfifo\nsocket\n");
}

static void the_plain_file_counts_when_both_homes_are_filled(void **state)
{
    struct fixture *f = *state;
    mkdir(at(f, "a"), 0777);
    struct rp_identity hidden = put_text(f->backend, "a", "escaped");
    rmdir(at(f, "a"));
    write_file(at(f, "a"), "plain");
    expect_text(f->backend, "a", "plain");
    expect_list(f->backend, "", NULL, "a\n");
    struct rp_identity plain = identity_of(f->backend, "a");
    assert_int_equal(remove_one(f->backend, "a", &hidden), RP_OUT_CHANGED);
    assert_int_equal(remove_one(f->backend, "a", &plain), RP_OUT_DELETED);
    expect_text(f->backend, "a", "escaped");
}

static int list_error(struct fixture *f, const char *prefix)
{
    struct listing l = { .text = RP_BUF((size_t)1 << 20) };
    int r = rp_backend_list(f->backend, prefix, NULL, listing_add, &l, &error);
    rp_buf_done(&l.text);
    return r;
}

static void a_file_that_no_key_can_name_is_an_error_of_the_listing(void **state)
{
    struct fixture *f = *state;
    mkdir(at(f, "bad"), 0777);
    write_file(at(f, "bad/x\xff"), "x");
    write_file(at(f, "good"), "x");
    assert_int_equal(list_error(f, ""), RP_EINVAL);
    assert_non_null(strstr(error.text, "bad/x\\xff"));
    expect_list(f->backend, "go", NULL, "good\n");
    expect_list(f->backend, "bad/y", NULL, "");
    expect_list(f->backend, "", "bad/y", "good\n");
    unlink(at(f, "bad/x\xff"));
    mkdir(at(f, "bad/.reprieve~d"), 0777);
    assert_int_equal(list_error(f, ""), RP_EINVAL);
    assert_non_null(strstr(error.text, ".reprieve~d"));
    rmdir(at(f, "bad/.reprieve~d"));
    expect_list(f->backend, "", NULL, "good\n");
    write_file(at(f, ".reprieve"), "a file");
    assert_int_equal(list_error(f, ""), RP_EINVAL);
    unlink(at(f, ".reprieve"));
}

static void a_path_too_long_for_a_key_is_an_error_of_the_listing(void **state)
{
    struct fixture *f = *state;
    char name[201];
    memset(name, 'd', 200);
    name[200] = '\0';
    int fd = open(f->root, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(mkdirat(fd, name, 0777), 0);
        int below = openat(fd, name, O_RDONLY | O_DIRECTORY);
        close(fd);
        fd = below;
    }
    int file = openat(fd, "1234567890123456789", O_CREAT | O_WRONLY, 0666);
    close(file);
    struct listing l = { .text = RP_BUF((size_t)1 << 20) };
    ok(rp_backend_list(f->backend, "", NULL, listing_add, &l, &error));
    assert_int_equal(strlen(l.last), 1024);
    rp_buf_done(&l.text);
    file = openat(fd, "12345678901234567890", O_CREAT | O_WRONLY, 0666);
    close(file);
    close(fd);
    assert_int_equal(list_error(f, ""), RP_EINVAL);
    expect_list(f->backend, "e", NULL, "");
}

static char sidecar_path[4096];

static int remember_path(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)ftw;
    if (type == FTW_F) snprintf(sidecar_path, sizeof sidecar_path, "%s", path);
    return 0;
}

static void a_damaged_sidecar_is_an_error_and_never_a_loss(void **state)
{
    struct fixture *f = *state;
    struct rp_arena arena = RP_ARENA((size_t)1 << 20);
    struct rp_meta meta;
    struct rp_identity id = put_meta(f->backend, "k", "bytes", &old_meta);
    nftw(at(f, RP_FS_META), remember_path, 8, FTW_PHYS);
    FILE *file = fopen(sidecar_path, "r+");
    char text[512] = "";
    size_t n = fread(text, 1, sizeof text - 1, file);
    for (size_t i = 0; i < n; i++) {
        char kept = text[i];
        text[i] ^= 1;
        assert_int_equal(fseek(file, 0, SEEK_SET), 0);
        assert_int_equal(fwrite(text, 1, n, file), n);
        fflush(file);
        assert_int_equal(rp_backend_get(f->backend, "k", NULL, &arena, &meta, NULL, &error), RP_ECORRUPT);
        text[i] = kept;
    }
    assert_int_equal(ftruncate(fileno(file), (off_t)n / 2), 0);
    assert_int_equal(rp_backend_get(f->backend, "k", NULL, &arena, &meta, NULL, &error), RP_ECORRUPT);
    assert_int_equal(rp_backend_copy(f->backend, "k", &id, "copy", NULL, &error), RP_ECORRUPT);
    fclose(file);
    expect_text(f->backend, "k", "bytes");
    assert_int_equal(remove_one(f->backend, "k", &id), RP_OUT_DELETED);
    rp_arena_done(&arena);
}

static void sidecars_go_with_their_objects(void **state)
{
    struct fixture *f = *state;
    struct rp_identity copied;
    put_meta(f->backend, "k", "one", &old_meta);
    assert_int_equal(files_below(at(f, RP_FS_META)), 1);
    struct rp_identity id = put_meta(f->backend, "k", "two", &new_meta);
    assert_int_equal(files_below(at(f, RP_FS_META)), 1);
    ok(rp_backend_copy(f->backend, "k", &id, RP_STORE_QUARANTINE "k", &copied, &error));
    assert_int_equal(files_below(at(f, RP_FS_META)), 2);
    assert_int_equal(rp_backend_copy(f->backend, "k", &id, RP_STORE_QUARANTINE "k", NULL, &error), RP_EEXISTS);
    expect_meta(f->backend, RP_STORE_QUARANTINE "k", "new");
    assert_int_equal(remove_one(f->backend, "k", &id), RP_OUT_DELETED);
    assert_int_equal(files_below(at(f, RP_FS_META)), 1);
    expect_meta(f->backend, RP_STORE_QUARANTINE "k", "new");
    assert_int_equal(remove_one(f->backend, RP_STORE_QUARANTINE "k", &copied), RP_OUT_DELETED);
    assert_int_equal(files_below(at(f, RP_FS_META)), 0);
    assert_int_equal(files_below(at(f, RP_FS_TMP)), 0);
}

static void quarantine_moves_no_bytes(void **state)
{
    struct fixture *f = *state;
    struct rp_identity id = put_text(f->backend, "k", "bytes"), copied;
    ok(rp_backend_copy(f->backend, "k", &id, RP_STORE_QUARANTINE "k", &copied, &error));
    struct stat a, b;
    assert_int_equal(stat(at(f, "k"), &a), 0);
    assert_int_equal(stat(at(f, RP_STORE_QUARANTINE "k"), &b), 0);
    assert_int_equal(a.st_ino, b.st_ino);
    chmod(at(f, "k"), 0640);
    ok(rp_backend_copy(f->backend, "k", &id, "other", &copied, &error));
    assert_int_equal(stat(at(f, "other"), &b), 0);
    assert_int_not_equal(a.st_ino, b.st_ino);
    assert_int_equal(b.st_mode & 0777, 0640);
}

/* An inode number used again within one tick of the kernel's clock, or after the clock went back,
 * must not be an identity used again. */
static void times_of_uploads_only_grow(void **state)
{
    struct fixture *f = *state;
    unsigned long long last = (unsigned long long)rp_fs_next_mtime_ns(rp_fs_of(f->backend)) + 3600000000000ULL;
    atomic_store(&rp_fs_of(f->backend)->last_mtime_ns, (int64_t)last);
    for (int i = 0; i < 20; i++) {
        struct rp_identity id = put_text(f->backend, "k", "same");
        unsigned long long inode, mtime_ns, size;
        assert_int_equal(sscanf(id.etag, "%llx-%llx-%llx", &inode, &mtime_ns, &size), 3);
        assert_true(mtime_ns > last);
        last = mtime_ns;
    }
}

static void a_file_that_was_written_to_has_changed(void **state)
{
    struct fixture *f = *state;
    struct rp_identity id = put_text(f->backend, "k", "bytes");
    write_file(at(f, "k"), "BYTES");
    assert_int_equal(remove_one(f->backend, "k", &id), RP_OUT_CHANGED);
    assert_int_equal(rp_backend_copy(f->backend, "k", &id, "q", NULL, &error), RP_ECHANGED);
    expect_text(f->backend, "k", "BYTES");
}

static void writing_into_a_file_under_a_reader_is_noticed(void **state)
{
    struct fixture *f = *state;
    struct rp_object_reader *r = NULL;
    char got[8];
    put_text(f->backend, "k", "before");
    ok(rp_backend_get_open(f->backend, "k", NULL, NULL, NULL, &r, &error));
    assert_int_equal(rp_backend_get_read(r, 4, got, 2, &error), 2);
    FILE *file = fopen(at(f, "k"), "r+");
    assert_non_null(file);
    assert_int_equal(fwrite("BE", 1, 2, file), 2);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rp_backend_get_read(r, 4, got, 2, &error), RP_ECHANGED);
    rp_backend_get_close(r);
}

struct race {
    struct fixture *f;
    pthread_mutex_t lock;
    pthread_cond_t answered;
    struct rp_identity old; /* what the remover goes after */
    struct rp_identity last;
    const char
        *_Atomic point; /* of a put, where the remover is let loose on the upload before; it passes points as well */
    bool done, patient; /* patient: let the remover have it first, so that both ends of the race are seen */
    size_t n_answers, answers[RP_OUT_UNKNOWN + 1];
};

static void *remove_old(void *ctx)
{
    struct race *race = ctx;
    for (;;) {
        pthread_mutex_lock(&race->lock);
        struct rp_identity old = race->old;
        bool done = race->done;
        pthread_mutex_unlock(&race->lock);
        if (done) return NULL;
        enum rp_outcome answer = remove_one(race->f->backend, "k", &old);
        pthread_mutex_lock(&race->lock);
        race->answers[answer]++;
        race->n_answers++;
        pthread_cond_signal(&race->answered);
        pthread_mutex_unlock(&race->lock);
    }
}

static void let_loose(struct race *race)
{
    pthread_mutex_lock(&race->lock);
    race->old = race->last;
    for (size_t enough = race->n_answers + 2; race->patient && race->n_answers < enough;)
        pthread_cond_wait(&race->answered, &race->lock);
    pthread_mutex_unlock(&race->lock);
}

static void at_point(void *ctx, const char *point)
{
    struct race *race = ctx;
    if (strcmp(point, atomic_load(&race->point)) == 0) let_loose(race);
}

static void upload_from_outside(struct race *race, int round)
{
    char temp[128], text[1002] = "";
    memset(text, 'x', (size_t)round % 1000 + 1); /* another size each time: the kernel's clock may tick too slowly */
    snprintf(temp, sizeof temp, "%s/outside-temp", race->f->dir);
    write_file(temp, text);
    let_loose(race);
    assert_int_equal(rename(temp, at(race->f, "k")), 0);
}

static void upload_against_remover(struct fixture *f, bool from_outside, int rounds)
{
    struct race race = { .f = f, .lock = PTHREAD_MUTEX_INITIALIZER, .point = "" };
    pthread_cond_init(&race.answered, NULL);
    struct rp_fs *fs = rp_fs_of(f->backend);
    pthread_t thread;
    int lost = 0;
    race.last = put_text(f->backend, "k", "first");
    fs->hook_ctx = &race;
    fs->hook = at_point;
    assert_int_equal(pthread_create(&thread, NULL, remove_old, &race), 0);
    for (int i = 0; i < rounds; i++) {
        struct rp_item now = { .key = "k" };
        atomic_store(&race.point, i % 2 ? "put-written" : "put-sidecar"); /* before and after the lock of the key */
        race.patient = i % 100 == 1;
        if (from_outside)
            upload_from_outside(&race, i);
        else
            put_text(f->backend, "k", "newer");
        ok(rp_backend_stat(f->backend, &now, 1, &error));
        lost += now.outcome != RP_OUT_FOUND;
        race.last = now.identity;
    }
    pthread_mutex_lock(&race.lock);
    race.done = true;
    pthread_mutex_unlock(&race.lock);
    pthread_join(thread, NULL);
    fs->hook = NULL;
    print_message("%d uploads: the one before was deleted %zu times, changed %zu times, gone %zu times\n", rounds,
                  race.answers[RP_OUT_DELETED], race.answers[RP_OUT_CHANGED], race.answers[RP_OUT_GONE]);
    assert_int_equal(lost, 0);
    assert_true(race.answers[RP_OUT_DELETED] > 0 && race.answers[RP_OUT_CHANGED] > 0);
}

static void no_upload_through_the_store_is_lost_to_a_late_remove(void **state)
{
    upload_against_remover(*state, false, 2000);
}

static void no_upload_of_another_program_is_lost_to_a_late_remove(void **state)
{
    upload_against_remover(*state, true, 5000);
}

static void an_upload_between_the_look_and_the_move_is_put_back(void **state)
{
    struct fixture *f = *state;
    struct intruder i = { .f = f, .path = "k", .point = "remove-seen" };
    struct rp_identity old = put_text(f->backend, "k", "old");
    hook(f, &i);
    assert_int_equal(remove_one(f->backend, "k", &old), RP_OUT_CHANGED);
    hook(f, NULL);
    expect_file(at(f, "k"), "newer");
    assert_false(exists(at(f, ".reprieve~k")));
}

static void of_two_uploads_during_a_remove_the_last_one_stays(void **state)
{
    struct fixture *f = *state;
    struct intruder i = { .f = f, .path = "k", .point = "remove-seen", .then = "remove-moved" };
    struct rp_identity old = put_text(f->backend, "k", "old");
    hook(f, &i);
    assert_int_equal(remove_one(f->backend, "k", &old), RP_OUT_CHANGED);
    hook(f, NULL);
    expect_file(at(f, "k"), "newest");
    assert_false(exists(at(f, ".reprieve~k")));
}

static void an_upload_after_the_move_does_not_save_the_old_one(void **state)
{
    struct fixture *f = *state;
    struct intruder i = { .f = f, .path = "k", .then = "remove-moved" };
    struct rp_identity old = put_text(f->backend, "k", "old");
    hook(f, &i);
    assert_int_equal(remove_one(f->backend, "k", &old), RP_OUT_DELETED);
    hook(f, NULL);
    expect_file(at(f, "k"), "newest");
}

static void unlink_moved(void *ctx, const char *point)
{
    if (strcmp(point, "remove-moved") == 0) assert_int_equal(unlink(at(ctx, ".reprieve~k")), 0);
}

static void a_file_that_another_program_removes_meanwhile_is_gone(void **state)
{
    struct fixture *f = *state;
    struct rp_identity old = put_text(f->backend, "k", "old");
    rp_fs_of(f->backend)->hook = unlink_moved;
    rp_fs_of(f->backend)->hook_ctx = f;
    assert_int_equal(remove_one(f->backend, "k", &old), RP_OUT_GONE);
    hook(f, NULL);
    expect_absent(f->backend, "k");
}

static void *probe_often(void *ctx)
{
    struct rp_backend *s = ctx;
    for (int i = 0; i < 50; i++) {
        struct rp_probed probed = { 0 };
        if (rp_backend_probe(s, true, &probed, NULL) < 0 || probed.level != RP_LEVEL_ETAG) return s;
    }
    return NULL;
}

static void two_handles_of_one_root_keep_out_of_each_others_way(void **state)
{
    struct fixture *f = *state;
    struct rp_backend *other;
    pthread_t thread;
    void *failed;
    ok(rp_fs_open(f->root, false, &other, &error));
    assert_int_equal(pthread_create(&thread, NULL, probe_often, other), 0);
    assert_null(probe_often(f->backend));
    pthread_join(thread, &failed);
    assert_null(failed);
    rp_backend_close(other);
}

#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)

/* A mount point without its file system. */
static void a_put_over_nothing_leaves_an_empty_directory_empty(void **state)
{
    struct fixture *f = *state;
    struct rp_identity over = { .etag = "x" };
    assert_int_equal(put_bytes(f->backend, ".reprieve/owner", "x", 1, NULL, RP_PUT_OVER, &over, &error), RP_ENOTFOUND);
    assert_int_equal(rmdir(f->root), 0);
    assert_int_equal(mkdir(f->root, 0700), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STORE(files_that_were_there_before_are_objects),
        WITH_STORE(a_store_that_is_only_read_is_not_written_to),
        WITH_STORE(a_put_over_nothing_leaves_an_empty_directory_empty),
        WITH_STORE(a_link_leads_nowhere),
        WITH_STORE(the_stores_own_directory_cannot_be_a_link),
        WITH_STORE(the_root_itself_may_be_reached_through_a_link),
        WITH_STORE(only_regular_files_are_objects),
        WITH_STORE(the_plain_file_counts_when_both_homes_are_filled),
        WITH_STORE(a_file_that_no_key_can_name_is_an_error_of_the_listing),
        WITH_STORE(a_path_too_long_for_a_key_is_an_error_of_the_listing),
        WITH_STORE(a_damaged_sidecar_is_an_error_and_never_a_loss),
        WITH_STORE(sidecars_go_with_their_objects),
        WITH_STORE(quarantine_moves_no_bytes),
        WITH_STORE(times_of_uploads_only_grow),
        WITH_STORE(a_file_that_was_written_to_has_changed),
        WITH_STORE(writing_into_a_file_under_a_reader_is_noticed),
        WITH_STORE(no_upload_through_the_store_is_lost_to_a_late_remove),
        WITH_STORE(no_upload_of_another_program_is_lost_to_a_late_remove),
        WITH_STORE(an_upload_between_the_look_and_the_move_is_put_back),
        WITH_STORE(of_two_uploads_during_a_remove_the_last_one_stays),
        WITH_STORE(an_upload_after_the_move_does_not_save_the_old_one),
        WITH_STORE(a_file_that_another_program_removes_meanwhile_is_gone),
        WITH_STORE(two_handles_of_one_root_keep_out_of_each_others_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* docs/http.md against the table of routes, and the table itself: every row says what it is for,
 * what it takes and gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "http/route/route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOCS_MAX ((size_t)1 << 20)

static void read_source(const char *path, struct rp_buf *out)
{
    char name[4096], block[4096];
    const char *tree = getenv("REPRIEVE_TREE");
    snprintf(name, sizeof name, "%s/%s", tree != NULL ? tree : ".", path);
    FILE *file = fopen(name, "r");
    if (file == NULL) fail_msg("%s cannot be read", name);
    for (size_t n; (n = fread(block, 1, sizeof block, file)) > 0;)
        rp_buf_add(out, block, n);
    fclose(file);
}

static void the_document_is_what_the_table_says(void **state)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf made = RP_BUF(DOCS_MAX), kept = RP_BUF(DOCS_MAX);
    struct rp_error err = { 0 };
    (void)state;
    assert_int_equal(rp_http_write_docs(&made, &err), 0);
    read_source("docs/http.md", &kept);
    if (strcmp(rp_buf_text(&made), rp_buf_text(&kept)) != 0)
        fail_msg("docs/http.md is not what the table says: run `test_http_docs --write` in the source's root");
}

/* What goes in is explained member by member. */
static void check_fields(const struct rp_route *r, const struct rp_shape *shape, bool answer, int depth)
{
    if (shape == NULL || depth > 8) return;
    if (shape->name == NULL) fail_msg("%s %s: a shape without a name", r->method, r->path);
    if (strncmp(shape->name, "rp_", 3) == 0) fail_msg("%s %s: %s is no public name", r->method, r->path, shape->name);
    for (size_t i = 0; i < shape->n_fields; i++) {
        const struct rp_field *f = &shape->fields[i];
        if (!answer && (f->help == NULL || f->help[0] == 0)) fail_msg("%s.%s has no help", shape->name, f->name);
        bool inner = f->kind == RP_FIELD_OBJECT || f->kind == RP_FIELD_LIST;
        if (inner != (f->of != NULL)) fail_msg("%s.%s: of what?", shape->name, f->name);
        if ((f->kind == RP_FIELD_CHOICE) != (f->choices != NULL)) fail_msg("%s.%s: which?", shape->name, f->name);
        check_fields(r, f->of, answer, depth + 1);
    }
}

static void every_row_says_what_it_is(void **state)
{
    (void)state;
    assert_true(rp_route_count() > 30);
    for (size_t i = 0; i < rp_route_count(); i++) {
        const struct rp_route *r = rp_route_at(i);
        if (r->summary == NULL || strlen(r->summary) < 8 || r->summary[strlen(r->summary) - 1] != '.')
            fail_msg("%s %s: the summary is no sentence", r->method, r->path);
        int status = rp_route_status(r);
        if (status < 200 || status > 399) fail_msg("%s %s: no status of success", r->method, r->path);
        if (r->answer == NULL && r->media == NULL && status != 204 && status < 300)
            fail_msg("%s %s: no shape of its answer", r->method, r->path);
        check_fields(r, r->query, false, 0);
        check_fields(r, r->body, false, 0);
        check_fields(r, r->answer, true, 0);
    }
}

/* Two shapes of one name would be one in openapi.json, and so would one shape that comes in and
 * goes out. */
struct named {
    const struct rp_shape *at[512];
    bool answer[512];
    size_t n;
};

static void note(struct named *all, const struct rp_shape *shape, bool answer)
{
    if (shape == NULL) return;
    for (size_t i = 0; i < all->n; i++) {
        bool same = all->at[i] == shape;
        if (strcmp(all->at[i]->name, shape->name) == 0 && !same) fail_msg("two shapes are called %s", shape->name);
        if (same && all->answer[i] != answer) fail_msg("%s comes in and goes out", shape->name);
        if (same) return;
    }
    assert_true(all->n < sizeof all->at / sizeof all->at[0]);
    all->at[all->n] = shape;
    all->answer[all->n++] = answer;
    for (size_t i = 0; i < shape->n_fields; i++)
        note(all, shape->fields[i].of, answer);
}

static void names_of_shapes_are_unique(void **state)
{
    struct named all = { .n = 0 };
    (void)state;
    for (size_t i = 0; i < rp_route_count(); i++) {
        const struct rp_route *r = rp_route_at(i);
        note(&all, r->body, false);
        note(&all, r->answer, true);
        for (size_t k = 0; k < RP_ALSO_MAX; k++)
            note(&all, r->also[k].answer, true);
    }
}

/* `test_http_docs --write`, from the source's root: after a change of the table. */
static int write_document(void)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf docs = RP_BUF(DOCS_MAX);
    struct rp_error err = { 0 };
    if (rp_http_write_docs(&docs, &err) < 0) return 1;
    FILE *file = fopen("docs/http.md", "w");
    if (file == NULL) return 1;
    bool written = fputs(rp_buf_text(&docs), file) >= 0;
    return fclose(file) == 0 && written ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--write") == 0) return write_document();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_document_is_what_the_table_says),
        cmocka_unit_test(every_row_says_what_it_is),
        cmocka_unit_test(names_of_shapes_are_unique),
    };
    return cmocka_run_group_tests_name("http_docs", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dead.c - `dead`: marks that used up their attempts, and what a person decides about them. */
#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/time.h"
#include "cli/answers.h"
#include "cli/table.h"
#include "core/confirm/confirm.h"
#include "core/dead.h"
#include "core/state.h"
#include "lib/answer.h"

#include <inttypes.h>
#include <stdio.h>

#define PAGE           200
#define ARENA_MAX      ((size_t)16 << 20)
#define NOT_FOUND_HINT "`reprieve dead` lists those that wait for a decision"

struct letter {
    struct rp_dead dead;
    char error[256];
    struct rp_mark mark;
};

struct page {
    struct rp_cli *cli;
    struct rp_names names;
    struct letter letters[PAGE];
    size_t n;
    struct rp_arena arena; /* of the marks */
};

static void page_freep(struct page **page)
{
    if (*page != NULL) rp_arena_done(&(*page)->arena);
    free(*page);
}

static struct page *new_page(struct rp_cli *cli, struct rp_error *err)
{
    struct page *page = calloc(1, sizeof *page);
    if (page == NULL) {
        rp_error_set(err, RP_ENOMEM, "no memory for the dead letters");
        return NULL;
    }
    page->cli = cli;
    page->arena = RP_ARENA(ARENA_MAX);
    if (rp_names_load(cli, &page->names, err) == 0) return page;
    page_freep(&page);
    return NULL;
}

static int keep_letter(void *ctx, const struct rp_dead *dead, struct rp_error *err)
{
    struct page *page = ctx;
    struct letter *letter = &page->letters[page->n++];
    (void)err;
    letter->dead = *dead;
    snprintf(letter->error, sizeof letter->error, "%s", dead->error);
    letter->dead.error = letter->error;
    return 0;
}

/* Ends the reading of letters: their marks are read as well, unless that failed. */
static int load_marks(struct page *page, int r, struct rp_error *err)
{
    for (size_t i = 0; i < page->n && r == 0; i++)
        r = rp_mark_get(page->cli->session.catalog->db, page->letters[i].dead.mark_id, &page->arena,
                        &page->letters[i].mark, err);
    return r;
}

static int load_page(struct page *page, int64_t after_id, struct rp_error *err)
{
    page->n = 0;
    rp_arena_reset(&page->arena);
    int r = rp_dead_each(page->cli->session.catalog->db, after_id, PAGE, keep_letter, page, err);
    return load_marks(page, r, err);
}

static int load_one(struct page *page, const char *text, struct rp_error *err)
{
    int64_t id;
    int r = rp_cli_id(text, RP_ID_DEAD, &id, err);
    if (r == 0) r = rp_dead_get(page->cli->session.catalog->db, id, keep_letter, page, err);
    if (r == RP_ENOTFOUND) rp_error_hint(err, NOT_FOUND_HINT);
    return load_marks(page, r, err);
}

static const char *store_of(const struct page *page, const struct letter *letter)
{
    return rp_names_of(&page->names, letter->mark.store_id);
}

/* ---- list and show ---- */

static json_t *letter_json(const struct page *page, const struct letter *letter)
{
    return rp_dead_json(&letter->dead, &letter->mark, store_of(page, letter));
}

static void list_letter(const struct page *page, const struct letter *letter, struct rp_list *l)
{
    char id[RP_ID_TEXT], subject[RP_SHOWN_MAX], when[RP_WHEN_TEXT], attempts[24];
    snprintf(attempts, sizeof attempts, "%" PRId64, letter->dead.attempts);
    const char *cells[] = { rp_id_format(RP_ID_DEAD, letter->dead.id, id),
                            rp_show_subject(store_of(page, letter), letter->mark.key, subject),
                            rp_show_when(letter->dead.died_at_ms, l->now_ms, when), attempts, letter->error };
    rp_list_row(l, l->cli->json ? letter_json(page, letter) : NULL, cells);
}

int rp_cmd_dead(struct rp_cli *cli, struct rp_error *err)
{
    static const struct rp_column columns[] = { RP_COLUMN("DEAD LETTER"), RP_TEXTS("SUBJECT"), RP_COLUMN("SINCE"),
                                                RP_NUMBERS("ATTEMPTS"), RP_TEXTS("ERROR") };
    RP_CLEANUP(page_freep) struct page *page = new_page(cli, err);
    struct rp_list l;
    int r;
    if (page == NULL) return err->code;
    RP_LIST_INIT(&l, cli, columns, "no dead letters");
    do {
        r = load_page(page, l.last_id, err);
        for (size_t i = 0; i < page->n && r == 0; i++)
            list_letter(page, &page->letters[i], &l);
        if (page->n > 0) l.last_id = page->letters[page->n - 1].dead.id;
    } while (r == 0 && page->n == PAGE);
    return rp_list_end(&l, r);
}

static void say_confirmation(struct rp_cli *cli, const json_t *c)
{
    size_t i;
    json_t *t;
    char text[RP_SHOWN_MAX];
    rp_say(cli, "\n%s  %s, %" PRId64 " attempts\n", rp_json_get_text(c, "name", "?"), rp_json_get_text(c, "state", "?"),
           rp_json_get_int(c, "attempts", 0));
    json_array_foreach(json_object_get(c, "tries"), i, t)
    {
        int64_t status = rp_json_get_int(t, "status", 0);
        const char *words = rp_json_get_text(t, status != 0 ? "body" : "error", "");
        rp_say(cli, "  %s  %" PRId64 "  %s\n", rp_json_get_text(t, "at", "?"), status, rp_show(words, text));
    }
}

/* What outside services were asked, and said. */
static int add_confirmations(struct page *page, json_t *letter, struct rp_error *err)
{
    json_t *list = NULL;
    int r = rp_confirmations_json(page->cli->session.catalog->db, page->letters[0].mark.id, &page->arena, &list, err);
    if (r == 0) rp_json_set(letter, "confirmations", list);
    return r;
}

static const char *kept_as(const struct letter *letter)
{
    if (letter->dead.from_state != RP_CHECKING) return "lost: something of it may be erased";
    return rp_mark_has_agreed(&letter->mark)
               ? "reprieved: nothing was erased here, but see below who has deleted its half"
               : "reprieved: nothing was erased";
}

int rp_cmd_dead_show(struct rp_cli *cli, struct rp_error *err)
{
    RP_CLEANUP(page_freep) struct page *page = new_page(cli, err);
    char id[RP_ID_TEXT], subject[RP_SHOWN_MAX], when[RP_WHEN_TEXT], due[RP_WHEN_TEXT];
    int r = page != NULL ? load_one(page, cli->args.words[1], err) : err->code;
    if (r < 0) return r;
    const struct letter *letter = &page->letters[0];
    RP_CLEANUP(rp_json_decrefp) json_t *o = letter_json(page, letter);
    r = add_confirmations(page, o, err);
    if (r < 0) return r;
    rp_emit(cli, json_incref(o));
    if (cli->json) return 0;
    int64_t now_ms = rp_session_now_ms(&cli->session);
    rp_say(cli, "dead letter  %s\n", rp_id_format(RP_ID_DEAD, letter->dead.id, id));
    rp_say(cli, "subject      %s\n", rp_show_subject(store_of(page, letter), letter->mark.key, subject));
    rp_say(cli, "mark         %s, due %s\n", rp_id_format(RP_ID_MARK, letter->mark.id, id),
           rp_show_when(letter->mark.due_at_ms, now_ms, due));
    rp_say(cli, "died_at      %s\n", rp_show_when(letter->dead.died_at_ms, now_ms, when));
    rp_say(cli, "attempts     %" PRId64 "\n", letter->dead.attempts);
    rp_say(cli, "error        %s\n", rp_show(letter->error, subject));
    rp_say(cli, "retry        goes on where it was: %s\n", rp_state_name(letter->dead.from_state));
    rp_say(cli, "keep         ends the mark as %s\n", kept_as(letter));
    const json_t *confirmations = json_object_get(o, "confirmations");
    for (size_t i = 0; i < json_array_size(confirmations); i++)
        say_confirmation(cli, json_array_get(confirmations, i));
    return 0;
}

/* ---- retry and keep ---- */

/* Who keeps it is told which service has deleted its half already. */
static const char *agreed_note(const struct rp_dead_item *item, char out[RP_SHOWN_MAX])
{
    bool said = rp_state_final(item->as) && rp_mark_has_agreed(&item->mark) && item->mark.note != NULL;
    return said ? rp_show(item->mark.note, out) : "";
}

static void tell_decision(const struct rp_cli *cli, struct rp_dead_item *item, struct rp_answers *told)
{
    char id[RP_ID_TEXT], subject[RP_SHOWN_MAX], note[RP_SHOWN_MAX];
    if (item->error.code < 0) {
        if (item->error.code == RP_ENOTFOUND) rp_error_hint(&item->error, NOT_FOUND_HINT);
        rp_answers_refused(told, &item->error);
        return;
    }
    rp_emit(cli, rp_decided_json(item, item->store));
    const char *agreed = agreed_note(item, note);
    rp_answers_done(told, "%s  %s is %s%s%s\n", rp_id_format(RP_ID_DEAD, item->id, id),
                    rp_show_subject(item->store, item->mark.key, subject), rp_state_name(item->as),
                    agreed[0] != 0 ? ": " : "", agreed);
    if (item->annotate_note[0] != 0)
        rp_warn("%s: kept, but its annotation stands; `reprieve restore %s` tries to remove it again: %s", subject,
                rp_id_format(RP_ID_MARK, item->mark.id, id), item->annotate_note);
}

/* Runs the command and tells what became of each letter. Afterwards the command is empty, ready
 * for the next ones. */
static int decide(struct rp_cli *cli, struct rp_dead_command *c, struct rp_answers *told, struct rp_error *err)
{
    c->command.actor = cli->session.actor;
    c->command.weight = c->max;
    (void)rp_command_run(cli->session.catalog, &c->command);
    if (c->command.failed) {
        *err = c->command.error;
        return err->code;
    }
    for (size_t i = 0; i < c->n; i++)
        tell_decision(cli, &c->items[i], told);
    if (c->n > 0) c->after_id = c->items[c->n - 1].id;
    c->n = 0;
    rp_arena_reset(c->arena);
    return 0;
}

static int retry_all(struct rp_cli *cli, struct rp_dead_command *c, struct rp_answers *told, struct rp_error *err)
{
    int r = 0;
    for (c->all = true; r == 0 && !c->complete;)
        r = decide(cli, c, told, err);
    return r;
}

static int retry_words(struct rp_cli *cli, struct rp_dead_command *c, struct rp_answers *told, struct rp_error *err)
{
    const struct rp_args *args = &cli->args;
    int r = 0;
    for (size_t i = 1; i < args->n_words && r == 0; i++) {
        struct rp_error why = { 0 };
        c->items[c->n] = (struct rp_dead_item){ 0 };
        bool is_id = rp_cli_id(args->words[i], RP_ID_DEAD, &c->items[c->n].id, &why) == 0;
        c->n += is_id;
        if (c->n > 0 && (!is_id || c->n == c->max || i + 1 == args->n_words)) r = decide(cli, c, told, err);
        if (r == 0 && !is_id) rp_answers_refused(told, &why);
    }
    return r;
}

static void say_none(struct rp_cli *cli, const char *endpoint)
{
    if (endpoint != NULL && rp_config_confirmer(&cli->session.config, endpoint) == NULL)
        rp_warn("no service of that name is configured");
    rp_say(cli, "no dead letters\n");
}

int rp_cmd_dead_retry(struct rp_cli *cli, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(ARENA_MAX);
    RP_CLEANUP(rp_freep) struct rp_dead_item *items = calloc(RP_DEAD_ITEMS_MAX, sizeof *items);
    struct rp_dead_command c = {
        .command = { .verb = &rp_verb_dead_retry }, .items = items, .max = RP_DEAD_ITEMS_MAX, .arena = &arena
    };
    struct rp_answers told;
    if (items == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the dead letters");
    rp_answers_init(&told, cli);
    c.endpoint = rp_args_text(&cli->args, "endpoint");
    if (c.endpoint != NULL && c.endpoint[0] == 0)
        return rp_error_set(err, RP_EINVAL, "--endpoint is empty: name a service, or give --all");
    int r = rp_args_when(&cli->args, "since", rp_session_now_ms(&cli->session), -1, &c.since_ms, err);
    if (r == 0) r = cli->args.n_words == 1 ? retry_all(cli, &c, &told, err) : retry_words(cli, &c, &told, err);
    if (r < 0) return r;
    if (told.done + told.refused == 0) say_none(cli, c.endpoint);
    return rp_answers_end(&told, "brought back; tried again when it is due");
}

int rp_cmd_dead_keep(struct rp_cli *cli, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(ARENA_MAX);
    struct rp_dead_item item = { 0 };
    struct rp_dead_command c = {
        .command = { .verb = &rp_verb_dead_keep }, .items = &item, .n = 1, .max = 1, .arena = &arena
    };
    struct rp_answers told;
    struct rp_store *stores[RP_STORES_MAX];
    int r = rp_cli_id(cli->args.words[1], RP_ID_DEAD, &item.id, err);
    if (r == 0) r = rp_session_stores(&cli->session, stores, &c.n_stores, err);
    if (r < 0) return r;
    c.stores = stores;
    rp_answers_init(&told, cli);
    r = decide(cli, &c, &told, err);
    return r < 0 ? r : rp_answers_end(&told, "kept");
}

/* The first that was given of what says which ones, in place of ids; NULL: none. */
static const char *filter_of(const struct rp_args *args)
{
    static const char *const filters[] = { "all", "since", "endpoint" };
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++)
        if (rp_args_has(args, filters[i])) return filters[i];
    return NULL;
}

int rp_cmd_dead_retry_check(struct rp_cli *cli, struct rp_error *err)
{
    const char *filter = filter_of(&cli->args);
    bool ids = cli->args.n_words > 1;
    if (ids && filter != NULL) return rp_error_set(err, RP_EINVAL, "dead retry: give ids or --%s, not both", filter);
    if (ids || filter != NULL) return 0;
    return rp_error_set(err, RP_EINVAL, "dead retry: give ids, --since, --endpoint or --all");
}

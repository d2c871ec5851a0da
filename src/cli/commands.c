/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "core/state.h"

#include <string.h>

/* clang-format off */
#define END { .name = NULL }
#define STATE_LINE(name, means) "  " name ": " means "\n"

const struct rp_option rp_global_options[] = {
    { .name = "config", .arg = "FILE",
      .help = "read this configuration; else $REPRIEVE_CONFIG, ./reprieve.yaml, /etc/reprieve/reprieve.yaml" },
    { .name = "data", .arg = "DIR",
      .help = "without a configuration: keep everything here (default ./reprieve-data)" },
    { .name = "json", .help = "print JSON: one document, or one a line for lists" },
    { .name = "quiet", .letter = 'q', .help = "print only what was asked for and what went wrong" },
    { .name = "help", .letter = 'h', .help = "show help and do nothing" },
    { .name = "version", .help = "show the version and do nothing" },
    END
};

static const struct rp_option none[] = { END };

static const struct rp_option dry_run[] = {
    { .name = "dry-run", .letter = 'n', .help = "say what would happen and change nothing" },
    END
};

static const struct rp_option init_options[] = {
    { .name = "store", .arg = "NAME=DIR", .help = "a directory, or s3://BUCKET, as a store; may be repeated" },
    { .name = "endpoint", .arg = "URL", .help = "where the server of the buckets is (default: AWS)" },
    { .name = "database", .arg = "NAME=URL", .help = "a database whose rows may name objects; may be repeated" },
    { .name = "force", .help = "overwrite the file if it is there" },
    END
};

static const struct rp_option put_options[] = {
    { .name = "type", .arg = "TYPE", .help = "the content type" },
    { .name = "meta", .arg = "NAME=VALUE", .help = "user metadata; may be repeated" },
    END
};

static const struct rp_option get_options[] = {
    { .name = "info", .help = "show identity, headers and metadata instead of the bytes" },
    END
};

static const struct rp_option ls_options[] = {
    { .name = "limit", .arg = "N", .help = "show at most N (default: all)" },
    { .name = "long", .letter = 'l', .help = "with size and time" },
    END
};

static const struct rp_option mark_options[] = {
    { .name = "grace", .arg = "DURATION",
      .help = "how long it can be restored: 5d, 36h (1d to 30d; default: the store's)" },
    { .name = "at", .arg = "TIME", .help = "purge at this time instead: RFC 3339, or a duration from now" },
    { .name = "reason", .arg = "TEXT", .help = "why; shown wherever the mark is" },
    { .name = "if-unreferenced",
      .help = "only if no row names it now; before the purge it is asked wherever the store has referenced_by. Refused if it has none" },
    { .name = "annotate", .help = "also write the mark into the object's own metadata, for other tools" },
    { .name = "stdin", .help = "read subjects from standard input, one a line" },
    { .name = "null", .letter = '0', .help = "with --stdin: separated by NUL bytes, so that keys may hold newlines" },
    { .name = "confirm", .arg = "NAME",
      .help = "this outside service must say yes before anything is erased; may be repeated, in order" },
    END
};

static const struct rp_option restore_options[] = {
    { .name = "run", .arg = "RUN", .help = "what this run marked or moved to quarantine" },
    { .name = "prefix", .arg = "STORE:PREFIX", .help = "subjects whose key begins like this" },
    { .name = "reason", .arg = "TEXT", .help = "marks with exactly this reason" },
    { .name = "actor", .arg = "NAME", .help = "marks made by this actor (cli:root)" },
    { .name = "since", .arg = "TIME", .help = "marks made since: RFC 3339, or a duration ago" },
    { .name = "until", .arg = "TIME", .help = "marks made before" },
    { .name = "dry-run", .letter = 'n', .help = "list what would be restored and change nothing" },
    END
};

static const struct rp_option marks_options[] = {
    { .name = "state", .arg = "STATE", .help = RP_STATE_NAMES_TEXT " (default: all that wait)" },
    { .name = "store", .arg = "STORE", .help = "of this store only" },
    { .name = "due-before", .arg = "TIME", .help = "due before: RFC 3339, or a duration from now" },
    { .name = "reason", .arg = "TEXT", .help = "with exactly this reason" },
    { .name = "limit", .arg = "N", .help = "show at most N (default 100, 0: all)" },
    END
};

static const struct rp_option sweep_options[] = {
    { .name = "store", .arg = "STORE", .help = "this store only" },
    { .name = "limit", .arg = "N", .help = "at most N marks (default: sweep.limit)" },
    { .name = "dry-run", .letter = 'n', .help = "say what would be purged and change nothing" },
    END
};

static const struct rp_option reason_options[] = {
    { .name = "reason", .arg = "TEXT", .help = "why" },
    END
};

static const struct rp_option runs_options[] = {
    { .name = "limit", .arg = "N", .help = "show at most N records (default 20, 0: all)" },
    END
};

static const struct rp_option dead_options[] = {
    { .name = "all", .help = "with retry: all of them" },
    { .name = "since", .arg = "TIME", .help = "with retry: all that died since this time, or within this duration" },
    { .name = "endpoint", .arg = "NAME", .help = "with retry: all that this outside service gave no yes to" },
    END
};

static const struct rp_option audit_options[] = {
    { .name = "lane", .arg = "N", .help = "with export: this lane only" },
    { .name = "file", .arg = "FILE", .help = "with verify: a segment's file alone, without a catalog" },
    END
};

static const struct rp_option import_options[] = {
    { .name = "store", .arg = "STORE", .help = "of this store; must be given" },
    { .name = "prefix", .arg = "PREFIX", .help = "only objects whose key begins like this" },
    { .name = "limit", .arg = "N", .help = "make at most N marks (default: all)" },
    { .name = "dry-run", .letter = 'n',
      .help = "say what would be marked, and when it would be due, and change nothing" },
    END
};

static const struct rp_option recover_options[] = {
    { .name = "moved",
      .help = "the catalog was moved or promoted and lost nothing: keep the marks as they are" },
    { .name = "dry-run", .letter = 'n', .help = "say what would happen and change nothing" },
    { .name = "yes", .letter = 'y', .help = "do not ask" },
    END
};

static const struct rp_option clock_options[] = {
    { .name = "as-is",
      .help = "leave the marks that become due where they are: they are purged at once" },
    { .name = "dry-run", .letter = 'n', .help = "say what would happen and change nothing" },
    END
};

static const struct rp_option token_options[] = {
    { .name = "tenant", .arg = "NAME", .help = "with create: for this tenant; else an admin's" },
    { .name = "scopes", .arg = "LIST",
      .help = "with create: what it may do, with commas (default: a tenant's files, an admin's all)" },
    { .name = "expires", .arg = "TIME", .help = "with create: RFC 3339, or a duration from now (default: never)" },
    END
};

static const struct rp_option help_options[] = {
    { .name = "man", .help = "print the manual page", .hidden = true },
    END
};

const struct rp_cli_command rp_commands[] = {
    { .name = "init",
      .synopsis = "[--store NAME=DIR|NAME=s3://BUCKET]... [--endpoint URL] [--database NAME=URL]... [--force]",
      .summary = "write a commented reprieve.yaml",
      .help = "Writes every setting with its default and what it means. Stores begin in mode observe: nothing is "
              "written to them or erased until the file says quarantine or purge. A file that is there is not "
              "overwritten.\n"
              "  reprieve init --store media=/srv/media --database app=sqlite:/srv/app/app.db\n"
              "  reprieve init --store photos=s3://photos --endpoint https://s3.example.org",
      .options = init_options, .words_most = 0, .run = rp_cmd_init },
    { .name = "serve", .synopsis = "",
      .summary = "run the daemon: HTTP, sweeper, schedules and alerts",
      .help = "Without a configuration everything is kept under --data, and the first start makes an admin token "
              "and prints a link to sign in with. SIGTERM and Ctrl-C drain: what was accepted is answered. SIGHUP "
              "reads the configuration again and opens the log anew.\n"
              "  reprieve serve\n"
              "  reprieve serve --config /etc/reprieve/reprieve.yaml",
      .options = none, .words_most = 0, .run = rp_cmd_serve },
    { .name = "put", .synopsis = "STORE:KEY FILE [--type TYPE] [--meta NAME=VALUE]...",
      .summary = "store a file as an object",
      .help = "FILE may be - for standard input. What stands under the key is replaced as a whole, "
              "but for the bytes of a file: those are refused.\n"
              "  reprieve put main:avatars/7.png photo.png --type image/png --meta owner=7",
      .options = put_options, .words_least = 2, .words_most = 2, .run = rp_cmd_put },
    { .name = "get", .synopsis = "STORE:KEY [FILE]\nSTORE:KEY --info",
      .summary = "write an object to standard output or a file",
      .help = "  reprieve get main:avatars/7.png photo.png",
      .options = get_options, .words_least = 1, .words_most = 2, .run = rp_cmd_get },
    { .name = "ls", .synopsis = "STORE:[PREFIX] [--limit N] [--long]",
      .summary = "list objects in byte order of their keys",
      .help = "  reprieve ls main:avatars/ --long",
      .options = ls_options, .words_least = 1, .words_most = 1, .run = rp_cmd_ls },
    { .name = "mark", .synopsis = "SUBJECT... [--grace DURATION | --at TIME] [--reason TEXT] [--if-unreferenced] "
                                  "[--annotate] [--confirm NAME]...\n"
                                  "--stdin [-0] [the same options]",
      .summary = "mark for deletion: purged when due, unless restored first",
      .help = "A subject is STORE:KEY, or the id of a mark or a file. The object itself stays as it is. Marking "
              "again gives the same mark; a later time extends it, an earlier one is refused. With --stdin a line "
              "that is no subject is refused and the rest goes on; empty lines are left out.\n"
              "  reprieve mark main:avatars/7.png --reason 'avatar replaced'\n"
              "  reprieve mark main:export.zip --at 2027-01-01\n"
              "  reprieve ls main:tmp/ --json | jq -j '.subject + \"\\u0000\"' | reprieve mark --stdin -0 --grace 2d",
      .options = mark_options, .words_most = RP_WORDS_ANY, .run = rp_cmd_mark },
    { .name = "restore", .alias = "unmark",
      .synopsis = "SUBJECT... [--dry-run]\n"
                  "[--run RUN] [--prefix STORE:PREFIX] [--reason TEXT] [--actor NAME] [--since TIME] [--until TIME] "
                  "[--dry-run]",
      .summary = "take marks back, also out of quarantine",
      .help = "A restore wins until a purge has claimed the mark; after that it is refused as too late. What a "
              "purge moved to quarantine is returned under its key, unless something newer stands there. Filters "
              "are combined: all must fit. By filters it is a run, which `reprieve runs` lists: it is about what is "
              "marked when it begins, and nothing of that is purged while it is under way. It goes from the newest "
              "mark to the oldest: of several uploads of one key, or several deleted files of one name, the last "
              "comes back and those before it are refused, also among several subjects. An interrupt (Ctrl-C) or "
              "`reprieve cancel` ends it between two batches of 1,000. One that was killed is carried on by a "
              "daemon, or by the next restore.\n"
              "  reprieve restore main:avatars/7.png\n"
              "  reprieve restore --prefix main:avatars/ --since 2h --dry-run\n"
              "  reprieve restore --run run_01hxyz0000000",
      .options = restore_options, .words_most = RP_WORDS_ANY, .run = rp_cmd_restore },
    { .name = "marks", .synopsis = "[--state STATE] [--store STORE] [--due-before TIME] [--reason TEXT] [--limit N]",
      .summary = "list marks",
      .help = "Without --state: those that wait, in order of time. Ended ones are listed newest first. The states:\n"
              RP_STATE_WORDS(STATE_LINE) "For example:\n"
              "  reprieve marks --due-before 24h\n"
              "  reprieve marks --state purged --limit 10",
      .options = marks_options, .words_most = 0, .run = rp_cmd_marks },
    { .name = "sweep", .synopsis = "[--store STORE] [--limit N] [--dry-run]",
      .summary = "purge what is due",
      .help = "One run over every store that may be purged, with exactly one record. An interrupt (Ctrl-C) ends it "
              "after the batches under way. Outside services are asked first about the marks that need their yes: what "
              "all of them agree to is purged in the same run. Exit code 8: something failed, or a store was left out, and the next sweep "
              "tries again; but a store in mode observe is left out because you said so, which is no failure. What a "
              "restore names that is open waits for it, even if its process is gone: the sweep says so.\n"
              "  reprieve sweep --dry-run\n"
              "  reprieve sweep --store media --limit 1000",
      .options = sweep_options, .words_most = 0, .run = rp_cmd_sweep },
    { .name = "hold",
      .summary = "list, place and lift holds: what is held is not purged",
      .help = "SCOPE is STORE:KEY, STORE:PREFIX*, tenant/NAME or everything; it covers copies in quarantine too. "
              "Marks can still be made: they wait. The answer lists the marks whose purge had begun already.\n"
              "  reprieve hold add 'main:case-1142/*' --reason 'legal hold 1142'",
      .options = reason_options,
      .verbs = (const struct rp_cli_verb[]){
          { .name = "", .run = rp_cmd_hold },
          { .name = "add", .words = "SCOPE --reason TEXT", .options = "reason", .words_least = 1, .words_most = 1,
            .check = rp_cmd_hold_add_check, .run = rp_cmd_hold_add },
          { .name = "rm", .words = "ID", .words_least = 1, .words_most = 1, .run = rp_cmd_hold_rm },
          END } },
    { .name = "pause", .synopsis = "[--reason TEXT]", .summary = "hold everything",
      .help = "Nothing is purged by any process until `reprieve resume`. Marks can still be made: they wait.\n"
              "  reprieve pause --reason 'restoring a backup'",
      .options = reason_options, .words_most = 0, .run = rp_cmd_pause },
    { .name = "resume", .synopsis = "", .summary = "lift every hold on everything",
      .help = "Holds on subjects and prefixes stay.\n  reprieve resume",
      .options = none, .words_most = 0, .run = rp_cmd_resume },
    { .name = "retention", .synopsis = "[--dry-run]",
      .summary = "let records go that tell of what ended long ago",
      .help = "A daemon does this once a day; this is for where none runs, and for now. How long what stays is said "
              "under retention in the configuration. Nothing that waits, lives, is in quarantine or stays listed after "
              "its deletion is touched, and no object in a store. It is a run with a record of its own, in batches of "
              "1,000; an interrupt (Ctrl-C) or `reprieve cancel` ends it between two of them. A dry run looks at "
              "100,000 rows of each kind at most, and says if there are more.\n"
              "  reprieve retention --dry-run",
      .options = dry_run, .words_most = 0, .run = rp_cmd_retention },
    { .name = "safety-net", .synopsis = "[--dry-run]",
      .summary = "bring back what nothing would find any more",
      .help = "Finds files that are deleted, or were never confirmed, while no mark waits for them; files that live "
              "while their parent or source is gone; marks that nobody will look at; dead marks without a letter. Each "
              "is told in the log, and is marked again or brought back to its queue: nothing is erased, and what is "
              "marked can be restored until it is due. A daemon does this by safety_net.schedule; this is for now. It "
              "is a run with a record of its own, which ends when safety_net.limit are mended; the next one goes on "
              "there. An interrupt (Ctrl-C) or `reprieve cancel` ends it between two batches. A dry run says what "
              "would be done and why, and changes nothing.\n"
              "  reprieve safety-net --dry-run",
      .options = dry_run, .words_most = 0, .run = rp_cmd_safety_net },
    { .name = "runs",
      .summary = "list runs and their deletion records, newest first",
      .help = "  reprieve runs show run_01hxyz0000000",
      .options = runs_options,
      .verbs = (const struct rp_cli_verb[]){
          { .name = "", .options = "limit", .check = rp_cmd_runs_check, .run = rp_cmd_runs },
          { .name = "show", .words = "RUN", .words_least = 1, .words_most = 1, .run = rp_cmd_runs_show },
          END } },
    { .name = "cancel", .synopsis = "RUN", .summary = "end a run between two of its batches",
      .help = "What the run did stays; its record says cancelled. A continuous sweep goes on with its next run: "
              "`reprieve pause` stops purging. A run whose process is gone has its record at once, and what it kept "
              "from sweeps is free.\n"
              "  reprieve cancel run_01hxyz0000000",
      .options = none, .words_least = 1, .words_most = 1, .run = rp_cmd_cancel },
    { .name = "dead",
      .summary = "list dead letters, retry them, or give their marks up",
      .help = "A mark that a person must decide on waits here: it failed too often, an outside service refused, or nothing came "
              "in time. `keep` ends it: as reprieved if nothing of "
              "it can have been erased, else as lost. A lost file stays deleted and takes its room, until it is restored, "
              "if its object is there, or deleted once more. Of a mark that waits for an outside service nothing was erased: "
              "`keep` says who has deleted its half already, and a file lives again; `show` lists each call to them; `retry` "
              "asks anew, with a deadline of its own.\n"
              "  reprieve dead retry --all\n"
              "  reprieve dead retry --endpoint calendar --since 3d",
      .options = dead_options,
      .verbs = (const struct rp_cli_verb[]){
          { .name = "", .run = rp_cmd_dead },
          { .name = "show", .words = "ID", .words_least = 1, .words_most = 1, .run = rp_cmd_dead_show },
          { .name = "retry", .words = "ID... | --all | [--since TIME] [--endpoint NAME]", .options = "all since endpoint",
            .words_most = RP_WORDS_ANY, .check = rp_cmd_dead_retry_check, .run = rp_cmd_dead_retry },
          { .name = "keep", .words = "ID", .words_least = 1, .words_most = 1, .run = rp_cmd_dead_keep },
          END } },
    { .name = "explain", .synopsis = "SUBJECT", .summary = "tell the story of one subject",
      .help = "Why it is here, why it went, who decided, and what will happen next. SUBJECT may be the id of a dead "
              "letter, too.\n"
              "  reprieve explain main:avatars/7.png",
      .options = none, .words_least = 1, .words_most = 1, .run = rp_cmd_explain },
    { .name = "audit",
      .summary = "show the newest audit rows, verify the chain, or export it",
      .help = "Shows the newest 20 rows, the newest last. Every change has a row, chained by hashes. `verify` names the first link that does not hold; "
              "`export` prints JSON lines. Rows older than retention.audit go once a sealed segment holds them: "
              "`segments` lists which stand in which file. `verify` holds the files in retention.segments against "
              "their SHA-256, and says which are not there. `verify --file` proves one by itself.\n"
              "  reprieve audit verify",
      .options = audit_options,
      .verbs = (const struct rp_cli_verb[]){
          { .name = "", .run = rp_cmd_audit },
          { .name = "verify", .options = "file", .patient = true, .opens = true, .run = rp_cmd_audit_verify },
          { .name = "export", .options = "lane", .run = rp_cmd_audit_export },
          { .name = "segments", .run = rp_cmd_audit_segments },
          END } },
    { .name = "quota",
      .summary = "show what tenants use and may use, change a limit, prove the counters",
      .help = "LIMIT is a size such as 50GiB, or `default` for the configured one. `rebuild` compares every counter "
              "with the sum of its ledger and sets right what differs.\n"
              "  reprieve quota set acme 50GiB\n"
              "  reprieve quota rebuild --dry-run",
      .options = dry_run,
      .verbs = (const struct rp_cli_verb[]){
          { .name = "", .run = rp_cmd_quota },
          { .name = "set", .words = "TENANT LIMIT", .words_least = 2, .words_most = 2, .run = rp_cmd_quota_set },
          { .name = "rebuild", .options = "dry-run", .patient = true, .run = rp_cmd_quota_rebuild },
          END } },
    { .name = "token",
      .summary = "list, make and revoke tokens; make a link to sign in with",
      .help = "A token is shown once, when it is made; only its hash is kept. Scopes: files.read, files.write, "
              "marks.read, marks.write, runs.read, runs.write, live, metrics, audit, admin, or all. A revoked token "
              "is refused by every daemon within a second. Where standard output is no terminal, it gets the secret "
              "alone: TOKEN=$(reprieve token create web --tenant acme).\n"
              "  reprieve token create web --tenant acme\n"
              "  reprieve token create prometheus --scopes metrics",
      .options = token_options,
      .verbs = (const struct rp_cli_verb[]){
          { .name = "", .run = rp_cmd_token },
          { .name = "list", .run = rp_cmd_token },
          { .name = "create", .words = "NAME", .options = "tenant scopes expires", .words_least = 1, .words_most = 1,
            .run = rp_cmd_token_create },
          { .name = "revoke", .words = "ID", .words_least = 1, .words_most = 1, .run = rp_cmd_token_revoke },
          { .name = "link", .run = rp_cmd_token_link },
          END } },
    { .name = "stores",
      .summary = "list stores: mode, guarantee, owner, what waits; rename one",
      .help = "A store that has another name in the configuration is a new one for the catalog: nothing of it is "
              "purged, because no hold, no mark and no file of the old name covers it. Give it its old name back, or "
              "`rename`: then all of it has the new name. Run it with the configuration that names NEW and not OLD, "
              "and restart the daemons. It is refused if marks, files, holds or an owner record were made "
              "under the new name already.\n"
              "  reprieve stores\n"
              "  reprieve stores rename media assets",
      .options = dry_run,
      .verbs = (const struct rp_cli_verb[]){
          { .name = "", .run = rp_cmd_stores },
          { .name = "rename", .words = "OLD NEW", .options = "dry-run", .words_least = 2, .words_most = 2,
            .run = rp_cmd_stores_rename },
          END } },
    { .name = "doctor", .synopsis = "", .summary = "check configuration, catalog, clocks, stores and who is called",
      .help = "One line a check, with what to do about it. Every server that the configuration names is sent a signed "
              "handshake. Exit code 1 if a check failed.\n  reprieve doctor",
      .options = none, .words_most = 0, .run = rp_cmd_doctor },
    { .name = "import", .synopsis = "--store STORE [--prefix PREFIX] [--limit N] [--dry-run]",
      .summary = "make marks of the annotations that objects carry",
      .help = "Walks the store and reads each object's metadata and tags. One whose marked_for_deletion is \"true\" "
              "or \"1\" is marked, whoever wrote it: due at delete_after, else at marked_for_deletion_on and the "
              "store's grace; if that time cannot be read, or there is none, the grace begins now. A time that is "
              "past is due at once. Times are milliseconds, seconds or RFC 3339. What is marked already stays as it "
              "is, and the store is not written to. A restore of such a mark removes the annotation. An import is a "
              "run with a record (`reprieve runs`); one of the same store at a time.\n"
              "  reprieve import --store media --dry-run\n"
              "  reprieve import --store media --prefix uploads/",
      .options = import_options, .words_most = 0, .run = rp_cmd_import },
    { .name = "recover", .synopsis = "STORE [--moved] [--dry-run] [--yes]",
      .summary = "take over a store whose owner record does not fit",
      .help = "After a catalog was cloned or restored from a backup, nothing of its stores is purged until this was "
              "run. It shows what it found, asks, reprieves the waiting marks of the store and writes the owner "
              "record anew. A catalog whose file was copied or whose PostgreSQL was promoted or restored is found "
              "in another place, and stops as well: --moved says that nothing was lost on the way. Then the marks "
              "stay, and only the new place is noted; it is refused if the owner record shows that something was "
              "lost.\n"
              "  reprieve recover media --dry-run\n"
              "  reprieve recover media --moved",
      .options = recover_options, .words_least = 1, .words_most = 1, .run = rp_cmd_recover },
    { .name = "clock",
      .summary = "show this host's clock, or go on after it jumped",
      .help = "The clock of a host is judged by the time that has passed since its boot. When it is more than 5 "
              "minutes ahead of that it has jumped: nothing is purged from this host, and new marks count by the "
              "boot clock, until the clock is set right. If it is right now, `accept` takes its time for the true "
              "one. It says how many marks that makes due, and moves those that were made by the time before by the "
              "length of the jump, so that each keeps its grace; with --as-is they stay, and are purged at once.\n"
              "  reprieve clock\n"
              "  reprieve clock accept --dry-run",
      .options = clock_options,
      .verbs = (const struct rp_cli_verb[]){
          { .name = "", .run = rp_cmd_clock },
          { .name = "accept", .options = "as-is dry-run", .run = rp_cmd_clock_accept },
          END } },
    { .name = "migrate", .synopsis = "[--dry-run]", .summary = "bring the catalog to this version's schema",
      .help = "Make a backup first.\n  reprieve migrate --dry-run",
      .options = dry_run, .words_most = 0, .run = rp_cmd_migrate },
    { .name = "version", .synopsis = "", .summary = "show the version, the schema and the libraries",
      .help = "  reprieve version --json", .options = none, .words_most = 0, .run = rp_cmd_version },
    { .name = "help", .synopsis = "[COMMAND]", .summary = "show all commands, or one of them",
      .help = "  reprieve help mark", .options = help_options, .words_most = 1, .run = rp_cmd_help },
};
/* clang-format on */

const size_t rp_commands_count = sizeof rp_commands / sizeof rp_commands[0];

const struct rp_cli_command *rp_command_find(const char *name)
{
    for (size_t i = 0; i < rp_commands_count; i++) {
        const struct rp_cli_command *c = &rp_commands[i];
        if (strcmp(c->name, name) == 0 || (c->alias != NULL && strcmp(c->alias, name) == 0)) return c;
    }
    return NULL;
}

const struct rp_option *rp_option_find(const struct rp_option *options, const char *name, size_t n)
{
    for (; options->name != NULL; options++)
        if (strlen(options->name) == n && strncmp(options->name, name, n) == 0) return options;
    return NULL;
}

const struct rp_option *rp_option_find_letter(const struct rp_option *options, char letter)
{
    for (; options->name != NULL; options++)
        if (options->letter != 0 && options->letter == letter) return options;
    return NULL;
}

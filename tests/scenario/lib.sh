# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# lib.sh - what the scenarios of the command line share. A script sources it, then says what it does and what must be true:
#   begin STORES <<YAML   a fresh directory; reprieve.yaml with the catalog and the stores (YAML of the key `stores`)
#   run CODE ARGS...      runs the binary; the exit code must be CODE; leaves $OUT and $ERR
#   on_terminal ARGS...   runs the binary on a terminal
#   says, complains, silent   what the last run printed
#   check WHAT COMMAND    any other fact
# CATALOG=sqlite|postgres chooses the catalog; postgres needs RP_TEST_POSTGRES.
set -euo pipefail

BIN=${REPRIEVE_BIN:?the binary to test}
CATALOG=${CATALOG:-sqlite}
unset REPRIEVE_CONFIG
# Straight to the programs: python3 and psql of the PATH may be scripts that look for them, at 0.1 s each time.
PATH=${PG_BIN:-/usr/lib/postgresql/15/bin}:$(python3 -IS -c 'import os, sys; print(os.path.dirname(sys.executable))'):$PATH
DIR=$(mktemp -d "${TMPDIR:-/tmp}/reprieve-scenario.XXXXXX")
SCHEMA="s$$_$(date +%s%N)"
MOUNTS=() # undone at the end
AFTER=''  # SQL for the test's PostgreSQL
OUT='' ERR='' LAST=''
chmod 755 "$DIR"
cd "$DIR"

finish() { # [CODE]
    local code=${1:-$?}
    for at in ${MOUNTS[@]+"${MOUNTS[@]}"}; do umount "$at" || true; done
    [ "$CATALOG" = sqlite ] || psql_do "DROP SCHEMA IF EXISTS $SCHEMA CASCADE; $AFTER" || true
    cd /
    rm -rf "$DIR"
    exit "$code"
}
trap finish EXIT

fail() {
    echo "FAILED: $*" >&2
    printf '  after: %s\n  out: %s\n  err: %s\n' "$LAST" "$OUT" "$ERR" >&2
    exit 1
}

step() { echo "- $*"; }

# ---- the binary ----

# run_program STDIN CODE COMMAND...
run_program() {
    local from=$1 want=$2 code=0
    shift 2
    LAST="$*"
    "$@" >"$DIR/out" 2>"$DIR/err" <"$from" || code=$?
    OUT=$(tr '\0' ' ' <"$DIR/out") ERR=$(tr '\0' ' ' <"$DIR/err")
    [ "$code" = "$want" ] || fail "exit code $code instead of $want"
}

run() { # CODE ARGS...
    local want=$1
    shift
    run_program /dev/null "$want" "$BIN" "$@"
}

run_with() { # FILE CODE ARGS...: the file is standard input
    local from=$1 want=$2
    shift 2
    run_program "$from" "$want" "$BIN" "$@"
}

# Somebody who owns nothing runs a copy: the build directory may not be theirs to enter.
run_as_nobody() { # CODE ARGS...
    local want=$1
    shift
    [ -e "$DIR/binary" ] || cp "$BIN" "$DIR/binary"
    run_program /dev/null "$want" setpriv --reuid=65534 --regid=65534 --clear-groups "$DIR/binary" "$@"
}

# Both outputs go to a terminal; $OUT is what it was sent, without the returns that it adds.
on_terminal() { # ARGS...
    local line
    LAST="on a terminal: $*"
    printf -v line '%q ' "$BIN" "$@"
    OUT=$(NO_COLOR=1 SHELL=/bin/bash script -qc "$line" /dev/null </dev/null | tr -d '\r')
}

says() { grep -qF -- "$1" <<<"$OUT" || fail "the output does not say: $1"; }
says_not() { ! grep -qF -- "$1" <<<"$OUT" || fail "the output says: $1"; }
complains() { grep -qF -- "$1" <<<"$ERR" || fail "the complaint does not say: $1"; }
silent() { [ -z "$OUT$ERR" ] || fail "it should have said nothing"; }
check() {
    local what=$1
    shift
    "$@" || fail "$what"
}
same() { [ "$1" = "$2" ] || fail "expected '$2', found '$1'${3:+ ($3)}"; }
# Python over JSON lines: `lines` is the list of them, `d` the first.
json_eval() { # EXPRESSION FILE
    python3 -IS -c 'import json, sys
lines = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8") if line.strip()]
d = lines[0] if lines else None
found = eval(sys.argv[1], {"lines": lines, "d": d})
print(json.dumps(found) if isinstance(found, (bool, type(None))) else found)' "$1" "$2"
}
# Of the last output, or of the log.
value() { json_eval "$1" "$DIR/out"; }
log_fits() { [ "$(json_eval "any($1 for d in lines)" "$DIR/reprieve.log")" = true ]; }
logged() { log_fits "$1" || fail "no line of the log fits: $1"; }
log_has_all() { # EVENT FIELD...: every line of the event has these fields
    local event=$1
    shift
    [ "$(json_eval "all(f in d for d in lines if d['event'] == '$event' for f in '$*'.split())" "$DIR/reprieve.log")" = true ] ||
        fail "a line $event of the log lacks one of $*"
}

# ---- the catalog ----

at_end() { AFTER=$1; }
psql_do() { psql -X -q -v ON_ERROR_STOP=1 "$RP_TEST_POSTGRES" -c "$1" >/dev/null 2>&1; }

catalog_url() {
    if [ "$CATALOG" = sqlite ]; then
        echo "sqlite:$DIR/catalog.db"
    else
        echo "${RP_TEST_POSTGRES:?CATALOG=postgres needs RP_TEST_POSTGRES}&schema=$SCHEMA"
    fi
}

# SQL on the catalog's tables: only to look, or to damage something on purpose.
catalog_sql() {
    if [ "$CATALOG" = sqlite ]; then
        sqlite3 "$DIR/catalog.db" "$1"
    else
        PGOPTIONS="-c search_path=$SCHEMA" psql -X -q -A -t -v ON_ERROR_STOP=1 "$RP_TEST_POSTGRES" -c "$1"
    fi
}

catalog_save() { # NAME
    if [ "$CATALOG" = sqlite ]; then
        sqlite3 "$DIR/catalog.db" ".backup '$DIR/$1'"
    else
        pg_dump --schema="$SCHEMA" --file="$DIR/$1" "$RP_TEST_POSTGRES"
    fi
}

catalog_drop() {
    if [ "$CATALOG" = sqlite ]; then
        rm -f "$DIR"/catalog.db "$DIR"/catalog.db-*
    else
        psql_do "DROP SCHEMA $SCHEMA CASCADE"
    fi
}

catalog_load() { # NAME
    catalog_drop
    if [ "$CATALOG" = sqlite ]; then
        cp "$DIR/$1" "$DIR/catalog.db"
    else
        psql -X -q -v ON_ERROR_STOP=1 "$RP_TEST_POSTGRES" --file="$DIR/$1" >/dev/null
    fi
}

# ---- the world ----

# begin <<YAML: members of `stores`, then any other keys. The directories of the stores must be made by the script.
begin() {
    {
        echo "catalog: { url: \"$(catalog_url)\" }"
        echo "log: { file: $DIR/reprieve.log }"
        cat
    } >"$DIR/reprieve.yaml"
}

make() { # FILE TEXT: a plain file, with the directories above it
    mkdir -p "$(dirname "$1")"
    printf %s "$2" >"$1"
}

# What a tree looks like: every name, kind, size, time and content.
tree_hash() {
    (cd "$1" && find . -printf '%p %y %s %T@ %m\n' | sort && find . -type f -print0 | sort -z | xargs -0r sha256sum) | sha256sum
}

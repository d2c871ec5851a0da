# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# servers.sh - PostgreSQL servers of a scenario's own, on top of daemon.sh. Each has a directory of $SERVERS, with its data and its
# socket; none listens elsewhere. They are gone at the end.
#   server_make NAME [LINE...]         a new cluster, running; LINEs for postgresql.conf
#   server_copy FROM NAME [LINE...]    a base backup of a running one: a standby of it, if standby.signal is made before the start
#   server_conf NAME [LINE...]         its configuration anew; server_start, server_reload
#   server_crash NAME                  SIGKILL to all of its processes
#   standby_of PRIMARY NAME            a standby that the primary waits for; promote NAME
#   on NAME SQL                        what it answers
SERVERS=$(mktemp -d /tmp/rp-pg.XXXXXX) # short: a socket's path may have 107 bytes at most
PG=${PG_BIN:-/usr/lib/postgresql/15/bin}
[ "$(id -u)" != 0 ] || chown postgres:postgres "$SERVERS"

AS_SERVER=(env -C "$SERVERS") # before a command, also one in the background whose pid is wanted
[ "$(id -u)" != 0 ] || AS_SERVER+=(setpriv --reuid=postgres --regid=postgres --init-groups --reset-env)
as_server() { "${AS_SERVER[@]}" "$@"; }

server_conf() { # NAME [LINE...]
    local name=$1
    shift
    # what would stay behind a SIGKILL is kept in the directory
    printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$SERVERS/$name'" 'fsync = off' 'wal_level = replica' \
        'dynamic_shared_memory_type = mmap' 'wal_retrieve_retry_interval = 100ms' "$@" | as_server tee "$SERVERS/$name/data/postgresql.conf" >/dev/null
}
server_reload() { as_server "$PG/pg_ctl" -D "$SERVERS/$1/data" reload >/dev/null; }
server_start() { # NAME
    as_server "$PG/pg_ctl" -D "$SERVERS/$1/data" -w -t 120 -l "$SERVERS/$1/log" start >/dev/null ||
        fail "server $1 did not start: $(tail -5 "$SERVERS/$1/log")"
}
server_make() { # NAME [LINE...]
    as_server mkdir "$SERVERS/$1"
    as_server "$PG/initdb" -D "$SERVERS/$1/data" -A trust -U postgres --no-sync --locale=C -E UTF8 >"$DIR/initdb.log" 2>&1 ||
        fail "initdb: $(cat "$DIR/initdb.log")"
    server_conf "$@"
    server_start "$1"
}
server_copy() { # FROM NAME [LINE...]
    local from=$1
    shift
    as_server rm -rf "${SERVERS:?}/$1"
    as_server mkdir "$SERVERS/$1"
    as_server "$PG/pg_basebackup" -h "$SERVERS/$from" -U postgres -D "$SERVERS/$1/data" -X stream --no-sync -c fast 2>"$DIR/basebackup.log" ||
        fail "pg_basebackup: $(cat "$DIR/basebackup.log")"
    server_conf "$@"
}
server_crash() { # NAME
    local pid
    pid=$(head -1 "$SERVERS/$1/data/postmaster.pid")
    # shellcheck disable=SC2046 # a list of numbers
    kill -KILL "$pid" $(pgrep -P "$pid") 2>/dev/null || true
    # its one segment of shared memory is nobody's now: "key id" in the seventh line
    ipcrm -m "$(sed -n 7p "$SERVERS/$1/data/postmaster.pid" | awk '{ print $2 }')" 2>/dev/null || true
    as_server rm -f "$SERVERS/$1/data/postmaster.pid"
}
on() { psql -X -q -A -t -v ON_ERROR_STOP=1 "postgres:///postgres?host=$SERVERS/$1&user=postgres" -c "$2"; }
now() { python3 -IS -c 'import time; print(time.time())'; }
answers_with() { [ "$(on "$1" "$2" 2>/dev/null)" = "$3" ]; } # NAME SQL WHAT

standby_of() { # PRIMARY NAME
    server_copy "$1" "$2" "primary_conninfo = 'host=$SERVERS/$1 user=postgres'"
    as_server touch "$SERVERS/$2/data/standby.signal"
    server_start "$2"
    server_conf "$1" "synchronous_standby_names = '*'"
    server_reload "$1"
    until_true "the standby $2 is synchronous" answers_with "$1" "SELECT sync_state FROM pg_stat_replication" sync
}
promote() { as_server "$PG/pg_ctl" -D "$SERVERS/$1/data" -w -t 60 promote >/dev/null || fail "$1 was not promoted: $(tail -5 "$SERVERS/$1/log")"; }

# shellcheck disable=SC2317,SC2034 # called at the end; read by finish: the servers are gone, and the schemas with them
servers_done() {
    CATALOG=sqlite
    for at in "$SERVERS"/*/data/postmaster.pid; do
        [ ! -f "$at" ] || as_server "$PG/pg_ctl" -D "$(dirname "$at")" -m immediate -w stop >/dev/null || true
    done
    rm -rf "$SERVERS"
}
LEAVE+=(servers_done)

# shellcheck shell=bash disable=SC2034 # what is set here is read by the scripts and by lib.sh
# SPDX-License-Identifier: Apache-2.0
# daemon.sh - what the scenarios over HTTP share, on top of lib.sh. A script sources it, then:
#   serve_with <<YAML     a configuration (YAML of any keys but the catalog, the log and listen), and the daemon
#   as TOKEN              who calls from now on; $ADMIN is there from the start
#   api CODE METHOD PATH [BODY] [CURL ARGUMENTS...]   a call; the status must be CODE; leaves $OUT, $DIR/out and $DIR/headers
#   problem SLUG          the last answer is a refusal of that kind
#   upload NAME TEXT [MORE JSON]   begins an upload and puts the bytes; leaves $ID and $KEY
#   until_true WHAT COMMAND...     waits for a condition
#   PIDS+=($!)            a process that ends with the script; LEAVE+=(COMMAND) what else is to be done then
# Every JSON answer is kept and held against /openapi.json by shapes_fit, which a script calls at its end.
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC1091 # a path made at run time
. "$HERE/lib.sh"

free_ports() { # N
    python3 -IS -c 'import socket, sys
s = [socket.socket() for _ in range(int(sys.argv[1]))]
for x in s: x.bind(("127.0.0.1", 0))
print(*[x.getsockname()[1] for x in s])' "$1"
}
PORT=$(free_ports 1)
URL=http://127.0.0.1:$PORT
PID='' TOKEN='' ADMIN='' ID='' KEY='' CALLS=0
PIDS=() LEAVE=()
mkdir -p "$DIR/answers"
# shellcheck disable=SC2317 # called by the trap
leave() {
    local code=$?
    for pid in $PID ${PIDS[@]+"${PIDS[@]}"}; do kill -KILL "$pid" 2>/dev/null || true; done
    for pid in $PID ${PIDS[@]+"${PIDS[@]}"}; do wait "$pid" 2>/dev/null || true; done
    for what in ${LEAVE[@]+"${LEAVE[@]}"}; do "$what"; done
    finish "$code"
}
trap leave EXIT

until_true() { # WHAT COMMAND...: within a minute
    local what=$1 end=$((SECONDS + 60))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || fail "$what"
        sleep 0.1
    done
}

logged() { until_true "no line of the log fits: $1" log_fits "$1"; } # a daemon writes its log after its answer

start() {
    "$BIN" serve >"$DIR/serve.out" 2>"$DIR/serve.err" &
    PID=$!
    until_true "the daemon answers" answers
}
answers() {
    kill -0 "$PID" 2>/dev/null || fail "the daemon ended: $(cat "$DIR/serve.err")"
    curl -sf -o /dev/null "$URL/healthz"
}

stop() {
    kill "$PID"
    wait "$PID" || fail "the daemon ended with $?: $(cat "$DIR/serve.err")"
    PID=''
}

crash() {
    kill -KILL "$PID"
    wait "$PID" 2>/dev/null || true
    PID=''
}

serve_with() { # the safety net runs by the clock on the wall: only where the test says so
    local more
    more=$(cat)
    {
        echo "listen: 127.0.0.1:$PORT"
        echo "$more"
        grep -q '^safety_net:' <<<"$more" || echo 'safety_net: { schedule: "" }'
    } | begin
    run 0 token create tester --json
    ADMIN=$(value "d['secret']")
    TOKEN=$ADMIN
    start
}

tenant_token() { # TENANT [SCOPES]: prints a new token
    run 0 token create "of-$1" --tenant "$1" ${2:+--scopes "$2"} --json
    value "d['secret']"
}

as() { TOKEN=$1; }

api() { # CODE METHOD PATH [BODY] [CURL ARGUMENTS...]
    local want=$1 method=$2 path=$3 body=${4:-} got
    shift 3
    [ $# -eq 0 ] || shift
    LAST="$method $path $body $*"
    local args=(-s -o "$DIR/out" -D "$DIR/headers" -w '%{http_code}' -X "$method" -H "Authorization: Bearer $TOKEN")
    [ -z "$body" ] || args+=(-H 'Content-Type: application/json' -d "$body")
    got=$(curl "${args[@]}" "$@" "$URL$path") || true
    OUT=$(cat "$DIR/out") ERR=$(cat "$DIR/headers")
    [ "$got" = "$want" ] || fail "status $got instead of $want"
    CALLS=$((CALLS + 1))
    printf '%s\n%s\n%s\n%s\n' "$method" "$path" "$got" "$OUT" >"$DIR/answers/$(printf %04d "$CALLS")"
}
problem() { # SLUG
    same "$(value "d['code']")" "$1"
    grep -qi '^content-type: application/problem+json' "$DIR/headers" || fail "a refusal that is no problem+json"
}
header() { tr -d '\r' <"$DIR/headers" | grep -qiF -- "$1" || fail "no header: $1"; }

upload() { # NAME TEXT [MORE JSON]
    printf %s "$2" >"$DIR/bytes"
    api 201 POST "${4:-/v1/files}" "{\"name\":\"$1\",\"size\":${#2}${3:+,$3}}"
    ID=$(value "d['id']") KEY=$(value "d['key']")
    put_bytes "$(value "d['upload']['url']")" "$(value "d['upload']['headers'].get('Content-Type', '')")"
}
put_bytes() { # URL [CONTENT-TYPE]: the bytes of the last upload
    local got
    got=$(curl -s -o "$DIR/put" -w '%{http_code}' -X PUT -H "Content-Type:${2:+ $2}" --data-binary "@$DIR/bytes" "$1")
    [ "$got" = 200 ] || fail "the bytes were refused: $got $(cat "$DIR/put")"
}
live() { # NAME TEXT [MORE JSON]: an upload that is confirmed
    upload "$@"
    api 200 POST "/v1/files/$ID/confirm" '{}'
    same "$(value "d['status']")" live
}

status_of() { curl -s -H "Authorization: Bearer $TOKEN" "$URL/v1/files/$1" | python3 -IS -c 'import json,sys; print(json.load(sys.stdin)["status"])'; }
has_status() { [ "$(status_of "$1")" = "$2" ]; }
mark_state() { curl -s -H "Authorization: Bearer $TOKEN" "$URL/v1/marks/$1" | python3 -IS -c 'import json,sys; print(json.load(sys.stdin)["state"])'; }
has_state() { [ "$(mark_state "$1")" = "$2" ]; }

# Users of several nodes: see users.py. In the background: LOAD=$!, its output in load.out and load.err.
users() { python3 -IS "$HERE/users.py" "$TOKEN" "$DIR" "$@"; }
followed() { # NODES TIME: so many have acknowledged something that was asked after that
    kill -0 "$LOAD" 2>/dev/null || fail "the load: $(cat load.err)"
    [ -s progress ] && [ "$(json_eval "len(d) >= $1 and min(d.values()) > $2" progress)" = true ]
}

is_finished() { # RUN
    api 200 GET "/v1/runs/$1"
    [ "$(value "d['state']")" = finished ]
}
is_ready() { [ "$(curl -s -o "$DIR/ready" -w '%{http_code}' "$URL/readyz")" = 200 ]; }
not_ready() { # WHY
    [ "$(curl -s -o "$DIR/ready" -w '%{http_code}' "$URL/readyz")" = 503 ] && grep -qE "$1" "$DIR/ready"
}
store_is_lost() { # true|false: what the alert says
    curl -s -H "Authorization: Bearer $ADMIN" "$URL/v1/alerts" >"$DIR/alerts"
    [ "$(json_eval "any(a['name'] == 'ReprieveStoreNotOurs' and a.get('cleared_at') is None for a in d['items'])" "$DIR/alerts")" = "$1" ]
}
# What is marked now for $GRACE is due, and the sweeper has had its look.
due_from_now() { DUE=$(python3 -IS -c "import time; print(time.time() + ${GRACE%s})"); }
wait_until_due() { sleep "$(python3 -IS -c "import time; print(max(0, $DUE + 2 - time.time()))")"; }

shapes_fit() {
    curl -sf "$URL/openapi.json" >"$DIR/openapi.json" || fail "no /openapi.json"
    python3 "$HERE/shapes_fit.py" "$DIR/openapi.json" "$DIR"/answers/* >"$DIR/fit" 2>&1 ||
        fail "answers do not fit their shapes: $(head -c 2000 "$DIR/fit")"
}

# shellcheck shell=bash disable=SC2034 # what is set here is read by the scripts
# SPDX-License-Identifier: Apache-2.0
# liar.sh - an S3 server that fails as it is told (tests/lib/s3_liar.py), on top of daemon.sh. A script sources it, then:
#   liar_begin SEED                 it listens; it ends with the script, whose end of `hold` it reads
#   liar METHOD PATH [BODY]         a call; leaves the answer in $DIR/out
#   store_on_liar BUCKET MODE       the members of such a store, for YAML's { ... }
LIAR_URL=''
liar_begin() { # SEED
    mkfifo hold
    python3 "$HERE/../lib/s3_liar.py" "$1" <hold >liar &
    PIDS+=($!)
    exec 9>hold
    until_true "the liar listens" test -s liar
    LIAR_URL=http://127.0.0.1:$(cat liar)
}
liar() { curl -sf -o "$DIR/out" -X "$1" "$LIAR_URL/$2" ${3:+-d "$3"} || fail "the liar refuses: $1 $2"; }
store_on_liar() { # BUCKET MODE
    printf 'type: s3, endpoint: "%s", region: us-east-1, bucket: %s, style: path, access_key: a, secret_key: b, mode: %s' "$LIAR_URL" "$1" "$2"
}

# shellcheck shell=bash disable=SC2034 # what is set here is read by the scripts
# SPDX-License-Identifier: Apache-2.0
# s3.sh - what the scenarios on a real S3 server share, on top of daemon.sh. Needs RP_TEST_S3 (tests/lib/with-ceph). A script sources
# it, then:
#   bucket [versioned]     a new bucket of the script's own; leaves $BUCKET
#   store_on_s3 MODE       the members of such a store, for YAML's { ... }
#   media_on_s3 MODE [MORE MEMBERS]   a configuration with that one store, `media`
#   s3 CODE METHOD KEY[?QUERY] [CURL ARGUMENTS...]   a signed call, as any other program makes it; leaves $OUT and $DIR/headers
#   s3_put KEY TEXT [CURL ARGUMENTS...]              an object
#   s3_is KEY TEXT, s3_gone KEY                      what stands there
# curl signs a query only if every name has a value: "tagging=".
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC1091 # a path made at run time
. "$HERE/daemon.sh"
: "${RP_TEST_S3:?run this under tests/lib/with-ceph}"
BUCKET=''
S3_URL="http://${RP_TEST_S3_ACCESS//:/%3A}:$RP_TEST_S3_SECRET@${RP_TEST_S3#http://}" # Swift's keys have a colon

s3() { # CODE METHOD KEY[?QUERY] [CURL ARGUMENTS...]
    local want=$1 method=$2 path=$3 got
    shift 3
    LAST="S3 $method $path"
    local args=(-s -o "$DIR/out" -D "$DIR/headers" -w '%{http_code}' --aws-sigv4 aws:amz:us-east-1:s3
        -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD')
    if [ "$method" = HEAD ]; then args+=(-I); else args+=(-X "$method"); fi
    : >"$DIR/out"
    for _ in 1 2 3 4 5; do # a server that has just started, on a busy machine, asks for patience
        got=$(curl "${args[@]}" "$@" "$S3_URL/$BUCKET${path:+/$path}") || true
        if [ "$got" != 503 ] || [ "$want" = 503 ]; then break; fi
        sleep 1
    done
    OUT=$(tr '\0' ' ' <"$DIR/out") ERR=$(cat "$DIR/headers")
    [ "$got" = "$want" ] || fail "S3 answered $got instead of $want"
}

bucket() { # [versioned]
    BUCKET="rp-$$-$(date +%s%N)"
    s3 200 PUT ''
    [ "${1:-}" != versioned ] ||
        s3 200 PUT '?versioning=' -H 'Content-Type: application/xml' \
            -d '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>'
}

store_on_s3() { # MODE
    printf 'type: s3, endpoint: "%s", region: us-east-1, bucket: %s, style: path, access_key: "%s", secret_key: "%s", mode: %s' \
        "$RP_TEST_S3" "$BUCKET" "$RP_TEST_S3_ACCESS" "$RP_TEST_S3_SECRET" "$1"
}

media_on_s3() { # MODE [MORE MEMBERS]
    begin <<YAML
stores:
  media: { $(store_on_s3 "$1"), allow_any_grace: true${2:+, $2} }
YAML
}

# From now on the store is another user's, who may read and list and nothing else.
with_a_key_that_only_reads() {
    s3 204 PUT '?policy=' -H 'Content-Type: application/json' -d "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",
\"Principal\":{\"AWS\":[\"$RP_TEST_S3_READER_ARN\"]},\"Action\":[\"s3:ListBucket\",\"s3:ListBucketVersions\",\"s3:GetObject\",\"s3:GetObjectTagging\",\"s3:GetBucketVersioning\"],
\"Resource\":[\"arn:aws:s3:::$BUCKET\",\"arn:aws:s3:::$BUCKET/*\"]}]}"
    sed -i "s/$RP_TEST_S3_ACCESS/$RP_TEST_S3_READER_ACCESS/; s/$RP_TEST_S3_SECRET/$RP_TEST_S3_READER_SECRET/" "$DIR/reprieve.yaml"
}

s3_put() { # KEY TEXT [CURL ARGUMENTS...]
    local key=$1 text=$2
    shift 2
    s3 200 PUT "$key" -H 'Content-Type: text/plain' --data-binary "$text" "$@"
}
s3_is() { # KEY TEXT
    s3 200 GET "$1"
    same "$OUT" "$2" "object $1"
}
s3_gone() { s3 404 HEAD "$1"; }
# For until_true.
s3_absent() { (s3_gone "$1") >/dev/null 2>&1; }

# Everything in the bucket, ours included: names, etags and times.
s3_listing() {
    s3 200 GET '?list-type=2&max-keys=1000'
    printf '%s\n' "${OUT//<Contents>/$'\n'}" | sed -n 's/.*<Key>\([^<]*\)<.*<LastModified>\([^<]*\)<.*<ETag>\([^<]*\)<.*/\1 \2 \3/p'
}
s3_others() { s3_listing | grep -v '^\.reprieve/' || true; }

# A mark is due when the smallest of all clocks says so, and a server tells its own in whole seconds.
sweep_what_is_due() { # all of it: the server tells its time in whole seconds
    until_true "the server's clock goes on" server_is_past "$(date +%s)"
    until_true "something is due" sweeps_something
}
server_is_past() { [ "$(date -d "$(curl -sI "$RP_TEST_S3/" | tr -d '\r' | sed -n 's/^[Dd]ate: //p')" +%s)" -gt "$1" ]; }
sweeps_something() {
    run 0 sweep --json
    [ "$(value "d['counts']['scanned']")" != 0 ]
}

# As a client does it: the target of the last answer of init, its headers as they are. Leaves the status in $PUT.
put_to_target() { # FILE [CURL ARGUMENTS...]
    local file=$1 line args=()
    shift
    while IFS= read -r line; do args+=(-H "$line"); done < <(value "'\n'.join(n + ': ' + v for n, v in d['upload']['headers'].items())")
    put_to "$(value "d['upload']['url']")" "$file" "${args[@]}" "$@"
}
put_to() { # URL FILE [CURL ARGUMENTS...]
    local url=$1 file=$2
    shift 2
    PUT=$(curl -s -o "$DIR/put" -w '%{http_code}' -X PUT -H 'Expect:' -H 'Content-Type:' --data-binary "@$file" "$@" "$url") || true
}

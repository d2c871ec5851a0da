# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# npm.sh - packages from npm for the scenarios that are judged by somebody else's program, on top of lib.sh:
#   npm_install FOLDER   what the lock file of tests/lib/FOLDER names; ./tool has it, and the programs of that folder

npm_install() { # FOLDER
    local from=$REPRIEVE_TREE/tests/lib/$1 kept lock new tool
    for tool in node npm; do command -v "$tool" >/dev/null || fail "no $tool here: tools/install-packages check"; done
    # Kept beside the build for the next run; it is moved into place when it is whole.
    kept=${REPRIEVE_NPM:-$(dirname "$BIN")/npm}
    lock=$(sha256sum <"$from/package-lock.json" | cut -c1-16)
    if [ ! -d "$kept/$lock" ]; then
        mkdir -p "$kept"
        new=$(mktemp -d "$kept/new.XXXXXX")
        cp "$from"/package*.json "$new"
        (cd "$new" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >npm.out 2>&1 || fail "npm ci: $(cat npm.out)"
        mv -T "$new" "$kept/$lock" 2>/dev/null || [ -d "$kept/$lock" ] || fail "$new was not moved"
    fi
    mkdir tool
    ln -s "$kept/$lock/node_modules" "$kept/$lock/package.json" tool/
    cp "$from"/*.mjs tool/
}

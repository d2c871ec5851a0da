-- The catalog's tables. One text for SQLite and PostgreSQL; a dialect difference is a macro (src/db/db.h).
-- Times are milliseconds since 1970 UTC. States, outcomes and scopes are small numbers named in src/catalog/*.h.

CREATE TABLE meta (
    name       TEXT PRIMARY KEY,
    number     BIGINT NOT NULL DEFAULT 0,
    word       TEXT NOT NULL DEFAULT ''
) @CLUSTERED;
INSERT INTO meta (name, number) VALUES ('epoch', 0), ('epoch_raised_at', 0), ('hold_epoch', 0);

-- One writer and its audit chain: where the chain ends, and the last id given out (src/base/id.h).
CREATE TABLE lane (
    lane       BIGINT PRIMARY KEY,
    seq        BIGINT NOT NULL,
    head       @BYTES NOT NULL,
    last_id    BIGINT NOT NULL,
    heads_at   BIGINT NOT NULL            -- when this lane last recorded the other lanes' heads
);

-- Where subjects live: a store, or later a table of a user's database.
CREATE TABLE place (
    id         BIGINT PRIMARY KEY,
    kind       BIGINT NOT NULL,           -- 1 store, 2 table
    name       @TEXT_C NOT NULL UNIQUE,
    owned_at   BIGINT                     -- when our owner record was first written there
);

-- A mark is looked at again at next_at: first when it is due, then when its lease ends or its next attempt is due.
-- NULL once nobody has to look. One index therefore finds fresh, failed and abandoned work alike, and holds
-- only what waits. `active` is 1 until the mark ends, then NULL: one active mark a subject, any number of ended ones.
CREATE TABLE mark (
    id         BIGINT PRIMARY KEY,
    place_id   BIGINT NOT NULL,
    key        @TEXT_C NOT NULL,
    active     BIGINT,
    state      BIGINT NOT NULL,
    was        BIGINT NOT NULL,           -- the state before the last claim or death
    next_at    BIGINT,
    due_at     BIGINT NOT NULL,
    marked_at  BIGINT NOT NULL,
    fence      BIGINT NOT NULL DEFAULT 0,
    attempts   BIGINT NOT NULL DEFAULT 0,
    checks     BIGINT NOT NULL DEFAULT 0, -- what must be asked before a purge; 1: references
    tenant_id  BIGINT NOT NULL DEFAULT 0,
    file_id    BIGINT,
    run_id     BIGINT,                    -- the run that made it
    etag       TEXT NOT NULL,
    version    TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    modified_ms BIGINT NOT NULL,
    annotated  BIGINT NOT NULL DEFAULT 0,
    outcome    BIGINT NOT NULL DEFAULT 0,
    ended_at   BIGINT,
    reason     TEXT NOT NULL,
    actor      TEXT NOT NULL,
    lease_by   TEXT,
    note       TEXT                       -- why the last attempt did not end it
);
CREATE UNIQUE INDEX mark_subject ON mark (place_id, key, active);
CREATE INDEX mark_due ON mark (place_id, next_at, id) WHERE next_at IS NOT NULL;
CREATE INDEX mark_claimed ON mark (place_id, id) WHERE state IN (2, 3);
CREATE INDEX mark_reason ON mark (reason, id) WHERE active IS NOT NULL;
CREATE INDEX mark_run ON mark (run_id, id) WHERE run_id IS NOT NULL;
CREATE INDEX mark_ended ON mark (state, ended_at, id) WHERE ended_at IS NOT NULL;

-- How many marks stand in each state, kept by each lane for its own changes: counting reads a few rows.
CREATE TABLE tally (
    lane       BIGINT NOT NULL,
    place_id   BIGINT NOT NULL,
    state      BIGINT NOT NULL,
    marks      BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    PRIMARY KEY (lane, place_id, state)
) @CLUSTERED;

-- The log of every acknowledged change, which is also the outbox. `hash` covers the row before it and a digest of the
-- details, so that details can be erased and the chain still proves itself.
CREATE TABLE audit (
    lane       BIGINT NOT NULL,
    seq        BIGINT NOT NULL,
    at         BIGINT NOT NULL,
    event      TEXT NOT NULL,
    actor      TEXT NOT NULL,
    mark_id    BIGINT,
    tenant_id  BIGINT NOT NULL,
    details    TEXT,
    digest     @BYTES NOT NULL,
    hash       @BYTES NOT NULL,
    PRIMARY KEY (lane, seq)
) @CLUSTERED;
CREATE INDEX audit_mark ON audit (mark_id) WHERE mark_id IS NOT NULL;
@ERASABLE(audit, details, lane, seq, at, event, actor, mark_id, tenant_id, digest, hash);
@NO_REPLACE(audit, lane = NEW.lane AND seq = NEW.seq);

-- Holds. A lifted hold stays as a record.
CREATE TABLE hold (
    id         BIGINT PRIMARY KEY,
    scope      BIGINT NOT NULL,           -- 1 subject, 2 prefix, 3 tenant, 4 everything
    place_id   BIGINT,
    key        @TEXT_C,
    tenant_id  BIGINT,
    reason     TEXT NOT NULL,
    actor      TEXT NOT NULL,
    placed_at  BIGINT NOT NULL,
    lifted_at  BIGINT,
    lifted_by  TEXT
);
CREATE INDEX hold_active ON hold (scope, place_id, key) WHERE lifted_at IS NULL;

-- Who runs what. Makes a run efficient, never correct: that is the fence's and the state's work.
CREATE TABLE run_lock (
    name       TEXT PRIMARY KEY,
    locked_by  TEXT NOT NULL,
    locked_at  BIGINT NOT NULL,           -- renewed with every batch
    fence      BIGINT NOT NULL,
    run_id     BIGINT                     -- NULL when free
) @CLUSTERED;

-- A run while it lasts: its figures so far, so that a run whose process died still gets its record.
CREATE TABLE run (
    id         BIGINT PRIMARY KEY,
    kind       TEXT NOT NULL,
    name       TEXT NOT NULL,
    locked_by  TEXT NOT NULL,
    fence      BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    figures    TEXT NOT NULL,
    open       BIGINT                     -- 1 until its record is written, then NULL
);
CREATE INDEX run_open ON run (name, id) WHERE open IS NOT NULL;

-- Exactly one deletion record a run, written once.
CREATE TABLE run_record (
    run_id      BIGINT PRIMARY KEY,
    kind        TEXT NOT NULL,
    name        TEXT NOT NULL,
    outcome     TEXT NOT NULL,
    started_at  BIGINT NOT NULL,
    finished_at BIGINT NOT NULL,
    body        TEXT NOT NULL
);
@APPEND_ONLY(run_record);
@NO_REPLACE(run_record, run_id = NEW.run_id);

CREATE TABLE dead_letter (
    id         BIGINT PRIMARY KEY,
    mark_id    BIGINT NOT NULL,
    from_state BIGINT NOT NULL,
    attempts   BIGINT NOT NULL,
    error      TEXT NOT NULL,
    died_at    BIGINT NOT NULL,
    open       BIGINT,                    -- 1 until a person decided, then NULL
    ended_at   BIGINT,
    ended_as   TEXT,                      -- retried, kept
    ended_by   TEXT
);
CREATE INDEX dead_letter_open ON dead_letter (id) WHERE open IS NOT NULL;
CREATE UNIQUE INDEX dead_letter_mark ON dead_letter (mark_id, open);

-- Tenants, their files and their quota. The counters are kept in the same transaction as the ledger rows they sum up.
CREATE TABLE tenant (
    id             BIGINT PRIMARY KEY,
    name           @TEXT_C NOT NULL UNIQUE,
    limit_bytes    BIGINT,                -- NULL: the configured default
    used_bytes     BIGINT NOT NULL DEFAULT 0,
    reserved_bytes BIGINT NOT NULL DEFAULT 0,
    open_uploads   BIGINT NOT NULL DEFAULT 0
);

-- live_name is the name while the file is the tenant's living one under it, else NULL: one live file a name.
CREATE TABLE file (
    id           BIGINT PRIMARY KEY,
    tenant_id    BIGINT NOT NULL,
    name         @TEXT_C NOT NULL,
    live_name    @TEXT_C,
    place_id     BIGINT NOT NULL,
    key          @TEXT_C NOT NULL,
    status       BIGINT NOT NULL,
    shown        BIGINT NOT NULL DEFAULT 0,
    size_bytes   BIGINT NOT NULL,
    content_type TEXT,
    checksum     @BYTES,
    etag         TEXT NOT NULL DEFAULT '',
    version      TEXT NOT NULL DEFAULT '',
    modified_ms  BIGINT NOT NULL DEFAULT 0,
    parent_id    BIGINT,
    source_id    BIGINT,
    register     @BYTES,                  -- the newest event seen: position, kind, etag, size, version
    metadata     TEXT,
    created_at   BIGINT NOT NULL,
    changed_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX file_live ON file (tenant_id, live_name);
CREATE UNIQUE INDEX file_key ON file (place_id, key);
CREATE INDEX file_parent ON file (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX file_source ON file (source_id) WHERE source_id IS NOT NULL;

CREATE TABLE ledger (
    file_id    BIGINT NOT NULL,
    kind       BIGINT NOT NULL,           -- 1 reserve, 2 use, 3 refund: each at most once a file
    tenant_id  BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    at         BIGINT NOT NULL,
    PRIMARY KEY (file_id, kind)
) @CLUSTERED;
CREATE INDEX ledger_tenant ON ledger (tenant_id);

-- key_hash is 64 bits of the key's digest: a short key in random order costs a third less than the text itself.
-- The text stands beside it and is compared.
CREATE TABLE idempotency (
    tenant_id  BIGINT NOT NULL,
    key_hash   BIGINT NOT NULL,
    key        TEXT NOT NULL,
    body_digest @BYTES NOT NULL,
    status     BIGINT NOT NULL,
    answer     TEXT NOT NULL,
    at         BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, key_hash)
) @CLUSTERED;
CREATE INDEX idempotency_at ON idempotency (at);

-- A restore in bulk is a run. What it is about is fixed when it begins: nobody claims what an open one names.
ALTER TABLE run ADD COLUMN cancel BIGINT;  -- when somebody asked to end it between two batches; NULL: nobody did

CREATE TABLE restore_run (
    run_id     BIGINT PRIMARY KEY,
    of_run     BIGINT,                    -- marks that this run made, and what it moved to quarantine; like all of
    store_id   BIGINT,                    -- these: NULL, or it must fit
    prefix     @TEXT_C,                   -- with store_id
    reason     TEXT,
    actor      TEXT,                      -- of the marks
    since      BIGINT,                    -- marked then or later
    until      BIGINT,                    -- marked before
    upto_id    BIGINT NOT NULL,           -- the highest mark when it began
    asked_by   TEXT NOT NULL,
    total      BIGINT,                    -- how many marks fitted, NULL until they were counted
    stage      BIGINT NOT NULL DEFAULT 0, -- where the next batch begins: core/restore.h
    cursor_id  BIGINT NOT NULL DEFAULT 0,
    cursor_key @TEXT_C NOT NULL DEFAULT '',
    open       BIGINT                     -- 1 until the run's record is written, then NULL
);
CREATE INDEX restore_run_open ON restore_run (run_id) WHERE open IS NOT NULL;

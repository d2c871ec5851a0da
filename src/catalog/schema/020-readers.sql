-- Over several nodes one delivers for a durable reader of the audit log at a time: which, and until when by the database's clock.
CREATE TABLE feed_lease (
    reader   @TEXT_C NOT NULL PRIMARY KEY,
    holder   TEXT NOT NULL,
    fence    BIGINT NOT NULL,
    until_at BIGINT NOT NULL
);
@VACUUM(feed_lease, 0, 200);
@VACUUM(feed_cursor, 0, 200);

-- What a processor is to be told of an upload: made from the audit log, and gone with the upload's scan.
CREATE TABLE processor_job (
    file_id     @ID,
    process_key TEXT NOT NULL,
    action      BIGINT NOT NULL,          -- 1 process, 2 cancel
    state       BIGINT NOT NULL,          -- 1 to be called, 2 taken by the processor, 3 dead
    attempts    BIGINT NOT NULL,
    made_at     BIGINT NOT NULL,          -- when this action was first asked for
    next_at     BIGINT,                   -- NULL: not called any more
    status      BIGINT NOT NULL           -- HTTP, of the last answer; 0: there was none
);
CREATE INDEX processor_due ON processor_job (next_at, file_id) WHERE next_at IS NOT NULL;
CREATE INDEX processor_dead ON processor_job (file_id) WHERE state = 3;
-- Files that wait for their processor.
CREATE INDEX file_scanning ON file (id) WHERE status = 2;
@VACUUM(processor_job, 0.02, 5000);

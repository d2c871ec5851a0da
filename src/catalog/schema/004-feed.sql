-- Where each durable reader of the audit log stands: in each lane, the last row that it has dealt with.
CREATE TABLE feed_cursor (
    reader  @TEXT_C NOT NULL,
    lane    BIGINT NOT NULL,
    seq     BIGINT NOT NULL,
    PRIMARY KEY (reader, lane)
) @CLUSTERED;

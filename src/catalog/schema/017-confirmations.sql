-- Outside services that must say yes before a mark's subject is erased, in order; and what each of them was asked and said.
CREATE TABLE confirmation (
    id          BIGINT PRIMARY KEY,        -- the idempotency key of every call
    mark_id     BIGINT NOT NULL,
    ordinal     BIGINT NOT NULL,           -- one after the other, from 0 on
    name        @TEXT_C NOT NULL,          -- under `confirmations` of the configuration
    state       BIGINT NOT NULL,           -- 1 pending, 2 asked, 3 waiting, 4 yes, 5 refused, 6 failed
    attempts    BIGINT NOT NULL DEFAULT 0,
    asked_at    BIGINT,                    -- first; from then on there is no restore
    until_at    BIGINT,                    -- fixed then: no attempt is begun anew after it
    answered_at BIGINT,
    note        TEXT
);
CREATE UNIQUE INDEX confirmation_mark ON confirmation (mark_id, ordinal);

-- The last attempts of each: `slot` is n modulo how many are kept.
CREATE TABLE confirmation_attempt (
    mark_id    BIGINT NOT NULL,
    ordinal    BIGINT NOT NULL,
    slot       BIGINT NOT NULL,
    n          BIGINT NOT NULL,
    at         BIGINT NOT NULL,
    status     BIGINT NOT NULL,            -- of HTTP; 0: no answer came
    body       TEXT NOT NULL,
    error      TEXT NOT NULL,
    PRIMARY KEY (mark_id, ordinal, slot)
) @CLUSTERED;
-- Marks that an asker may claim: what is due for the sweep alone is not walked past.
CREATE INDEX mark_to_confirm ON mark (store_id, next_at, id) WHERE next_at IS NOT NULL AND (checks & 2) <> 0;
@VACUUM(confirmation, 0.02, 5000);
@VACUUM(confirmation_attempt, 0.02, 5000);

-- A restore in bulk goes from the newest mark down, and one id says where it stands.
ALTER TABLE restore_run DROP COLUMN cursor_key;

-- One that was left open went up until now: it begins at its newest mark again. What came back is not met any more; what was
-- refused is asked, and counted, once more.
UPDATE restore_run SET stage = 0, cursor_id = 0 WHERE open IS NOT NULL;

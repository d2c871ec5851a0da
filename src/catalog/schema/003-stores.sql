-- One word for one thing: where objects live is a store.
ALTER TABLE place RENAME TO store;
ALTER TABLE mark RENAME COLUMN place_id TO store_id;
ALTER TABLE tally RENAME COLUMN place_id TO store_id;
ALTER TABLE hold RENAME COLUMN place_id TO store_id;
ALTER TABLE file RENAME COLUMN place_id TO store_id;

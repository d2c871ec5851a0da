-- What belongs to a file is looked for without reading what has ended: a file may have had thousands of derivatives.
DROP INDEX file_parent;
DROP INDEX file_source;
CREATE INDEX file_child ON file (parent_id, status) WHERE parent_id IS NOT NULL;
CREATE INDEX file_derivative ON file (source_id, status) WHERE source_id IS NOT NULL;

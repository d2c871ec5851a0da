-- Holds the number of a step that comes with another change.
SELECT 1;

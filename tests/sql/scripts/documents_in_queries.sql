-- IN and its like compare documents as = does: 1 and 1.0 are equal.
CREATE TABLE documents_met (id int, j jsonb);
INSERT INTO documents_met VALUES (1, '1'), (2, '1.0'), (3, '{"a": 2.50}'), (4, '{"a": 2.5}'), (5, NULL), (6, '"1"');
SELECT id FROM documents_met WHERE j IN (SELECT j FROM documents_met WHERE id = 1) ORDER BY id;
SELECT id FROM documents_met WHERE j NOT IN (SELECT j FROM documents_met WHERE id = 3) ORDER BY id;
SELECT id FROM documents_met WHERE j NOT IN (SELECT j FROM documents_met WHERE id IN (3, 5)) ORDER BY id;
SELECT id, j = ANY (SELECT j FROM documents_met WHERE id <> 4) AS found FROM documents_met ORDER BY id;
SELECT id, j <> ALL (SELECT j FROM documents_met WHERE id = 4) AS other FROM documents_met ORDER BY id;
SELECT '{"a": 2.500}' IN (SELECT j FROM documents_met) AS found;
SELECT id FROM documents_met d WHERE j IN (SELECT e.j FROM documents_met e WHERE e.id <> d.id) ORDER BY id;
SELECT id FROM documents_met WHERE (j, 1) IN (SELECT j, 1 FROM documents_met WHERE id = 1) ORDER BY id;
DROP TABLE documents_met;

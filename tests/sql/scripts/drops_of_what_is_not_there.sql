-- Triggers, policies and rules, of which no table has one: DROP ... IF EXISTS is a notice.
CREATE TABLE jobs (id bigint);
DROP TRIGGER IF EXISTS nope ON jobs;
DROP TRIGGER nope ON jobs;
DROP TRIGGER IF EXISTS nope ON nowhere;
DROP TRIGGER nope ON nowhere;
DROP POLICY IF EXISTS nope ON jobs;
DROP POLICY nope ON jobs;
DROP RULE IF EXISTS nope ON jobs;
DROP RULE nope ON jobs;
DROP TRIGGER IF EXISTS nope ON missing.jobs;
DROP TABLE jobs;

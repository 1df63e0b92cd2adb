DO 'BEGIN CREATE TYPE mood AS ENUM(''sad'', ''ok''); EXCEPTION WHEN duplicate_object THEN null; END';
DO 'BEGIN CREATE TYPE mood AS ENUM(''sad'', ''ok''); EXCEPTION WHEN duplicate_object THEN null; END';
DO $$ BEGIN CREATE TYPE mood AS ENUM ('x'); END $$;
CREATE TABLE done (a int PRIMARY KEY, b text);
DO $$ BEGIN
  IF NOT EXISTS (SELECT 1 FROM information_schema.columns WHERE table_name = 'done' AND column_name = 'c') THEN
    ALTER TABLE done ADD COLUMN c int DEFAULT 3;
  END IF;
END $$;
DO $$ BEGIN
  IF NOT EXISTS (SELECT 1 FROM information_schema.columns WHERE table_name = 'done' AND column_name = 'c') THEN
    ALTER TABLE done ADD COLUMN c int DEFAULT 3;
  ELSIF (SELECT count(*) FROM done) > 0 THEN
    DELETE FROM done;
  ELSE
    INSERT INTO done VALUES (1, 'one'), (2, 'two');
  END IF;
END $$;
SELECT * FROM done ORDER BY a;
DO $$ BEGIN
  INSERT INTO done VALUES (3);
  BEGIN
    INSERT INTO done VALUES (4);
    INSERT INTO done VALUES (3);
  EXCEPTION WHEN foreign_key_violation THEN DELETE FROM done; WHEN unique_violation OR check_violation THEN
    INSERT INTO done VALUES (5, 'handled');
  END;
  INSERT INTO done VALUES (6);
END $$;
SELECT * FROM done ORDER BY a;
DO $$ BEGIN INSERT INTO done VALUES (7); INSERT INTO done VALUES (1); END $$;
DO $$ BEGIN INSERT INTO done VALUES (7); PERFORM 1 / (a - a) FROM done; EXCEPTION WHEN SQLSTATE '22012' THEN NULL; END $$;
DO $$ BEGIN INSERT INTO done VALUES (7); RAISE EXCEPTION 'no % of %%', 1 + 1; END $$;
DO $$ BEGIN INSERT INTO done VALUES (7); RAISE EXCEPTION 'no'; EXCEPTION WHEN OTHERS THEN INSERT INTO done VALUES (8); END $$;
SELECT a FROM done ORDER BY a;
DO $$ BEGIN EXECUTE 'CREATE TABLE ' || quote_ident('made ' || 1) || ' (x int)'; RAISE NOTICE 'made %', 1; END $$;
SELECT * FROM "made 1";
DO $$ BEGIN EXECUTE NULL; END $$;
DO $$ BEGIN SELECT 1; END $$;
DO $$ BEGIN INSERT INTO nowhere VALUES (1); END $$;
DO $$ BEGIN INSERT INTO nowhere VALUES (1); EXCEPTION WHEN undefined_table THEN NULL; WHEN OTHERS THEN INSERT INTO done VALUES (9); END $$;
DO LANGUAGE nothing 'x';
DO LANGUAGE sql 'SELECT 1';
BEGIN;
INSERT INTO done VALUES (10);
DO $$ BEGIN CREATE TYPE mood AS ENUM ('x'); EXCEPTION WHEN duplicate_object THEN INSERT INTO done VALUES (11); END $$;
SELECT a FROM done WHERE a > 9 ORDER BY a;
ROLLBACK;
SELECT count(*) FROM done;
DO $$ BEGIN EXECUTE 'SELECT 1'; END $$;
DO $$ BEGIN EXECUTE 'SELECT 1 / 0'; END $$;
DO $$ BEGIN RAISE EXCEPTION 'duplicate %', 'statement' USING ERRCODE = '42P05', HINT = 'a' || 'b', DETAIL = 1 + 1; END $$;
DO $$ BEGIN RAISE NOTICE 'one' USING ERRCODE = '42P05'; RAISE WARNING 'two' USING ERRCODE = '99999'; RAISE WARNING 'three'; RAISE INFO 'four'; RAISE LOG 'five'; RAISE DEBUG 'six'; END $$;
DO $$ BEGIN RAISE division_by_zero; END $$;
DO $$ BEGIN RAISE SQLSTATE '22012'; END $$;
DO $$ BEGIN RAISE unique_violation USING MESSAGE = 'there is one', COLUMN = 'c', CONSTRAINT = 'k', TABLE = 't', SCHEMA = 's', DATATYPE = 'int4'; END $$;
DO $$ BEGIN RAISE USING MESSAGE = 'only this'; END $$;
DO $$ BEGIN RAISE USING ERRCODE = 'data_exception'; END $$;
DO $$ BEGIN RAISE USING HINT = 'no message'; END $$;
DO $$ BEGIN RAISE 'a' USING MESSAGE = 'b'; END $$;
DO $$ BEGIN RAISE division_by_zero USING ERRCODE = '22012'; END $$;
DO $$ BEGIN RAISE 'a' USING HINT = NULL; END $$;
DO $$ BEGIN RAISE 'a' USING HINT = 'x', HINT = 'y'; END $$;
DO $$ BEGIN RAISE; END $$;
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN RAISE; END $$;
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN BEGIN RAISE check_violation; EXCEPTION WHEN check_violation THEN NULL; END; RAISE; END $$;
DO $$ BEGIN RAISE 'kept' USING ERRCODE = 'unique_violation'; EXCEPTION WHEN unique_violation THEN RAISE WARNING 'handled'; END $$;
CREATE FUNCTION empty() RETURNS bool LANGUAGE sql AS '';
DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'others'; END $$;
DO $$ BEGIN RAISE others; END $$;
DO $$ BEGIN RAISE nope; END $$;
DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'nope'; END $$;
DO $$ BEGIN RAISE 'x' USING ERRCODE = 'zero_length_character_string'; END $$;
DO $$ BEGIN RAISE 'x' USING ERRCODE = 'integrity_constraint_violation'; END $$;
DO $$ BEGIN RAISE 'x' USING ERRCODE = 'null_value_not_allowed'; END $$;
DO $$ BEGIN RAISE 'x' USING ERRCODE = '12'; END $$;
DO $$ BEGIN RAISE 'x' USING ERRCODE = '1234a'; END $$;
DO $$ BEGIN RAISE 'x' USING ERRCODE = 'Division_By_Zero'; END $$;
DO $$ BEGIN RAISE SQLSTATE '00000'; END $$;
DO $$ BEGIN RAISE USING ERRCODE = '00000'; END $$;
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN nope THEN NULL; END $$;
DO $$ BEGIN RAISE null_value_not_allowed USING ERRCODE = '39004'; EXCEPTION WHEN null_value_not_allowed THEN NULL; END $$;
DO $$ BEGIN RAISE 'x' USING ERRCODE = '39004'; EXCEPTION WHEN null_value_not_allowed THEN NULL; END $$;
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN array_subscript_error OR data_exception THEN NULL; END $$;

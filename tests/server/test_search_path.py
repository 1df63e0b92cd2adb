"""One search path for all statements: each kind that names an object, with objects of the same names in several
schemas, compared with a real PostgreSQL.

``outside``: public has all objects and is not in the path, so no statement may find one. ``second``: two schemas of the
path have the objects. The other paths run with ``--whole``, which also compares what each statement has changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest

from tests.rig.postgres import Postgres
from tests.rig.sampling import sample
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

_DATABASE: Final = "names_on_the_path"
_SCHEMAS: Final = ("public", "sa", "sb")
_OBJECTS: Final = """
CREATE TABLE {0}.t (id int CONSTRAINT t_key PRIMARY KEY, a text DEFAULT '{0}', n int, CONSTRAINT t_check CHECK (n > 0));
INSERT INTO {0}.t VALUES (1, '{0}', 1);
CREATE INDEX t_a ON {0}.t (a);
CREATE TABLE {0}.child (id int, t_id int CONSTRAINT child_fk REFERENCES {0}.t DEFERRABLE);
CREATE VIEW {0}.v AS SELECT id, a FROM {0}.t;
CREATE MATERIALIZED VIEW {0}.m AS SELECT id FROM {0}.t;
CREATE SEQUENCE {0}.s START 5;
CREATE TYPE {0}.mood AS ENUM ('sad', 'ok');
CREATE TYPE {0}.pair AS (x int, y int);
CREATE DOMAIN {0}.d AS int CONSTRAINT d_check CHECK (value > 0);
CREATE FUNCTION {0}.f(int) RETURNS text LANGUAGE sql AS $$SELECT '{0}'$$;
"""
_PATHS: Final[dict[str, tuple[str, ...]]] = {
    "outside": ("SET search_path = empty",),
    "second": ("SET search_path = sb, sa",),
    "none": ("SET search_path = ''",),
    "missing": ("SET search_path = nowhere",),
    "behind a missing one": ("SET search_path = nowhere, sb, public",),
    "shadowed": (
        "SET search_path = sa",
        "CREATE TEMP TABLE t (id int PRIMARY KEY, a text DEFAULT 'temp', n int)",
        "INSERT INTO t VALUES (1, 'temp', 1)",
        "CREATE TEMP VIEW v AS SELECT 1 AS id, 'temp' AS a",
        "CREATE TEMP SEQUENCE s START 900",
    ),
    "temporary last": ("SET search_path = sa, pg_temp", "CREATE TEMP TABLE t (id int, a text DEFAULT 'temp', n int)"),
    "temporary first": ("SET search_path = pg_temp, sb",),
    "not allowed": ("SET search_path = sb, sa", "SET ROLE path_guest"),
}
_KINDS: Final = """
SELECT a FROM t
SELECT a FROM v
TABLE t
INSERT INTO t VALUES (7, 'new', 7)
INSERT INTO t (id) VALUES (8) RETURNING a
UPDATE t SET a = 'changed'
DELETE FROM t
MERGE INTO t USING (VALUES (1)) x (i) ON t.id = x.i WHEN MATCHED THEN UPDATE SET a = 'merged'
LOCK TABLE t
LOCK t IN SHARE MODE
TRUNCATE t CASCADE
TRUNCATE ONLY child
ALTER TABLE t ADD COLUMN extra int
ALTER TABLE t DROP COLUMN n
ALTER TABLE t ALTER COLUMN n TYPE bigint
ALTER TABLE t ALTER COLUMN n SET DEFAULT 9
ALTER TABLE t ALTER COLUMN n SET NOT NULL
ALTER TABLE t ADD CONSTRAINT more CHECK (n < 100)
ALTER TABLE t DROP CONSTRAINT t_check
ALTER TABLE t RENAME TO renamed
ALTER TABLE t RENAME COLUMN n TO m
ALTER TABLE t RENAME CONSTRAINT t_check TO other_check
ALTER TABLE t SET SCHEMA empty
ALTER TABLE t OWNER TO path_owner
ALTER TABLE child ADD CONSTRAINT more_fk FOREIGN KEY (id) REFERENCES t
ALTER TABLE IF EXISTS t ADD COLUMN extra int
ALTER TABLE IF EXISTS nothing ADD COLUMN extra int
ALTER TABLE child VALIDATE CONSTRAINT child_fk
ALTER TABLE child ALTER CONSTRAINT child_fk NOT DEFERRABLE
DROP TABLE t CASCADE
DROP TABLE IF EXISTS child
DROP VIEW v
DROP VIEW IF EXISTS v
DROP MATERIALIZED VIEW m
DROP SEQUENCE s
DROP INDEX t_a
DROP INDEX IF EXISTS t_a
DROP TYPE mood
DROP TYPE pair
DROP DOMAIN d
DROP FUNCTION f(int)
DROP FUNCTION f
DROP TABLE nothing
DROP VIEW t
DROP TABLE v
DROP SEQUENCE t
DROP INDEX t
GRANT SELECT ON t TO path_owner
GRANT SELECT (a) ON t TO path_owner
GRANT ALL ON TABLE v TO path_owner
GRANT USAGE ON SEQUENCE s TO path_owner
GRANT USAGE ON TYPE mood TO path_owner
GRANT USAGE ON DOMAIN d TO path_owner
GRANT EXECUTE ON FUNCTION f(int) TO path_owner
GRANT EXECUTE ON FUNCTION f TO path_owner
REVOKE ALL ON t FROM path_guest
REVOKE USAGE ON TYPE mood FROM public
REVOKE EXECUTE ON FUNCTION f(int) FROM public
CREATE INDEX more ON t (n)
CREATE UNIQUE INDEX ON t (n)
CREATE INDEX IF NOT EXISTS t_a ON t (n)
ALTER INDEX t_a RENAME TO b_a
ALTER INDEX t_key RENAME TO k_key
COMMENT ON TABLE t IS 'x'
COMMENT ON COLUMN t.a IS 'x'
COMMENT ON COLUMN v.a IS 'x'
COMMENT ON VIEW v IS 'x'
COMMENT ON MATERIALIZED VIEW m IS 'x'
COMMENT ON SEQUENCE s IS 'x'
COMMENT ON INDEX t_a IS 'x'
COMMENT ON CONSTRAINT t_check ON t IS 'x'
COMMENT ON CONSTRAINT d_check ON DOMAIN d IS 'x'
COMMENT ON TYPE mood IS 'x'
COMMENT ON COLUMN pair.x IS 'x'
COMMENT ON DOMAIN d IS 'x'
COMMENT ON FUNCTION f(int) IS 'x'
SELECT nextval('s')
SELECT setval('s', 50)
SELECT nextval(x) FROM (VALUES ('s')) v (x)
SELECT currval('s')
SELECT last_value FROM s
SELECT nextval('s'::regclass)
ALTER SEQUENCE s INCREMENT 7
ALTER SEQUENCE s RESTART WITH 40
ALTER SEQUENCE s OWNED BY t.id
ALTER SEQUENCE s RENAME TO s2
ALTER SEQUENCE s SET SCHEMA empty
ALTER SEQUENCE s OWNER TO path_owner
ALTER VIEW v RENAME TO w
ALTER VIEW v RENAME COLUMN a TO b
ALTER VIEW v SET SCHEMA empty
ALTER VIEW v OWNER TO path_owner
ALTER VIEW v SET (security_invoker = true)
ALTER MATERIALIZED VIEW m RENAME TO m2
REFRESH MATERIALIZED VIEW m
CREATE OR REPLACE VIEW v AS SELECT id, a, 1 AS more FROM t
CREATE VIEW nv AS SELECT * FROM t
CREATE TABLE l (LIKE t)
CREATE TABLE l (LIKE t INCLUDING ALL)
CREATE TABLE r (id int REFERENCES t)
CREATE TABLE r (id int REFERENCES t (id), FOREIGN KEY (id) REFERENCES t)
CREATE TABLE p (c pair, m mood, d d)
CREATE TABLE dd (id int DEFAULT nextval('s'))
CREATE TABLE as_t AS SELECT * FROM t
CREATE TABLE t (x int)
CREATE TABLE IF NOT EXISTS t (x int)
CREATE TABLE fresh (x serial)
CREATE TABLE fresh (x int GENERATED ALWAYS AS IDENTITY)
CREATE TEMP TABLE t (x int)
CREATE TEMP TABLE tt AS SELECT * FROM t
SELECT * INTO into_t FROM t
CREATE SEQUENCE fresh_s
CREATE SEQUENCE s
CREATE SEQUENCE own_s OWNED BY t.id
CREATE TYPE fresh_e AS ENUM ('a')
CREATE TYPE mood AS ENUM ('b')
CREATE DOMAIN fresh_d AS d
CREATE DOMAIN d AS text
CREATE FUNCTION fresh_f(int) RETURNS int LANGUAGE sql AS 'SELECT 1'
CREATE OR REPLACE FUNCTION f(int) RETURNS text LANGUAGE sql AS $$SELECT 'new'$$
ALTER TYPE mood ADD VALUE 'new'
ALTER TYPE mood RENAME VALUE 'sad' TO 'glum'
ALTER TYPE mood RENAME TO mood2
ALTER TYPE mood SET SCHEMA empty
ALTER TYPE mood OWNER TO path_owner
ALTER TYPE pair ADD ATTRIBUTE z int
ALTER TYPE pair RENAME ATTRIBUTE x TO xx
ALTER DOMAIN d SET DEFAULT 3
ALTER DOMAIN d ADD CONSTRAINT more CHECK (value < 9)
ALTER DOMAIN d DROP CONSTRAINT d_check
ALTER DOMAIN d RENAME TO d2
ALTER DOMAIN d SET SCHEMA empty
ALTER FUNCTION f(int) RENAME TO f2
ALTER FUNCTION f(int) OWNER TO path_owner
ALTER FUNCTION f(int) SET SCHEMA empty
ALTER FUNCTION f(int) IMMUTABLE
ANALYZE t
ANALYZE t (a)
REINDEX TABLE t
CLUSTER t USING t_key
SELECT 't'::regclass::oid = 'public.t'::regclass::oid
SELECT 't_a'::regclass::text
SELECT 's'::regclass::text, 'v'::regclass::text
SELECT to_regclass('t')::text, to_regtype('mood')::text
SELECT 'mood'::regtype::text, 'd'::regtype::text
SELECT 'f'::regproc::text
SELECT 'f(int)'::regprocedure::text
SELECT f(1)
SELECT 'ok'::mood, 3::d, row(1, 2)::pair
SELECT enum_range(NULL::mood)
SELECT has_table_privilege('path_owner', 't', 'SELECT')
SELECT has_sequence_privilege('path_owner', 's', 'USAGE')
SELECT has_function_privilege('path_owner', 'f(int)', 'EXECUTE')
SELECT has_type_privilege('path_owner', 'mood', 'USAGE')
SELECT has_column_privilege('path_owner', 't', 'a', 'SELECT')
SELECT pg_get_serial_sequence('t', 'id')
SELECT pg_relation_size('t') >= 0
SELECT pg_get_viewdef('v')
SELECT obj_description('t'::regclass)
SELECT current_schema, current_schemas(true)
SELECT relname FROM pg_class WHERE relname IN ('t', 'v', 's') AND pg_table_is_visible(oid) ORDER BY 1
SET CONSTRAINTS child_fk DEFERRED
COPY t TO STDOUT
COPY (SELECT a FROM t) TO STDOUT
PREPARE q AS SELECT a FROM t
DECLARE cur CURSOR FOR SELECT a FROM t
SELECT t.a FROM t WHERE t = row(1, 'sa', 1)::t
SELECT NULL::t
ALTER TABLE t SET (fillfactor = 50)
SELECT a FROM ONLY t FOR UPDATE
SELECT * FROM nowhere.t
DROP TABLE nowhere.t
DROP TABLE IF EXISTS nowhere.t
TRUNCATE nowhere.t
ALTER TABLE nowhere.t ADD COLUMN x int
CREATE TABLE nowhere.t (x int)
CREATE SEQUENCE nowhere.s
CREATE TYPE nowhere.e AS ENUM ('a')
CREATE FUNCTION nowhere.f() RETURNS int LANGUAGE sql AS 'SELECT 1'
SELECT nextval('nowhere.s')
SELECT 'nowhere.t'::regclass
SELECT NULL::nowhere.mood
""".strip().splitlines()  # fmt: skip
#: Statements after PREPARE and DECLARE, which show what these have created.
_THEN: Final = {"PREPARE": "EXECUTE q", "DECLARE": "FETCH ALL cur"}
#: Statements of unprivileged roles; PostgreSQL's messages name the kind of relation, or are only a warning.
_OTHER_WORDS: Final = re.compile(
    "DROP MATERIALIZED|ALTER INDEX|COMMENT ON (COLUMN|MAT|INDEX|CONS)|ALTER MATERIALIZED|REFRESH|CREATE SEQUENCE own|"
    r"ALTER TYPE pair|ALTER FUNCTION f\(int\) SET|REINDEX|CLUSTER|ALTER TABLE t SET \("
)
_CATALOGS: Final = (
    "SELECT n.nspname, c.relname, c.relkind::text, pg_get_userbyid(c.relowner), c.relacl::text,"
    " obj_description(c.oid, 'pg_class') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE {0}",
    "SELECT n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,"
    " col_description(c.oid, a.attnum), a.attacl::text, pg_get_expr(d.adbin, d.adrelid) FROM pg_class c"
    " JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0"
    " LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum"
    " WHERE {0} AND c.relkind IN ('r', 'v', 'm', 'c') AND NOT a.attisdropped",
    "SELECT n.nspname, c.conname, c.conrelid::regclass::text, c.confrelid::regclass::text, c.condeferrable,"
    " obj_description(c.oid, 'pg_constraint') FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace"
    " WHERE {0}",
    "SELECT n.nspname, t.typname, pg_get_userbyid(t.typowner), t.typacl::text, obj_description(t.oid, 'pg_type'),"
    " (SELECT string_agg(enumlabel, ',' ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = t.oid) FROM pg_type t"
    " JOIN pg_namespace n ON n.oid = t.typnamespace WHERE {0} AND t.typtype IN ('e', 'd', 'c')",
    "SELECT n.nspname, p.proname, pg_get_userbyid(p.proowner), p.proacl::text, obj_description(p.oid, 'pg_proc'),"
    " p.provolatile::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE {0}",
    "SELECT n.sequencename, n.schemaname, n.last_value, n.increment_by FROM pg_sequences n WHERE {1}",
)
Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def servers(running: Millstream, postgres: Postgres) -> Iterator[tuple[str, str]]:
    """Connection strings of both, with the objects."""
    with postgres.connect() as connection:
        connection.execute(f"CREATE DATABASE {_DATABASE}")
    own, judge = running.dsn(), postgres.dsn(_DATABASE)
    for each in (own, judge):
        with psycopg.connect(each, autocommit=True) as connection:
            connection.execute("CREATE ROLE path_owner; CREATE ROLE path_guest")
            connection.execute("CREATE SCHEMA sa; CREATE SCHEMA sb; CREATE SCHEMA empty")
            for schema in _SCHEMAS:
                connection.execute(_OBJECTS.format(schema))  # type: ignore[arg-type]
            connection.execute("GRANT USAGE, CREATE ON SCHEMA sa TO path_guest")
            connection.execute("GRANT ALL ON ALL TABLES IN SCHEMA sa TO path_guest")
    yield own, judge
    with running.connect() as connection:
        connection.execute(
            "DROP SCHEMA public, sa, sb, empty CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO PUBLIC"
        )
        connection.execute("DROP ROLE path_owner; DROP ROLE path_guest")
    with postgres.connect() as connection:
        connection.execute(f"DROP DATABASE {_DATABASE} WITH (FORCE)")
        connection.execute("DROP ROLE path_owner; DROP ROLE path_guest")


@pytest.mark.parametrize("path", sample(_PATHS, ("outside", "second")))
def test_each_kind_of_statement_finds_what_postgresql_finds(path: str, servers: tuple[str, str], whole: bool) -> None:
    kinds = [kind for kind in _KINDS if path != "not allowed" or not _OTHER_WORDS.match(kind)]
    effects = whole and path != "not allowed"
    found, wanted = (_outcomes(each, _PATHS[path], kinds, effects) for each in servers)
    wrong = [f"{kind}: {found[kind]}, expected {wanted[kind]}" for kind in kinds if found[kind] != wanted[kind]]
    assert not wrong, "\n".join(wrong)


def _outcomes(dsn: str, path: tuple[str, ...], kinds: list[str], effects: bool) -> dict[str, object]:
    """The result of each statement and, with ``effects``, its changes; each is rolled back."""
    found: dict[str, object] = {}
    with psycopg.connect(dsn, autocommit=True) as connection:
        for text in path:
            connection.execute(text.encode())
        before = _state(connection) if effects else set()
        for kind in kinds:
            connection.execute("BEGIN")
            outcome = _outcome(connection, kind)
            is_done = connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
            after = _state(connection) if effects and is_done else before
            connection.execute("ROLLBACK; DEALLOCATE ALL")
            found[kind] = outcome, sorted(after - before), sorted(before - after)
    return found


def _outcome(connection: Connection, text: str) -> object:
    """Rows or tag, or the error."""
    try:
        if text.startswith("COPY"):
            with connection.cursor().copy(text.encode()) as copy:
                return [bytes(row) for row in copy]
        cursor = connection.execute(text.encode())
        if (then := _THEN.get(text.partition(" ")[0])) is not None:
            cursor = connection.execute(then.encode())
        return _plain(cursor.fetchall() if cursor.description else cursor.statusmessage)
    except psycopg.Error as error:
        return error.sqlstate, _plain(error.diag.message_primary)


def _state(connection: Connection) -> set[str]:
    """All objects, as the catalogs and the tables' rows show them."""
    kept = connection.execute("SHOW search_path").fetchall()[0][0]
    connection.execute("SET search_path = pg_catalog")
    known = tuple(f"'{name}'" for name in (*_SCHEMAS, "empty"))
    places = [f"{name} IN ({', '.join(known)}) OR {name} LIKE 'pg_temp%'" for name in ("n.nspname", "n.schemaname")]
    queries = [text.format(*(f"({place})" for place in places)) for text in _CATALOGS]
    rows = [row for query in queries for row in connection.execute(query.encode()).fetchall()]
    for schema in _SCHEMAS:
        if connection.execute("SELECT to_regclass(%s)", (f"{schema}.t",)).fetchall() != [(None,)]:
            rows += connection.execute(f"SELECT '{schema}', a FROM {schema}.t".encode()).fetchall()
    connection.execute("SELECT set_config('search_path', %s, false)", (kept,))
    return {_plain(row) for row in rows}


def _plain(value: object) -> str:
    """A text with common names for the superuser and the schema of temporary objects."""
    return re.sub(r"pg_temp_\d+", "pg_temp", str(value)).replace("postgres", "millstream")

"""pgjdbc: DatabaseMetaData compared with PostgreSQL's, prepared statements in binary, cursors, batches, COPY, generated
keys.

The driver runs in a JVM of its own, which py4j (a part of pyspark) lets the test call.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pyspark
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, JavaObject, launch_gateway
from py4j.protocol import Py4JJavaError

from executor.spark.java import Java, find_java
from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

DRIVER: Final = Path("/usr/share/java/postgresql.jar")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DRIVER.exists(), reason="no pgjdbc: apt-get install libpostgresql-jdbc-java"),
    pytest.mark.skipif(not isinstance(find_java(os.environ), Java), reason="no Java: apt-get install openjdk-17-jre"),
]
Rows = list[tuple[str | None, ...]]
Open = Callable[..., Any]

OBJECTS: Final = (
    "CREATE SCHEMA shop",
    "CREATE TYPE shop.mood AS ENUM ('sad', 'happy')",
    "CREATE DOMAIN shop.positive AS integer CHECK (VALUE > 0)",
    "CREATE TABLE shop.a (id serial PRIMARY KEY, name varchar(20) NOT NULL, amount numeric(10, 2), feeling shop.mood,"
    " at timestamptz, tags text[], more shop.positive, code char(3), CONSTRAINT a_name UNIQUE (name))",
    "CREATE TABLE shop.b (id integer REFERENCES shop.a (id) ON DELETE CASCADE, n bigint, PRIMARY KEY (id, n))",
    "CREATE INDEX a_amount ON shop.a (amount DESC, code)",
    "CREATE VIEW shop.v AS SELECT id, name FROM shop.a",
    "COMMENT ON TABLE shop.a IS 'what there is'",
    "COMMENT ON COLUMN shop.a.name IS 'how it is called'",
)
#: Methods with their arguments, and the columns that differ between the servers: owners, pages, a default's text.
METADATA: Final[dict[str, tuple[tuple[Any, ...], tuple[str, ...]]]] = {
    "getTables": ((None, "shop", "%", None), ()),
    "getColumns": ((None, "shop", "%", "%"), ("COLUMN_DEF",)),
    "getPrimaryKeys": ((None, "shop", "a"), ()),
    "getImportedKeys": ((None, "shop", "b"), ()),
    "getExportedKeys": ((None, "shop", "a"), ()),
    "getCrossReference": ((None, "shop", "a", None, "shop", "b"), ()),
    "getIndexInfo": ((None, "shop", "a", False, False), ("PAGES", "CARDINALITY")),
    "getBestRowIdentifier": ((None, "shop", "a", 2, False), ()),
    "getVersionColumns": ((None, "shop", "a"), ()),
    "getProcedures": ((None, "pg_catalog", "abs"), ()),
    "getProcedureColumns": ((None, "pg_catalog", "abs", "%"), ("SPECIFIC_NAME",)),
    "getFunctions": ((None, "pg_catalog", "abs"), ("FUNCTION_CAT",)),
    "getFunctionColumns": ((None, "pg_catalog", "abs", "%"), ("FUNCTION_CAT",)),
    "getUDTs": ((None, "shop", "%", None), ()),
    "getTableTypes": ((), ()),
    "getClientInfoProperties": ((), ("MAX_LEN",)),
    "getTablePrivileges": ((None, "shop", "a"), ("GRANTOR", "GRANTEE")),
    "getColumnPrivileges": ((None, "shop", "a", "%"), ("GRANTOR", "GRANTEE")),
    "getCatalogs": ((), ("TABLE_CAT",)),
    "getPseudoColumns": ((None, "shop", "%", "%"), ()),
    "getAttributes": ((None, "shop", "%", "%"), ()),
    "getSuperTypes": ((None, "shop", "%"), ()),
    "getSuperTables": ((None, "shop", "%"), ()),
}
#: Methods that identify the server or the connection.
OF_ITS_OWN: Final = ("getURL", "getUserName", "getConnection", "getDatabaseProductVersion", "getDatabaseMinorVersion")


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    """A JVM with the driver."""
    java = find_java(os.environ)
    assert isinstance(java, Java)
    (library,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    port, token = launch_gateway(
        jarpath=str(library),
        classpath=str(DRIVER),
        java_path=str(java.home / "bin" / "java"),
        die_on_exit=True,
        enable_auth=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
    yield gateway.jvm
    gateway.shutdown()


@pytest.fixture
def connect(jvm: Any, server: Millstream) -> Iterator[Open]:
    """Opens connections, which are closed at the end of the test."""
    opened: list[Any] = []

    def connect(**options: object) -> Any:
        url = f"jdbc:postgresql://127.0.0.1:{server.port}/millstream?user=millstream"
        url += "".join(f"&{name}={value}" for name, value in options.items())
        opened.append(jvm.java.sql.DriverManager.getConnection(url))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


def rows_of(result: Any, hidden: tuple[str, ...] = ()) -> tuple[list[str], Rows]:
    """The names and texts of a ResultSet's columns, without the values of ``hidden`` ones."""
    description = result.getMetaData()
    names = [description.getColumnLabel(place + 1) for place in range(description.getColumnCount())]
    shown = [place + 1 for place, name in enumerate(names) if name.upper() not in hidden]
    rows: Rows = []
    while result.next():
        rows.append(tuple(result.getString(place) for place in shown))
    result.close()
    return names, rows


def told(metadata: Any, name: str, arguments: tuple[Any, ...] = (), hidden: tuple[str, ...] = ()) -> Any:
    """A method's result: a value, rows, or the error of a method that the driver lacks."""
    try:
        found = getattr(metadata, name)(*arguments)
    except Py4JJavaError as error:
        return str(error.java_exception.getMessage())
    return rows_of(found, hidden) if isinstance(found, JavaObject) else found


def array(jvm: Any, items: list[Any]) -> Any:
    """A Java array of objects."""
    return jvm.java.util.ArrayList(items).toArray()


def run(connection: Any, *statements: str) -> None:
    statement = connection.createStatement()
    for text in statements:
        statement.execute(text)
    statement.close()


@pytest.mark.postgres
def test_metadata_is_postgresqls(jvm: Any, connect: Open, postgres: Postgres) -> None:
    ours = connect()
    url = f"jdbc:postgresql://127.0.0.1:{postgres.port}/postgres?user=postgres"
    theirs = jvm.java.sql.DriverManager.getConnection(url)
    run(ours, *OBJECTS)
    run(theirs, *OBJECTS)
    for name, (arguments, hidden) in METADATA.items():
        found, wanted = (told(connection.getMetaData(), name, arguments, hidden) for connection in (ours, theirs))
        assert found == wanted, name
    names = {row[0] for row in rows_of(ours.getMetaData().getTypeInfo())[1]}
    assert {"int4", "text", "numeric", "timestamptz", "bool", "mood", "_int4"} <= names
    simple = [
        method.getName()
        for method in jvm.java.lang.Class.forName("java.sql.DatabaseMetaData").getMethods()
        if method.getParameterCount() == 0 and method.getReturnType().getName() != "java.sql.ResultSet"
    ]
    assert len(simple) > 100
    for name in sorted(set(simple) - set(OF_ITS_OWN)):
        assert told(ours.getMetaData(), name) == told(theirs.getMetaData(), name), name
    schemas = {row[0] for row in rows_of(ours.getMetaData().getSchemas())[1]}
    assert {"public", "shop", "pg_catalog", "information_schema", "millstream"} <= schemas
    run(theirs, "DROP SCHEMA shop CASCADE")
    theirs.close()


def test_prepared_statements_in_binary(jvm: Any, connect: Open) -> None:
    connection = connect(prepareThreshold=-1, binaryTransfer="true")
    run(
        connection,
        "CREATE TABLE kinds (i integer, b bigint, d double precision, n numeric(12, 3), s text, o boolean,"
        " t timestamp, z timestamptz, y date, a integer[], w text[], u uuid, x bytea)",
    )
    insert = connection.prepareStatement("INSERT INTO kinds VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
    stamp = jvm.java.sql.Timestamp.valueOf("2024-02-29 12:34:56.789012")
    moment = jvm.java.time.OffsetDateTime.parse("2024-02-29T12:34:56.5+02:00")
    unique = jvm.java.util.UUID.fromString("12345678-1234-5678-1234-567812345678")
    for number in range(8):  # named and binary after some executions
        insert.setInt(1, number)
        insert.setLong(2, 2**40 + number)
        insert.setDouble(3, number / 4)
        insert.setBigDecimal(4, jvm.java.math.BigDecimal(f"{number}.125"))
        insert.setString(5, f"text {number} ä")
        insert.setBoolean(6, number % 2 == 0)
        insert.setTimestamp(7, stamp)
        insert.setObject(8, moment)
        insert.setObject(9, jvm.java.time.LocalDate.parse("2024-02-29"))
        insert.setArray(10, connection.createArrayOf("int4", array(jvm, [number, None, 3])))
        insert.setArray(11, connection.createArrayOf("text", array(jvm, ["a,b", None, 'c"d'])))
        insert.setObject(12, unique)
        insert.setBytes(13, b"\x00\xff")
        assert insert.executeUpdate() == 1
    query = connection.prepareStatement("SELECT * FROM kinds WHERE i = ?")
    for number in range(8):
        query.setInt(1, number)
        found = query.executeQuery()
        assert found.next()
        assert (found.getInt(1), found.getLong(2), found.getDouble(3)) == (number, 2**40 + number, number / 4)
        assert str(found.getBigDecimal(4)) == f"{number}.125"
        assert (found.getString(5), found.getBoolean(6)) == (f"text {number} ä", number % 2 == 0)
        assert found.getTimestamp(7).equals(stamp)
        assert found.getObject(8, jvm.java.time.OffsetDateTime._java_lang_class).toInstant().equals(moment.toInstant())
        assert found.getDate(9).toString() == "2024-02-29"
        assert list(found.getArray(10).getArray()) == [number, None, 3]
        assert list(found.getArray(11).getArray()) == ["a,b", None, 'c"d']
        assert found.getObject(12).equals(unique)
        assert bytes(found.getBytes(13)) == b"\x00\xff"
        assert not found.next()


def test_cursors_batches_and_generated_keys(connect: Open) -> None:
    connection = connect(reWriteBatchedInserts="true")
    run(connection, "CREATE TABLE numbered (id bigserial PRIMARY KEY, n integer, s text)")
    insert = connection.prepareStatement("INSERT INTO numbered (n, s) VALUES (?, ?)")
    for number in range(300):
        insert.setInt(1, number)
        insert.setString(2, f"row {number}")
        insert.addBatch()
    assert len(insert.executeBatch()) == 300
    connection.setAutoCommit(False)
    statement = connection.createStatement()
    statement.setFetchSize(64)
    found = rows_of(statement.executeQuery("SELECT n, s FROM numbered ORDER BY id"))[1]
    assert found == [(str(number), f"row {number}") for number in range(300)]
    connection.commit()
    keyed = connection.prepareStatement("INSERT INTO numbered (n) VALUES (?), (?)", 1)  # all columns
    keyed.setInt(1, 1)
    keyed.setInt(2, 2)
    keyed.executeUpdate()
    assert [row[:2] for row in rows_of(keyed.getGeneratedKeys())[1]] == [("301", "1"), ("302", "2")]
    savepoint = connection.setSavepoint("here")
    with pytest.raises(Exception, match="duplicate key value"):
        run(connection, "INSERT INTO numbered (id) VALUES (301)")
    connection.rollback(savepoint)
    connection.commit()
    updating = connection.createStatement(1004, 1008)  # scrollable, updatable
    rows = updating.executeQuery("SELECT id, n FROM numbered WHERE id > 300 ORDER BY id")
    assert rows.last() and rows.getRow() == 2
    assert rows.first()
    rows.updateInt("n", 77)
    rows.updateRow()
    connection.commit()
    assert rows_of(connection.createStatement().executeQuery("SELECT n FROM numbered WHERE id = 301"))[1] == [("77",)]


def test_copy_manager(jvm: Any, connect: Open) -> None:
    connection = connect()
    run(connection, "CREATE TABLE copied (n integer, s text)")
    api = connection.unwrap(jvm.org.postgresql.PGConnection._java_lang_class).getCopyAPI()
    lines = "".join(f"{number}\trow {number}\n" for number in range(1000))
    assert api.copyIn("COPY copied FROM STDIN", jvm.java.io.StringReader(lines)) == 1000
    out = jvm.java.io.StringWriter()
    assert api.copyOut("COPY (SELECT n, s FROM copied ORDER BY n) TO STDOUT", out) == 1000
    assert out.toString() == lines


def test_a_stream_and_its_view(connect: Open) -> None:
    connection = connect(reWriteBatchedInserts="true")
    run(
        connection,
        "CREATE FOREIGN TABLE clicks (page text, n integer) SERVER stream",
        "CREATE VIEW pages AS SELECT page, count(*), sum(n) FROM clicks GROUP BY page",
    )
    insert = connection.prepareStatement("INSERT INTO clicks VALUES (?, ?)")
    for number in range(100):
        insert.setString(1, f"page {number % 3}")
        insert.setInt(2, number)
        insert.addBatch()
    insert.executeBatch()
    found = rows_of(connection.createStatement().executeQuery("SELECT * FROM pages ORDER BY page"))[1]
    assert found == [("page 0", "34", "1683"), ("page 1", "33", "1617"), ("page 2", "33", "1650")]
    kinds = rows_of(connection.getMetaData().getTables(None, "public", "%", None))[1]
    assert [(row[2], row[3]) for row in kinds if row[2] in ("clicks", "pages")] == [
        ("clicks", "FOREIGN TABLE"),
        ("pages", "VIEW"),
    ]

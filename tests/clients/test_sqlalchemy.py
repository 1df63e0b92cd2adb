"""SQLAlchemy over psycopg2, psycopg 3 and asyncpg: the ORM, and the results of Inspector."""

from __future__ import annotations

import asyncio
import datetime
import decimal
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, MetaData, create_engine, func, inspect, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, joinedload, selectinload

from tests.clients.shop import Base, Customer, Level, Order, Tag
from tests.rig.server import DATABASE, USER, Millstream

BORN = datetime.date(2000, 2, 29)


def url(server: Millstream, driver: str) -> str:
    return f"postgresql+{driver}://{USER}@127.0.0.1:{server.port}/{DATABASE}"


@pytest.fixture(params=["psycopg2", "psycopg"])
def engine(server: Millstream, request: pytest.FixtureRequest) -> Iterator[Engine]:
    """An engine with its own empty tables."""
    found = create_engine(url(server, request.param))
    Base.metadata.create_all(found)
    yield found
    with found.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    found.dispose()


def add_customers(session: Session) -> None:
    ann = Customer(
        name="Ann",
        level=Level.high,
        facts={"a": [1, {"b": None}]},
        numbers=[1, 2],
        orders=[Order(what="tea", price=decimal.Decimal("1.20")), Order(what="milk", price=decimal.Decimal("0.90"))],
        tags=[Tag(name="y"), Tag(name="x")],
    )
    session.add(ann)
    session.add_all(Customer(name=f"c{number}", level=Level.low) for number in range(20))
    session.commit()


def test_orm_creates_reads_changes_and_deletes(engine: Engine) -> None:
    with Session(engine) as session:
        add_customers(session)
        wanted = select(Customer).where(Customer.facts["a"][0].as_integer() == 1)
        ann = session.scalars(wanted.options(selectinload(Customer.orders), joinedload(Customer.tags))).unique().one()
        assert [order.id for order in ann.orders] == [100, 101] and [tag.name for tag in ann.tags] == ["x", "y"]
        assert ann.credit == 0 and ann.since.tzinfo is not None and ann.facts == {"a": [1, {"b": None}]}
        with pytest.raises(IntegrityError), session.begin_nested():
            session.add(Customer(name="Ann", level=Level.low))
            session.flush()
        ann.credit, ann.numbers = decimal.Decimal("3.50"), [3]
        ann.orders.pop()
        session.commit()
        totals = select(Customer.level, func.count(), func.sum(Customer.credit)).group_by(Customer.level)
        assert session.execute(totals.order_by(Customer.level)).all() == [
            (Level.low, 20, 0),
            (Level.high, 1, decimal.Decimal("3.50")),
        ]
        upsert = insert(Customer).values(name="Ann", level=Level.low, facts={}, numbers=[])
        session.execute(upsert.on_conflict_do_update(index_elements=["name"], set_={"born": BORN}))
        session.commit()
        assert session.scalar(select(Customer.born).with_for_update().where(Customer.numbers.contains([3]))) == BORN
        session.delete(ann)
        session.commit()
        assert session.scalar(select(func.count()).select_from(Order)) == 0


def test_inspector_finds_everything(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("CREATE VIEW rich AS SELECT name FROM customer WHERE credit > 100"))
        connection.execute(
            text("CREATE MATERIALIZED VIEW levels AS SELECT level, count(*) FROM customer GROUP BY level")
        )
    found = inspect(engine)
    assert set(found.get_table_names()) == {"customer", "customer_order", "customer_tag", "tag"}
    assert found.get_view_names() == ["rich"] and found.get_materialized_view_names() == ["levels"]
    assert set(found.get_schema_names()) >= {"public", "information_schema"}
    (level,) = found.get_enums()
    assert (level["name"], level["labels"]) == ("level", ["low", "high"])
    columns = {column["name"]: column for column in found.get_columns("customer")}
    assert {name: str(column["type"]) for name, column in columns.items()} == {
        "id": "INTEGER",
        "name": "VARCHAR(50)",
        "level": "VARCHAR(4)",
        "credit": "NUMERIC(10, 2)",
        "born": "DATE",
        "facts": "JSONB",
        "numbers": "ARRAY",
        "key": "UUID",
        "since": "TIMESTAMP",
    }
    assert columns["name"]["comment"] == "as she writes it" and columns["born"]["nullable"]
    assert columns["id"]["default"] == "nextval('customer_id_seq'::regclass)"
    assert found.get_columns("customer_order")[0]["identity"]["start"] == 100
    assert found.get_pk_constraint("customer_tag")["constrained_columns"] == ["customer_id", "tag_id"]
    assert [key["referred_table"] for key in found.get_foreign_keys("customer_tag")] == ["customer", "tag"]
    assert found.get_foreign_keys("customer_order")[0]["options"] == {"ondelete": "CASCADE"}
    assert [key["column_names"] for key in found.get_unique_constraints("customer")] == [["name"]]
    assert [index["name"] for index in found.get_indexes("customer_order")] == ["ix_customer_order_what"]
    assert [check["name"] for check in found.get_check_constraints("customer")] == ["in_credit"]
    assert found.get_table_comment("customer") == {"text": "who buys"}
    assert "credit > " in found.get_view_definition("rich")
    reflected = MetaData()
    reflected.reflect(engine)
    assert set(reflected.tables) == set(Base.metadata.tables)


def test_server_side_cursor_and_isolation(engine: Engine) -> None:
    with engine.connect().execution_options(isolation_level="SERIALIZABLE") as connection:
        assert connection.get_isolation_level() == "SERIALIZABLE"
        assert connection.execute(text("SELECT generate_series(1, 5)")).scalars().all() == [1, 2, 3, 4, 5]
    with engine.connect().execution_options(stream_results=True, max_row_buffer=2) as connection:
        assert connection.execute(text("SELECT generate_series(1, 5)")).scalars().all() == [1, 2, 3, 4, 5]
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        assert connection.execute(text("SELECT 1")).scalar() == 1


def test_orm_over_asyncpg(server: Millstream) -> None:
    async def work() -> list[tuple[str, int]]:
        engine = create_async_engine(url(server, "asyncpg"))
        async with engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        async with AsyncSession(engine) as session:
            await session.run_sync(add_customers)
            await session.execute(insert(Tag).values([{"name": "z"}, {"name": "zz"}]).returning(Tag.id))
            await session.commit()
            orders = select(Customer.name, func.count()).join(Customer.orders).group_by(Customer.name)
            rows = [(name, count) for name, count in (await session.execute(orders)).all()]
        async with engine.begin() as connection:
            columns = await connection.run_sync(lambda plain: inspect(plain).get_columns("customer"))
            assert len(columns) == 9
            await connection.run_sync(Base.metadata.drop_all)
        await engine.dispose()
        return rows

    assert asyncio.run(work()) == [("Ann", 2)]

"""Run-time parameters: values as PostgreSQL prints them, refusals, and SET in transactions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.values.errors import SqlError
from server.settings.parameters import PARAMETERS, REPORTED
from server.settings.settings import Settings


@pytest.fixture
def settings() -> Settings:
    return Settings({"statement_timeout": "5000", "application_name": "test"})


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("statement_timeout", "90000", "90s"),
        ("statement_timeout", "2min", "2min"),
        ("statement_timeout", "1500 ms", "1500ms"),
        ("statement_timeout", "0", "0"),
        ("work_mem", "64MB", "64MB"),
        ("work_mem", "100", "100kB"),
        ("jit", "tru", "on"),
        ("timezone", "europe/berlin", "Europe/Berlin"),
        ("TimeZone", "utc", "UTC"),
        ("TimeZone", "5.5", "<+05:30>-05:30"),
        ("TimeZone", "-8", "<-08>+08"),
        ("TimeZone", "16", "<+16>-16"),
        ("TimeZone", "est5edt,m3.2.0,m11.1.0", "EST5EDT,M3.2.0,M11.1.0"),
        ("datestyle", "ISO, us", "ISO, MDY"),
        ("datestyle", "noneuropean", "ISO, MDY"),
        ("datestyle", "German", "German, DMY"),
        ("datestyle", "YMD, sql", "SQL, YMD"),
        ("datestyle", "postgresql, default", "Postgres, MDY"),
        ("client_encoding", "'utf-8'", "UTF8"),
        ("synchronous_commit", "OFF", "off"),
        ("extra_float_digits", "3", "3"),
        ("lc_monetary", "en_us.utf-8", "en_US.UTF-8"),
        ("timezone_abbreviations", "default", "Default"),
        ("my.own", "anything", "anything"),
    ],
)
def test_set_and_show(settings: Settings, name: str, value: str, shown: str) -> None:
    settings.set(name, value)
    assert settings.show(name) == shown


@pytest.mark.parametrize(
    ("name", "value", "sqlstate"),
    [
        ("nothing", "1", "42704"),
        ("statement_timeout", "soon", "22023"),
        ("statement_timeout", "-1", "22023"),
        ("statement_timeout", "5 kB", "22023"),
        ("jit", "perhaps", "22023"),
        ("timezone", "Mars/Olympus", "22023"),
        ("timezone", "25", "0A000"),
        ("timezone", "168", "22023"),
        ("timezone", "ABC+5:30:01", "22023"),
        ("timezone", "EST5EDT4", "0A000"),
        ("timezone", "FOO+30", "0A000"),
        ("timezone", "EST5EDT,M13.2.0,M11.1.0", "22023"),
        ("datestyle", "Gallic", "22023"),
        ("datestyle", "ISO, German", "22023"),
        ("datestyle", "YMD, DMY", "22023"),
        ("IntervalStyle", "strange", "22023"),
        ("client_encoding", "EUC_TW", "0A000"),
        ("server_version", "16", "55P02"),
        ("max_connections", "5", "55P02"),
        ("maintenance_engine", "flink", "22023"),
        ("timezone_abbreviations", "Australia", "0A000"),
        ("xmloption", "document", "0A000"),
        ("backslash_quote", "off", "0A000"),
        ("lc_monetary", "de_DE.UTF-8", "0A000"),
        ("lc_numeric", "de_DE.UTF-8", "0A000"),
    ],
)
def test_refused(settings: Settings, name: str, value: str, sqlstate: str) -> None:
    with pytest.raises(SqlError) as caught:
        settings.set(name, value)
    assert caught.value.sqlstate == sqlstate


def test_a_date_style_says_a_part(settings: Settings) -> None:
    for value, shown in (("SQL", "SQL, MDY"), ("DMY", "SQL, DMY"), ("ISO", "ISO, DMY"), ("default", "ISO, MDY")):
        settings.set("DateStyle", value)
        assert settings.show("DateStyle") == shown


def test_reset_returns_to_the_start_of_the_session(settings: Settings) -> None:
    settings.set("statement_timeout", "1")
    settings.set("statement_timeout", None)
    assert settings.show("statement_timeout") == "5s"
    settings.set("jit", "on")
    settings.reset_all()
    assert settings.show("jit") == "off"


def test_rollback_undoes_set_and_commit_keeps_it(settings: Settings) -> None:
    settings.begin()
    settings.set("jit", "on")
    settings.rollback()
    assert settings.show("jit") == "off"
    settings.begin()
    settings.set("jit", "on")
    settings.commit()
    assert settings.show("jit") == "on"


def test_set_local_ends_with_the_transaction(settings: Settings) -> None:
    settings.begin()
    settings.set("jit", "on")
    settings.set("jit", "off", local=True)
    assert settings.show("jit") == "off"
    settings.commit()
    assert settings.show("jit") == "on"


def test_savepoints(settings: Settings) -> None:
    settings.begin()
    settings.set("work_mem", "1MB")
    settings.savepoint("a")
    settings.set("work_mem", "2MB")
    settings.savepoint("b")
    settings.set("work_mem", "3MB")
    settings.rollback_to("a")
    assert settings.show("work_mem") == "1MB"
    with pytest.raises(SqlError) as caught:
        settings.rollback_to("b")
    assert caught.value.sqlstate == "3B001"
    settings.release("a")
    settings.commit()
    assert settings.show("work_mem") == "1MB"


def test_transaction_characteristics_end_with_it(settings: Settings) -> None:
    settings.begin()
    settings.set("transaction_read_only", "on")
    assert settings.read_only
    settings.commit()
    assert not settings.read_only
    settings.set("default_transaction_read_only", "on")
    assert settings.read_only


def test_only_changes_are_reported(settings: Settings) -> None:
    first = settings.report(superuser=False)
    assert [name for name, _ in first] == list(REPORTED)
    assert len(first) == 13
    assert dict(first)["server_version"].startswith("15.")
    settings.set("jit", "on")
    settings.set("TimeZone", "Europe/Paris")
    assert settings.changed
    assert settings.report(superuser=False) == [("TimeZone", "Europe/Paris")]
    assert not settings.changed


def test_search_path(settings: Settings) -> None:
    assert settings.search_path() == ("public",)
    settings.set("search_path", 'A, "B c", pg_catalog')
    assert settings.search_path() == ("a", "B c", "pg_catalog")


def test_equal_settings_have_equal_keys(settings: Settings) -> None:
    before = settings.key
    settings.set("TimeZone", "Europe/Paris")
    assert settings.key != before
    settings.set("TimeZone", "UTC")
    assert settings.key == before


def test_every_default_is_a_value_of_its_parameter() -> None:
    for parameter in PARAMETERS.values():
        assert parameter.read(parameter.name, parameter.default) == parameter.default, parameter.name


_ACTION = st.one_of(
    st.tuples(st.just("set"), st.sampled_from(["a.x", "a.y"]), st.sampled_from("123"), st.booleans()),
    st.tuples(st.sampled_from(["begin", "commit", "rollback"])),
)


@given(st.lists(_ACTION, max_size=20))
def test_transactions_against_a_model(actions: list[tuple[object, ...]]) -> None:
    """The model copies all settings at BEGIN and keeps SET LOCAL apart."""
    settings = Settings({"a.x": "0", "a.y": "0"})
    session, local, saved = {"a.x": "0", "a.y": "0"}, {}, None
    for action in actions:
        match action:
            case ("set", str(name), str(value), bool(is_local)):
                if is_local and saved is None:
                    continue  # the session refuses it outside of a transaction
                settings.set(name, value, is_local)
                if is_local:
                    local = {**local, name: value}
                else:
                    session = {**session, name: value}
                    local.pop(name, None)
            case ("begin",):
                settings.begin()
                saved = saved or session
            case ("commit",):
                settings.commit()
                local, saved = {}, None
            case _:
                settings.rollback()
                session, local, saved = saved or session, {} if saved else local, None
        assert {name: settings.show(name) for name in session} == {**session, **local}

"""Django 5 over psycopg 3: migrations, the ORM, the queries of admin pages, and inspectdb."""

from __future__ import annotations

import datetime
import decimal
import io
import uuid
from collections.abc import Iterator
from typing import Any

import django
import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.db.models import Avg, Case, Count, Exists, F, Max, OuterRef, Q, Subquery, Sum, Value, When, Window
from django.db.models.functions import Concat, ExtractYear, RowNumber, TruncMonth, Upper

from tests.rig.server import DATABASE, USER, Millstream

APPS = [f"django.contrib.{name}" for name in ("admin", "auth", "contenttypes", "sessions", "messages", "postgres")]


@pytest.fixture(scope="module", autouse=True)
def site(server: Millstream) -> Iterator[None]:
    """Django, set up for this process, and its applications' migrations run."""
    settings.configure(
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": DATABASE,
                "USER": USER,
                "HOST": "127.0.0.1",
                "PORT": str(server.port),
            }
        },
        INSTALLED_APPS=[*APPS, "tests.clients.library"],
        MIGRATION_MODULES={"library": None},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        SECRET_KEY="test",
        TIME_ZONE="UTC",
        USE_TZ=True,
    )
    django.setup()
    call_command("migrate", run_syncdb=True, verbosity=0)
    yield
    connection.close()


@pytest.fixture
def author() -> Iterator[Any]:
    """The author model, with two authors and six books; deleted after the test."""
    author, book = apps.get_model("library", "Author"), apps.get_model("library", "Book")
    ann = author.objects.create(
        name="Ann", born=datetime.date(1970, 1, 2), facts={"x": {"y": [1, 2]}, "k": "v"}, words=["a", "b"]
    )
    bob = author.objects.create(name="Bob", facts={"k": "w", "n": None})
    for number in range(6):
        new = book.objects.create(
            title=f"T{number}",
            slug=f"t-{number}",
            first=ann if number % 2 else bob,
            price=decimal.Decimal("1.10") * number,
            published=datetime.datetime(2024, 1 + number, 2, 3, 4, 5, tzinfo=datetime.UTC),
            pages=100 * number,
            key=uuid.UUID(int=number),
            takes=datetime.timedelta(hours=number),
            scan=b"\0\1",
        )
        new.authors.add(ann, bob)
    yield author
    book.objects.all().delete()
    author.objects.all().delete()


@pytest.fixture
def book(author: Any) -> Any:
    """The book model."""
    return apps.get_model("library", "Book")


def test_a_migrated_database_needs_no_migration() -> None:
    shown = io.StringIO()
    call_command("showmigrations", stdout=shown, no_color=True)
    assert "[X]" in shown.getvalue() and "[ ]" not in shown.getvalue()
    call_command("migrate", verbosity=0)


LOOK_UPS: list[tuple[str, object, int]] = [
    ("title__icontains", "t1", 1),
    ("title__iexact", "T2", 1),
    ("title__regex", "^T[0-2]", 3),
    ("published__year", 2024, 6),
    ("published__week_day", 3, 2),
    ("published__date", datetime.date(2024, 3, 2), 1),
    ("published__time", datetime.time(3, 4, 5), 6),
    ("price__range", (1, 3), 2),
    ("authors__name", "Ann", 6),
    ("first__isnull", False, 6),
    ("key", uuid.UUID(int=3), 1),
    ("takes__gt", datetime.timedelta(hours=2), 3),
    ("scan", b"\0\1", 6),
    ("slug__endswith", "5", 1),
]
DOCUMENTS: list[tuple[str, object]] = [
    ("facts__x__y__0", 1),
    ("facts__k", "v"),
    ("facts__contains", {"k": "v"}),
    ("facts__has_keys", ["k", "x"]),
    ("facts__has_any_keys", ["x", "z"]),
    ("facts__x__y", [1, 2]),
    ("facts__k__icontains", "V"),
    ("words__contains", ["a"]),
    ("words__overlap", ["b", "z"]),
    ("words__len", 2),
    ("words__0", "a"),
    ("words__0_1", ["a"]),
]


def test_look_ups(author: Any, book: Any) -> None:
    assert [(name, book.objects.filter(**{name: value}).count()) for name, value, _ in LOOK_UPS] == [
        (name, count) for name, _, count in LOOK_UPS
    ]
    found = [(name, list(author.objects.filter(**{name: value}).values_list("name"))) for name, value in DOCUMENTS]
    assert found == [(name, [("Ann",)]) for name, _ in DOCUMENTS]


def test_aggregates_windows_and_subqueries(author: Any, book: Any) -> None:
    total = book.objects.aggregate(n=Count("id"), sum=Sum("price"), pages=Avg("pages"), last=Max("takes"))
    assert total == {"n": 6, "sum": decimal.Decimal("16.50"), "pages": 250.0, "last": datetime.timedelta(hours=5)}
    each = author.objects.annotate(n=Count("books"), sum=Sum("books__price")).order_by("name").values_list("n", "sum")
    assert list(each) == [(3, decimal.Decimal("9.90")), (3, decimal.Decimal("6.60"))]
    best = Window(RowNumber(), partition_by=F("first"), order_by=F("price").desc())
    assert list(book.objects.annotate(place=best).filter(place=1).values_list("title")) == [("T4",), ("T5",)]
    dear = book.objects.filter(first=OuterRef("pk")).order_by("-price")
    found = author.objects.filter(Exists(dear.filter(price__gt=5))).annotate(last=Subquery(dear.values("title")[:1]))
    assert list(found.values_list("name", "last")) == [("Ann", "T5")]
    kinds = book.objects.annotate(kind=Case(When(price__gt=3, then=Value("dear")), default=Value("cheap")))
    counted = kinds.values("kind").annotate(n=Count("id")).order_by("kind").values_list("kind", "n")
    assert list(counted) == [("cheap", 3), ("dear", 3)]
    made = book.objects.annotate(
        both=Concat(Upper("title"), Value("/"), "slug", output_field=book._meta.get_field("title")),
        year=ExtractYear("published"),
        month=TruncMonth("published"),
    ).values_list("both", "year", "month")
    assert made[1] == ("T1/t-1", 2024, datetime.datetime(2024, 2, 1, tzinfo=datetime.UTC))
    assert [len(item.authors.all()) for item in book.objects.select_related("first").prefetch_related("authors")] == [
        2
    ] * 6


def test_changes(author: Any, book: Any) -> None:
    assert book.objects.update(price=F("price") * 2 + 1) == 6
    books = list(book.objects.all())
    for item in books:
        item.pages = 7
    assert book.objects.bulk_update(books, ["pages", "published"]) == 6
    rows = [author(name="Ann", born=datetime.date(2001, 1, 1)), author(name="Zoe")]
    author.objects.bulk_create(rows, update_conflicts=True, unique_fields=["name"], update_fields=["born"])
    assert author.objects.get(name="Ann").born == datetime.date(2001, 1, 1)
    assert author.objects.get_or_create(name="Zoe")[1] is False
    assert author.objects.update_or_create(name="Zoe", defaults={"words": ["z"]})[1] is False
    with transaction.atomic():
        assert author.objects.select_for_update(of=("self",)).get(name="Zoe").words == ["z"]
    assert author.objects.filter(Q(name="Ann") | Q(name="Zoe")).delete()[0] == 2 + 3 + 3 + 3 * 2


def test_transactions(author: Any) -> None:
    with pytest.raises(IntegrityError, match="library_author_name"), transaction.atomic():
        author.objects.create(name="Ann")
    with transaction.atomic():
        author.objects.create(name="one")
        savepoint = transaction.savepoint()
        author.objects.create(name="two")
        transaction.savepoint_rollback(savepoint)
        with pytest.raises(IntegrityError, match="named"), transaction.atomic():
            author.objects.create(name="")
    assert list(author.objects.exclude(words=["a", "b"]).order_by("id").values_list("name")) == [("Bob",), ("one",)]


def test_what_the_admin_asks(author: Any, book: Any) -> None:
    users, groups = apps.get_model("auth", "User"), apps.get_model("auth", "Group")
    root = users.objects.create_superuser("root", "root@example.org", "secret")
    group = groups.objects.create(name="editors")
    group.permissions.set(apps.get_model("auth", "Permission").objects.all()[:3])
    root.groups.add(group)
    assert users.objects.get(pk=root.pk).get_group_permissions()
    listed = book.objects.filter(Q(title__icontains="t") | Q(first__name__icontains="t"), first__id__exact=1)
    assert listed.distinct().order_by("-title", "-pk")[:100].count() == listed.count()
    assert [day.year for day in book.objects.datetimes("published", "year")] == [2024]
    assert len(author.objects.in_bulk(["Ann", "Bob"], field_name="name")) == 2
    assert len(list(book.objects.iterator(chunk_size=4))) == 6
    root.delete()
    group.delete()


def test_inspectdb_writes_the_models_again(author: Any) -> None:
    shown = io.StringIO()
    call_command("inspectdb", "library_author", "library_book", stdout=shown)
    models = shown.getvalue()
    for line in (
        "name = models.CharField(unique=True, max_length=100)",
        "facts = models.JSONField()",
        "first = models.ForeignKey(LibraryAuthor, models.DO_NOTHING, blank=True, null=True)",
        "price = models.DecimalField(max_digits=8, decimal_places=2)",
        "id = models.BigAutoField(primary_key=True)",
    ):
        assert line in models, models
    with connection.cursor() as cursor:
        keys = connection.introspection.get_constraints(cursor, "library_author")
        sequences = connection.introspection.get_sequences(cursor, "library_book")
    assert keys["named"]["check"] and keys["library_author_pkey"]["primary_key"]
    assert sequences == [{"name": "library_book_id_seq", "table": "library_book", "column": "id"}]


def test_hstore_field() -> None:
    from django.contrib.postgres.fields import HStoreField
    from django.contrib.postgres.operations import HStoreExtension
    from django.db import models
    from django.db.migrations.state import ProjectState

    class Pairs(models.Model):
        """A model with an hstore."""

        data = HStoreField()

        class Meta:
            """Assigns the model to the library application."""

            app_label = "library"

    pairs: Any = Pairs
    operation = HStoreExtension()
    with connection.schema_editor() as editor:
        operation.database_forwards("library", editor, ProjectState(), ProjectState())
        editor.create_model(pairs)
    connection.close()  # the next connection looks up the extension's oids
    try:
        one = pairs.objects.create(data={"a": "1", "b": None})
        pairs.objects.create(data={})
        assert pairs.objects.get(data__contains={"a": "1"}) == one and one.data == {"a": "1", "b": None}
        assert pairs.objects.get(data__a="1").data == {"a": "1", "b": None}
        assert pairs.objects.filter(data__has_key="b").count() == 1
        assert (
            pairs.objects.filter(data__has_any_keys=["b", "z"], data__contained_by={"a": "1", "b": None}).count() == 1
        )
        assert list(pairs.objects.order_by("id").values_list("data__keys", flat=True)) == [["a", "b"], []]
        one.data["c"] = 'x"y'
        one.save()
        one.refresh_from_db()
        assert one.data == {"a": "1", "b": None, "c": 'x"y'}
    finally:
        with connection.schema_editor() as editor:
            editor.delete_model(pairs)
            operation.database_backwards("library", editor, ProjectState(), ProjectState())


def test_flush_restarts_the_sequences(author: Any) -> None:
    call_command("flush", interactive=False, verbosity=0)
    assert not author.objects.exists()

"""Authors and their books, in the types that applications use."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models


class Author(models.Model):
    """The author of books."""

    name = models.CharField(max_length=100, unique=True)
    born = models.DateField(null=True)
    facts = models.JSONField(default=dict)
    words = ArrayField(models.CharField(max_length=20), default=list)

    class Meta:
        constraints = (models.CheckConstraint(condition=~models.Q(name=""), name="named"),)

    def __str__(self) -> str:
        return str(self.name)


class Book(models.Model):
    """A book by an author."""

    title = models.CharField(max_length=200, db_index=True)
    slug = models.SlugField()
    authors = models.ManyToManyField(Author)
    first = models.ForeignKey(Author, on_delete=models.CASCADE, related_name="books", null=True)
    price = models.DecimalField(max_digits=8, decimal_places=2)
    published = models.DateTimeField(null=True)
    pages = models.PositiveIntegerField(default=0)
    key = models.UUIDField(null=True)
    takes = models.DurationField(null=True)
    scan = models.BinaryField(null=True)

    class Meta:
        ordering = ("title",)

    def __str__(self) -> str:
        return str(self.title)

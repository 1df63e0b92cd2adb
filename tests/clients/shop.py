"""The mapped classes of the SQLAlchemy tests: customers with orders and tags, in the types that applications use."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Integer,
    Numeric,
    String,
    Table,
    func,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class Base(DeclarativeBase):
    """The tables' metadata."""


class Level(enum.Enum):
    """An enum type in the database."""

    low = 1
    high = 2


customer_tag = Table(
    "customer_tag",
    Base.metadata,
    Column("customer_id", ForeignKey("customer.id", ondelete="CASCADE"), primary_key=True),
    Column("tag_id", ForeignKey("tag.id"), primary_key=True),
)


class Customer(Base):
    """A customer; deleting one deletes the customer's orders."""

    __tablename__ = "customer"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(50), unique=True, comment="as she writes it")
    level: Mapped[Level]
    credit: Mapped[decimal.Decimal] = mapped_column(Numeric(10, 2), server_default="0")
    born: Mapped[datetime.date | None]
    facts: Mapped[dict[str, Any]] = mapped_column(postgresql.JSONB, default=dict)
    numbers: Mapped[list[int]] = mapped_column(postgresql.ARRAY(Integer), default=list)
    key: Mapped[uuid.UUID] = mapped_column(default=uuid.uuid4)
    since: Mapped[datetime.datetime] = mapped_column(DateTime(timezone=True), server_default=func.now())
    orders: Mapped[list[Order]] = relationship(back_populates="customer", cascade="all, delete-orphan")
    tags: Mapped[list[Tag]] = relationship(secondary=customer_tag, order_by="Tag.name")
    __table_args__ = (CheckConstraint("credit >= 0", name="in_credit"), {"comment": "who buys"})


class Order(Base):
    """An order of one customer."""

    __tablename__ = "customer_order"
    id: Mapped[int] = mapped_column(Identity(start=100), primary_key=True)
    what: Mapped[str] = mapped_column(index=True)
    price: Mapped[decimal.Decimal] = mapped_column(Numeric(8, 2))
    customer_id: Mapped[int] = mapped_column(ForeignKey("customer.id", ondelete="CASCADE"))
    customer: Mapped[Customer] = relationship(back_populates="orders")


class Tag(Base):
    """A tag that several customers may have."""

    __tablename__ = "tag"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]

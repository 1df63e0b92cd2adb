"""CREATE, ALTER and RENAME of domains: their defaults and constraints.

Owns: PostgreSQL's errors for them, and the check of existing values against a new constraint.
``planner.bind.conversion.domains`` checks new values.

https://www.postgresql.org/docs/15/sql-alterdomain.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace
from pglast.enums import ConstrType

from catalog.catalog import Catalog
from catalog.objects import Check, ColumnDefinition, Domain, Stream, Table, subject
from catalog.values.errors import SqlError, unsupported
from catalog.values.identifiers import quote_name
from catalog.values.nested_types import holds
from catalog.values.types import BOOL, INT8, SqlType
from planner.algebra.nodes import Call, Column, ColumnRef, Filter, Limit, Literal, Project, Relation
from planner.algebra.walk import replace_columns
from planner.bind.binder import bind_expression
from planner.bind.definitions.expression_texts import expression_text
from planner.bind.definitions.relations.columns import check_default
from planner.bind.definitions.relations.constraints import refuse_subquery
from planner.bind.definitions.relations.definition_parts import Parts
from planner.bind.definitions.sequences import numbered
from planner.bind.from_items.from_clause import scan_object
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.relations import type_schema
from planner.bind.lookup.type_names import check_collation, display, find_type, type_or_domain
from planner.bind.scalars.stored_expressions import bind_tree
from planner.bind.state.environment import Binding
from planner.statements.definitions import AlterType, CreateType
from planner.statements.statement import NoOperation, Statement

#: Constraints that no domain has, with the words of the error.
_IMPOSSIBLE: Final = {
    ConstrType.CONSTR_UNIQUE: "unique constraints not possible for domains",
    ConstrType.CONSTR_PRIMARY: "primary key constraints not possible for domains",
    ConstrType.CONSTR_EXCLUSION: "exclusion constraints not possible for domains",
    ConstrType.CONSTR_FOREIGN: "foreign key constraints not possible for domains",
}


def bind_create_domain(binding: Binding, node: Any) -> CreateType:
    """CREATE DOMAIN name AS type [DEFAULT ...] [NOT NULL] [CHECK (...)]. Raises 42710, 42601 and 42804."""
    *schema, name = names_of(node.domainname)
    where = type_schema(binding, schema[-1] if schema else None, name)
    catalog = binding.context.catalog
    given: set[str] = set()
    with binding.without_positions():
        base, parent = type_or_domain(binding, node.typeName)
        if base.name == "void":
            raise SqlError("42804", '"void" is not a valid base type for a domain')
        if node.collClause is not None:
            check_collation(binding, node.collClause, base)
        domain = Domain(catalog.type_oid(), name, base, parent, schema=where)
        for item in node.constraints or ():
            domain = _constrained(binding, domain, item, given)
    catalog.add_type(domain)  # raises where the name is taken
    return CreateType("CREATE DOMAIN", domain)


def _constrained(binding: Binding, domain: Domain, node: Any, given: set[str]) -> Domain:
    """A domain with a constraint of CREATE DOMAIN; ``given`` are the kinds that came before."""
    match node.contype:
        case ConstrType.CONSTR_CHECK:
            return replace(domain, checks=(*domain.checks, _check(binding, domain, node)))
        case ConstrType.CONSTR_DEFAULT:
            if "default" in given:
                raise SqlError("42601", "multiple default expressions")
            given.add("default")
            return _with_default(binding, domain, node.raw_expr)
        case ConstrType.CONSTR_NOTNULL | ConstrType.CONSTR_NULL:
            kind = "not null" if node.contype == ConstrType.CONSTR_NOTNULL else "null"
            if given & {"null", "not null"} and kind not in given:
                raise SqlError("42601", "conflicting NULL/NOT NULL constraints")
            given.add(kind)
            return replace(domain, not_null=kind == "not null")
        case kind if kind in _IMPOSSIBLE:
            raise SqlError("42601", _IMPOSSIBLE[kind])
        case _:
            raise SqlError("0A000", "specifying constraint deferrability not supported for domains")


def _check(binding: Binding, domain: Domain, node: Any) -> Check:
    """CHECK over VALUE. Raises 42804, 42703 and 42710."""
    names = {check.name for check in domain.checks}
    if node.conname in names:
        raise SqlError("42710", f'constraint "{node.conname}" for domain "{domain.name}" already exists')
    column = Column(-1, "value", domain.base)
    scalar = bind_tree(binding, node.raw_expr, (column,), None, "check constraint")
    if scalar.type != BOOL and scalar.type.name != "unknown":
        message = f"argument of CHECK must be type boolean, not type {display(scalar.type)}"
        raise SqlError("42804", message, position=binding.start(node.raw_expr))
    refuse_subquery(binding, scalar, node.raw_expr, "check constraint")
    parts = Parts(domain.name, names=set(names))
    return Check(parts.name(node.conname, "check"), expression_text(binding, node.raw_expr, (column,)))


def _with_default(binding: Binding, domain: Domain, node: Any) -> Domain:
    if node is None:
        return replace(domain, default=None)
    check_default(binding, ColumnDefinition(domain.name, domain.base), node)
    tree, sequences = numbered(binding, node)
    if sequences:
        raise unsupported("a sequence as a domain's default", "Give it to the columns.", binding.start(node))
    return replace(domain, default=expression_text(binding, tree, (), domain.base))


def _domain(binding: Binding, names: tuple[str, ...]) -> Domain:
    found = find_type(binding, names)
    if found is None:
        raise SqlError("42704", f'type "{".".join(names)}" does not exist')
    if not isinstance(found, Domain):
        raise SqlError("42809", f"{found} is not a domain")
    return found


def bind_alter_domain(binding: Binding, node: Any) -> Statement:
    """SET and DROP DEFAULT and NOT NULL, ADD, DROP and VALIDATE CONSTRAINT."""
    domain = _domain(binding, names_of(node.typeName))
    match node.subtype:
        case "T":
            with binding.without_positions():
                return _altered(domain, _with_default(binding, domain, node.def_))
        case "N":
            return _altered(domain, replace(domain, not_null=False))
        case "O":
            _refuse_streams(binding, domain)
            return _altered(domain, replace(domain, not_null=True), _nulls(binding, domain))
        case "C":
            return _add_constraint(binding, domain, node.def_)
        case "X":
            return _drop_constraint(domain, node)
        case "V":
            return _validate_constraint(binding, domain, node.name)
        case kind:
            raise AssertionError(kind)


def _altered(before: Domain, after: Domain, checks: tuple[tuple[SqlError, Relation], ...] = ()) -> AlterType:
    return AlterType("ALTER DOMAIN", before, after, checks=checks)


def _add_constraint(binding: Binding, domain: Domain, node: Any) -> AlterType:
    if node.contype in _IMPOSSIBLE:
        raise SqlError("42601", _IMPOSSIBLE[node.contype])
    if node.contype != ConstrType.CONSTR_CHECK:
        raise unsupported("this constraint of a domain", "Use CHECK.")
    _refuse_streams(binding, domain)
    with binding.without_positions():
        check = replace(_check(binding, domain, node), validated=not node.skip_validation)
    checks = () if node.skip_validation else _breaking(binding, domain, check)
    return _altered(domain, replace(domain, checks=(*domain.checks, check)), checks)


def _validate_constraint(binding: Binding, domain: Domain, name: str) -> Statement:
    """VALIDATE CONSTRAINT: the look at columns' values that NOT VALID put off."""
    check = next((check for check in domain.checks if check.name == name), None)
    if check is None:
        raise SqlError("42704", f'constraint "{name}" of domain "{domain.name}" does not exist')
    if check.validated:
        return NoOperation("ALTER DOMAIN")
    checks = (replace(item, validated=True) if item is check else item for item in domain.checks)
    return _altered(domain, replace(domain, checks=tuple(checks)), _breaking(binding, domain, check))


def _drop_constraint(domain: Domain, node: Any) -> Statement:
    left = tuple(check for check in domain.checks if check.name != node.name)
    if left == domain.checks:
        message = f'constraint "{node.name}" of domain "{domain.name}" does not exist'
        if not node.missing_ok:
            raise SqlError("42704", message)
        return NoOperation("ALTER DOMAIN", (f"{message}, skipping",))
    return _altered(domain, replace(domain, checks=left))


def users(binding: Binding, oid: int) -> list[tuple[Table | Stream, ColumnDefinition]]:
    """The columns of a domain and of those over it. Raises 0A000 where arrays or rows within columns have values of it,
    which PostgreSQL does not look for, either (find_composite_type_dependencies).
    """
    catalog = binding.context.catalog
    within = _within(catalog, oid)
    items = (item for item in catalog.objects.values() if isinstance(item, Table | Stream))
    columns = [(item, column) for item in items for column in item.columns]
    for item, column in columns:
        if column.domain in within and column.domain % 2 and _is_direct(catalog, column.domain, oid):
            continue
        if column.domain in within or _holds(column.type, within):
            words = f'cannot alter type "{catalog.domain(oid).name}" because column'
            raise SqlError("0A000", f'{words} "{item.name}.{column.name}" uses it')
    return [(item, column) for item, column in columns if column.domain in within]


def _within(catalog: Catalog, oid: int) -> set[int]:
    """The oids of a domain, of domains over it or what holds its values, and of the arrays of all these."""
    found = {oid, oid - 1}
    for item in sorted(catalog.types.values(), key=lambda item: item.oid):
        if isinstance(item, Domain) and (item.parent in found or _holds(item.base, found)):
            found |= {item.oid, item.oid - 1}
    return found


def _holds(kind: SqlType, domains: set[int]) -> bool:
    """Whether values of a type have rows with fields of domains."""
    return holds(kind, lambda item: item.row is not None and not domains.isdisjoint(item.row.domains))


def _is_direct(catalog: Catalog, over: int, oid: int) -> bool:
    """Whether a domain's values are those of another, and not arrays or rows of these."""
    while over % 2 and over != oid:
        over = catalog.domain(over).parent
    return over == oid


def _refuse_streams(binding: Binding, domain: Domain) -> None:
    for item, column in users(binding, domain.oid):
        if isinstance(item, Stream):
            what = f"a constraint of a domain of which stream {item.name} has column {column.name}"
            raise unsupported(what, "Filter the rows in the views.")


def _nulls(binding: Binding, domain: Domain) -> tuple[tuple[SqlError, Relation], ...]:
    """The columns' values that NOT NULL forbids."""
    return tuple(
        (
            SqlError(
                "23502",
                f'column "{column.name}" of table "{table.name}" contains null values',
                about=subject(table, column.name),
            ),
            _found(binding, table, column, lambda value: Call("is_null", (value,), BOOL)),
        )
        for table, column in users(binding, domain.oid)
        if isinstance(table, Table)
    )


def _breaking(binding: Binding, domain: Domain, check: Check) -> tuple[tuple[SqlError, Relation], ...]:
    """The columns' values for which a CHECK is false."""
    tested = Column(-1, "value", domain.base)
    condition = bind_expression(
        check.expression, (tested,), replace(binding.context, parameter_types=()), None, "CHECK"
    )
    words = "contains values that violate the new constraint"
    return tuple(
        (
            SqlError(
                "23514",
                f'column "{column.name}" of table "{table.name}" {words}',
                about=subject(table, column.name),
            ),
            _found(
                binding,
                table,
                column,
                lambda value: Call("is_false", (replace_columns(condition, {tested: value}),), BOOL),
            ),
        )
        for table, column in users(binding, domain.oid)
        if isinstance(table, Table)
    )


def _found(binding: Binding, table: Table, column: ColumnDefinition, test: Callable[[ColumnRef], Call]) -> Relation:
    """At most one row of a table whose column has such a value."""
    scan, _ = scan_object(binding, table, None, False)
    value = ColumnRef(scan.columns[scan.sources.index(column.name)])
    one = Project(Filter(scan, test(value)), ((binding.column("one", INT8, False), Literal(1, INT8)),))
    return Limit(one, Literal(1, INT8), None)


def bind_comment_constraint(binding: Binding, node: Any) -> AlterType:
    """COMMENT ON CONSTRAINT name ON DOMAIN domain."""
    kind, name = node.object
    domain = _domain(binding, names_of(kind.names))
    if all(check.name != name.sval for check in domain.checks):
        raise SqlError("42704", f'constraint "{name.sval}" for domain {domain} does not exist')
    checks = (replace(item, comment=node.comment) if item.name == name.sval else item for item in domain.checks)
    return AlterType("COMMENT", domain, replace(domain, checks=tuple(checks)))


def bind_rename_domain(binding: Binding, node: Any, tag: str = "ALTER DOMAIN") -> AlterType:
    """ALTER DOMAIN name RENAME TO name."""
    domain = _domain(binding, names_of(node.object))
    after = replace(domain, name=node.newname)
    binding.context.catalog.drop_type(domain.oid).add_type(after)  # raises where the name is taken
    return AlterType(tag, domain, after)


def bind_rename_domain_constraint(binding: Binding, node: Any) -> AlterType:
    """ALTER DOMAIN name RENAME CONSTRAINT name TO name."""
    domain = _domain(binding, names_of(node.object.names if hasattr(node.object, "names") else node.object))
    names = [check.name for check in domain.checks]
    if node.subname not in names:
        raise SqlError("42704", f'constraint "{node.subname}" for domain {quote_name(domain.name)} does not exist')
    if node.newname in names:
        raise SqlError("42710", f'constraint "{node.newname}" for domain {quote_name(domain.name)} already exists')
    checks = (replace(item, name=node.newname) if item.name == node.subname else item for item in domain.checks)
    return _altered(domain, replace(domain, checks=tuple(checks)))

"""A brokerage for the tests: the raw sources of a warehouse, as the benchmark of data integration (TPC-DI) has them.

Owns: the sources in PostgreSQL's SQL, the views over them (tests/sql/warehouse), a generator of three batches, the
statements that correct what earlier batches have said, and single changes of every table. The first batch is the
history; the others are days with new customers, trades and prices, and changes of those that there are. Raw values are
texts, as files have them: some are no numbers, some records are repeated, and some refer to nothing.
"""

from __future__ import annotations

import csv
import io
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Final, TypeVar

Row = tuple[object, ...]
_VIEWS: Final = Path(__file__).parents[1] / "sql" / "warehouse"
T = TypeVar("T")

TABLES: Final[Mapping[str, str]] = {
    "calendar": "day date PRIMARY KEY, week integer NOT NULL, holiday boolean NOT NULL",
    "industries": "id text PRIMARY KEY, name text NOT NULL, sector text NOT NULL",
    "trade_kinds": "id text PRIMARY KEY, name text NOT NULL, sells boolean NOT NULL",
    "tax_rates": "status smallint, country text, rate numeric(6, 5) NOT NULL, PRIMARY KEY (status, country)",
    "alert_rules": "id integer PRIMARY KEY, symbol text, valid_from date, valid_until date, low numeric(8, 2),"
    " high numeric(8, 2)",
    "wire": "batch integer, line integer, record text NOT NULL, PRIMARY KEY (batch, line)",
    "customer_records": "batch integer, line integer, at text, action text, customer text, tax_id text, family text,"
    " given text, gender text, tier text, born text, country text, city text, phone text, email text,"
    " PRIMARY KEY (batch, line)",
    "account_records": "batch integer, line integer, at text, action text, account text, customer text, broker text,"
    " tax_status text, name text, PRIMARY KEY (batch, line)",
    "staff": "id integer PRIMARY KEY, manager integer, given text, family text, job text, branch text, phone text",
    "leads_north": "lead text, family text, given text, city text, country text, income text, rating text, age text",
    "leads_south": "lead integer PRIMARY KEY, name text, city text, income_thousands numeric, rating integer,"
    " born date",
}
#: The layers of the warehouse over them, each a schema with views.
LAYERS: Final = ("bronze", "silver", "gold")
STREAMS: Final[Mapping[str, str]] = {
    "trade_events": "at text, trade text, status text, kind text, security text, quantity text, bid text,"
    " account text, executor text, price text, fee text, commission text, tax text",
    "cash_events": "at text, account text, amount text, note text",
    "market_events": "day text, symbol text, close text, high text, low text, volume text",
    "watch_events": "at text, customer text, symbol text, action text",
    "watch_cancellations": "at text, customer text, symbol text",
}

BATCHES: Final = (1, 2, 3)
_BEGIN: Final = date(2024, 7, 1)
_HISTORY: Final = 540
#: Days between two days of the market, and days of a later batch.
_MARKET: Final = 9
_LATER: Final = 5

_FAMILIES: Final = ("Abel", "Brandt", "Conrad", "Dietz", "Ebert", "Fink", "Geiger", "Hahn", "Jansen", "Kern", "Lutz")
_GIVEN: Final = ("Anna", "Boris", "Clara", "David", "Elsa", "Felix", "Greta", "Hugo", "Irma", "Jonas", "Karla")
_CITIES: Final = ("Aachen", "Basel", "Como", "Dijon", "Essen", "Gent", "Linz", "Metz", "Siena", "Trier")
_COUNTRIES: Final = ("DE", "CH", "IT", "FR", "AT", "BE")
_SECTORS: Final = ("Energy", "Food", "Health", "Rail", "Timber")
_NOUNS: Final = ("Mill", "Works", "Union", "Trust", "Harbour", "Forge", "Garden", "Bridge")
_BRANCHES: Final = ("east", "lake", "tower")
_KINDS: Final = (
    ("MB", "market buy", False),
    ("MS", "market sell", True),
    ("LB", "limit buy", False),
    ("LS", "limit sell", True),
    ("ST", "stop", True),
)


class Brokerage:
    """A seeded sequence of batches: ``scale`` 1 has some 6,000 rows. Batches are made in order."""

    def __init__(self, seed: int = 1, scale: int = 1) -> None:
        self._drawn = random.Random(seed)
        self.scale = scale
        self.companies = 12 * scale
        self.securities = 18 * scale
        self.employees = 45 * scale
        self.customers = 0
        self.accounts: list[tuple[int, int]] = []
        self.trades = 0
        self._open: list[tuple[int, datetime, list[str]]] = []
        self._prices: dict[str, float] = {}
        self._lines: dict[tuple[str, int], int] = {}
        self._today = _BEGIN

    def batch(self, number: int) -> dict[str, list[Row]]:
        """The rows of a batch, by source."""
        rows: dict[str, list[Row]] = {name: [] for name in (*TABLES, *STREAMS)}
        begin, days = self._today, _HISTORY if number == 1 else _LATER
        self._today = begin + timedelta(days)
        if number == 1:
            self._references(rows)
            self._staff(rows)
        self._wire(rows["wire"], number, begin, days)
        self._customers(rows, number, begin, days)
        self._leads(rows, number)
        self._market(rows["market_events"], begin, days)
        self._trades(rows, begin, days)
        self._watches(rows, begin, days)
        return rows

    # -- tables --------------------------------------------------------------------------------------------------------

    def _references(self, rows: dict[str, list[Row]]) -> None:
        days = [_BEGIN + timedelta(day) for day in range(_HISTORY + 40)]
        rows["calendar"] = [(day, day.isocalendar().week, day.weekday() == 6) for day in days]
        rows["industries"] = [
            (f"{_SECTORS[n // 2][0]}{n % 2}", f"{_SECTORS[n // 2]} {n % 2}", _SECTORS[n // 2]) for n in range(10)
        ]
        rows["trade_kinds"] = [*_KINDS]
        rows["tax_rates"] = [
            (status, country, f"0.{status}{place}5")
            for status in range(3)
            for place, country in enumerate(_COUNTRIES[:5])
        ]
        rows["alert_rules"] = [
            (
                number,
                self._symbol(),
                begin := self._day(_BEGIN, _HISTORY),
                begin + timedelta(self._below(200)),
                low := 20 + self._below(30),
                low + 10 + self._below(40),
            )
            for number in range(1, 30 * self.scale)
        ]

    def _staff(self, rows: dict[str, list[Row]]) -> None:
        for number in range(1, self.employees + 1):
            manager = 0 if number <= 2 else 1 + self._below(max(1, number // 3))
            family = None if number % 23 == 0 else self._of(_FAMILIES)
            job = "314" if number > 8 and self._below(3) else "100"
            phone = None if self._below(4) == 0 else f"555-{number:04}"
            rows["staff"].append((number, manager, self._of(_GIVEN), family, job, self._of(_BRANCHES), phone))

    def _wire(self, rows: list[Row], batch: int, begin: date, days: int) -> None:
        records: list[tuple[str, str]] = []
        for company in range(1, self.companies + 1):
            for change in range(1 + self._below(3) if batch == 1 else self._below(5) // 3):
                at = self._time(begin, 30 if batch == 1 and not change else days)
                records.append((at, self._company(company, change == 0 and batch == 1)))
        for number in range(1, self.securities + 1):
            for change in range(1 + self._below(2) if batch == 1 else self._below(5) // 3):
                at = self._time(begin + timedelta(31 if batch == 1 and not change else 0), days // 3 + 2)
                records.append((at, self._security(number)))
        quarters = range(1, 7) if batch == 1 else range(6, 6 + batch)
        for quarter in quarters:
            day = begin + timedelta(min(days - 1, 60 + 80 * (quarter - 1)))
            for company in range(1, self.companies + 1):
                if batch == 1 or self._below(3) == 0:
                    records.append((self._time(day, 1), self._report(company, 2024 + quarter // 4, 1 + quarter % 4)))
        records.append((self._time(begin, days), "XYZ of another kind"))
        for at, record in sorted(records):
            rows.append((batch, self._line("wire", batch), at + record))

    def _company(self, company: int, is_first: bool) -> str:
        status = "ACTV" if is_first or self._below(6) else "INAC"
        name = self.company_name(company)
        founded = "" if self._below(5) == 0 else f"{1900 + self._below(100)}0{1 + self._below(9)}11"
        rating = self._of(("AAA", "AA", "B+", "BB", ""))
        country = self._of(_COUNTRIES[:3]).lower() + "land"
        industry = f"{_SECTORS[company % 5][0]}{company % 2}"
        return f"CMP{company:010}{name:30}{status:4}{industry:2}{rating:4}{founded:8}{country:20}{self._person():25}"

    def _security(self, number: int) -> str:
        company = 1 + number % self.companies
        reference = f"{company:010}" if number % 3 else f"{self.company_name(company):30}"
        status = "INAC" if self._below(8) == 0 else "ACTV"
        dividend = f"{self._below(300) / 100:.2f}"
        return (
            f"SEC{symbol(number):8}{self._of(('COMMON', 'PREF_A')):6}{status:4}{'Share of ' + str(number):30}"
            f"{self._of(('NORTH', 'SOUTH')):6}{1000 + self._below(90_000):013}{'20010203':8}{dividend:12}{reference}"
        )

    def _report(self, company: int, year: int, quarter: int) -> str:
        reference = f"{company:010}" if company % 2 else f"{self.company_name(company):30}"
        revenue, earnings = self._below(9_000_000) / 100, self._below(1_000_000) / 100
        eps = self._below(900) / 100 - 1
        return f"FIN{year}{quarter}{revenue:17.2f}{earnings:17.2f}{eps:12.2f}{reference}"

    def company_name(self, company: int) -> str:
        """The name of a company."""
        return f"{_SECTORS[company % 5]} {_NOUNS[company % 8]} {company}"

    def _customers(self, rows: dict[str, list[Row]], batch: int, begin: date, days: int) -> None:
        new = (90 if batch == 1 else 6) * self.scale
        changes: list[tuple[str, str, int]] = []
        for _ in range(new):
            self.customers += 1
            at = self._moment(begin, max(1, days // 3))
            changes.append((at, "NEW", self.customers))
            self._open_accounts(rows, batch, at, self.customers)
        for _ in range((150 if batch == 1 else 14) * self.scale):
            action = "INACT" if self._below(12) == 0 else "UPDCUST"
            changes.append(
                (self._moment(begin + timedelta(days // 3), days - days // 3), action, 1 + self._below(self.customers))
            )
        for at, action, customer in sorted(changes):
            record = self._customer(batch, at, action, customer)
            rows["customer_records"].append(record)
            if self._below(25) == 0:
                rows["customer_records"].append((batch, self._line("customer", batch), *record[2:]))
        for _ in range((40 if batch == 1 else 8) * self.scale):
            account, customer = self._of(self.accounts)
            self._account(
                rows,
                batch,
                self._moment(begin + timedelta(days // 2), days // 2 + 1),
                "UPDACCT",
                account,
                "" if self._below(3) else str(customer),
            )

    def _customer(self, batch: int, at: str, action: str, customer: int) -> Row:
        def sometimes(value: object) -> object:
            return value if action == "NEW" or self._below(3) == 0 else ""

        born = (
            self._of(("unknown", "")) if self._below(20) == 0 else f"{1950 + self._below(50)}-0{1 + self._below(9)}-15"
        )
        name = "x" + str(customer) if self._below(60) == 0 else self._of(("C", "")) + str(customer)
        return (
            batch,
            self._line("customer", batch),
            at,
            action,
            name,
            f"{customer:03}-77",
            sometimes(self._of(_FAMILIES).upper()),
            sometimes(" " + self._of(_GIVEN)),
            self._of(("F", "male", "?", None)),
            sometimes(str(1 + self._below(4))),
            born,
            sometimes(self._of(_COUNTRIES).lower()),
            sometimes(self._of(_CITIES)),
            f"+49 (0){customer} / 77",
            sometimes(f"C{customer}.{self._below(9)}@Mail.Example"),
        )

    def _open_accounts(self, rows: dict[str, list[Row]], batch: int, at: str, customer: int) -> None:
        for _ in range(1 + self._below(2)):
            account = len(self.accounts) + 1
            self.accounts.append((account, customer))
            self._account(rows, batch, at, "ADDACCT", account, str(customer))

    def _account(self, rows: dict[str, list[Row]], batch: int, at: str, action: str, account: int, owner: str) -> None:
        broker = "" if action != "ADDACCT" and self._below(2) else str(9 + self._below(self.employees - 8))
        tax = str(self._below(3)) if action == "ADDACCT" else ""
        line = self._line("account", batch)
        rows["account_records"].append(
            (
                batch,
                line,
                at,
                action,
                str(account),
                owner,
                broker,
                tax,
                f" {self._of(_NOUNS)} fund " if action == "ADDACCT" else None,
            )
        )

    def _leads(self, rows: dict[str, list[Row]], batch: int) -> None:
        for number in range((40 if batch == 1 else 5) * self.scale):
            rows["leads_north"].append(
                (
                    f"N{batch}{number}",
                    self._of(_FAMILIES),
                    self._of(_GIVEN),
                    self._of(_CITIES),
                    self._of(_COUNTRIES),
                    str(self._below(120) * 1000),
                    str(500 + self._below(300)),
                    self._of(("", "33", "51")),
                )
            )
        first = 1000 * batch * self.scale
        for number in range(first, first + (30 if batch == 1 else 4) * self.scale):
            rows["leads_south"].append(
                (
                    number,
                    f"{self._of(_FAMILIES)}, {self._of(_GIVEN)}",
                    self._of(_CITIES),
                    f"{self._below(1200) / 10}",
                    500 + self._below(300),
                    date(1950 + self._below(50), 3, 4),
                )
            )

    # -- streams -------------------------------------------------------------------------------------------------------

    def _market(self, rows: list[Row], begin: date, days: int) -> None:
        for day in range(0, days, _MARKET if days > _LATER else 1):
            for number in range(1, self.securities + 1):
                close = max(1.0, self._prices.get(symbol(number), 30 + number) * (0.95 + self._below(101) / 1000))
                self._prices[symbol(number)] = close
                row = (
                    str(begin + timedelta(day)),
                    symbol(number),
                    f"{close:.2f}",
                    f"{close * 1.03:.2f}",
                    f"{close * 0.98:.2f}",
                    str(self._below(5000)),
                )
                rows += [row] if self._below(40) else [row, (*row[:2], f"{close + 1:.2f}", *row[3:])]

    def _trades(self, rows: dict[str, list[Row]], begin: date, days: int) -> None:
        still = []
        for trade, placed, fields in self._open:
            still += self._close(rows, trade, placed, fields, begin, max(1, days - 1))
        self._open = still
        for _ in range((420 if days > _LATER else 40) * self.scale):
            self.trades += 1
            placed = datetime.fromisoformat(self._moment(begin + timedelta(days // 5), days - days // 5))
            account = 9_999 if self._below(150) == 0 else self._of(self.accounts)[0]
            fields = [
                self._of(_KINDS)[0],
                self._symbol(),
                str(10 + self._below(500)),
                f"{20 + self._below(60)}.50",
                str(account),
            ]
            events = rows["trade_events"]
            events.append((str(placed), str(self.trades), "sbmt", *fields, "", "", "", "", ""))
            if fields[0] in ("LB", "LS"):
                events.append((str(placed + timedelta(hours=1)), str(self.trades), "PNDG", *fields, "", "", "", "", ""))
            if self._below(8):
                left = max(1, (self._today - placed.date()).days)
                self._open += self._close(rows, self.trades, placed, fields, placed.date(), min(9, left))
            else:
                self._open.append((self.trades, placed, fields))

    def _close(
        self, rows: dict[str, list[Row]], trade: int, placed: datetime, fields: list[str], begin: date, days: int
    ) -> list[tuple[int, datetime, list[str]]]:
        """Ends a trade, or leaves it open."""
        if self._below(6) == 0:
            return [(trade, placed, fields)]
        at = max(datetime.fromisoformat(self._moment(begin, days)), placed) + timedelta(hours=2)
        if self._below(10) == 0:
            rows["trade_events"].append((str(at), str(trade), "CNCL", *fields, "desk", "", "", "", ""))
            return []
        quantity, price = int(fields[2]), 20 + self._below(6000) / 100
        amount = -quantity * price if fields[0] in ("MB", "LB") else quantity * price
        event = (
            str(at),
            str(trade),
            "CMPT",
            *fields,
            self._of(("desk", "robot")),
            f"{price:.2f}",
            f"{self._below(500) / 100:.2f}",
            f"{quantity * price / 200:.2f}",
            self._of(("", "1.50")),
        )
        rows["trade_events"] += [event] * (2 if self._below(30) == 0 else 1)
        if self._below(15):
            shown = "n/a" if self._below(40) == 0 else f"{amount:.2f}"
            rows["cash_events"].append((str(at), fields[4], shown, f"trade:{trade}"))
        if self._below(3) == 0:
            rows["cash_events"].append((str(at), fields[4], str(self._below(900)), "deposit:bank"))
        return []

    def _watches(self, rows: dict[str, list[Row]], begin: date, days: int) -> None:
        for _ in range((150 if days > _LATER else 20) * self.scale):
            customer, at = str(1 + self._below(self.customers)), self._moment(begin, days)
            watched = self._symbol()
            rows["watch_events"].append((at, customer, watched, self._of(("ACTV", "ACTV", "ACTV", "CNCL"))))
            if self._below(4) == 0:
                later = str(datetime.fromisoformat(at) + timedelta(1 + self._below(90)))
                rows["watch_cancellations"].append((later, customer, watched.lower()))

    # -- changes -------------------------------------------------------------------------------------------------------

    def corrections(self, batch: int) -> Iterator[str]:
        """Statements that come with a batch: what earlier ones had wrong, and what has gone."""
        of, before = f"batch < {batch}", f"batch = {batch - 1}"
        yield (
            f"UPDATE raw.customer_records SET at = (at::timestamp - interval '3 days')::text WHERE {of}"
            f" AND line % 29 = {batch}"
        )
        yield f"UPDATE raw.customer_records SET city = 'Ulm', tier = '2' WHERE {of} AND line % 31 = {batch}"
        yield f"DELETE FROM raw.customer_records WHERE {of} AND action = 'UPDCUST' AND line % 19 = {batch}"
        yield f"DELETE FROM raw.account_records WHERE {of} AND action = 'UPDACCT' AND line % 7 = {batch}"
        yield (
            f"UPDATE raw.wire SET record = overlay(record placing 'INAC' from 59 for 4) WHERE {before}"
            f" AND substr(record, 16, 3) = 'CMP' AND line % 9 = {batch}"
        )
        yield "DELETE FROM raw.leads_north"
        yield f"UPDATE raw.leads_south SET rating = rating - 20 WHERE lead % 5 = {batch}"
        yield f"UPDATE raw.staff SET branch = 'lake', job = '314' WHERE id % 17 = {batch}"
        yield f"UPDATE raw.staff SET manager = 1 WHERE manager = {batch + 1}"
        yield f"DELETE FROM raw.staff WHERE id % 29 = {batch}"
        yield f"UPDATE raw.tax_rates SET rate = rate + 0.01 WHERE status = {batch - 1}"

    def change(self) -> str:
        """A statement that changes one row, or a few, of one table or stream."""
        return self._of([*self._changes()])

    def _changes(self) -> Iterator[str]:
        customer, account = 1 + self._below(self.customers), self._of(self.accounts)[0]
        line, at, day = self._below(200), self._moment(self._today - timedelta(100), 90), self._day(_BEGIN, _HISTORY)
        trade, new = 1 + self._below(self.trades), self._line("customer", 9)
        yield f"UPDATE raw.customer_records SET tier = '3', family = 'Zahn' WHERE batch = 1 AND line = {line}"
        yield f"UPDATE raw.customer_records SET at = '{at}' WHERE batch = 1 AND line = {line}"
        yield f"DELETE FROM raw.customer_records WHERE batch = 1 AND line = {line}"
        yield (
            f"INSERT INTO raw.customer_records (batch, line, at, action, customer, city, tier) VALUES"
            f" (9, {new}, '{at}', 'UPDCUST', '{customer}', 'Cham', '1')"
        )
        yield (
            f"INSERT INTO raw.customer_records (batch, line, at, action, customer) VALUES"
            f" (9, {new}, '{at}', 'INACT', 'C{customer}')"
        )
        yield f"UPDATE raw.account_records SET broker = '{9 + self._below(30)}' WHERE account = '{account}'"
        yield (
            f"INSERT INTO raw.account_records VALUES (9, {new}, '{at}', 'updacct', '{account}', '{customer}', '', '',"
            f" 'moved')"
        )
        yield f"DELETE FROM raw.account_records WHERE account = '{account}' AND action = 'UPDACCT'"
        yield (
            f"UPDATE raw.wire SET record = overlay(record placing 'BB  ' from 65 for 4) WHERE line = {line}"
            f" AND substr(record, 16, 3) = 'CMP'"
        )
        yield f"DELETE FROM raw.wire WHERE batch = 1 AND line = {line} AND substr(record, 16, 3) <> 'CMP'"
        yield f"UPDATE raw.staff SET manager = {1 + self._below(5)} WHERE id = {6 + self._below(30)}"
        yield f"UPDATE raw.staff SET given = upper(given), phone = NULL WHERE id = {1 + self._below(40)}"
        yield f"UPDATE raw.alert_rules SET low = low + 5 WHERE id = {1 + self._below(29)}"
        yield f"INSERT INTO raw.alert_rules VALUES ({100_000 + new}, '{self._symbol()}', '{day}', '{day}', 1, 5)"
        yield f"UPDATE raw.calendar SET holiday = NOT holiday WHERE day = '{day}'"
        yield f"UPDATE raw.industries SET sector = 'Other' WHERE id = '{self._of(_SECTORS)[0]}1'"
        yield f"UPDATE raw.tax_rates SET rate = 0.2 WHERE country = '{self._of(_COUNTRIES)}'"
        yield (
            f"INSERT INTO raw.leads_south VALUES ({90_000 + new}, 'Hahn, Hugo', 'Linz', 99.5, 700, '1970-01-01')"
            f" ON CONFLICT (lead) DO UPDATE SET rating = 1"
        )
        yield f"INSERT INTO raw.cash_events VALUES ('{at}', '{account}', '-12.25', 'trade:{trade}')"
        yield (
            f"INSERT INTO raw.market_events VALUES ('{day}', '{self._symbol()}', '{30 + self._below(30)}', '70.00',"
            f" '9.00', '9999')"
        )
        yield (
            f"INSERT INTO raw.trade_events VALUES ('{at}', '{trade}', 'CMPT', 'MB', '{self._symbol()}', '50',"
            f" '31.00', '{account}', 'desk', '30.00', '1.00', '2.00', '')"
        )
        yield f"INSERT INTO raw.watch_cancellations VALUES ('{at}', '{customer}', '{self._symbol().lower()}')"
        yield f"INSERT INTO raw.watch_events VALUES ('{at}', '{customer}', '{self._symbol()}', 'ACTV')"

    # -- values --------------------------------------------------------------------------------------------------------

    def _below(self, bound: int) -> int:
        return self._drawn.randrange(bound)

    def _of(self, values: Sequence[T]) -> T:
        return self._drawn.choice(values)

    def _person(self) -> str:
        return f"{self._of(_GIVEN)} {self._of(_FAMILIES)}"

    def _symbol(self) -> str:
        return symbol(1 + self._below(self.securities))

    def _day(self, begin: date, days: int) -> date:
        return begin + timedelta(self._below(days))

    def _moment(self, begin: date, days: int) -> str:
        return f"{self._day(begin, days)} {8 + self._below(9):02}:{self._below(60):02}:00"

    def _time(self, begin: date, days: int) -> str:
        return self._moment(begin, days).replace("-", "").replace(" ", "-").replace(":", "")

    def _line(self, source: str, batch: int) -> int:
        self._lines[source, batch] = self._lines.get((source, batch), 0) + 1
        return self._lines[source, batch]


def symbol(number: int) -> str:
    """The symbol of a security."""
    return f"{_NOUNS[number % 8][:2].upper()}{number}"


def lines(rows: Sequence[Row]) -> bytes:
    """Rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def warehouse() -> dict[str, str]:
    """The queries of all views of the warehouse by name, those that are read before those that read them."""
    found = {}
    for layer in LAYERS:
        text = (_VIEWS / f"{layer}.sql").read_text(encoding="utf-8")
        for name, query in re.findall(r"^CREATE MATERIALIZED VIEW (\S+) AS\n(.*?);\n", text, re.DOTALL | re.MULTILINE):
            found[name] = query
    return found

"""The table of hosts: which line applies to a client, and errors in lines."""

from __future__ import annotations

import ipaddress

import pytest

from server.login.authentication import address_of
from server.net.hba import DEFAULT, Client, read_table

TABLE = r"""
# kind    database       user          address              method
host      all            mallory       all                  reject
local     all            all                                trust
hostssl   shop,"all"     +staff, "+x"  10.0.0.0/8           scram-sha-256   # one line
hostssl   sameuser       all           192.168.1.5  255.255.255.255  scram-sha-256 clientcert=verify-ca
hostnossl samerole       all           fd00::/8             scram-sha-256
host      all            all \
          127.0.0.1/32   trust
hostssl   all            all           fd01:: ffff::        cert
hostgssenc all           all           all                  reject
"""


def line(user: str, database: str, address: str, tls: bool = True) -> int | None:
    """The line that applies to a client; eve is a member of staff, and of the role with the name of database shop."""
    groups = {"staff", "shop"} if user == "eve" else set()
    rule = read_table(TABLE, "t").find(Client(ipaddress.ip_address(address), tls, user, database, groups.__contains__))
    return None if rule is None else rule.line


def test_the_first_line_that_speaks_of_a_client() -> None:
    assert not read_table(TABLE, "t").mistakes
    assert line("mallory", "shop", "127.0.0.1") == 3
    assert line("eve", "shop", "10.1.2.3") == 5
    assert line("eve", "all", "10.1.2.3") == 5
    assert line("eve", "other", "10.1.2.3") is None
    assert line("eve", "shop", "10.1.2.3", tls=False) is None
    assert line("bob", "shop", "10.1.2.3") is None
    assert line("+x", "shop", "10.1.2.3") == 5
    assert line("bob", "bob", "192.168.1.5") == 6
    assert line("bob", "shop", "192.168.1.5") is None
    assert line("eve", "shop", "fd00::1", tls=False) == 7
    assert line("bob", "shop", "fd00::1", tls=False) is None
    assert line("bob", "shop", "127.0.0.1") == 8
    assert line("bob", "shop", "fd01::1") == 10


def test_what_lines_say() -> None:
    rules = {rule.line: rule for rule in read_table(TABLE, "t").rules}
    assert (rules[6].verify, rules[10].verify, rules[8].verify) == ("verify-ca", "verify-full", "")
    assert (rules[5].address, rules[5].mask) == ("10.0.0.0", "255.0.0.0")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hosts all all 127.0.0.1/32 trust", 'invalid connection type "hosts"'),
        ("host,local all all 127.0.0.1/32 trust", "multiple values specified for connection type"),
        ("host", "end-of-line before database specification"),
        ("host all", "end-of-line before role specification"),
        ("host all all", "end-of-line before IP address specification"),
        ("host all all 127.0.0.1", "end-of-line before netmask specification"),
        ("host all all 127.0.0.1/32", "end-of-line before authentication method"),
        ("host all all 127.0.0.1 255.0.255.0 trust", 'invalid IP mask "255.0.255.0"'),
        ("host all all 127.0.0.1/33 trust", 'invalid IP address "127.0.0.1/33"'),
        ("host all all example.org trust", "host names are not supported"),
        ("host all all samehost trust", "samehost is not supported"),
        ("host all @users 127.0.0.1/32 trust", '"@users": included files'),
        ("host /db all 127.0.0.1/32 trust", '"/db": included files and regular expressions'),
        ("host all all 127.0.0.1/32 md5", 'authentication method "md5" is not supported'),
        ("host all all 127.0.0.1/32 cert", "cert authentication is only supported on hostssl connections"),
        ("host all all all scram-sha-256 clientcert=verify-ca", 'only be configured for "hostssl" rows'),
        ("hostssl all all all scram-sha-256 clientcert=1", 'invalid value for clientcert: "1"'),
        ("hostssl all all all cert clientcert=verify-ca", 'clientcert only accepts "verify-full"'),
        ("hostssl all all all scram-sha-256 map=x", 'authentication option "map" is not supported'),
        ("hostssl all all all scram-sha-256 x", "not in name=value format: x"),
        ("host all all all trust", "trust is for loopback addresses only"),
        ("hostssl all all 127.0.0.1/7 trust", "trust is for loopback addresses only"),
        ("hostssl all all ::/0 trust", "trust is for loopback addresses only"),
    ],
)
def test_mistakes_are_told_with_their_line(text: str, message: str) -> None:
    table = read_table(f"# a comment\nlocal all all trust\n{text}\n", "hba.conf")
    assert [(item.line, message in item.message) for item in table.mistakes] == [(3, True)], table.mistakes
    assert table.complaint().startswith("hba.conf, line 3: ")


def test_the_default_trusts_this_machine_and_wants_proof_of_others() -> None:
    table = read_table(DEFAULT, "default")
    assert not table.mistakes

    def method(address: str, tls: bool) -> str | None:
        rule = table.find(Client(address_of(address), tls, "eve", "shop", lambda name: False))
        return None if rule is None else rule.method

    assert method("127.0.0.1", tls=False) == "trust"
    assert method("::1", tls=True) == "trust"
    assert method("::ffff:127.0.0.1", tls=False) == "trust"
    assert method("10.0.0.1", tls=True) == "scram-sha-256"
    assert method("fe80::1%eth0", tls=True) == "scram-sha-256"
    assert method("10.0.0.1", tls=False) is None

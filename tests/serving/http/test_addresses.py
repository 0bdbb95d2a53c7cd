"""One visitor, one address, however the server's socket writes it."""

from __future__ import annotations

import pytest

from serving.http.access import network_of, unmapped

pytestmark = pytest.mark.attack("connections")


@pytest.mark.parametrize(
    ("address", "plain"),
    [("::ffff:127.0.0.1", "127.0.0.1"), ("10.0.0.1", "10.0.0.1"), ("::1", "::1"), ("testclient", "testclient")],
)
def test_an_address_of_ipv4_is_one_on_ipv6_too(address: str, plain: str) -> None:
    assert unmapped(address) == plain


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("unknown", "", False),
    ],
)
def test_a_network_of_ipv6_counts_as_one_visitor(one: str, other: str, same: bool) -> None:
    assert (network_of(one) == network_of(other)) is same

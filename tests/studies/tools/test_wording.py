"""Numbers and lists as sentences have them."""

import pytest

from qkvtrace.errors import UserError
from qkvtrace.studies.asked import some
from qkvtrace.studies.tools.wording import listed, percent, then_and_now


def test_lists_end_with_and() -> None:
    assert [listed(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


def test_shares_are_percentages() -> None:
    assert [percent(share) for share in (0, 0.874, 1)] == ["0 %", "87 %", "100 %"]


def test_what_was_is_said_where_it_is_another_epoch() -> None:
    assert then_and_now("0.2", "0.1", 0, 30) == "0.2 at epoch 30 (0.1 at epoch 0)"
    assert then_and_now("0.2", "0.2", 30, 30) == "0.2 at epoch 30"


def test_some_is_one_or_more_each_once() -> None:
    assert some("words", ["b", "a", "b"]) == ["b", "a"]
    with pytest.raises(UserError, match=r"study\.words: expected one or more, found none"):
        some("words", [])

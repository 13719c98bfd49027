from __future__ import annotations

from runcert.differing import Answer, differences_of, differences_text


def answer(call: str, said: str, permitted: bool | None = True) -> Answer:
    return Answer(call, f"returned {said}", said, permitted)


def test_answers_are_compared_call_by_call_and_each_way_is_shown_once() -> None:
    one = [answer("find('a')", "None"), answer("find('b')", "True"), answer("find('c')", "True"), answer("create(x)", "1")]
    other = [answer("find('a')", "None"), answer("find('b')", "False"), answer("find('c')", "False"), answer("create(x)", "2")]
    found = differences_of({"one": one, "other": other}, 7)

    assert (found.calls, found.differing, [way.number for way in found.ways]) == (4, 3, [2, 4])
    assert [way.alike for way in found.ways] == [2, 1]
    assert found.forbidden == ()


def test_what_is_not_permitted_is_named_and_what_follows_is_not_judged() -> None:
    one = [answer("find('a')", "None"), answer("find('b')", "None")]
    other = [answer("find('a')", "True", False), answer("find('b')", "True", None)]
    found = differences_of({"one": one, "other": other}, 7)
    text = differences_text(found)

    assert found.forbidden == ("other",)
    assert "other  True  <- not permitted" in text
    assert "other  True  (after an answer that was not permitted)" in text
    assert "the contract permits" not in text


def test_an_answer_that_breaks_the_contract_counts_where_all_give_it() -> None:
    same = [answer("find('a')", "True", False)]
    found = differences_of({"one": same, "other": same}, 7)

    assert found.differing == 0
    assert found.forbidden == ("one", "other")
    assert differences_text(found).count("<- not permitted") == 2


def test_long_answers_are_cut() -> None:
    found = differences_of({"one": [answer("find('a')", "x" * 500)], "other": [answer("find('a')", "None")]}, 7)

    assert max(len(line) for line in differences_text(found).splitlines()) < 120

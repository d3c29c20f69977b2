import pytest

from bertsmith.foundation.errors import BertsmithError, InputError, Stopped, near_match, unknown_name


def test_an_input_error_tells_rule_received_and_what_to_do() -> None:
    error = InputError("mask_rate must lie in [0, 1].", 15, "Did you mean 0.15?")
    assert str(error) == "mask_rate must lie in [0, 1]. Received: 15. Did you mean 0.15?"
    assert (error.rule, error.received, error.do) == ("mask_rate must lie in [0, 1]", "15", "Did you mean 0.15?")


@pytest.mark.parametrize(("do", "shown"), [("Try x", "Try x."), ("Try x.", "Try x."), ("Run `x`", "Run `x`")])
def test_what_to_do_ends_with_one_mark(do: str, shown: str) -> None:
    assert InputError("a", "b", do).do == shown


def test_errors_made_on_purpose_have_one_base_and_bad_input_is_a_value_error() -> None:
    assert issubclass(InputError, BertsmithError)
    assert issubclass(InputError, ValueError)
    assert issubclass(Stopped, BertsmithError)
    assert not issubclass(Stopped, ValueError)


@pytest.mark.parametrize(
    ("name", "near"), [("wordpeice", "wordpiece"), ("bep", "bpe"), ("bpe", "bpe"), ("zzz", None), ("", None)]
)
def test_the_nearest_known_name_is_found_and_a_far_one_is_not(name: str, near: str | None) -> None:
    assert near_match(name, iter(["wordpiece", "bpe", "unigram"])) == near


def test_an_unknown_name_shows_the_list_and_the_nearest_entry() -> None:
    assert str(unknown_name("algorithm", "wordpeice", {"wordpiece", "bpe"})) == (
        "algorithm must be one of: bpe, wordpiece. Received: wordpeice. Did you mean wordpiece?"
    )
    assert unknown_name("algorithm", "zzz", ["wordpiece", "bpe"]).do == "Use one of: bpe, wordpiece."

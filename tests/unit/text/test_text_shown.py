"""Text in a line of a message."""

from bertsmith.text.shown import counted, counted_of, listed_names, on_one_line


def test_line_ends_and_control_characters_are_shown_escaped_and_all_else_as_it_is() -> None:
    assert on_one_line("a\nb\tc\x1b[1m\u2028d\x85") == "a\\nb\\tc\\x1b[1m\\u2028d\\x85"
    assert on_one_line("café \\n \u0631\u064a 😀") == "café \\n \u0631\u064a 😀"


def test_one_is_counted_as_one() -> None:
    assert counted(1, "row") == "1 row"
    assert [counted(number, "row has", "rows have") for number in (0, 1, 1009)] == [
        "0 rows have", "1 row has", "1,009 rows have",
    ]  # fmt: skip
    assert counted_of(1, 1009, "row", "is cut", "are cut") == "1 of 1,009 rows is cut"
    assert counted_of(1, 1, "row", "is cut", "are cut") == "1 of 1 row is cut"
    assert counted_of(2, 1009, "row", "is cut", "are cut") == "2 of 1,009 rows are cut"


def test_a_name_with_a_comma_stands_in_quotes_among_others() -> None:
    assert listed_names(["film", "long, really", 'a "b", c']) == 'film, "long, really", "a ""b"", c"'

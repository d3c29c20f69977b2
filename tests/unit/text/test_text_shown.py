"""Text in a line of a message."""

from bertsmith.text.shown import on_one_line


def test_line_ends_and_control_characters_are_shown_escaped_and_all_else_as_it_is() -> None:
    assert on_one_line("a\nb\tc\x1b[1m\u2028d\x85") == "a\\nb\\tc\\x1b[1m\\u2028d\\x85"
    assert on_one_line("café \\n \u0631\u064a 😀") == "café \\n \u0631\u064a 😀"

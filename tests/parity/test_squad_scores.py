"""Exact match and F1 as the official scorers count them, on questions that were published and counted by hand.

The scorers themselves are on no package index. Golds stand as SQuAD 1.1 and 2.0 and XQuAD publish them.
"""

from fractions import Fraction

import pytest

from bertsmith.objectives.answer_scores import AnswerScores

STADIUM = [
    "Santa Clara, California",
    "Levi's Stadium",
    "Levi's Stadium in the San Francisco Bay Area at Santa Clara, California.",
]
TEAM = ["Denver Broncos", "Denver Broncos", "Denver Broncos"]
NUMBER = ["24–10", "24–10", "24–10"]
CENTURIES = ["10th and 11th centuries", "in the 10th and 11th centuries", "10th and 11th centuries"]


@pytest.mark.parametrize(
    ("answer", "golds", "exact", "f1"),
    [
        ("Denver Broncos", TEAM, 1, Fraction(1)),
        ("the Denver Broncos.", TEAM, 1, Fraction(1)),
        ("DENVER BRONCOS (AFC)", TEAM, 0, Fraction(4, 5)),
        ("Carolina Panthers", TEAM, 0, Fraction(0)),
        # levis stadium in santa clara: five of eleven words of the third answer, none of which is an article.
        ("Levi's Stadium in Santa Clara", STADIUM, 0, Fraction(2 * 5, 5 + 11)),
        ("Levis Stadium", STADIUM, 1, Fraction(1)),
        ("Santa Clara", STADIUM, 0, Fraction(2 * 2, 2 + 3)),
        # The dash of the score is none of ASCII's, so it stays, and a hyphen goes.
        ("24–10", NUMBER, 1, Fraction(1)),
        ("24-10", NUMBER, 0, Fraction(0)),
        ("the 11th and 10th centuries", CENTURIES, 0, Fraction(1)),
        ("the 10th century", CENTURIES, 0, Fraction(2 * 1, 2 + 4)),
        ("", CENTURIES, 0, Fraction(0)),
        # Questions of SQuAD 2.0 that have no answer.
        ("", [], 1, Fraction(1)),
        ("Norman", [], 0, Fraction(0)),
    ],
)
def test_english_answers(answer: str, golds: list[str], exact: int, f1: Fraction) -> None:
    found = AnswerScores.of([answer], [golds])
    assert found.exact.tolist() == [exact]
    assert found.f1.tolist() == [pytest.approx(float(f1))]


@pytest.mark.parametrize(
    ("answer", "gold", "squad", "mlqa"),
    [
        # The comma of Arabic stays with its word in SQuAD's scorer, and goes in MLQA's.
        ("سانتا كلارا، كاليفورنيا", "سانتا كلارا، كاليفورنيا", (1, Fraction(1)), (1, Fraction(1))),
        # In MLQA's, California holds an article, which parts it in two.
        ("سانتا كلارا", "سانتا كلارا، كاليفورنيا", (0, Fraction(2, 5)), (0, Fraction(2 * 2, 2 + 4))),
        # The article must agree in SQuAD's, and counts for nothing in MLQA's.
        ("برونكو", "البرونكو", (0, Fraction(0)), (1, Fraction(1))),
        ("المدينة القديمة", "مدينة قديمة", (0, Fraction(0)), (1, Fraction(1))),
        # Within a word it goes too, and parts it.
        ("رجال", "رج", (0, Fraction(0)), (1, Fraction(1))),
        ("بالكتاب", "ب كتاب", (0, Fraction(0)), (1, Fraction(1))),
        # Vowel marks must agree in both.
        ("مَدينة", "مدينة", (0, Fraction(0)), (0, Fraction(0))),
        # A full stop is of ASCII.
        ("مدينة.", "مدينة", (1, Fraction(1)), (1, Fraction(1))),
        ("«مدينة»", "مدينة", (0, Fraction(0)), (1, Fraction(1))),
    ],
)
def test_arabic_answers(answer: str, gold: str, squad: tuple[int, Fraction], mlqa: tuple[int, Fraction]) -> None:
    for scorer, (exact, f1) in (("squad", squad), ("mlqa-ar", mlqa)):
        found = AnswerScores.of([answer], [[gold]], scorer)
        assert found.exact.tolist() == [exact], scorer
        assert found.f1.tolist() == [pytest.approx(float(f1))], scorer

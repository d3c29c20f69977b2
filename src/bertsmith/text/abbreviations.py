"""Words that a full stop follows without ending the sentence, and words that open one, as data.

The abbreviations are in lower case and without their last stop. Single letters and dotted letters (``U.S.``, ``z.B.``)
need no entry: `sentences` knows them by their shape.
"""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Titles before a name; words between the parts of one thought; Arabic for doctor, professor, page, part, printing.
NEVER_LAST = _words(
    """
    mr mrs ms mx dr prof rev hon fr gen col maj capt cpt cmdr lt sgt adm gov sen rep pres supt mme mlle mgr messrs v vv
    hr st ste mt sra dra dott ing
    e.g i.e eg ie cf vs viz approx ca bzw
    د أ ا ص ج ط هـ.ق أ.د ا.د
    """
)

BEFORE_NUMBER = _words(
    """
    no nos nr n° vol vols fig figs p pp ch chap sec sect art arts eq eqs op ex par ed c b d r fl n l ll
    jan feb mar apr jun jul aug sep sept oct nov dec
    """
)

SELDOM_LAST = _words(
    """
    jr sr inc ltd co corp bros dept univ ave blvd assn a.m p.m ph.d m.d
    jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thurs fri
    """
)

OPENING_WORDS = _words(
    """
    The This That These Those There Then They He She It We You I A An In On At By To From For With Without As And But
    Or So If When While Where What Which Who Why How After Before During Since Until Although Though Because However
    Moreover Meanwhile Therefore Thus His Her Its Their Our My Your No Not Now Here Some Many Most Both Each All One
    Two Other Another Such Among Under Over According Also Only Even Yet Still Once Nearly Today
    Der Die Das Ein Eine Er Sie Es Wir Im Le La Les Il Elle Ils Un Une El Los Las
    """
)

"""A corpus of real text has the same bytes whether words are looked up or every sentence is encoded as a whole."""

from pathlib import Path

import pytest

from bertsmith.corpus.config import CorpusConfig
from bertsmith.corpus.corpus import Corpus
from bertsmith.corpus.prepare import prepare_corpus
from bertsmith.text.documents import Document
from bertsmith.tokenization.config import TokenizerConfig
from bertsmith.tokenization.training import train_tokenizer

# The first article of the Universal Declaration of Human Rights.
ARTICLES = [
    "All human beings are born free and equal in dignity and rights. They are endowed with reason and conscience and "
    "should act towards one another in a spirit of brotherhood.",
    "يُولَدُ جميعُ الناسِ أحرارًا متساوينَ في الكرامةِ والحقوقِ. وقد وُهِبوا عقلًا وضميرًا، وعليهم أن يعامل بعضهم بعضًا بروح الإخاء.",
    "כל בני אדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, "
    "לפיכך חובה עליהם לנהוג איש ברעהו ברוח של אחווה.",
    "تمام افراد بشر آزاد به دنیا می\u200cآیند و از لحاظ حیثیت و حقوق با هم برابرند.",
    "Все люди рождаются свободными и равными в своём достоинстве и правах. Они наделены разумом и совестью…",
    "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.",
    "Tous les êtres humains naissent libres et égaux en dignité et en droits. «Ils sont doués de raison», dit-on.",
    "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. İnsanlar akıl ve vicdana sahiptirler.",
    "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền.",
    "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।",
    "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ",
    "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。",
    "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 부여받았다.",
    "glad😊 to see you ❤️ ok 👨‍👩‍👧 🇩🇪 -- [MASK] or <mask>?  Two  spaces, cafe\u0301, ﬁne ①.",
]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    import pydoc_data.topics

    return [*ARTICLES, *(text for _, text in sorted(pydoc_data.topics.topics.items()))][:80]


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
def test_the_bytes_of_real_text_in_many_scripts(
    tmp_path: Path, texts: list[str], algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TokenizerConfig.model_validate({"algorithm": algorithm, "vocab_size": 1200})
    tokenizer = train_tokenizer(lambda: texts, config)

    def prepared(name: str) -> Corpus:
        documents = [Document(text=text, source="made.txt") for text in texts]
        return prepare_corpus(documents, tokenizer, tmp_path / name, CorpusConfig(workers=1))

    looked_up = prepared("looked-up")
    assert tokenizer._known_words is not None
    monkeypatch.setitem(tokenizer.__dict__, "_known_words", None)
    encoded = prepared("encoded")
    assert looked_up.manifest.train.tokens > 20_000
    assert looked_up.fingerprint == encoded.fingerprint
    for name in looked_up.manifest.files:
        assert (looked_up.folder / name).read_bytes() == (encoded.folder / name).read_bytes()

import pytest

from penstock.config.topic_pattern import TopicPattern, translate


@pytest.mark.parametrize(
    ("java", "topics", "others"),
    [
        ("logs.*", ["logs", "logs.a"], ["my.logs"]),
        ("a|b", ["a", "b"], ["ab"]),
        (r"\Qa.b\E.*", ["a.b", "a.bc"], ["axb"]),
        (r"\Qa.b", ["a.b"], ["axb"]),
        (r"(?<env>dev|prod)\.\k<env>", ["dev.dev"], ["dev.prod"]),
        (r"\p{Alpha}+\p{Digit}", ["abc1"], ["1abc"]),
        (r"[\p{Lower}_]+", ["a_b"], ["A_b"]),
        (r"\P{Digit}+", ["abc"], ["a1"]),
        (r"\pL+", ["abc"], ["a1"]),
        ("(?i)abc", ["ABC"], ["abd"]),
        ("(?i:a)b", ["Ab"], ["AB"]),
        (r"\Aab\z", ["ab"], ["abc"]),
        ("[a&b|c~]+", ["a"], ["d"]),
        ("[^_].*", ["a_b"], ["_ab"]),
        (r"[\[\]a-c]x", ["ax"], ["dx"]),
        ("(?!__).*", ["a"], ["__a"]),
        (r"a{2,3}\x41\u0042", ["aaAB"], ["aAB"]),
        (r"(a)\1", ["aa"], ["ab"]),
        ("[a-c]+?x", ["abx"], ["dx"]),
        (r"t\+x\-y", [], ["tx"]),
    ],
)
def test_a_java_pattern_matches_whole_topic_names(java, topics, others):
    pattern = TopicPattern().parse(java)
    assert [topic for topic in topics if not pattern.fullmatch(topic)] == []
    assert [topic for topic in others if pattern.fullmatch(topic)] == []


@pytest.mark.parametrize(
    ("java", "what"),
    [
        ("a*+", "the possessive quantifier `*+`"),
        ("a{2}+", "the possessive quantifier `{2}+`"),
        ("(?>a)", "the group `(?>a...`"),
        ("(?P<x>a)", "the group `(?P<...`"),
        ("(?x)a b", "the group `(?x)...`"),
        ("a(?i)b", "the flag `(?i)` within a pattern (write it first, or as `(?i:...)`)"),
        ("[a[b]]", "a class within a class"),
        ("[a&&b]", "the intersection `&&` of classes"),
        ("[+--]", "`--` within a class"),
        ("[]a]", "`]` as the first member of a class"),
        (r"\R", "the escape `\\R`"),
        (r"\Ga", "the escape `\\G`"),
        (r"\p{IsGreek}", "the class `\\p{IsGreek}`"),
        (r"[\P{Digit}]", "the class `\\P{Digit}` within [...]"),
        ("a{,3}", "a count without its lower bound"),
    ],
)
def test_what_python_cannot_follow_is_refused_by_name(java, what):
    with pytest.raises(ValueError, match=r"^must") as caught:
        translate(java)
    assert str(caught.value) == f"must do without {what}, which Penstock cannot follow"


@pytest.mark.parametrize("java", ["(", "[a", "a{99999999999}", "*a", r"(?<=a+)b", "(" * 5000 + ")" * 5000, ""])
def test_a_broken_pattern_is_told(java):
    with pytest.raises(ValueError, match=r"^must"):
        TopicPattern().parse(java)

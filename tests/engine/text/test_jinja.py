from __future__ import annotations

import re
from datetime import datetime

import jinja2
import pytest
from jinja2.exceptions import SecurityError

from engine.text.jinja import TemplateRefusal, compile_template, render_template


def output(source: str, **context: object) -> str:
    return render_template(compile_template(source), context)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{% for x in '123' %}{% if x == '2' %}{% continue %}{% endif %}{{ x }}{% endfor %}", "13"),
        ("{% for x in '123' %}{% if x == '2' %}{% break %}{% endif %}{{ x }}{% endfor %}", "1"),
        ("{% set n = namespace() %}{% for x in '12' %}{% set n.a = x %}{% endfor %}{{ n.a }}", "2"),
        ("a{% generation %}b{{ 1 }}{% endgeneration %}c", "ab1c"),
        ("  {% if true %}\nx\n  {% endif %}\ny", "x\ny"),
        ("{{ '<b> & é' }}", "<b> & é"),
        ("{{ missing }}{{ missing is defined }}", "False"),
        ("{{ {'b': 1, 'a': '<é>'} | tojson }}", '{"b": 1, "a": "<é>"}'),
        ("{{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }}", '{"a": 2, "b": 1}'),
        ("{{ {'a': [1]} | tojson(indent=1) }}", '{\n "a": [\n  1\n ]\n}'),
        ("{{ [1, 2] | tojson(separators=(',', ':')) }}", "[1,2]"),
        ("{{ 'é😀' | tojson(ensure_ascii=true) }}", '"\\u00e9\\ud83d\\ude00"'),
        ("{{ 'a\ufdd0' | tojson(ensure_ascii=true) }}", '"a\ufdd0"'),
        ("{{ 'ab' * 2 }}{{ 3 * 4 }}{{ 2 ** 3 }}", "abab128"),
    ],
)
def test_what_chat_templates_use(source: str, expected: str) -> None:
    assert output(source) == expected


def test_today() -> None:
    assert output("{{ strftime_now('%d %b %Y %j') }}") in {datetime.now().strftime("%d %b %Y %j")}
    assert re.fullmatch(r"\d\d:\d\d", output("{{ strftime_now('%H:%M') }}"))


def test_refusal_carries_the_message() -> None:
    with pytest.raises(TemplateRefusal, match="roles must alternate"):
        output("{{ raise_exception('roles must alternate') }}")


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.append(1) }}",
        "{{ 'x' * 10 ** 9 }}",
        "{{ 10 ** 9 * [1] }}",
        "{{ 9 ** 99999 }}",
        "{% for a in range(9999) %}{{ 'x' * 9999 }}{% endfor %}",
    ],
)
def test_the_sandbox_holds(source: str) -> None:
    with pytest.raises(SecurityError):
        output(source, messages=[])


def test_ranges_are_bounded() -> None:
    with pytest.raises(OverflowError):
        output("{% for x in range(10000000) %}{% endfor %}")


@pytest.mark.parametrize("source", ["{% if %}", "{{ x | nosuchfilter }}", "{% for %}", "{{"])
def test_faulty_sources(source: str) -> None:
    with pytest.raises(jinja2.TemplateError):
        compile_template(source)

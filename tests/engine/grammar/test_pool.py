from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future

import pytest

from engine.errors import GenerationFailed
from engine.grammar.mask import Matcher, Vocabulary, allocate
from engine.grammar.pool import MatcherPool
from engine.text.tokenizer import Tokenizer
from tests.engine.grammar.drive import schema_grammar

WAIT = 10.0


@pytest.fixture
def pool(vocabulary: Vocabulary) -> Iterator[MatcherPool]:
    made = MatcherPool(vocabulary, capacity=3)
    yield made
    made.close()


def const(value: object) -> str:
    return schema_grammar({"const": value})


def test_a_grammar_is_compiled_once_and_every_request_has_its_own_matcher(
    pool: MatcherPool, tokenizer: Tokenizer
) -> None:
    matchers = [pool.open(const("ab")) for _ in range(5)]
    first, second, *_ = [future.result(WAIT) for future in matchers]
    for token in tokenizer.encode('"ab"', add_special_tokens=False):
        assert first.consume(token)
    assert (first.is_finished, second.is_finished) == (True, False)
    late = pool.open(const("ab"))
    assert late.done()
    assert not late.result().is_finished
    assert pool.compiled == 1


def test_the_cache_is_bounded_and_drops_the_oldest(pool: MatcherPool) -> None:
    for value in (1, 2, 3, 1, 4):
        pool.open(const(value)).result(WAIT)
    assert pool.compiled == 4
    pool.open(const(1)).result(WAIT)
    assert pool.compiled == 4
    pool.open(const(2)).result(WAIT)
    assert pool.compiled == 5


def test_a_bad_grammar_fails_alone_and_is_tried_again(pool: MatcherPool) -> None:
    bad = json.dumps({"grammars": [{"lark_grammar": "start: nothing"}]})
    for _ in range(2):
        with pytest.raises(GenerationFailed, match="nothing"):
            pool.open(bad).result(WAIT)
    assert pool.compiled == 2
    assert pool.open(const(1)).result(WAIT).error is None


def busy(pool: MatcherPool) -> threading.Event:
    """Keep all workers waiting until the event is set."""
    release = threading.Event()
    for _ in range(2):
        pool._workers.submit(release.wait, WAIT)
    return release


def test_cancelling_before_the_compile_ends_hurts_nobody_else(pool: MatcherPool) -> None:
    release = busy(pool)
    gone, stays = pool.open(const("x")), pool.open(const("x"))
    told: list[Future[Matcher]] = []
    gone.add_done_callback(told.append)
    assert gone.cancel()
    release.set()
    assert stays.result(WAIT).error is None
    assert told == [gone]
    with pytest.raises(CancelledError):
        gone.result(WAIT)
    assert pool.compiled == 1


def test_closing_cancels_what_waits(pool: MatcherPool) -> None:
    release = busy(pool)
    waiting = pool.open(const("never"))
    pool.close()
    with pytest.raises(CancelledError):
        waiting.result(WAIT)
    release.set()


def test_many_threads_at_once(pool: MatcherPool, tokenizer: Tokenizer) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(20):
                text = f"w{(number + turn) % 5}"
                matcher = pool.open(const(text)).result(WAIT)
                for token in tokenizer.encode(f'"{text}"', add_special_tokens=False):
                    assert matcher.consume(token)
                assert matcher.is_finished
        except BaseException as error:  # reported by the main thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_masks_of_matchers_that_share_a_prototype(
    pool: MatcherPool, vocabulary: Vocabulary, tokenizer: Tokenizer
) -> None:
    matchers = [pool.open(const("ab")).result(WAIT) for _ in range(4)]
    masks = allocate(4, vocabulary)
    pool.fill(matchers, masks)
    assert (masks == masks[0]).all()
    quote = tokenizer.encode('"', add_special_tokens=False)[0]
    assert masks[0, quote // 32] == 1 << quote % 32

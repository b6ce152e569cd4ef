"""CEL of others ends with its own time, memory and output, never with ours."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from provisioner.expressions import ExpressionAnswer, ExpressionOutcome, ExpressionQuestion, Language, Library
from provisioner.expressions import evaluator as evaluators
from provisioner.expressions.child import Child, Lost
from provisioner.expressions.evaluator import ask, ask_all, limited
from provisioner.expressions.limits import MAX_CHILDREN, MAX_LOST, MAX_WORDS, MEMORY_BYTES
from provisioner.expressions.questions import Message
from tests.support.folders import ROOT
from tests.support.memory import resident_bytes
from tests.support.patience import scaled, wait_for

PLAIN = Language.of({"version": "string", "names": "list<string>", "any": "dyn"})
RULES = Language.of({"self": "dyn"}, Library.RULES)
DATA = {"version": "v1.36.3", "names": ["a", "b"], "any": {"list": [1, 2, 3]}}
ENDED, NOT_COMPILED = ExpressionOutcome.ENDED, ExpressionOutcome.NOT_COMPILED
TIMES = 26
DOUBLING = "[version]" + ".map(a, a + a)" * TIMES + ".size() > 0"
SHARED = "[version]" + ".map(a, [a, a])" * TIMES
SLOW_REGEX = "[" + "1," * 99 + "1]"
TOO_MUCH_MEMORY = f"it needs more memory than {MEMORY_BYTES // 2**20} MiB"
# Each is a hostile expression that compiles.
EVALUATED = {
    "doubling text": DOUBLING,
    "doubling lists that are compared": f"{SHARED} == {SHARED}",
    "doubling lists that are searched": f"version in {SHARED}.map(a, dyn(a)) || {SHARED} != {SHARED}",
    "doubling bytes": "[bytes(version)]" + ".map(a, a + a)" * TIMES + ".size() > 0",
    "doubling lists by addition": "[names]" + ".map(a, a + a)" * TIMES + ".size() > 0",
    "comprehensions in comprehensions": f"{SLOW_REGEX}.all(a, {SLOW_REGEX}.all(b, {SLOW_REGEX}.all(c, "
    f"{SLOW_REGEX}.all(d, true))))",
    "regular expressions in comprehensions": "any.texts.all(a, any.texts.all(b, "
    + " && ".join(["!a.matches('(x*)*(y|x)*z')"] * 40)
    + "))",
}
DEEP = 1990
# Each is one that is hostile to the compiler.
COMPILED = {
    "parentheses": "(" * DEEP + "1" + ")" * DEEP + " == 1",
    "open brackets": "[" * 4000,
    "closed brackets": "[" * DEEP + "]" * DEEP + " == []",
    "maps": "{1:" * 900 + "1" + "}" * 900 + " == 1",
    "macros": "[1].all(a, " * 300 + "true" + ")" * 300,
    "conditions": "true ? true : " * 280 + "true",
    "fields": "any" + ".a" * 1900 + " == 1",
    "indexes": "any" + "[0]" * 1300 + " == 1",
    "sums": "version + " * 390 + "version == version",
    "a long number": "9" * 3900 + " == 1",
    "a long text": "'" + "a" * 3900,
    "has of has": "has(" * 900,
    "comments": "//" * 1900,
    "other characters": "'\U0010ffff' == " + "'\u00e9'" * 1000,
    "half a character": "'\ud800' == ''",
    "a null character": "'\0' == ''",
}


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """No child and no memory of what ended one before."""
    evaluators._begin_anew()
    yield
    evaluators.end_children()


def one(text: str, data: dict[str, Any] | None = None, language: Language = PLAIN) -> ExpressionAnswer:
    (found,) = ask(language, [text], DATA if data is None else data)
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_an_expression_is_evaluated_on_the_variables_of_its_language() -> None:
    texts = ["version == 'v1.36.3'", "names.size() > 2", "names[9] == ''", "nobody == 1", "version", "1 +"]
    found = ask(PLAIN, texts, DATA)
    assert [it.outcome for it in found] == ["value", "value", "failed", "not-compiled", "value", "not-compiled"]
    assert [it.is_true for it in found] == [True, False, False, False, False, False]
    assert [it.value for it in found[:2]] == [True, False]
    assert (found[4].value, found[4].type) == ("v1.36.3", "string")


def test_an_expression_can_be_compiled_alone() -> None:
    found = ask(PLAIN, ["names.size() > 2", "names.size()"], wants_program=True)
    assert [(it.outcome, it.type) for it in found] == [
        (ExpressionOutcome.COMPILED, "bool"),
        (ExpressionOutcome.COMPILED, "int"),
    ]
    assert all(it.program for it in found)


def test_the_same_child_answers_again() -> None:
    one("true")
    before = evaluators.children()
    assert len(before) == 1
    for number in range(50):
        assert one(f"{number} == {number}").is_true
    assert evaluators.children() == before


@pytest.mark.parametrize("text", EVALUATED.values(), ids=EVALUATED)
def test_S26_a_hostile_expression_ends_in_words_and_costs_us_no_memory(text: str) -> None:
    one("true")
    before = resident_bytes()
    found = one(text, {**DATA, "any": {"texts": ["x" * 9000] * 99}})
    assert not found.is_true
    assert found.outcome in (ENDED, ExpressionOutcome.FAILED)
    assert found.words
    assert resident_bytes() - before < 16 * 2**20
    assert one("version.startsWith('v1')").is_true


def test_S26_the_expression_that_broke_the_worker_is_told_what_it_needs_too_much_of() -> None:
    assert (one(DOUBLING).outcome, one(DOUBLING).words) == (ENDED, TOO_MUCH_MEMORY)
    assert "it took longer than" in one(EVALUATED["doubling lists that are compared"]).words


@pytest.mark.parametrize("text", COMPILED.values(), ids=COMPILED)
def test_S26_a_text_that_is_hostile_to_the_compiler_is_refused_in_few_words(text: str) -> None:
    before = resident_bytes()
    (found,) = ask(PLAIN, [text])
    assert found.outcome in (ENDED, NOT_COMPILED, ExpressionOutcome.COMPILED)
    assert len(found.words) <= MAX_WORDS
    assert resident_bytes() - before < 16 * 2**20
    assert one("true").is_true


def test_S26_a_text_as_long_as_memory_is_not_taken_over() -> None:
    before = resident_bytes()
    found = one("version" + " + version" * 20)
    assert found.type == "string"
    long = ask(RULES, ["self.map(a, self.join('')).join('')"], {"self": ["x" * 4000] * 60})[0]
    assert (long.outcome, long.value, long.type) == (ExpressionOutcome.VALUE, None, "string")
    assert resident_bytes() - before < 16 * 2**20


def test_S26_an_answer_that_is_too_long_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    child = Child()
    pid = child.pid
    monkeypatch.setattr("provisioner.expressions.child.MAX_ANSWER_BYTES", 10)
    message = Message((PLAIN,), {0: pickle.dumps(DATA)}, ((0, "true", 0),))
    child.send(pickle.dumps(message), time.monotonic() + scaled(60))
    with pytest.raises(Lost, match="its answer has more than"):
        child.receive(time.monotonic() + scaled(60))
    assert not is_alive(pid)


def test_S26_a_question_that_is_too_long_is_not_asked() -> None:
    (found,) = ask(PLAIN, ["true"], {**DATA, "any": "x" * 9 * 2**20})
    assert found.outcome is ENDED
    assert evaluators.children() == []


def test_S26_values_that_are_nested_too_deeply_are_not_asked_about() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert one("true", {**DATA, "any": deep}).outcome is ENDED
    for _ in range(99_990):
        deep = deep[0]
    assert not one("size(any) == 7", {**DATA, "any": [deep] * 3}).is_true


def test_S26_a_hostile_expression_occupies_only_its_own_child() -> None:
    """16 threads ask, one of them something hostile: nobody else waits for it, whatever the machine is doing."""
    hostile = EVALUATED["doubling lists that are compared"]
    for _ in range(MAX_CHILDREN):
        one("true")
    is_over = threading.Event()
    answered_before: list[int] = []
    results: list[ExpressionAnswer] = []

    def attack() -> None:
        results.append(one(hostile))
        is_over.set()

    def innocent() -> None:
        count = 0
        while not is_over.is_set():
            assert one("names.size() == 2").is_true
            count += 1
        answered_before.append(count)

    threads = [threading.Thread(target=attack), *(threading.Thread(target=innocent) for _ in range(15))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(scaled(60))
    assert results[0].outcome is ENDED
    assert len(answered_before) == 15
    assert sum(answered_before) > 15, "they were answered while the hostile one was under way"
    assert len(evaluators.children()) <= MAX_CHILDREN


def test_S26_as_many_hostile_ones_as_children_hold_others_up_for_a_bounded_time() -> None:
    hostile = [f"{SHARED} == {SHARED} && {number} == {number}" for number in range(MAX_CHILDREN)]
    threads = [threading.Thread(target=one, args=(text,)) for text in hostile]
    for thread in threads:
        thread.start()
    # Long enough that it is either answered or told that it had to wait for a child for too long.
    (found,) = ask(PLAIN, ["names.size() == 2"], DATA, seconds=scaled(60))
    for thread in threads:
        thread.join(scaled(60))
    assert found.is_true or "no evaluator was free" in found.words
    assert one("names.size() == 2").is_true
    assert len(evaluators.children()) <= MAX_CHILDREN


def test_S26_what_ended_its_child_is_not_tried_on_the_same_data_again() -> None:
    assert one(DOUBLING).outcome is ENDED
    before = evaluators.children()
    assert one(DOUBLING).words == TOO_MUCH_MEMORY
    assert evaluators.children() == before
    # Other data is another question: nobody's object makes a rule fail for others.
    assert one("[version].map(a, a + a).size() == 1", {**DATA, "version": ""}).is_true


def test_S26_a_batch_costs_few_children() -> None:
    texts = [f"{DOUBLING} && {number} == {number}" for number in range(MAX_LOST + 4)]
    found = ask(PLAIN, [*texts, "true"], DATA)
    assert [it.outcome for it in found] == [ENDED] * (len(texts) + 1)
    assert found[-1].words == f"{MAX_LOST} other expressions on the same values passed their limits"


def test_S26_what_is_asked_in_one_piece_of_work_shares_its_time() -> None:
    with limited(0.0):
        assert one("true").outcome is ENDED
    assert one("true").is_true


def test_S26_a_child_gets_none_of_our_secrets_and_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SECRET_KEY", "hunter2")
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        child = Child()
        try:
            environment = Path(f"/proc/{child.pid}/environ").read_bytes()
            assert b"hunter2" not in environment
            assert [it.partition(b"=")[0] for it in environment.split(b"\0") if it] == [b"PYTHONPATH"]
            files = sorted(os.listdir(f"/proc/{child.pid}/fd"), key=int)
            assert files == ["0", "1", "2"]
            limits = Path(f"/proc/{child.pid}/limits").read_text()
            wanted = {"Max address space": str(MEMORY_BYTES), "Max file size": "0", "Max core file size": "0"}
            for name, most in wanted.items():
                (line,) = [it for it in limits.splitlines() if it.startswith(name)]
                assert line[len("Max address space         ") :].split()[:2] == [most, most], line
        finally:
            child.end()


ASKING = """
import sys, threading, time
sys.path.insert(0, {root!r})
from provisioner.expressions import Language
from provisioner.expressions.evaluator import ask, children
ask(Language.of({{"version": "string"}}), ["true"], {{"version": ""}})
shared = '["a"]' + ".map(a, [a, a])" * 28
slow = lambda: ask(Language.of({{"version": "string"}}), [shared + " == " + shared], {{"version": ""}})
threading.Thread(target=slow, daemon=True).start()
end = time.monotonic() + 30
while len(children()) < 2 and time.monotonic() < end:  # until the first one is busy
    ask(Language.of({{"version": "string"}}), ["true"], {{"version": ""}})
print(*children(), flush=True)
time.sleep(30)
"""


def test_S26_children_end_when_their_parent_is_killed() -> None:
    """The idle one at the end of its input, the busy one at the end of its time."""
    with subprocess.Popen([sys.executable, "-c", ASKING.format(root=str(ROOT))], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(is_alive, pids))
        parent.send_signal(signal.SIGKILL)
    wait_for(lambda: [pid for pid in pids if is_alive(pid)], "the children end", is_so=lambda alive: not alive)


def test_S26_a_fork_asks_children_of_its_own_and_leaves_ours_alone() -> None:
    one("true")
    ours = evaluators.children()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            found = one("version == 'v1.36.3'")
            os.write(writing, f"{found.is_true} {set(ours) & set(evaluators.children())}".encode())
            evaluators.end_children()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(reading, 100) == b"True set()"
    os.close(reading)
    os.close(writing)
    assert one("true").is_true
    assert evaluators.children() == ours


def test_S26_a_child_that_was_killed_is_an_answer_in_words_and_is_replaced() -> None:
    one("true")
    (pid,) = evaluators.children()
    os.kill(pid, signal.SIGKILL)
    found = one("names.size() == 2")
    assert found.is_true or found.words
    assert one("names.size() == 2 && true").is_true
    assert pid not in evaluators.children()


def test_S26_a_child_that_has_grown_leaves_after_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    one("true")
    before = evaluators.children()
    large = {**DATA, "any": ["x" * 1000] * 5000}
    found = [one(f"any.map(a, a + a + a + a).size() == 5000 && {number} == {number}", large) for number in range(3)]
    assert all(it.is_true or it.words for it in found)
    after = [Path(f"/proc/{pid}/statm").read_text().split()[1] for pid in evaluators.children()]
    assert all(int(pages) * resource.getpagesize() < MEMORY_BYTES // 2 for pages in after), before


def deaths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The children that are ended from now on."""
    found: list[int] = []
    end = Child.end

    def counted(child: Child) -> int:
        found.append(child.pid)
        return end(child)

    monkeypatch.setattr(Child, "end", counted)
    return found


def test_questions_of_many_languages_about_many_values_are_answered_in_their_order() -> None:
    other = Language.of({"self": "int"}, Library.RULES)
    asked = [
        question
        for number in range(50)
        for question in (
            ExpressionQuestion(other, "self > 20", {"self": number}),
            ExpressionQuestion(PLAIN, f"version + '{number}'", DATA),
            ExpressionQuestion(PLAIN, "names.size()"),
            ExpressionQuestion(other, "self.x > 20", {"self": number}),
        )
    ]
    found = ask_all(asked)
    assert [it.value for it in found[::4]] == [number > 20 for number in range(50)]
    assert [it.value for it in found[1::4]] == [f"v1.36.3{number}" for number in range(50)]
    assert {(it.outcome, it.type) for it in found[2::4]} == {(ExpressionOutcome.COMPILED, "int")}
    assert {it.outcome for it in found[3::4]} == {NOT_COMPILED}


def test_values_that_several_languages_read_have_the_type_that_each_says() -> None:
    data = {"self": {"a": 1}}
    types = ("dyn", "map<string,dyn>", "map<string,int>", "map<string,string>", "string")
    asked = [
        ExpressionQuestion(Language.of({"self": it}), "self.a == 1" if it != "string" else "self == ''", data)
        for it in types
    ]
    alone = [ask(it.language, [it.text], dict(data))[0] for it in asked]
    assert ask_all(asked) == alone
    assert [it.is_true for it in alone] == [True, True, True, False, False]


def test_many_questions_take_few_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    send = Child.send

    def counted(child: Child, message: bytes, deadline: float) -> None:
        sent.append(len(message))
        send(child, message, deadline)

    monkeypatch.setattr(Child, "send", counted)
    texts = [f"self.size() > {number}" for number in range(20)]
    data = [{"self": "x" * number} for number in range(100)]
    assert all(it.is_bool for it in ask_all([ExpressionQuestion(RULES, text, it) for it in data for text in texts]))
    assert len(sent) == 1
    large = [{"self": f"{number}" + "x" * 300_000} for number in range(10)]
    assert all(it.is_true for it in ask_all([ExpressionQuestion(RULES, text, it) for it in large for text in texts]))
    assert len(sent) <= 1 + len(large)
    assert max(sent) < 600_000


def test_S26_a_hostile_expression_among_harmless_ones_costs_only_its_own_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = deaths(monkeypatch)
    texts = [f"version.size() >= {number % 3}" for number in range(10)]
    texts = [*texts, DOUBLING, *(f"{text} || {number} > 0" for number, text in enumerate(texts))]
    data = [{**DATA, "version": f"v{number}"} for number in range(100)]
    found = ask_all([ExpressionQuestion(PLAIN, text, it) for it in data for text in texts], seconds=60)
    hostile = found[10 :: len(texts)]
    assert {it.outcome for it in hostile} == {ENDED}
    assert [it.words for it in hostile[:MAX_LOST]] == [TOO_MUCH_MEMORY] * MAX_LOST
    assert {it.words for it in hostile[MAX_LOST:]} == {f"it passed its limits {MAX_LOST} times on other values"}
    assert all(it.is_true for place, it in enumerate(found) if place % len(texts) != 10)
    assert len(set(ended)) == MAX_LOST


def test_S26_a_hostile_expression_costs_few_children_in_a_whole_piece_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = deaths(monkeypatch)
    with limited(60):
        for number in range(20):
            data = {**DATA, "version": f"v{number}"}
            found = ask_all([ExpressionQuestion(PLAIN, text, data) for text in ("true", DOUBLING, "names.size() == 2")])
            assert [it.outcome for it in found] == ["value", "ended", "value"]
    assert len(set(ended)) == MAX_LOST
    assert one(DOUBLING, {**DATA, "version": "other"}).words == TOO_MUCH_MEMORY, "the next piece tries it again"


def test_S26_values_that_cannot_be_asked_about_cost_only_their_own_answers() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    data = [DATA, {**DATA, "any": deep}, DATA, {**DATA, "any": "x" * 9 * 2**20}, {**DATA, "version": "v2"}]
    found = ask_all([ExpressionQuestion(PLAIN, "version.startsWith('v')", it) for it in data])
    assert [it.outcome for it in found] == ["value", "ended", "value", "ended", "value"]
    for _ in range(99_990):
        deep = deep[0]


def test_S26_what_expressions_leave_behind_ends_no_other_that_reads_the_same_values() -> None:
    """CEL keeps what an expression made as long as the values that it read."""
    large = {**DATA, "any": ["x" * 1000] * 500}
    texts = [f"any.map(a, a + a + a + a).size() == 500 && {number} == {number}" for number in range(20)]
    assert [it.words for it in ask(PLAIN, texts, large) if not it.is_true] == []


def test_S26_slow_expressions_use_up_the_time_of_a_piece_of_work_and_quick_ones_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = [ExpressionQuestion(PLAIN, f"names.size() > {number}", DATA) for number in range(400)]
    fifty = "[" + "1," * 49 + "1]"
    same = " && ".join(["a == b"] * 10)  # many times what an answer takes without being charged, on any machine
    slow = f"{fifty}.all(a, {fifty}.all(b, {same}))"
    ask_all([*many, ExpressionQuestion(PLAIN, slow, DATA)])
    # No deadline of the wall clock comes, however busy the machine is: only the children's processor time counts.
    an_hour_from_now = time.monotonic() + 3600
    monkeypatch.setattr(evaluators, "time", SimpleNamespace(monotonic=lambda: an_hour_from_now))
    with limited(0.05):  # which the quick ones alone take several times
        for _ in range(100):
            assert all(it.is_bool for it in ask_all(many))
    with limited(0.05):
        # How many fit depends on the machine.
        outcomes = (one(f"{slow} && {number} == {number}").outcome for number in range(5000))
        assert next(outcomes) is ExpressionOutcome.VALUE
        assert next((it for it in outcomes if it is not ExpressionOutcome.VALUE), None) is ENDED
    assert one(slow).is_true


def test_S26_only_an_expression_over_the_iteration_budget_says_so_and_no_value_that_reads_like_it() -> None:
    language, words = Language.of({"m": "map<string, string>"}), "Iteration budget exceeded"
    looping = "[0,1,2,3,4,5,6,7,8,9].all(a, " * 7 + "true" + ")" * 7
    asked = [looping, f"m['{words}!'] == 'a'", "m.all(key, m[key + '!'] == 'a')"]
    found = ask(language, asked, {"m": {words: "a"}})
    assert [each.outcome for each in found] == [ExpressionOutcome.FAILED] * 3
    assert [each.exceeds for each in found] == [True, False, False]


def test_S26_an_answer_that_nobody_asked_for_is_read_by_nobody() -> None:
    message = pickle.dumps(Message((PLAIN,), {0: pickle.dumps(DATA)}, ((0, "true", 0), (0, "1 == 2", 0))))
    # Both answers have to be there when the first one is read; how long that takes is the machine's to say.
    for patience_seconds in (0.5, 1.0, 2.0, 4.0, 8.0, 16.0):
        child = Child()
        child.send(message, time.monotonic() + scaled(60))
        time.sleep(patience_seconds)
        child.receive(time.monotonic() + scaled(60))
        if child._unread:
            break
        child.end()
    with pytest.raises(Lost, match="was not asked for"):
        child.send(message, time.monotonic() + scaled(60))
    assert not is_alive(child.pid)


def test_S26_processor_time_alone_ends_an_expression(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Those of the wall clock come later in any case: here they never come."""
    (tmp_path / "patient.py").write_text(
        "from provisioner.expressions import limits\n"
        "limits.WALL_SECONDS = 3600.0\n"
        "from provisioner.expressions import process\n"
        "process.main()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("provisioner.expressions.child.MODULE", "patient")
    monkeypatch.setattr(evaluators, "WALL_SECONDS", scaled(60))
    evaluators.end_children()
    (found,) = ask(PLAIN, [f"{SHARED} == {SHARED} && 1 == 1"], DATA, seconds=scaled(60))
    evaluators.end_children()
    assert found.words == "it took longer than 1 s of processor time"

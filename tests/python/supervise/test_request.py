"""`trapline.request`: a finding names the request, and the same request is refused the next time."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import trapline
from trapline._library import current, diagnose
from trapline._supervise import work
from word_table import look_up, words


def fault_of(name: str, word: int, **given: object) -> trapline.DeviceAssertError:
    """The fault of a request that looks up this word."""
    with pytest.raises(trapline.DeviceAssertError) as caught, trapline.request(name, **given):
        look_up(word)
    return caught.value


def test_a_finding_names_the_request():
    error = fault_of("job-1", 12)
    assert type(error) is trapline.DeviceAssertError
    assert error.summary == words(12)
    assert error.finding["sample"] == {"request": "job-1"}
    assert "= sample:  request job-1\n" in diagnose.render(error.finding)


def test_outside_of_requests_none_is_named():
    with trapline.request("done"):
        look_up(2)
    with pytest.raises(trapline.DeviceAssertError) as caught:
        look_up(12)
    assert "sample" not in caught.value.finding


def test_a_place_that_was_reported_names_each_request_by_itself():
    names = [fault_of(f"job-{number}", 20).finding["sample"] for number in range(3)]
    assert names == [{"request": "job-0"}, {"request": "job-1"}, {"request": "job-2"}]


def test_the_same_content_is_refused_and_another_is_not():
    first = fault_of("a", 12, content=b"12")
    with pytest.raises(trapline.RequestRefused) as refused, trapline.request("b", content="12"):
        raise AssertionError("it was worked on")
    assert str(refused.value) == f"this request caused a fault before (request a): {words(12)}"
    assert refused.value.finding == {
        "code": first.finding["code"],
        "summary": words(12),
        "sample": {"request": "b"},
    }
    with trapline.request("a", content=b"2"):
        assert look_up(2).shape == (2, 4)


def test_without_content_the_identifier_is_what_makes_it_the_same():
    fault_of("job-7", 12)
    with pytest.raises(trapline.RequestRefused), trapline.request("job-7"):
        pass
    with trapline.request("job-8"):
        pass


def test_requests_without_a_name_are_never_the_same():
    for _ in range(2):
        with pytest.raises(trapline.DeviceAssertError) as caught, trapline.request() as one:
            look_up(12)
        assert type(caught.value) is trapline.DeviceAssertError
        assert caught.value.finding["sample"]["request"] == one.identifier


def test_a_fault_that_the_program_handles_refuses_nothing():
    for _ in range(2):
        with trapline.request("kept"), pytest.raises(trapline.DeviceAssertError):
            look_up(12)


def test_other_exceptions_refuse_nothing():
    for _ in range(2):
        with pytest.raises(KeyError), trapline.request("kept"):
            raise KeyError("x")


def test_a_request_within_a_request_is_named_and_both_are_refused():
    whole, part = trapline.request("batch", content="b"), trapline.request("part", content="p")
    with pytest.raises(trapline.DeviceAssertError) as caught, whole, part:
        look_up(12)
    assert caught.value.finding["sample"] == {"request": "part"}
    for content in "bp":
        with pytest.raises(trapline.RequestRefused), trapline.request(content=content):
            pass


def test_tasks_and_their_threads_know_their_own_request():
    async def serve(number: int) -> str:
        with pytest.raises(trapline.DeviceAssertError) as caught, trapline.request(f"task-{number}"):
            await asyncio.sleep(0.01)
            await asyncio.to_thread(look_up, 30 + number)
        assert caught.value.summary == words(30 + number)
        return caught.value.finding["sample"]["request"]

    async def all_at_once() -> list[str]:
        return await asyncio.gather(*map(serve, range(8)))

    assert asyncio.run(all_at_once()) == [f"task-{number}" for number in range(8)]


def test_threads_know_their_own_request():
    together = threading.Barrier(4)

    def serve(number: int) -> object:
        with pytest.raises(trapline.DeviceAssertError) as caught, trapline.request(f"thread-{number}"):
            together.wait(30)
            look_up(40 + number)
        return caught.value.finding["sample"]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(serve, range(4)))
    assert found == [{"request": f"thread-{number}"} for number in range(4)]


def test_a_thread_without_context_names_the_only_request_as_likely_and_does_not_refuse_it():
    with ThreadPoolExecutor(1) as pool:
        for _ in range(2):
            with pytest.raises(trapline.DeviceAssertError) as caught, trapline.request("alone"):
                pool.submit(look_up, 12).result()
            assert type(caught.value) is trapline.DeviceAssertError
            assert caught.value.finding["sample"] == {"request": "alone", "likely": True}


def test_of_several_in_flight_a_thread_without_context_names_none():
    other = work.begin("other", "0" * 32)
    current.suspend(other)
    try:
        raised = pytest.raises(trapline.DeviceAssertError)
        with ThreadPoolExecutor(1) as pool, raised as caught, trapline.request("one"):
            pool.submit(look_up, 12).result()
    finally:
        work.end(other)
    assert "sample" not in caught.value.finding


def test_what_a_device_reports_late_is_certain_where_nothing_else_can_have_made_the_call():
    numbers = iter(range(10, 99))
    current.number_by(lambda: next(numbers))
    try:
        one = work.begin("one", "0" * 32)
        assert current.of_fault(late=True, number=10) == ("one", True)
        assert current.of_fault(late=True, number=9) == ("one", False), "a call made before it began"
        assert current.of_fault(late=True) == ("one", False), "a call without a mark"
        current.suspend(one)
        two = work.begin("two", "1" * 32)
        assert current.of_fault(late=True, number=10) is None
        work.end(two)
        current.resume(one)
        assert current.of_fault(late=True, number=10) == ("one", False), "the other may have made it"
        work.end(one)
        with trapline.request("three"):
            assert current.of_fault(late=True, number=10) == ("three", False), "one may have made it"
            assert current.of_fault(late=True, number=11) == ("three", True)
    finally:
        current.number_by(None)


def test_what_a_device_reports_late_is_not_taken_for_the_request_in_hand():
    with trapline.request("one"):
        assert current.of_fault(late=True) == ("one", False)
        part = work.begin("part", "0" * 32)
        assert current.of_fault(late=True) == ("one", False)
        work.end(part)
    first = work.begin("first", "0" * 32)
    current.suspend(first)
    with trapline.request("second"):
        assert current.of_fault(late=True) is None
        assert current.of_fault(late=False) == ("second", True)
    work.end(first)


def test_a_task_that_outlives_its_request_is_not_taken_for_it():
    async def run() -> object:
        async def later() -> None:
            await asyncio.sleep(0.05)
            look_up(12)

        with trapline.request("over"):
            task = asyncio.create_task(later())
            await asyncio.sleep(0)
        with pytest.raises(trapline.DeviceAssertError) as caught:
            await task
        return caught.value.finding.get("sample")

    assert asyncio.run(run()) is None


def test_an_exception_that_ends_the_program_names_the_request(programs, tmp_path):
    reports = tmp_path / "reports"
    reports.mkdir()
    done = programs.run(
        """
        import torch, trapline
        with trapline.request("last one"):
            torch.ones(2, 3) @ torch.ones(4, 5)
        """,
        TRAPLINE_REPORT_DIR=str(reports),
    )
    assert done.returncode == 1, done.stderr
    found = [json.loads(file.read_text()) for file in reports.glob("finding*.json")]
    assert [one["findings"][0]["sample"] for one in found] == [{"request": "last one"}], done.stderr
    assert found[0]["findings"][0]["code"] == "TL201"


def test_the_checks_of_data_at_hand_name_it_too():
    with pytest.raises(trapline.DeviceAssertError) as caught, trapline.request("ids", content="ids"):
        trapline.check_ids([1, 12], 10)
    assert caught.value.finding["sample"] == {"request": "ids"}
    with pytest.raises(trapline.RequestRefused), trapline.request(content="ids"):
        pass


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a\nb\r\0c\x1b[31m", "a?b??c?[31m"),
        ("x" * 10_000_000, "x" * 128),
        ("\ud800", "?"),
        ("größe 7", "größe 7"),
        (7, "7"),
    ],
)
def test_a_hostile_identifier_can_stand_in_a_line(given, kept):
    with pytest.raises(trapline.DeviceAssertError) as caught, trapline.request(given):
        look_up(12)
    assert caught.value.finding["sample"]["request"] == kept


def test_a_request_can_be_used_again_and_nested_in_itself():
    one = trapline.request("twice")
    with one, one:
        assert current.working_on().identifier == "twice"
    with one:
        pass
    assert current.working_on() is None
    assert not current.is_any()

"""docs/howto/follow-one-link-on-aws.md, command by command, with the functions as released on an emulator."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.patient_clients import patient_clients
from linkwatch_pipeline_tests.cloud.test_recovery import DEAD_LETTER_ALARM, fail_until_given_up, work, would_alarm
from linkwatch_pipeline_tests.cloud.timed_sqs import TimedSqs
from linkwatch_pipeline_tests.cloud.visited_world import visited_world
from linkwatch_pipeline_tests.deploy.templates import read_template, resources
from linkwatch_pipeline_tests.entrypoints.functions import functions_on
from linkwatch_pipeline_tests.entrypoints.terminal import Terminal

PAGE = Path(__file__).resolve().parents[2] / "docs/howto/follow-one-link-on-aws.md"
COMMAND = re.compile(r"^\$ linkwatch (.+)\n((?:(?!\$|```).+\n)*)", re.MULTILINE)


def test_one_link_is_checked_over_the_queue_fails_on_purpose_and_comes_back(
    ministack: Cloud, tmp_path: Path, terminal: Terminal
) -> None:
    page = iter(COMMAND.findall(PAGE.read_text(encoding="utf-8")))

    def next_command() -> str:
        """Play the page's next command, which says what the page shows, if it shows anything; what it said."""
        words, shown = next(page)
        said = terminal.fine(*words.split()).out
        assert not shown or said == shown, words
        return said

    with (
        patient_clients(),
        visited_world({"docs.example.com": {"/guide": 200}}, tmp_path) as world,
        functions_on(ministack, world) as functions,
    ):
        next_command()  # register
        next_command()  # enqueue
        work(functions)
        assert '"0:guide"' in next_command()
        assert functions.depth(functions.queue_url) == 0
        terminal.fine("enqueue", "guide")
        next_command()  # enqueue
        assert fail_until_given_up(functions) == 5
        next_command()  # dead-letters
        assert would_alarm(DEAD_LETTER_ALARM, functions.depth(functions.dead_letter_url))
        next_command()  # redrive
        assert not would_alarm(DEAD_LETTER_ALARM, functions.depth(functions.dead_letter_url))
        functions.clock.offset += timedelta(seconds=5)  # a person types more slowly: the host has rested
        work(functions)
        assert '"1:guide"' in next_command()
        work(functions)
        assert (functions.waiting(), world.visits) == ([], 2)
        assert [*page] == []


def test_whoever_breaks_the_checker_on_purpose_is_warned_before_and_told_how_to_put_it_back() -> None:
    page = PAGE.read_text(encoding="utf-8")
    warned, broken = page.index("This breaks the checks of the whole stack"), page.index("--handler not.there")
    handler = resources(read_template("application"), "AWS::Lambda::Function")["CheckFunction"]["Handler"]
    assert warned < broken < page.index(f"--handler {handler}")


def test_a_check_by_hand_waits_in_the_queue_for_its_host_and_is_dropped_if_its_link_changed(
    timed_sqs: TimedSqs, tmp_path: Path, terminal: Terminal
) -> None:
    """While no time passes: however slow this machine is, the host does not rest enough meanwhile."""
    with (
        patient_clients(),
        visited_world({"docs.example.com": {"/a": 200, "/b": 200}}, tmp_path) as world,
        functions_on(timed_sqs.cloud, world, timed_sqs.new_clock()) as functions,
    ):
        for name in ("a", "b"):
            words = ("--owner", "docs", "--notify", "docs@example.com")
            terminal.fine("register", name, f"http://docs.example.com/{name}", *words)
            terminal.fine("enqueue", name)
        records = functions.waiting()
        functions.acknowledge(records, functions.call("check", {"Records": records}))
        assert world.visits == 1  # the other one waits for the host in the queue, as a copy
        assert functions.depth(functions.queue_url, "ApproximateNumberOfMessagesDelayed") == 1
        assert functions.depth(functions.dead_letter_url) == 0
        for name in ("a", "b"):
            terminal.fine("update", name, "--expect", "something")
        functions.call("check", {"Records": records})
        assert (functions.waiting(), world.visits) == ([], 1)
        assert "its link was changed" in functions.log.getvalue()

"""`linkwatch worker`: a process that works on the shared queue until SIGTERM."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from threading import Event
from uuid import uuid4

import pytest

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.queue.messages import write_message
from linkwatch_pipeline.adapters.queue.sqs import SqsQueue
from linkwatch_pipeline.domain.planning import Pace
from linkwatch_pipeline.domain.runs import CheckJob
from linkwatch_pipeline.domain.timestamps import week_start
from linkwatch_pipeline.use_cases.work_on_queue import begin_on_queue
from linkwatch_pipeline_tests.builders import a_link
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.shared_worker import make_shared
from linkwatch_pipeline_tests.cloud.tables import make_table, store_on
from linkwatch_pipeline_tests.cloud.timed_sqs import make_queues
from linkwatch_pipeline_tests.entrypoints.terminal import Terminal

SECOND = timedelta(seconds=1)
PACE = Pace(concurrency=20, mean_service=2 * SECOND, cooldown=SECOND)
HAND_CHECK = CheckJob(job_id="1:guide", run_id="", link_id="guide", sequence=1, config_version=1)
COMMAND = "import sys; from linkwatch_pipeline.entrypoints.cli import main; sys.exit(main())"


def test_it_checks_what_the_queue_brings_and_ends_when_told(ministack: Cloud, tmp_path: Path) -> None:
    client = ministack.client("sqs")
    table, (url, dead) = make_table(ministack), make_queues(client, f"work-{uuid4().hex}")
    store = store_on(ministack.client("dynamodb"), table, clock=SystemClock())
    queue = SqsQueue(client, queue_url=url, dead_letter_url=dead, wait=timedelta(0))
    now = SystemClock().now()
    for name in ("a", "b"):  # our own policy refuses them before any connection, so that nothing leaves this machine
        link = a_link(name, f"http://127.0.0.1/{name}", active_since=week_start(now) - timedelta(days=1))
        store.save_link(link, replaces=None)
    begin_on_queue(store, queue, week_start(now), pace=PACE, now=now)
    settings = {
        "LINKWATCH_PROFILE": "aws",
        "LINKWATCH_CONTACT": "links@example.com",
        "LINKWATCH_TABLE": table,
        "LINKWATCH_QUEUE_URL": url,
        "LINKWATCH_DEAD_LETTER_QUEUE_URL": dead,
        "LINKWATCH_ALLOW_ENDPOINT": "true",
    }
    worker = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "--home", str(tmp_path / "home"), "worker", "--concurrency", "2"],
        env={**os.environ, **ministack.env, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        pause = Event()
        while len(seen := list(store.observations())) < 2 and worker.poll() is None:
            pause.wait(0.2)
        worker.send_signal(signal.SIGTERM)
        # It ends after the poll that goes on: a last message may be given back then.
        client.send_message(QueueUrl=url, MessageBody="not ours")
        printed, said = worker.communicate(timeout=60)
    finally:
        worker.kill()
    assert worker.returncode == 0, said
    assert [each.reason for each in seen] == ["blocked_address", "blocked_address"]
    lines = [json.loads(line) for line in printed.splitlines()]
    checked = [line for line in lines if line["message"] == "link checked"]
    assert sorted(line["link_id"] for line in checked) == ["a", "b"]
    assert {line["worker"].split("-")[0] for line in lines} == {"worker"}
    assert said.splitlines()[-1].endswith("ended")
    store.close()


def test_a_home_of_its_own_has_no_shared_queue(terminal: Terminal) -> None:
    done = terminal.run("worker")
    assert done.code == 2
    assert "no queue that workers could share" in done.err


@pytest.mark.parametrize(
    ("variable", "told"),
    [
        ("LINKWATCH_TABLE", ("setting table, 'nobody-made-it'", "table is not there")),
        ("LINKWATCH_DEAD_LETTER_QUEUE_URL", ("setting dead_letter_queue_url", "nobody-made-it", "go to '")),
        ("LINKWATCH_QUEUE_URL", ("setting queue_url", "nobody-made-it", "SQS cannot serve")),
    ],
)
def test_without_its_table_or_its_queue_it_refuses_to_start_and_takes_nothing(
    ministack: Cloud, terminal: Terminal, monkeypatch: pytest.MonkeyPatch, variable: str, told: tuple[str, ...]
) -> None:
    shared = make_shared(ministack)
    sqs = ministack.client("sqs")
    sqs.send_message(QueueUrl=shared.queue_url, MessageBody=write_message(HAND_CHECK))
    wrong = shared.queue_url.rpartition("/")[0] + "/nobody-made-it" if "QUEUE" in variable else "nobody-made-it"
    for name, value in {**shared.env, variable: wrong}.items():
        monkeypatch.setenv(name, value)
    sentence = terminal.refused("worker")
    assert all(words in sentence for words in told), sentence
    name = "ApproximateNumberOfMessages"
    waiting = sqs.get_queue_attributes(QueueUrl=shared.queue_url, AttributeNames=[name])
    assert waiting["Attributes"][name] == "1"

"""The zips and the template of service status. What no emulator enforces is asserted on the template."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from linkwatch_pipeline.domain.service_status import CYCLE
from linkwatch_pipeline_tests.deploy.templates import DEPLOY, as_list, read_template, resources, statements, walk

TEMPLATE = read_template("status")
FUNCTIONS = resources(TEMPLATE, "AWS::Lambda::Function")
ROLES = resources(TEMPLATE, "AWS::IAM::Role")
HANDLERS = {"monitor": "monitor_handler", "processor": "processor_handler", "teller": "tell_handler"}
TABLE_ACTIONS = (
    "BatchGetItem", "BatchWriteItem", "ConditionCheckItem", "DeleteItem", "GetItem", "PutItem", "Query"
)  # fmt: skip
QUEUES = resources(TEMPLATE, "AWS::SQS::Queue")


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the zips, packed with one more file."""
    folder = tmp_path_factory.mktemp("zips")
    (folder / "rds.pem").write_text("authorities")
    pack(folder / "zips", "--with", str(folder / "rds.pem"))
    return folder / "zips"


def pack(folder: Path, *arguments: str) -> None:
    command = [sys.executable, str(DEPLOY / "package_status.py"), "--out", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the same for x86-64 and arm64") == 3


@pytest.mark.parametrize(
    ("function", "needs", "spares"),
    [
        ("monitor", ("httpcore", "pg8000"), ("redis", "dagster", "click", "boto3")),
        ("processor", ("redis", "pg8000"), ("httpcore", "dagster", "click", "boto3")),
        ("teller", ("pg8000",), ("httpcore", "redis", "dagster", "click", "boto3")),
    ],
)
def test_each_zip_exposes_its_handler_and_holds_what_it_needs_and_nothing_else(
    packed: Path, tmp_path: Path, function: str, needs: tuple[str, ...], spares: tuple[str, ...]
) -> None:
    zipped = packed / f"linkwatch-status-{function}.zip"
    with zipfile.ZipFile(zipped) as content:
        content.extractall(tmp_path)
    assert zipped.stat().st_size < 3 * 1024 * 1024
    assert (tmp_path / "rds.pem").exists()
    assert not [file for file in tmp_path.rglob("*") if file.suffix in (".so", ".pyc", ".pyd")]
    assert not [name for name in spares if (tmp_path / name).exists()]
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        f"import lambda_function, {', '.join(needs)}, pg8000.native\n"
        "from linkwatch_pipeline import status_bootstrap\n"
        "from linkwatch_pipeline.adapters.status_store import redis_cache, postgres, sqs_queue\n"
        + ("from linkwatch_pipeline.adapters.fetch import guarded\n" if function == "monitor" else "")
        + "print(lambda_function.lambda_handler.__name__)"
    )
    command = [sys.executable, "-I", "-S", "-B", "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={}, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{HANDLERS[function]}\n"), done.stderr


def test_the_teller_opens_its_outbox_with_nothing_but_its_zip_and_boto3(packed: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(packed / "linkwatch-status-teller.zip") as content:
        content.extractall(tmp_path / "zip")
    (tmp_path / "runtime").mkdir()
    for name in ("boto3", "botocore", "s3transfer", "jmespath", "urllib3"):  # what Lambda's Python has
        found = find_spec(name)
        assert found is not None
        assert found.origin is not None
        (tmp_path / "runtime" / name).symlink_to(Path(found.origin).parent)
    program = (
        f"import sys; sys.path[:0] = [{str(tmp_path / 'zip')!r}, {str(tmp_path / 'runtime')!r}]\n"
        "import lambda_function, types\n"
        "lambda_function.lambda_handler({}, types.SimpleNamespace(aws_request_id='r'))"
    )
    env = {"DATABASE_URL": "postgresql://u:p@127.0.0.1:9/team", "LINKWATCH_PROFILE": "aws", "LINKWATCH_TABLE": "table",
           "LINKWATCH_CONTACT": "https://ops.example", "AWS_DEFAULT_REGION": "us-east-1"}  # fmt: skip
    command = [sys.executable, "-I", "-S", "-B", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env, cwd=tmp_path)
    assert "PostgreSQL at 127.0.0.1:9/team cannot be reached" in done.stderr.splitlines()[-1], done.stderr


def test_cfn_lint_finds_nothing() -> None:
    command = [str(Path(sys.executable).with_name("cfn-lint")), "--format", "parseable", "--"]
    done = subprocess.run([*command, str(DEPLOY / "status.yaml")], capture_output=True, text=True, timeout=110)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_the_queue_waits_a_minute_keeps_an_hour_and_gives_up_after_three_times() -> None:
    queue = QUEUES["StatusQueue"]
    assert (queue["VisibilityTimeout"], queue["MessageRetentionPeriod"]) == (60, 3600)
    assert queue["RedrivePolicy"]["maxReceiveCount"] == 3
    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == {"Fn::GetAtt": ["DeadLetterQueue", "Arn"]}
    assert QUEUES["DeadLetterQueue"]["MessageRetentionPeriod"] == 14 * 24 * 3600
    assert all(queue["SqsManagedSseEnabled"] is True for queue in QUEUES.values())


def test_the_monitor_runs_each_minute_alone_and_is_not_tried_again() -> None:
    schedule = resources(TEMPLATE, "AWS::Scheduler::Schedule")["EachMinute"]
    assert schedule["ScheduleExpression"] == "rate(1 minute)"
    assert schedule["Target"]["RetryPolicy"]["MaximumRetryAttempts"] == 0
    monitor = FUNCTIONS["MonitorFunction"]
    assert (monitor["Timeout"], monitor["MemorySize"]) == (CYCLE.total_seconds(), 256)
    assert monitor["ReservedConcurrentExecutions"]["Fn::If"][1] == 1
    invocations = resources(TEMPLATE, "AWS::Lambda::EventInvokeConfig")["MonitorInvocations"]
    assert (invocations["MaximumRetryAttempts"], invocations["MaximumEventAgeInSeconds"]) == (0, 60)


def test_the_processor_answers_for_each_message_and_ends_before_the_queue_shows_them_again() -> None:
    (mapping,) = resources(TEMPLATE, "AWS::Lambda::EventSourceMapping").values()
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["FunctionName"] == {"Ref": "ProcessorFunction"}
    assert FUNCTIONS["ProcessorFunction"]["Timeout"] < QUEUES["StatusQueue"]["VisibilityTimeout"]


def test_each_function_has_a_role_of_its_own_with_nothing_but_its_work() -> None:
    allowed = {name: {a for s in statements(role) for a in as_list(s["Action"])} for name, role in ROLES.items()}
    network = {action for action in allowed["MonitorRole"] if action.startswith("ec2:")}
    common = {"logs:CreateLogStream", "logs:PutLogEvents", "secretsmanager:GetSecretValue", *network}
    assert allowed == {
        "MonitorRole": common | {"sqs:SendMessage"},
        "ProcessorRole": common | {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"},
        "TellerRole": common | {f"dynamodb:{action}" for action in TABLE_ACTIONS},
        "SchedulesRole": {"lambda:InvokeFunction"},
    }
    for statement in (statement for role in ROLES.values() for statement in statements(role)):
        open_ended = [value for value in walk(statement["Resource"]) if isinstance(value, str) and "*" in value]
        assert not open_ended or statement["Sid"] == "BeInTheNetwork"


def test_the_teller_is_there_with_an_outbox_only_and_all_of_it_at_once() -> None:
    teller = {name: r for name, r in TEMPLATE["Resources"].items() if "Tell" in name}
    assert {r["Type"].rpartition("::")[2] for r in teller.values()} == {
        "Alarm", "EventInvokeConfig", "Function", "LogGroup", "Role", "Schedule"
    }  # fmt: skip
    assert {r.get("Condition") for r in teller.values()} == {"Tells"}
    schedule = teller["EachMinuteTell"]["Properties"]
    assert schedule["ScheduleExpression"] == "rate(1 minute)"
    assert schedule["Target"]["Arn"] == {"Fn::GetAtt": ["TellerFunction", "Arn"]}
    variables = FUNCTIONS["TellerFunction"]["Environment"]["Variables"]
    assert variables["LINKWATCH_TABLE"] == {"Ref": "OutboxTable"}
    needed = [value for rule in TEMPLATE["Rules"].values() for value in walk(rule["Assertions"])]
    assert all(name in needed for name in ("Contact", "Notices"))


def test_functions_are_in_the_network_and_nothing_comes_in() -> None:
    group = resources(TEMPLATE, "AWS::EC2::SecurityGroup")["SecurityGroup"]
    assert "SecurityGroupIngress" not in group
    assert all(rule["IpProtocol"] == "tcp" for rule in group["SecurityGroupEgress"])
    for function in FUNCTIONS.values():
        assert function["VpcConfig"]["SecurityGroupIds"] == [{"Ref": "SecurityGroup"}]
        assert function["Handler"] == "lambda_function.lambda_handler"


def test_functions_are_given_the_originals_variables_and_no_password_in_the_open() -> None:
    monitor, processor = (
        FUNCTIONS[name]["Environment"]["Variables"] for name in ("MonitorFunction", "ProcessorFunction")
    )
    assert {"DATABASE_URL_SECRET_ARN", "SQS_QUEUE_URL"} <= set(monitor)
    assert {"DATABASE_URL_SECRET_ARN", "REDIS_URL"} <= set(processor)
    assert TEMPLATE["Parameters"]["RedisUrl"]["NoEcho"] is True
    assert not [name for name in TEMPLATE["Parameters"] if "Password" in name]

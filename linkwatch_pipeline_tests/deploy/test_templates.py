"""What no emulator enforces is asserted on the templates: roles, alarms, retention, redrive, concurrency, encryption.

Nothing here ran in a real account. That a role is enough for its function is shown on an emulator (`test_aws_local`).
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline.domain.hosts import WORKER_LIFE
from linkwatch_pipeline_tests.deploy.templates import DEPLOY, as_list, read_template, resources, statements, walk

FOUNDATION, APPLICATION = read_template("foundation"), read_template("application")
FUNCTIONS = resources(APPLICATION, "AWS::Lambda::Function")
ROLES = resources(APPLICATION, "AWS::IAM::Role")
QUEUES = resources(FOUNDATION, "AWS::SQS::Queue")
ALARMS = {
    name: alarm for t in (FOUNDATION, APPLICATION) for name, alarm in resources(t, "AWS::CloudWatch::Alarm").items()
}

ALL_IDENTITIES = "arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}:identity/*"
# The only statements whose resource is open, and why.
OPEN = {
    "PutNumbers": ("*", "CloudWatch knows no resource for numbers; a condition names the namespace instead"),
    "BeInTheNetwork": ("*", "EC2 lets Lambda describe and make a function's network interfaces by no narrower name"),
    "SendMail": (ALL_IDENTITIES, "SES judges the recipient's identity too; a condition names the sender instead"),
}


@pytest.mark.parametrize("name", ["foundation", "application"])
def test_cfn_lint_finds_nothing(name: str) -> None:
    command = [str(Path(sys.executable).with_name("cfn-lint")), "--format", "parseable", "--"]
    done = subprocess.run([*command, str(DEPLOY / f"{name}.yaml")], capture_output=True, text=True, timeout=110)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_the_page_names_the_rights_that_whoever_deploys_needs() -> None:
    page = (DEPLOY.parent / "docs/aws.md").read_text(encoding="utf-8")
    needed = page.partition("and rights to")[2].partition("Region and credentials")[0]
    words = {"Events": "EventBridge", "Scheduler": "EventBridge Scheduler", "Logs": "CloudWatch Logs"}
    kinds = {resource["Type"] for t in (FOUNDATION, APPLICATION) for resource in t["Resources"].values()}
    services = {kind.split("::")[1] for kind in kinds} | {"CloudFormation", "S3"}
    assert [name for name in sorted(services) if words.get(name, name) not in " ".join(needed.split())] == []


def test_what_has_a_name_has_the_stack_s_in_it() -> None:
    """Two sets of stacks in one account and region have nothing in common but the identity, which `deploy` looks at."""
    kinds = {"Name", "LogGroupName", "FunctionName", "QueueName", "TopicName", "TableName", "BucketName", "AlarmName"}
    kinds |= {"RoleName", "GroupName"}
    named = {
        f"{logical}.{key}": str(value)
        for template in (FOUNDATION, APPLICATION)
        for logical, resource in template["Resources"].items()
        for key, value in resource.get("Properties", {}).items()
        if key in kinds and not (isinstance(value, dict) and set(value) <= {"Ref", "Fn::GetAtt"})
    }
    assert len(named) == 11
    assert [name for name, value in named.items() if "${AWS::StackName}-" not in value] == []
    assert not [output for t in (FOUNDATION, APPLICATION) for output in t["Outputs"].values() if "Export" in output]


class TestRoles:
    def test_every_function_has_one_of_its_own_and_nobody_else_has_it(self) -> None:
        used = [function["Role"]["Fn::GetAtt"][0] for function in FUNCTIONS.values()]
        assert len(set(used)) == len(FUNCTIONS) == 5
        assert set(ROLES) - set(used) == {"SchedulesRole"}

    @pytest.mark.parametrize("role", sorted(ROLES))
    def test_none_holds_a_wildcard_that_is_not_explained(self, role: str) -> None:
        for statement in statements(ROLES[role]):
            assert statement["Effect"] == "Allow"
            assert not {"NotAction", "NotResource"} & set(statement)
            for action in as_list(statement["Action"]):
                assert re.fullmatch(r"[a-z0-9]+:[A-Za-z]+", action), action
            open_ended = [value for value in walk(statement["Resource"]) if isinstance(value, str) and "*" in value]
            assert not open_ended or open_ended == [OPEN[statement["Sid"]][0]], statement

    def test_numbers_may_be_put_into_our_namespace_only(self) -> None:
        (put,) = [s for role in ROLES.values() for s in statements(role) if s["Sid"] == "PutNumbers"]
        assert put["Condition"] == {"StringEquals": {"cloudwatch:namespace": {"Ref": "MetricsNamespace"}}}

    @pytest.mark.parametrize("role", sorted(ROLES))
    def test_none_is_an_administrator_or_takes_a_ready_made_policy(self, role: str) -> None:
        assert "ManagedPolicyArns" not in ROLES[role]
        (trusted,) = ROLES[role]["AssumeRolePolicyDocument"]["Statement"]
        service = "scheduler" if role == "SchedulesRole" else "lambda"
        assert trusted["Principal"] == {"Service": f"{service}.amazonaws.com"}

    def test_who_may_do_what_is_as_the_specification_says(self) -> None:
        may = {role: {action for s in statements(ROLES[role]) for action in as_list(s["Action"])} for role in ROLES}
        writes = {"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:BatchWriteItem"}
        assert not may["HealthRole"] & writes
        assert {role for role in may if "ses:SendEmail" in may[role]} == {"NotifyRole"}
        assert {role for role in may if "cloudwatch:PutMetricData" in may[role]} == {"HealthRole"}
        assert {role for role in may if "sqs:SendMessage" in may[role]} == {"DispatchRole", "CheckRole"}
        takers = {role for role in may if "sqs:DeleteMessage" in may[role]}
        assert takers == {"DispatchRole", "CheckRole", "MailEventsRole"}
        assert may["SchedulesRole"] == {"lambda:InvokeFunction"}
        assert not any(
            "CreateTable" in action or "DeleteTable" in action for actions in may.values() for action in actions
        )

    @pytest.mark.parametrize("name", sorted(FUNCTIONS))
    def test_each_writes_its_own_log_only(self, name: str) -> None:
        log = FUNCTIONS[name]["LoggingConfig"]["LogGroup"]["Ref"]
        role = ROLES[FUNCTIONS[name]["Role"]["Fn::GetAtt"][0]]
        (write,) = [s for s in statements(role) if s["Sid"] == "WriteLog"]
        assert write["Resource"] == {"Fn::GetAtt": [log, "Arn"]}


class TestFoundation:
    def test_the_table_is_on_demand_recoverable_encrypted_and_outlives_the_stack(self) -> None:
        table = FOUNDATION["Resources"]["Table"]
        assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("Retain", "Retain")
        properties = table["Properties"]
        assert properties["BillingMode"] == "PAY_PER_REQUEST"
        assert [(key["AttributeName"], key["KeyType"]) for key in properties["KeySchema"]] == [
            ("pk", "HASH"),
            ("sk", "RANGE"),
        ]
        assert properties["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}
        assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
        assert properties["SSESpecification"] == {"SSEEnabled": True}

    @pytest.mark.parametrize("name", sorted(QUEUES))
    def test_every_queue_is_encrypted_and_polled_long(self, name: str) -> None:
        assert QUEUES[name]["SqsManagedSseEnabled"] is True
        assert QUEUES[name]["ReceiveMessageWaitTimeSeconds"] == 20

    def test_work_is_redriven_after_five_receives_and_kept_as_long_as_promised(self) -> None:
        def default(node: Any) -> Any:
            return FOUNDATION["Parameters"][node["Ref"]]["Default"]

        work, dead = QUEUES["WorkQueue"], QUEUES["DeadLetterQueue"]
        assert work["RedrivePolicy"]["deadLetterTargetArn"] == {"Fn::GetAtt": ["DeadLetterQueue", "Arn"]}
        assert default(work["RedrivePolicy"]["maxReceiveCount"]) == 5
        assert default(work["VisibilityTimeout"]) == 180
        assert default(work["MessageRetentionPeriod"]) == 4 * 86400
        assert default(dead["MessageRetentionPeriod"]) == 14 * 86400

    def test_the_dead_letter_alarm_is_exactly_as_specified(self) -> None:
        alarm = dict(ALARMS["DeadLetterAlarm"])
        assert alarm.pop("AlarmDescription")
        topic = {"Fn::If": ["MakesAlertTopic", {"Ref": "AlertTopic"}, {"Ref": "AlertTopicArn"}]}
        assert alarm == {
            "Namespace": "AWS/SQS",
            "MetricName": "ApproximateNumberOfMessagesVisible",
            "Dimensions": [{"Name": "QueueName", "Value": {"Fn::GetAtt": ["DeadLetterQueue", "QueueName"]}}],
            "Statistic": "Maximum",
            "Period": 60,
            "EvaluationPeriods": 1,
            "Threshold": 0,
            "ComparisonOperator": "GreaterThanThreshold",
            "TreatMissingData": "notBreaching",
            "AlarmActions": [topic],
            "OKActions": [topic],
        }

    @pytest.mark.parametrize(
        ("arn", "is_accepted"),
        [
            ("", True),
            ("arn:aws:sns:eu-west-1:123456789012:alerts", True),
            ("arn:aws-cn:sns:cn-north-1:123456789012:alerts", True),
            ("arn:aws:sqs:eu-west-1:123456789012:alerts", False),
            ("arn:aws:sns:eu-west-1:123456789012:alerts.fifo", False),
            ("arn:aws:sns:eu-west-1:1234:alerts", False),
            ("alerts", False),
        ],
    )
    def test_the_alert_topic_is_validated(self, arn: str, is_accepted: bool) -> None:
        pattern = FOUNDATION["Parameters"]["AlertTopicArn"]["AllowedPattern"]
        assert (re.search(pattern, arn) is not None) is is_accepted

    def test_the_promised_outputs_are_there(self) -> None:
        assert {"QueueUrl", "QueueArn", "TableName", "DeadLetterQueueUrl"} <= set(FOUNDATION["Outputs"])

    def test_only_ses_of_this_account_reaches_the_mail_events(self) -> None:
        (publish,) = FOUNDATION["Resources"]["MailEventsTopicPolicy"]["Properties"]["PolicyDocument"]["Statement"]
        assert publish["Condition"] == {"StringEquals": {"AWS:SourceAccount": {"Ref": "AWS::AccountId"}}}
        (send,) = FOUNDATION["Resources"]["MailEventsQueuePolicy"]["Properties"]["PolicyDocument"]["Statement"]
        assert send["Condition"] == {"ArnEquals": {"aws:SourceArn": {"Ref": "MailEventsTopic"}}}


class TestFunctions:
    @pytest.mark.parametrize("name", sorted(FUNCTIONS))
    def test_each_is_small_and_names_a_handler_that_exists(self, name: str) -> None:
        from linkwatch_pipeline.entrypoints import aws_lambda

        function = FUNCTIONS[name]
        module, _, handler = function["Handler"].rpartition(".")
        assert module == aws_lambda.__name__
        assert callable(getattr(aws_lambda, handler))
        assert function["MemorySize"] == 256
        assert APPLICATION["Parameters"]["Architecture"]["Default"] == "arm64"

    def test_a_check_ends_with_its_worker_and_long_before_its_message_comes_back(self) -> None:
        assert FUNCTIONS["CheckFunction"]["Timeout"] == WORKER_LIFE.total_seconds() == 30
        visibility = FOUNDATION["Parameters"]["VisibilitySeconds"]
        assert visibility["MinValue"] >= 6 * FUNCTIONS["CheckFunction"]["Timeout"]
        mail_events = FOUNDATION["Resources"]["MailEventsQueue"]["Properties"]["VisibilityTimeout"]
        assert mail_events >= 6 * FUNCTIONS["MailEventsFunction"]["Timeout"]

    def test_the_mapping_hands_over_one_message_at_a_time_to_twenty_checks(self) -> None:
        mapping = resources(APPLICATION, "AWS::Lambda::EventSourceMapping")["CheckMapping"]
        assert mapping["EventSourceArn"] == {"Ref": "QueueArn"}
        assert (mapping["BatchSize"], mapping["MaximumBatchingWindowInSeconds"]) == (1, 0)
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert mapping["ScalingConfig"] == {"MaximumConcurrency": {"Ref": "MaximumConcurrency"}}
        assert APPLICATION["Parameters"]["MaximumConcurrency"]["Default"] == 20
        reserved = FUNCTIONS["CheckFunction"]["ReservedConcurrentExecutions"]
        assert reserved == {"Fn::If": ["ReservesConcurrency", {"Ref": "MaximumConcurrency"}, {"Ref": "AWS::NoValue"}]}

    def test_the_logs_are_kept_for_fourteen_days(self) -> None:
        logs = resources(APPLICATION, "AWS::Logs::LogGroup")
        assert {function["LoggingConfig"]["LogGroup"]["Ref"] for function in FUNCTIONS.values()} == set(logs)
        assert {log["RetentionInDays"] for log in logs.values()} == {14}

    def test_every_variable_is_a_setting(self) -> None:
        from dataclasses import fields

        from linkwatch_pipeline.settings import Settings

        known = {f"LINKWATCH_{field.name.upper()}" for field in fields(Settings)}
        for function in FUNCTIONS.values():
            assert set(function["Environment"]["Variables"]) <= known

    def test_the_schedules_start_what_the_specification_says(self) -> None:
        schedules = resources(APPLICATION, "AWS::Scheduler::Schedule")
        seen = {
            name: (s["ScheduleExpression"], s["Target"]["Arn"]["Fn::GetAtt"][0], s["Target"]["Input"])
            for name, s in schedules.items()
        }
        assert seen == {
            "Weekly": (
                {"Ref": "WeeklySchedule"},
                "DispatchFunction",
                '{"action": "dispatch", "scheduled_time": "<aws.scheduler.scheduled-time>"}',
            ),
            "WeeklyRepeat": (
                {"Ref": "WeeklyRepeatSchedule"},
                "DispatchFunction",
                '{"action": "dispatch", "scheduled_time": "<aws.scheduler.scheduled-time>"}',
            ),
            "EachMinuteTick": ("cron(* * * * ? *)", "DispatchFunction", '{"action": "tick"}'),
            "EachMinuteNotify": ("cron(* * * * ? *)", "NotifyFunction", "{}"),
            "EachFiveMinutesHealth": ("cron(0/5 * * * ? *)", "HealthFunction", "{}"),
        }
        assert APPLICATION["Parameters"]["WeeklySchedule"]["Default"] == "cron(0 9 ? * MON *)"
        assert APPLICATION["Parameters"]["WeeklyRepeatSchedule"]["Default"] == "cron(10,20,30,40,50 9 ? * MON *)"
        assert {s["ScheduleExpressionTimezone"] for s in schedules.values()} == {"UTC"}
        targets = {s["Target"]["Arn"]["Fn::GetAtt"][0] for s in schedules.values()}
        (call,) = statements(ROLES["SchedulesRole"])
        assert {resource["Fn::GetAtt"][0] for resource in call["Resource"]} == targets

    def test_a_beginning_that_fails_is_repeated_and_old_ticks_do_not_pile_up(self) -> None:
        """The scheduler's own retries end when it has handed a call over; Lambda's are two, within some minutes."""
        (calls,) = resources(APPLICATION, "AWS::Lambda::EventInvokeConfig").values()
        assert (calls["FunctionName"], calls["Qualifier"]) == ({"Ref": "DispatchFunction"}, "$LATEST")
        assert calls["MaximumRetryAttempts"] == 2
        assert calls["MaximumEventAgeInSeconds"] <= FUNCTIONS["DispatchFunction"]["Timeout"] == 900
        schedules = resources(APPLICATION, "AWS::Scheduler::Schedule")
        assert schedules["WeeklyRepeat"]["State"] == schedules["Weekly"]["State"] == {"Ref": "ScheduleState"}


class TestAlarms:
    @pytest.mark.parametrize("name", sorted(ALARMS))
    def test_each_goes_to_the_team_and_says_what_missing_data_means(self, name: str) -> None:
        assert ALARMS[name]["AlarmActions"]
        assert ALARMS[name]["TreatMissingData"] in ("notBreaching", "breaching", "ignore")

    @pytest.mark.parametrize("template", ["foundation", "application", "status", "dagster-ecs"])
    def test_whoever_is_told_that_one_begins_is_told_that_it_is_over(self, template: str) -> None:
        alarms = resources(read_template(template), "AWS::CloudWatch::Alarm")
        assert [name for name, alarm in alarms.items() if alarm.get("OKActions") != alarm["AlarmActions"]] == []

    @pytest.mark.parametrize("page", ["deploy/README.md", "docs/howto/be-on-call.md"])
    def test_both_pages_say_of_each_where_to_look(self, page: str) -> None:
        rows = {"LateRunAlarm": "late run", "CriticalAlarm": "critical", "HeartbeatAlarm": "heartbeat"}
        rows |= {"DeadLetterAlarm": "dead letters", "MailEventsDeadLetterAlarm": "dead mail events"}
        rows |= {name: "errors of a function" for name in ALARMS if name.endswith("ErrorsAlarm")}
        text = (DEPLOY.parent / page).read_text(encoding="utf-8")
        assert [name for name in ALARMS if f"\n| {rows[name]} | " not in text] == []

    def test_silence_is_a_fault(self) -> None:
        alarm = ALARMS["HeartbeatAlarm"]
        assert (alarm["MetricName"], alarm["TreatMissingData"]) == ("Heartbeat", "breaching")
        assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("LessThanThreshold", 1)
        assert alarm["Period"] * alarm["EvaluationPeriods"] == 600  # two looks of five minutes each
        assert "Dimensions" not in alarm  # as the numbers are put

    @pytest.mark.parametrize(("name", "number"), [("LateRunAlarm", "RunLate"), ("CriticalAlarm", "CriticalFindings")])
    def test_what_a_look_finds_holds_its_alarm_between_two_looks(self, name: str, number: str) -> None:
        alarm = ALARMS[name]
        assert (alarm["MetricName"], alarm["Statistic"], alarm["TreatMissingData"]) == (number, "Maximum", "ignore")
        assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", 0)
        assert alarm["Period"] * alarm["EvaluationPeriods"] == 60
        assert "Dimensions" not in alarm
        assert alarm["Namespace"] == ALARMS["HeartbeatAlarm"]["Namespace"] == {"Ref": "MetricsNamespace"}
        assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": "AlertTopicArn"}]

    def test_nobody_else_puts_a_heartbeat_where_that_of_the_functions_is_looked_for(self) -> None:
        from linkwatch_pipeline.settings import Settings

        theirs = APPLICATION["Parameters"]["MetricsNamespace"]["Default"]
        dagsters = read_template("dagster-ecs")["Parameters"]["MetricsNamespace"]["Default"]
        assert len({theirs, dagsters, Settings().metrics_namespace}) == 3

    def test_every_function_has_one_for_its_errors(self) -> None:
        watched = [
            alarm["Dimensions"]
            for alarm in ALARMS.values()
            if (alarm["Namespace"], alarm["MetricName"]) == ("AWS/Lambda", "Errors")
        ]
        assert sorted(d[0]["Value"]["Ref"] for d in watched) == sorted(FUNCTIONS)


class TestNetwork:
    def test_only_the_checker_is_in_it_and_only_in_the_profile_egress(self) -> None:
        within = {name: f["VpcConfig"] for name, f in FUNCTIONS.items() if "VpcConfig" in f}
        assert set(within) == {"CheckFunction"}
        assert within["CheckFunction"]["Fn::If"][0] == "HasEgressRule"
        for resource in APPLICATION["Resources"].values():
            if resource["Type"].startswith("AWS::EC2::"):
                assert resource["Condition"] == "HasEgressRule"

    def test_private_and_metadata_ranges_are_denied_before_anything_is_let_out(self) -> None:
        from ipaddress import ip_address, ip_network

        out = [rule for rule in resources(APPLICATION, "AWS::EC2::NetworkAclEntry").values() if rule["Egress"]]
        denied = [rule for rule in out if rule["RuleAction"] == "deny"]
        allowed = [rule for rule in out if rule["RuleAction"] == "allow"]
        assert max(rule["RuleNumber"] for rule in denied) < min(rule["RuleNumber"] for rule in allowed)
        assert {rule["PortRange"]["To"] for rule in allowed} == {80, 443}
        ranges = [ip_network(rule["CidrBlock"]) for rule in denied]
        for address in (
            "10.1.2.3",
            "172.31.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "127.0.0.1",
            "0.0.0.0",
            "240.0.0.1",
        ):
            assert any(ip_address(address) in each for each in ranges), address
        assert not any(ip_address("93.184.216.34") in each for each in ranges)
        assert all(rule["Protocol"] == -1 for rule in denied)


class TestMail:
    def test_what_ses_tells_goes_to_the_topic_of_the_mail_events(self) -> None:
        destination = resources(APPLICATION, "AWS::SES::ConfigurationSetEventDestination")["MailEvents"][
            "EventDestination"
        ]
        assert destination["Enabled"] is True
        assert destination["SnsDestination"] == {"TopicARN": {"Ref": "MailEventsTopicArn"}}
        assert {"send", "delivery", "bounce", "complaint", "reject"} <= set(destination["MatchingEventTypes"])

    def test_the_notifier_sends_as_one_address_through_one_configuration_set(self) -> None:
        (send,) = [s for s in statements(ROLES["NotifyRole"]) if s["Sid"] == "SendMail"]
        assert send["Condition"] == {"StringEquals": {"ses:FromAddress": {"Ref": "MailFrom"}}}
        assert [r["Fn::Sub"].rpartition(":")[2] for r in send["Resource"]] == [
            "identity/*",
            "configuration-set/${ConfigurationSet}",
        ]

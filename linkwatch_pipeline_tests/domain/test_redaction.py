"""What is kept of a URL: tables of secrets and of harmless neighbours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwatch_pipeline.domain.redaction import redacted_beginning, redacted_url

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("token=s3cret", "token=REDACTED"),
        ("page=2&access_token=s3cret&lang=en", "page=2&access_token=REDACTED&lang=en"),
        ("apiKey=s3cret", "apiKey=REDACTED"),
        ("API-KEY=s3cret", "API-KEY=REDACTED"),
        ("key=s3cret", "key=REDACTED"),
        ("sig=s3cret&se=2027-01-01", "sig=REDACTED&se=2027-01-01"),
        ("X-Amz-Signature=s3cret&X-Amz-Expires=60", "X-Amz-Signature=REDACTED&X-Amz-Expires=60"),
        ("X-Amz-Credential=s3cret", "X-Amz-Credential=REDACTED"),
        ("X-Goog-Signature=s3cret", "X-Goog-Signature=REDACTED"),
        ("Key-Pair-Id=s3cret&Policy=s3cret", "Key-Pair-Id=REDACTED&Policy=REDACTED"),
        ("password=s3cret", "password=REDACTED"),
        ("PASSWD=s3cret", "PASSWD=REDACTED"),
        ("pass=s3cret&pwd=s3cret", "pass=REDACTED&pwd=REDACTED"),
        ("client_secret=s3cret", "client_secret=REDACTED"),
        ("auth=s3cret&oauth_verifier=s3cret", "auth=REDACTED&oauth_verifier=REDACTED"),
        ("code=s3cret&state=open", "code=REDACTED&state=open"),
        ("PHPSESSID=s3cret", "PHPSESSID=REDACTED"),
        ("sessionId=s3cret", "sessionId=REDACTED"),
        ("SAMLResponse=s3cret", "SAMLResponse=REDACTED"),
        ("to%6ben=s3cret", "to%6ben=REDACTED"),
        ("user[password]=s3cret", "user[password]=REDACTED"),
        ("token=s3;cret?x=s3cret&y=1", "token=REDACTED&y=1"),
        ("a=1;token=s3cret", "a=1;token=REDACTED"),
        ("token=", "token="),
        ("token", "token"),
        # by shape, whatever the name
        (f"x={JWT}", "x=REDACTED"),
        (JWT, "REDACTED"),
        ("x=ghp_0123456789abcdefABCDEF", "x=REDACTED"),
        ("x=AKIAIOSFODNN7EXAMPLE", "x=REDACTED"),
        ("x=9f86d081884c7d659a2feaa0c55ad015", "x=REDACTED"),
        # inside another URL
        ("next=https%3A%2F%2Fa.example%2F%3Ftoken%3Ds3cret", "next=REDACTED"),
        ("next=https%253A%252F%252Fa.example%252F%253Ftoken%253Ds3cret", "next=REDACTED"),
        ("next=https%3A%2F%2Fann%3As3cret%40a.example%2F", "next=REDACTED"),
        ("next=/home?token=s3cret", "next=/home?token=REDACTED"),
        ("next=page%3D2%26token%3Ds3cret", "next=REDACTED"),
        # harmless
        ("page=2&lang=en", "page=2&lang=en"),
        ("author=ann&keyword=links&monkey=1&design=new&encoding=utf-8", None),
        ("title=A_long_page_name_of_the_year_2024&q=red+dress", None),
        ("q=a%20b&next=https%3A%2F%2Fa.example%2Fhome%3Fpage%3D2", None),
        ("q=%zz&%&=&&;", None),
        ("number=12345678901234567890123", None),
        ("word=antidisestablishmentarianism", None),
    ],
)
def test_values_that_look_like_secrets_are_hidden_and_the_rest_stays(query: str, kept: str | None) -> None:
    assert redacted_url(f"https://a.example/p?{query}") == f"https://a.example/p?{query if kept is None else kept}"


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://ann:s3cret@a.example/", "https://REDACTED@a.example/"),
        ("https://ann:s3@cret@a.example/", "https://REDACTED@a.example/"),
        ("//s3cret@a.example/", "//REDACTED@a.example/"),
        ("https://a.example/p;jsessionid=s3cret?x=1", "https://a.example/p;jsessionid=REDACTED"),
        ("https://a.example/#access_token=s3cret", "https://a.example/#access_token=REDACTED"),
        ("https://a.example/@ann?by=@ann", "https://a.example/@ann?by=@ann"),
        ("", ""),
    ],
)
def test_credentials_paths_and_fragments_are_looked_at_too(url: str, kept: str) -> None:
    assert redacted_url(url) == kept


@given(st.text(alphabet="?&;#=%25/:@abtoken019+", max_size=200))
def test_any_text_has_a_redacted_form_which_is_final(text: str) -> None:
    once = redacted_url(text)
    assert redacted_url(once) == once


def test_no_depth_of_escaping_hides_a_secret_or_takes_long() -> None:
    deep = "%" + "25" * 1000 + "3Ftoken"
    assert redacted_url(f"https://a.example/?x={deep}") == "https://a.example/?x=REDACTED"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("hello, world", "hello, world"),
        ('{"password": "hunter2", "id": 3}', '{"password": "REDACTED", "id": 3}'),
        ("api_key=abc&page=2", "api_key=REDACTED&page=2"),
        ("see https://user:pw@example.com/x?token=abc", "see https://REDACTED@example.com/x?token=REDACTED"),
        ("mail jane@example.com now", "mail REDACTED now"),
        ("Bearer eyJhbGciOi.eyJzdWIi.sig", "Bearer REDACTED"),
        ("x" * 5000, "x" * 60),
    ],
)
def test_the_beginning_of_any_text_is_short_and_shows_no_secret_and_no_address(text: str, shown: str) -> None:
    assert redacted_beginning(text) == shown

"""Requests without the right token come from an address of their own: each address has a rate of its own, and
guessing is slow on purpose. The engine of the test believes its proxy, which this stands in for."""

import itertools
import os
from urllib.parse import parse_qsl, urlsplit

import requests
import schemathesis

_numbers = itertools.count(1)
_send = requests.Session.send


def _send_from_elsewhere(self, request, **kwargs):
    if request.headers.get("Authorization") != "Bearer " + os.environ["SIDETONE_TOKEN"]:
        number = next(_numbers)
        request.headers["X-Forwarded-For"] = f"198.19.{number // 250 % 250}.{number % 250 + 1}"
    request.url = _with_from(request.url)
    if "/api/v1/events" in request.url:
        return _beginning(_send(self, request, **(kwargs | {"stream": True})))
    return _send(self, request, **kwargs)


def _with_from(url):
    """The filters of devices and networks need `from`, which a schema cannot say; `tests/http/contract_limits.rs`
    tries them without it."""
    names = {name for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)}
    needs = "/api/v1/cdrs" in url and names & {"user_agent", "network"} and "from" not in names
    return url + "&from=2026-01-01T00:00:00Z" if needs else url


def _beginning(response):
    """A stream of events does not end: what was stored is enough of it."""
    if response.headers.get("Content-Type") == "text/event-stream":
        read = b""
        for piece in response.iter_content(chunk_size=None):
            read += piece
            if b": live\n\n" in read:
                break
        response.close()
        response._content = read
        response._content_consumed = True
    return response


@schemathesis.serializer("audio/wav")
def _sound(_context, value):
    """Sounds are bytes; whatever else is made up for one is sent as its text."""
    return value if isinstance(value, bytes) else str(value).encode()


requests.Session.send = _send_from_elsewhere

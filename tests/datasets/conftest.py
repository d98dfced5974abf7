"""Local servers with and without TLS."""

from contextlib import closing

import pytest
import trustme
from local_server import Server


@pytest.fixture(scope="session")
def authority():
    return trustme.CA()


@pytest.fixture
def server(authority, tmp_path, monkeypatch):
    """Start an HTTPS server whose certificate is trusted by requests."""
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle))
    monkeypatch.setenv("NO_PROXY", "*")
    with closing(Server(authority)) as running:
        yield running


@pytest.fixture
def plain_server(monkeypatch):
    """Start a server without TLS."""
    monkeypatch.setenv("NO_PROXY", "*")
    with closing(Server(None)) as running:
        yield running

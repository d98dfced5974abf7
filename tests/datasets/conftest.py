"""Local servers with and without TLS."""

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
    running = Server(authority)
    yield running
    running.close()


@pytest.fixture
def plain_server(monkeypatch):
    """Start a server without TLS."""
    monkeypatch.setenv("NO_PROXY", "*")
    running = Server(None)
    yield running
    running.close()

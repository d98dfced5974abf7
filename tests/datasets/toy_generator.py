"""A generator of a user's own, found on the path; tests replace what it returns."""


def make() -> None:
    raise NotImplementedError

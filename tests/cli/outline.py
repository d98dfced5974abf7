"""The tags and the text of a page, for tests of the files that commands write."""

from html.parser import HTMLParser


class Outline(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self._open = [], "", []
        self.feed(text)
        assert not self._open, self._open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "br", "circle", "rect", "path"):
            self._open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("circle", "rect", "path"):
            assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += data

"""The elements, tables and text of a page, for tests of the files that the command and the workflow write."""

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Outline(HTMLParser):
    """The tags of a page with their attributes, its tables by their captions, and its text. All elements are closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.tables, self.text, self._open = [], {}, "", []
        self.feed(text)
        self.close()
        assert not self._open, self._open
        attributes = [found for _, found in self.tags]
        self.ids = [found["id"] for found in attributes if "id" in found]
        links = ("href", "src", "action", "data")
        self.links = [found[name] for found in attributes for name in links if name in found]

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self._rows = []
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th", "caption"):
            self._begin = len(self.text)
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open and self._open.pop() == tag, f"</{tag}> closes another element"
        if tag == "caption":
            self._caption = self.text[self._begin :]
        elif tag in ("td", "th"):
            self._rows[-1].append(self.text[self._begin :].strip())
        elif tag == "table":
            self.tables[self._caption] = self._rows

    def handle_data(self, data):
        self.text += data.replace("\N{NO-BREAK SPACE}", " ")

"""JSONPath (RFC 9535) over parsed JSON. It runs in the interpreter of a script, under the script's limits."""
import json
import re

_NOTHING = object()
_BLANK = re.compile(r"[ \t\n\r]*")
_INDEX = re.compile(r"-?[1-9][0-9]*|0")
_NUMBER = re.compile(r"-?(?:[1-9][0-9]*|0)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_MEMBER = re.compile(r"[A-Za-z_\u0080-\U0010ffff][0-9A-Za-z_\u0080-\U0010ffff]*")
_WORD = re.compile(r"[a-z][a-z0-9_]*")
_COMPARISON = re.compile(r"[=!<>]=|[<>]")
_STRINGS = {q: re.compile(r"(?:[^\\\x00-\x1f%s]|\\(?:[bfnrt/\\%s]|u[0-9A-Fa-f]{4}))*" % (q, q)) for q in "\"'"}
_LITERALS = {"true": True, "false": False, "null": None}
_FUNCTIONS = {"length": ("value",), "count": ("nodes",), "value": ("nodes",), "match": ("value", "value"),
              "search": ("value", "value")}
_MAX_INDEX = 2**53 - 1


def select(path, value):
    """The values in value that the path finds, as a list."""
    parser = _Parser(path)
    if not parser.take("$"):
        parser.fail("a path begins with $")
    segments, _ = parser.segments()
    if parser.at < len(path):
        parser.fail("this is not part of a path")
    return _nodes(segments, value, value)


def _nodes(segments, value, root):
    nodes = [value]
    for deep, selectors in segments:
        if deep:
            nodes = _descendants(nodes)
        nodes = [found for node in nodes for s in selectors for found in s(node, root)]
    return nodes


def _children(node):
    return list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else []


def _descendants(nodes):
    """The nodes and everything in them, a parent before its children."""
    found, waiting = [], nodes[::-1]
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting.extend(reversed(_children(node)))
    return found


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _same(a, b):
    if _is_number(a) and _is_number(b):
        return a == b
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    return a == b


def _less(a, b):
    return (_is_number(a) and _is_number(b) or isinstance(a, str) and isinstance(b, str)) and a < b


_COMPARE = {"==": _same, "!=": lambda a, b: not _same(a, b), "<": _less, ">": lambda a, b: _less(b, a),
            "<=": lambda a, b: _less(a, b) or _same(a, b), ">=": lambda a, b: _less(b, a) or _same(a, b)}


def _matches(text, pattern, whole):
    """Matches a regular expression, in which a dot is any character but the ends of a line."""
    if not isinstance(text, str) or not isinstance(pattern, str):
        return False
    pattern = re.sub(r"\\.|\[(?:\\.|[^\]\\])*\]|\.", lambda m: r"[^\n\r]" if m[0] == "." else m[0], pattern,
                     flags=re.DOTALL)
    try:
        return (re.fullmatch if whole else re.search)(pattern, text) is not None
    except re.error:
        return False


def _apply(name, a, b=None):
    if name == "length":
        return len(a) if isinstance(a, (str, list, dict)) else _NOTHING
    if name == "count":
        return len(a)
    if name == "value":
        return a[0] if len(a) == 1 else _NOTHING
    return _matches(a, b, name == "match")


class _Parser:
    """Parses a path. Selectors and expressions become functions of a node and the root."""

    def __init__(self, text):
        self.text, self.at = text, 0

    def fail(self, problem):
        raise ValueError(f"JSONPath, character {self.at + 1}: {problem}")

    def take(self, text):
        if found := self.text.startswith(text, self.at):
            self.at += len(text)
        return found

    def match(self, pattern):
        if found := pattern.match(self.text, self.at):
            self.at = found.end()
        return found and found[0]

    def blank(self):
        self.match(_BLANK)

    def expect(self, text):
        self.blank()
        if not self.take(text):
            self.fail(f"{text} is missing")

    def segments(self):
        """Returns the segments, and whether they find at most one node."""
        found, singular = [], True
        while True:
            start = self.at
            self.blank()
            deep = self.take("..")
            if self.take("["):
                selectors, single = self.brackets()
            elif deep or self.take("."):
                selectors, single = self.member()
            else:
                self.at = start
                return found, singular
            found.append((deep, selectors))
            singular = singular and single and not deep

    def member(self):
        if self.take("*"):
            return [self.all], False
        name = self.match(_MEMBER)
        if name is None:
            self.fail("a name is missing; other names are written as ['name']")
        return [self.named(name)], True

    @staticmethod
    def all(node, root):
        return _children(node)

    @staticmethod
    def named(name):
        return lambda node, root: [node[name]] if isinstance(node, dict) and name in node else []

    def brackets(self):
        selectors, single = [], True
        while True:
            self.blank()
            selector, one = self.selector()
            selectors.append(selector)
            single = single and one
            self.blank()
            if not self.take(","):
                self.expect("]")
                return selectors, single and len(selectors) == 1

    def selector(self):
        if self.take("*"):
            return self.all, False
        if self.take("?"):
            test = self.either()
            return (lambda node, root: [c for c in _children(node) if test(c, root)]), False
        name = self.string()
        if name is not None:
            return self.named(name), True
        first = self.index()
        start = self.at
        self.blank()
        if self.take(":"):
            return self.slice(first), False
        self.at = start
        if first is None:
            self.fail("this is not a selector")
        return (lambda node, root: [node[first]] if isinstance(node, list) and -len(node) <= first < len(node)
                else []), True

    def slice(self, first):
        self.blank()
        last, step, start = self.index(), None, self.at
        self.blank()
        if self.take(":"):
            self.blank()
            start = self.at
            step = self.index()
            start = self.at if step is not None else start
        self.at = start
        return lambda node, root: node[first:last:step] if isinstance(node, list) and step != 0 else []

    def index(self):
        text = self.match(_INDEX)
        if text is None:
            return None
        if len(text) > 17 or abs(int(text)) > _MAX_INDEX:
            self.fail("the number is too large")
        return int(text)

    def string(self):
        """Returns a string literal, or None."""
        quote = self.text[self.at:self.at + 1]
        if quote not in _STRINGS:
            return None
        self.at += 1
        text = self.match(_STRINGS[quote])
        if not self.take(quote):
            self.fail("the text is not valid here")
        if quote == "'":
            text = re.sub(r"\\.|\"", lambda m: {"\\'": "'", '"': '\\"'}.get(m[0], m[0]), text)
        text = json.loads(f'"{text}"')
        if any("\ud800" <= c <= "\udfff" for c in text):
            self.fail("the text has half a surrogate pair")
        return text

    def either(self):
        return self.joined(self.both, "||", any)

    def both(self):
        return self.joined(self.test, "&&", all)

    def joined(self, part, sign, how):
        parts = [part()]
        while True:
            start = self.at
            self.blank()
            if not self.take(sign):
                self.at = start
                return parts[0] if len(parts) == 1 else lambda node, root: how(p(node, root) for p in parts)
            parts.append(part())

    def test(self):
        self.blank()
        negated = self.take("!")
        if negated:
            self.blank()
        if self.take("("):
            test = self.either()
            self.expect(")")
        else:
            kind, f, single = self.operand()
            start = self.at
            self.blank()
            sign = None if negated else self.match(_COMPARISON)
            if sign:
                return self.comparison(self.single(kind, f, single), sign)
            self.at = start
            if kind == "value":
                self.fail("this is compared with nothing")
            test = f
        return (lambda node, root: not test(node, root)) if negated else test

    def comparison(self, left, sign):
        self.blank()
        right, compare = self.single(*self.operand()), _COMPARE[sign]
        return lambda node, root: compare(left(node, root), right(node, root))

    def single(self, kind, f, single):
        """Returns the function of the value of an operand."""
        if kind == "logical" or not single:
            self.fail("this does not have one value")
        if kind == "value":
            return f
        return lambda node, root: next(iter(f(node, root)), _NOTHING)

    def operand(self):
        """Returns the kind of an operand, its function, and whether it has at most one value."""
        for sign, pick in ("@", lambda node, root: node), ("$", lambda node, root: root):
            if self.take(sign):
                segments, singular = self.segments()
                return "nodes", (lambda node, root: _nodes(segments, pick(node, root), root)), singular
        value = self.string()
        if value is None:
            word = self.match(_WORD)
            if word is not None and self.take("("):
                return self.call(word)
            if word in _LITERALS:
                value = _LITERALS[word]
            elif word is None and (number := self.match(_NUMBER)) is not None:
                value = json.loads(number)
            else:
                self.fail("this is not an operand")
        return "value", (lambda node, root: value), True

    def call(self, name):
        if name not in _FUNCTIONS:
            self.fail(f"there is no function {name}")
        arguments = []
        for i, want in enumerate(_FUNCTIONS[name]):
            if i > 0:
                self.expect(",")
            self.blank()
            kind, f, single = self.operand()
            if want == "nodes" and kind != "nodes":
                self.fail(f"{name} needs a path")
            arguments.append(f if want == "nodes" else self.single(kind, f, single))
        self.expect(")")
        return ("logical" if name in ("match", "search") else "value",
                lambda node, root: _apply(name, *(a(node, root) for a in arguments)), True)

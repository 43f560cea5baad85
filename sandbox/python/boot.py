"""The bootstrap of the sandbox. python_init imports it once, before the snapshot; python_run calls run() once."""
import sys
import importlib.machinery
import json
import marshal

import _drawbridge
import _drawbridge_jsonpath

SCRIPT = "<script>"
MAX_TRACEBACK = 8192
MAX_MESSAGE = 4096
MAX_RECURSION = 5000


# The standard library is in guest memory: the interpreter needs no file system.
class _MemoryImporter:
    def __init__(self, modules):
        self.modules = modules  # name: (is it a package, marshalled code)

    def find_spec(self, name, path=None, target=None):
        entry = self.modules.get(name)
        if entry is None:
            return None
        return importlib.machinery.ModuleSpec(name, self, origin="<stdlib>", is_package=entry[0])

    def create_module(self, spec):
        return None

    def get_code(self, name):
        return marshal.loads(self.modules[name][1])

    def is_package(self, name):
        return self.modules[name][0]

    def get_source(self, name):
        return None

    def exec_module(self, module):
        exec(self.get_code(module.__name__), module.__dict__)


def _install_library():
    with open("/stdlib/stdlib.blob", "rb") as f:
        modules = marshal.load(f)
    sys.meta_path[:] = [importlib.machinery.BuiltinImporter, importlib.machinery.FrozenImporter,
                        _MemoryImporter(modules)]
    sys.path[:] = []
    sys.path_hooks[:] = []
    sys.path_importer_cache.clear()


_install_library()

# Modules that scripts often import: their import is paid once, in the snapshot.
import abc, ast, asyncio, base64, bisect, collections, contextlib, copy, csv, dataclasses, datetime, decimal, difflib
import enum, fractions, functools, hashlib, heapq, html, inspect, io, itertools, linecache, math, operator, os, pprint
import random, re, secrets, statistics, string, struct, textwrap, time, tokenize, traceback, types, typing
import unicodedata, urllib.parse, uuid, zoneinfo
import encodings.ascii, encodings.idna, encodings.latin_1, encodings.utf_8
from json.encoder import c_make_encoder, encode_basestring_ascii


# Requests to the host are JSON objects. The encoder is made once: json.dumps would make one for each call.
def _not_json(value):
    if isinstance(value, Pending):
        return value._force()
    if isinstance(value, Binary):
        return value.base64
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (set, frozenset, tuple, range)):
        return list(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, (uuid.UUID, decimal.Decimal, fractions.Fraction)):
        return str(value)
    if isinstance(value, Result):
        raise TypeError("a kept result is passed on as its text() or its json()")
    raise TypeError(f"a value of type {type(value).__name__} has no JSON form")


def _new_encoder():
    return c_make_encoder({}, _not_json, encode_basestring_ascii, None, ":", ",", False, False, False)


_encode = _new_encoder()
_scan = json.JSONDecoder().scan_once  # json.loads also looks for white space and encodings, with slow expressions
_request = _drawbridge.request


def _to_json(value):
    global _encode
    try:
        return "".join(_encode(value, 0))
    except BaseException:
        _encode = _new_encoder()  # the old one remembers the values in which it was interrupted
        raise


def _ask(message):
    try:
        text = _to_json(message)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"a tool cannot be called with this value: {error}") from None
    try:
        reply = _request(text.encode())
    except PermissionError as refusal:
        raise ToolError(_REFUSALS.get(str(refusal), "the host refused the request"), "limit") from None
    return _scan(reply.decode(), 0)[0]


# What the host's refusals mean; see the constants of sandbox/engine.go.
_REFUSALS = {"-1": "the request is too large", "-2": "the run has ended"}


class ToolError(Exception):
    """A tool call that did not succeed. code is the kind of failure, tool the tool, line the line of the call."""

    __module__ = "tools"

    def __init__(self, message, code="", tool="", line=0):
        super().__init__(message)
        self.code, self.tool, self.line = code, tool, line


class Binary:
    """Binary content of a result: an image, audio, or a file. It can be passed on as an argument."""

    def __init__(self, mime, data):
        self.mime, self.base64 = mime, data

    @property
    def data(self):
        return base64.b64decode(self.base64)

    def __len__(self):
        return len(self.base64) * 3 // 4

    def __repr__(self):
        return f"<{self.mime or 'binary'}, {len(self)} bytes>"


def _block(block):
    kind = block.get("type")
    if kind == "text":
        return block.get("text", "")
    if kind in ("image", "audio"):
        return Binary(block.get("mimeType", ""), block.get("data", ""))
    if kind == "resource":
        resource = block.get("resource", {})
        if "blob" in resource:
            return Binary(resource.get("mimeType", ""), resource["blob"])
        return resource.get("text", "")
    return block


def _value(result):
    """The Python value of a result: its structured content, or JSON in its text, or its text."""
    if "structuredContent" in result:
        return result["structuredContent"]
    blocks = [_block(b) for b in result.get("content", ())]
    if all(isinstance(b, str) for b in blocks):
        text = "\n".join(blocks)
        if text[:1] in ("{", "["):
            try:
                return json.loads(text)
            except ValueError:
                pass
        return text
    return blocks[0] if len(blocks) == 1 else blocks


def _error(reply, tool, line):
    error = reply["error"]
    text = error.get("message", "the call failed")
    if error.get("next"):
        text += "; next: " + error["next"]
    return ToolError(f"{tool} (line {line}): {text}" if line else f"{tool}: {text}", error.get("code", ""), tool, line)


def _outcome(reply, tool, line):
    if "error" in reply:
        raise _error(reply, tool, line)
    result = reply["result"]
    if result.get("isError"):
        text = "\n".join(b for b in map(_block, result.get("content", ())) if isinstance(b, str))
        raise ToolError(f"{tool} (line {line}): {text}", "tool_error", tool, line)
    return _value(result)


def _line():
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == SCRIPT:
            return frame.f_lineno
        frame = frame.f_back
    return 0


_pending = {}  # id: Pending, in the order of the calls


def _flush():
    """Has the host ask for all collected effects and send them. Raises the first error of a call."""
    if not _pending:
        return
    waiting = list(_pending.values())
    _pending.clear()
    answer = _ask({"op": "flush", "ids": [p._id for p in waiting]})
    first = None
    for p, reply in zip(waiting, answer.get("replies") or [answer] * len(waiting)):
        try:
            p._set(_outcome(reply, p._tool, p._line), None)
        except ToolError as error:
            p._set(None, error)
            first = first or error
    if first is not None:
        raise first


class Pending:
    """The result of a call that waits for a person's approval. Using it has the person asked about all such calls."""
    __slots__ = ("_id", "_tool", "_line", "_known", "_result", "_failure")

    def __init__(self, id, tool, line):
        self._id, self._tool, self._line = id, tool, line
        self._known, self._result, self._failure = False, None, None
        _pending[id] = self

    def _set(self, result, failure):
        self._known, self._result, self._failure = True, result, failure

    def _force(self):
        if not self._known:
            _flush()
        if self._failure is not None:
            raise self._failure
        return self._result

    def __getattr__(self, name):
        return getattr(self._force(), name)

    def __await__(self):
        return self._force()
        yield


def _forward(name):
    def method(self, *arguments):
        return getattr(operator, name)(self._force(), *(a._force() if isinstance(a, Pending) else a for a in arguments))
    return method


for _name in ("__getitem__", "__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__add__",
              "__mul__", "__sub__", "__mod__"):
    setattr(Pending, _name, _forward(_name))
for _name, _function in (("__iter__", iter), ("__len__", len), ("__str__", str), ("__repr__", repr), ("__bool__", bool),
                         ("__hash__", hash), ("__int__", int), ("__float__", float)):
    setattr(Pending, _name, lambda self, f=_function: f(self._force()))
Pending.__format__ = lambda self, spec: format(self._force(), spec)


class Deferred:
    """A call that is made by tools.gather, beside others. Awaiting it makes it alone."""

    def __init__(self, name, arguments):
        self.name, self.arguments, self.line = name, arguments, _line()

    def __await__(self):
        return _call(self.name, self.arguments, self.line)
        yield


def _answer(reply, name, line):
    if "pending" in reply:
        return Pending(reply["pending"], reply.get("tool", name), line)
    return _outcome(reply, name, line)


def _call(name, arguments, line):
    return _answer(_ask({"op": "call", "name": name, "arguments": arguments, "line": line}), name, line)


class _Gathered(list):
    """The results of tools.gather: a list that may be awaited."""

    def __await__(self):
        return list(self)
        yield


def _read_result(id, at, size):
    return _outcome(_ask({"op": "result", "id": id, "at": at, "size": size}), "result", _line())


class Result:
    """A kept text of this session. r[a:b] reads a part of it; len(r) is the number of its characters."""
    __slots__ = ("id", "_length", "_text")

    def __init__(self, id, length):
        self.id, self._length, self._text = id, length, None

    def _read(self, at, end):
        if self._text is not None:
            return self._text[at:end]
        parts = []
        while at < end:
            text = _read_result(self.id, at, end - at)["text"]
            if not text:
                break
            parts.append(text)
            at += len(text)
        return "".join(parts)

    def __len__(self):
        return self._length

    def __getitem__(self, key):
        if not isinstance(key, slice):
            at = range(self._length)[key]
            return self._read(at, at + 1)
        places = range(self._length)[key]
        if not places:
            return ""
        text = self._read(min(places[0], places[-1]), max(places[0], places[-1]) + 1)
        return text[::places.step]

    def __iter__(self):
        return iter(self.lines())

    def __contains__(self, text):
        return text in self.text()

    def __repr__(self):
        return f"<result {self.id}, {self._length} characters>"

    def text(self):
        """The whole text."""
        if self._text is None:
            self._text = self._read(0, self._length)
        return self._text

    def lines(self, first=None, last=None):
        """The lines first to last, as a list."""
        return self.text().splitlines()[first:last]

    def json(self):
        """The value of a text that is JSON."""
        return json.loads(self.text())

    def select(self, path):
        """The values that a JSONPath finds, as a list: r.select("$.items[*].name")."""
        return _drawbridge_jsonpath.select(path, self.json())


class Tool:
    """A tool, or a server with tools. Calling it calls the tool; an attribute is a tool of the server."""

    def __init__(self, name):
        self._name = name

    def __call__(self, arguments=None, /, **named):
        return _call(self._name, {**(arguments or {}), **named}, _line())

    def defer(self, arguments=None, /, **named):
        """A call for tools.gather."""
        return Deferred(self._name, {**(arguments or {}), **named})

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        tool = self.__dict__[name] = Tool(self._name + "." + name)
        return tool

    def __dir__(self):
        prefix = self._name + "__"
        return [n.removeprefix(prefix) for n in tools.names() if n.startswith(prefix)]

    @property
    def __doc__(self):
        return tools.describe(self._name)["description"]

    def __repr__(self):
        return f"<tool {self._name}>"


class _Tools(types.ModuleType):
    """tools.SERVER.TOOL(argument=value) calls a tool and returns its result."""
    ToolError, Binary = ToolError, Binary

    def call(self, name, arguments=None, /, **named):
        """Calls a tool by its full name, such as "github__create_issue"."""
        return _call(name, {**(arguments or {}), **named}, _line())

    def defer(self, name, arguments=None, /, **named):
        """A call for gather."""
        return Deferred(name, {**(arguments or {}), **named})

    def gather(self, *calls):
        """Makes deferred calls side by side and returns their results in order. The first error is raised."""
        if len(calls) == 1 and not isinstance(calls[0], Deferred):
            calls = tuple(calls[0])
        deferred = [c for c in calls if isinstance(c, Deferred)]
        replies = iter(())
        if deferred:
            answer = _ask({"op": "gather", "calls": [
                {"name": c.name, "arguments": c.arguments, "line": c.line} for c in deferred]})
            if "error" in answer:
                raise _error(answer, "gather", deferred[0].line)
            replies = iter(answer["replies"])
        return _Gathered(_answer(next(replies), c.name, c.line) if isinstance(c, Deferred) else c for c in calls)

    def search(self, query, limit=10):
        """Finds tools by what they do: a list of {"name", "summary"}."""
        return _outcome(_ask({"op": "search", "query": str(query), "limit": int(limit), "line": _line()}),
                        "search", 0)["tools"]

    def describe(self, name):
        """The description and the schemas of a tool."""
        name = name._name if isinstance(name, Tool) else name
        return _outcome(_ask({"op": "describe", "name": name, "line": _line()}), name, 0)

    def keep(self, value):
        """Keeps a value for later scripts of this session. Returns the Result; its id is for tools.result."""
        if isinstance(value, Pending):
            value = value._force()
        try:
            text = value if isinstance(value, str) else _to_json(value)
        except (TypeError, ValueError) as error:
            raise TypeError(f"this value cannot be kept: {error}") from None
        kept = _outcome(_ask({"op": "keep", "text": text}), "keep", _line())
        return Result(kept["id"], kept["length"])

    def result(self, id):
        """A result that an earlier script of this session left."""
        if isinstance(id, Result):
            return id
        return Result(str(id), _read_result(str(id), 0, 0)["length"])

    def names(self):
        """The names of all tools that this script may call."""
        return _outcome(_ask({"op": "names"}), "names", 0)["names"]

    def __getitem__(self, name):
        return Tool(name)

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        tool = self.__dict__[name] = Tool(name)
        return tool

    def __dir__(self):
        own = {"call", "describe", "gather", "keep", "names", "result", "search"}
        return sorted({n.split("__")[0] for n in self.names()} | own)


tools = _Tools("tools", _Tools.__doc__)
sys.modules["tools"] = tools


# asyncio works without sockets: its event loop knows only timers.
class _Selector:
    def select(self, timeout=None):
        if timeout is None:
            raise RuntimeError("nothing is scheduled: this would wait for ever")
        if timeout > 0:
            time.sleep(timeout)
        return []

    def close(self):
        pass


class _Loop(asyncio.BaseEventLoop):
    def __init__(self):
        super().__init__()
        self._selector = _Selector()

    def _process_events(self, events):
        pass

    def _write_to_self(self):
        pass


class _Policy(asyncio.DefaultEventLoopPolicy):
    _loop_factory = _Loop


asyncio.set_event_loop_policy(_Policy())

_setrecursionlimit = sys.setrecursionlimit
sys.setrecursionlimit = lambda n: _setrecursionlimit(min(n, MAX_RECURSION))


def _evaluate(code, namespace):
    value = eval(code, namespace)
    if code.co_flags & inspect.CO_COROUTINE:
        return asyncio.run(value)
    return value


def _run_script(source, namespace, out):
    tree = ast.parse(source, SCRIPT)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    _evaluate(compile(tree, SCRIPT, "exec", flags), namespace)
    value = None
    if last is not None:
        value = _evaluate(compile(ast.Expression(last.value), SCRIPT, "eval", flags), namespace)
    _flush()
    if isinstance(value, Pending):
        value = value._force()
    if value is None:
        return
    try:
        out["value"] = json.loads(_to_json(value))
    except (TypeError, ValueError, RecursionError):
        out["repr"] = repr(value)[:MAX_MESSAGE]


def _describe_error(error):
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != SCRIPT:
        trace = trace.tb_next
    line, t = 0, trace
    while t is not None:
        if t.tb_frame.f_code.co_filename == SCRIPT:
            line = t.tb_lineno
        t = t.tb_next
    if isinstance(error, SyntaxError) and error.filename == SCRIPT:
        line = error.lineno or 0
    shown = traceback.TracebackException(type(error), error, trace, compact=True)
    shown.stack = traceback.StackSummary.from_list([f for f in shown.stack if f.filename == SCRIPT])
    return {"type": type(error).__name__, "message": str(error)[:MAX_MESSAGE], "line": line,
            "traceback": "".join(shown.format())[-MAX_TRACEBACK:]}


def _describe(error):
    try:
        return _describe_error(error)
    except BaseException:  # its own methods may raise
        return {"type": type(error).__name__, "message": "the exception cannot be shown", "line": 0, "traceback": ""}


def _report(out):
    try:
        _ask({"op": "done", "outcome": out})
    except BaseException:  # too large
        out = {"error": {"type": "ValueError", "message": "the value of the last line is too large", "line": 0}}
        _ask({"op": "done", "outcome": out})


def run(message):
    """Runs one script: message is a JSON object with "code" and "arguments". Returns 0, or 1 after an exception."""
    random.seed()  # the snapshot has a fixed one
    request = json.loads(message)
    source = request["code"]
    linecache.cache[SCRIPT] = (len(source), None, source.splitlines(True), SCRIPT)
    script = types.ModuleType("__main__")
    script.__dict__.update(tools=tools, ToolError=ToolError, arguments=request.get("arguments") or {})
    sys.modules["__main__"] = script
    status, out = 0, {}
    try:
        _run_script(source, script.__dict__, out)
    except SystemExit as end:
        try:
            _flush()
        except BaseException as error:
            status, out["error"] = 1, _describe(error)
        else:
            code = end.code
            out["exit"] = int(code) & 0xff if isinstance(code, int) else 0 if code is None else 1
            if isinstance(code, str):
                print(code, file=sys.stderr)
    except BaseException as error:
        status, out["error"] = 1, _describe(error)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:
        pass
    _report(out)
    return status


import gc

gc.collect()
gc.freeze()

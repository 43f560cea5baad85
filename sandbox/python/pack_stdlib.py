"""pack_stdlib.py LIB OUT: writes the standard library as one marshalled dictionary.

The dictionary maps the name of a module to (is it a package, its code object, marshalled). It must run with the same
version of Python as the interpreter that reads it. The code is not compressed here: the whole memory image is.
"""
import marshal
import os
import sys

SKIPPED_DIRECTORIES = {
    "test", "tests", "idlelib", "tkinter", "turtledemo", "lib2to3", "ensurepip", "venv", "distutils", "msilib",
    "ctypes", "curses", "dbm", "sqlite3", "multiprocessing", "pydoc_data", "__pycache__", "site-packages",
    "lib-dynload", "wsgiref", "xmlrpc", "_pyrepl", "pathlib_tests",
}
SKIPPED_FILES = {"turtle.py", "antigravity.py", "this.py"}
SYSCONFIG = "build_time_vars = {'TZPATH': '', 'prefix': '/', 'exec_prefix': '/', 'Py_DEBUG': 0}"


def compiled(source, name):
    return marshal.dumps(compile(source, "<stdlib>/" + name, "exec", dont_inherit=True, optimize=0))


def main(library, out):
    modules = {}
    for directory, subdirectories, files in os.walk(library):
        subdirectories[:] = sorted(d for d in subdirectories
                                   if d not in SKIPPED_DIRECTORIES and not d.startswith("config-"))
        relative = os.path.relpath(directory, library)
        for file in sorted(files):
            if not file.endswith(".py") or file in SKIPPED_FILES:
                continue
            parts = [] if relative == "." else relative.split(os.sep)
            package = file == "__init__.py"
            if not package:
                parts = parts + [file[:-3]]
            if not parts:
                continue
            with open(os.path.join(directory, file), "rb") as f:
                source = f.read()
            try:
                code = compiled(source, "/".join(parts) + ".py")
            except SyntaxError as error:
                print("skipped", ".".join(parts), error, file=sys.stderr)
                continue
            modules[".".join(parts)] = (package, code)
    for name in ("_sysconfigdata__wasm32-wasi", "_sysconfigdata__wasi_wasm32-wasi"):
        modules[name] = (False, compiled(SYSCONFIG, "_sysconfigdata.py"))
    with open(out, "wb") as f:
        f.write(marshal.dumps(modules))
    print(len(modules), "modules,", os.path.getsize(out), "bytes")


main(*sys.argv[1:])

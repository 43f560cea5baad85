/* reactor.c: CPython as a WASI reactor with one way to reach its host.

   Exports
     python_init()           starts the interpreter and imports the bootstrap; called once, before the snapshot.
                             Returns 0, or the number of the step that failed.
     python_alloc(n)         returns n bytes of guest memory for a script.
     python_run(ptr, len)    runs one script. Returns 0, 1 when the script raised an exception, 2 when the
                             bootstrap itself failed.
   Imports
     drawbridge.request(ptr, len)  sends one request to the host and waits. Returns the length of the reply, or a
                                   negative number when the host refused it: PermissionError with that number.
     drawbridge.reply(ptr, len)    copies that reply into guest memory. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>

__attribute__((import_module("drawbridge"), import_name("request"))) int32_t host_request(const char *p, int32_t n);
__attribute__((import_module("drawbridge"), import_name("reply"))) void host_reply(char *p, int32_t n);

static PyObject *request(PyObject *self, PyObject *arg) {
  char *p;
  Py_ssize_t n;
  if (PyBytes_AsStringAndSize(arg, &p, &n) < 0) return NULL;
  int32_t length = host_request(p, (int32_t)n);
  if (length < 0) return PyErr_Format(PyExc_PermissionError, "%d", length);
  PyObject *reply = PyBytes_FromStringAndSize(NULL, length);
  if (reply && length) host_reply(PyBytes_AS_STRING(reply), length);
  return reply;
}

static PyMethodDef methods[] = {
    {"request", request, METH_O, "request(bytes) -> bytes: sends one request to the host"},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_drawbridge", NULL, 0, methods};
static PyObject *init_module(void) { return PyModule_Create(&module); }

static PyObject *run; /* _drawbridge_boot.run(bytes) -> int */

__attribute__((export_name("python_init"))) int python_init(void) {
  PyPreConfig pre;
  PyPreConfig_InitIsolatedConfig(&pre);
  pre.utf8_mode = 1;
  if (PyStatus_Exception(Py_PreInitialize(&pre))) return 1;
  if (PyImport_AppendInittab("_drawbridge", init_module) < 0) return 2;

  PyConfig config;
  PyConfig_InitIsolatedConfig(&config);
  config.install_signal_handlers = 0;
  config.site_import = 0;
  config.write_bytecode = 0;
  config.buffered_stdio = 1;
  config.pathconfig_warnings = 0;
  config.use_hash_seed = 1; /* the snapshot must come out the same each time */
  config.hash_seed = 0;
  config.module_search_paths_set = 1;
  PyWideStringList_Append(&config.module_search_paths, L"/stdlib");
  PyConfig_SetString(&config, &config.prefix, L"/");
  PyConfig_SetString(&config, &config.exec_prefix, L"/");
  PyConfig_SetString(&config, &config.base_prefix, L"/");
  PyConfig_SetString(&config, &config.base_exec_prefix, L"/");
  PyConfig_SetString(&config, &config.executable, L"");
  PyConfig_SetString(&config, &config.base_executable, L"");
  PyConfig_SetString(&config, &config.stdio_encoding, L"utf-8");
  PyConfig_SetString(&config, &config.stdio_errors, L"backslashreplace");
  PyStatus status = Py_InitializeFromConfig(&config);
  PyConfig_Clear(&config);
  if (PyStatus_Exception(status)) {
    fprintf(stderr, "start of Python: %s\n", status.err_msg ? status.err_msg : "unknown error");
    return 3;
  }
  PyObject *boot = PyImport_ImportModule("_drawbridge_boot");
  if (!boot) {
    PyErr_Print();
    return 4;
  }
  run = PyObject_GetAttrString(boot, "run");
  Py_DECREF(boot);
  if (!run) {
    PyErr_Print();
    return 5;
  }
  return 0;
}

__attribute__((export_name("python_alloc"))) char *python_alloc(int32_t n) { return malloc(n > 0 ? n : 1); }

__attribute__((export_name("python_run"))) int python_run(const char *script, int32_t n) {
  if (!run) return 2;
  PyObject *status = PyObject_CallFunction(run, "y#", script, (Py_ssize_t)n);
  if (!status) {
    PyErr_Print();
    return 2;
  }
  int code = (int)PyLong_AsLong(status);
  Py_DECREF(status);
  return code;
}

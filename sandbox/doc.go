// Package sandbox runs Python scripts that call tools. Each run has a fresh CPython 3.13, compiled to WebAssembly, in a
// worker process of its own.
//
// It guarantees:
//
//   - A script reaches nothing but its [Host]: no file, no network, no environment, no process, no data of another run.
//   - A script ends. Its time, its memory, its output, and its calls are limited; a worker that does not end is killed.
//   - A worker process gives up all rights before it sees a script, as far as the system supports that. A script that
//     escapes from WebAssembly still has no file, no network and no other process.
//   - Workers end with the program that started them.
//
// It does not judge calls: the Host does. The results and the output of a script are as untrusted as the script.
//
// A program that uses this package calls [RunWorker] first thing in main: the workers are the program itself, started
// again. A program that cannot do that sets [Options.InProcess]: then only WebAssembly holds a script, and what this list
// says about processes does not hold.
package sandbox

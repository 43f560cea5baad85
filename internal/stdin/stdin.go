// Package stdin has a program wait for its standard input without a thread in a system call.
//
// That is about more than the thread. From Go 1.26 on (1.27.1 has it too) the garbage collector can fail to see a thread that
// enters a system call in the very moment in which the world is to stop: it then waits until the call returns, or for up to
// a minute, and all of the program waits with it. A read of an input on which nothing comes is such a call. A program that
// does nothing but answer lines stood still once in some hundred thousand of them, until the next line came, or the minute
// was over; read through the runtime's poller it never does.
package stdin

// The parts of the supervisor, and the messages that it exchanges with Drawbridge.
#ifndef SUPERVISOR_H
#define SUPERVISOR_H

#include "kernel.h"

// PROTOCOL is the version of the messages. Drawbridge embeds the supervisor, so the versions differ only by mistake.
enum { PROTOCOL = 1 };

// The descriptors that come with an order, in this sequence. RULES is the Landlock ruleset of a confined program.
enum descriptor { SPEC, STDIN, STDOUT, STDERR, LIFE, STATUS, RULES, MAX_DESCRIPTORS };

// Flags of an order.
enum {
	ORDER_NAMESPACES = 1,      // put the tree into a PID namespace and a mount namespace of its own, if the system allows it
	ORDER_USER_NAMESPACE = 2, // a user namespace is needed for that
	ORDER_RULES = 4,          // there is a ruleset among the descriptors
};

// An order asks the top supervisor to start a program.
struct order {
	u32 version;
	u32 flags;
	u64 grace; // milliseconds between SIGTERM and SIGKILL
};

// A spec describes the program. It is the beginning of the file SPEC. The texts and lists are offsets in the file; a list
// consists of offsets of texts and ends with 0. Texts end with a NUL byte.
struct spec {
	u64 path;
	u64 directory;
	u64 arguments;
	u64 environment;
	u64 filter; // the instructions of the system call filter; 0 means no filter
	u64 filter_length;
	u64 kept_capabilities; // a bit for each capability that a confined program keeps
	u64 proc_access;       // the Landlock rights to the /proc of a new PID namespace
	u64 flags;
};

// Flags of a spec.
enum {
	SPEC_CONFINED = 1,               // restrict the program before it is executed
	SPEC_CAPABILITIES_REQUIRED = 2, // do not start the program if a capability of root cannot be dropped
};

// Kinds of reports. The value of REPORT_STARTED is 1 if the program is in namespaces of its own. The kernel adds the
// process ID of the sender, which is how Drawbridge learns the ID of the program from REPORT_PROGRAM. The value of
// REPORT_FAILED is an error number, and the value of REPORT_ENDED is the status from wait4.
enum { REPORT_HELLO = 1, REPORT_PROGRAM, REPORT_STARTED, REPORT_FAILED, REPORT_ENDED };

// The steps of a start that can fail. The names are in supervisor_linux.go.
enum step {
	STEP_NONE,
	STEP_SERVERS, // there are too many servers
	STEP_FORK,
	STEP_PREPARE, // prepare the supervisor of the program
	STEP_SPEC,
	STEP_GROUP,
	STEP_STREAMS,
	STEP_DIRECTORY,
	STEP_LIMITS,
	STEP_PRIVILEGES,
	STEP_FILES,
	STEP_CAPABILITIES,
	STEP_FILTER,
	STEP_EXECUTE,
};

// A report tells Drawbridge about a program.
struct report {
	u32 kind;
	u32 step;
	i32 value;
	u32 unused;
};

// A failure is what the process that becomes the program tells its supervisor if it cannot execute the program.
struct failure {
	u32 step;
	i32 error;
};

// The state that a program gets as Drawbridge passed it on.
struct inherited {
	u64 signal_mask;
	struct rlimit files;
};

// basics.c
void exit_process(int status) __attribute__((noreturn));
void send_report(i32 to, u32 kind, u32 step, i32 value);
void close_descriptor(i32 fd);
void close_all_except(i32 *keep, int count, i32 highest);
i32 signal_descriptor(u64 signals);
void drain_signals(i32 fd, u64 *received);
int for_each_child(void (*visit)(i32 pid, void *context), void *context);
i64 milliseconds(void);
i64 fork_process(u64 flags);
i32 wait_for_child(i32 pid, i32 *status, int options);

// top.c
extern u32 own_user, own_group; // the user and the group of Drawbridge

// namespaces.c
int enter_namespaces(int user_namespace);

// tree.c
void supervise_tree(const struct order *order, const i32 *fds, int namespaces, const struct inherited *inherited)
	__attribute__((noreturn));

// program.c
void run_program(const i32 *fds, int namespaces, i32 parent, i32 failures, const struct inherited *inherited)
	__attribute__((noreturn));

#endif

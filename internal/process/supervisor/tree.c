// The supervisor of one program. It starts the program, and ends all processes that the program started: when the
// program ends, when Drawbridge orders it, and when Drawbridge dies.
#include "supervisor.h"

enum { MAX_ASKED = 256, MIN_PAUSE = 2, MAX_PAUSE = 50 };

// The orders in the life pipe. Its end also means ASK_TO_END.
enum { ASK_TO_END = 'T', KILL_ALL = 'K' };

// A tree is a program with all processes that it started.
struct tree {
	i32 leader; // the process ID of the program
	i32 life, status, signals;
	i32 failures; // ends when the program is executed; -1 afterwards
	int namespaces;
	u64 grace;
	int reported; // Drawbridge knows if the program was executed
	int ended;    // the program has ended, with leader_status
	i32 leader_status;
	int ending, kill; // the processes are being ended; with SIGKILL
	i64 deadline;     // for ending without SIGKILL
	i32 asked[MAX_ASKED]; // the children that have received SIGTERM, and zeros
};

// report_start tells Drawbridge if the program was executed. The write end of failures is closed or was written to.
static void report_start(struct tree *tree) {
	struct failure failure;
	i64 n;
	do
		n = system_call(SYS_READ, tree->failures, &failure, sizeof failure);
	while (n == -EINTR);
	if (n == sizeof failure)
		send_report(tree->status, REPORT_FAILED, failure.step, failure.error);
	else
		send_report(tree->status, REPORT_STARTED, 0, tree->namespaces);
	tree->reported = 1;
	close_descriptor(tree->failures);
	tree->failures = -1;
}

// forget_asked removes a process that has ended from the processes that have received SIGTERM.
static void forget_asked(struct tree *tree, i32 pid) {
	for (int i = 0; i < MAX_ASKED; i++)
		if (tree->asked[i] == pid)
			tree->asked[i] = 0;
}

// note_asked reports whether a process is asked to end for the first time. If there are too many processes, the rest is
// not asked, and gets SIGKILL after the grace.
static int note_asked(struct tree *tree, i32 pid) {
	i32 *place = 0;
	for (int i = 0; i < MAX_ASKED; i++) {
		if (tree->asked[i] == pid)
			return 0;
		if (tree->asked[i] == 0 && !place)
			place = &tree->asked[i];
	}
	if (!place)
		return 0;
	*place = pid;
	return 1;
}

// reap_children reads the status of each child that has ended. It returns 0 if no process is left: orphaned descendants
// become children.
static int reap_children(struct tree *tree) {
	for (;;) {
		i32 status = 0;
		i32 pid = wait_for_child(-1, &status, WNOHANG);
		if (pid <= 0)
			return pid == 0;
		forget_asked(tree, pid);
		if (pid == tree->leader) {
			tree->ended = 1;
			tree->leader_status = status;
		}
	}
}

// signal_child sends SIGTERM once, or SIGKILL, to a child; if it is the program, to its whole process group. Only
// children are signalled: the ID of a child cannot be used again before it is waited for. An error means that the
// process has ended, or that it may not be signalled.
static void signal_child(i32 pid, void *context) {
	struct tree *tree = context;
	if (!tree->kill && !note_asked(tree, pid))
		return;
	int signal = tree->kill ? SIGKILL : SIGTERM;
	if (pid == tree->leader && system_call(SYS_KILL, -pid, signal) == 0)
		return;
	(void)system_call(SYS_KILL, pid, signal);
}

// signal_tree sends SIGTERM once, or SIGKILL, to the processes that are left.
static void signal_tree(struct tree *tree) {
	if (tree->namespaces) { // this process is the first of a PID namespace: -1 are all others in it
		if (tree->kill || note_asked(tree, -1))
			(void)system_call(SYS_KILL, -1, tree->kill ? SIGKILL : SIGTERM);
		return;
	}
	int count = for_each_child(signal_child, tree);
	if (count < 0 || (count == 0 && !tree->ended)) // no /proc, or that of another namespace
		signal_child(tree->leader, tree);
}

// begin_ending begins to end the processes.
static void begin_ending(struct tree *tree) {
	if (!tree->ending)
		tree->deadline = milliseconds() + (i64)tree->grace;
	tree->ending = 1;
}

// read_order reads an order from the life pipe.
static void read_order(struct tree *tree) {
	u8 order = ASK_TO_END;
	i64 n = system_call(SYS_READ, tree->life, &order, 1);
	if (n == -EINTR)
		return;
	if (n <= 0) {
		close_descriptor(tree->life);
		tree->life = -1;
	}
	if (n > 0 && order == KILL_ALL)
		tree->kill = 1;
	begin_ending(tree);
}

// wait_and_end waits until the program has ended, or until an order arrives. It then ends the remaining processes, and
// returns when none is left.
static void wait_and_end(struct tree *tree) {
	i64 pause = MIN_PAUSE;
	while (reap_children(tree)) {
		if (tree->ended)
			begin_ending(tree);
		if (tree->ending && milliseconds() >= tree->deadline)
			tree->kill = 1;
		if (tree->ending)
			signal_tree(tree);
		struct timespec wait = {0, pause * 1000000};
		struct pollfd polled[] = {
			{tree->signals, POLLIN, 0}, {tree->life, POLLIN, 0}, {tree->failures, POLLIN, 0}};
		(void)system_call(SYS_PPOLL, polled, 3, tree->ending ? &wait : 0, 0, 0); // an error means another round
		if (tree->ending && (pause *= 2) > MAX_PAUSE)
			pause = MAX_PAUSE;
		u64 received = 0;
		drain_signals(tree->signals, &received);
		if (received & ~SIGNAL_BIT(SIGCHLD))
			begin_ending(tree);
		if (tree->life >= 0 && polled[1].revents)
			read_order(tree);
		if (tree->failures >= 0 && polled[2].revents)
			report_start(tree);
	}
}

// prepare makes this process the supervisor of a tree. It returns 0 or an error.
static i64 prepare(struct tree *tree) {
	i64 error = 0;
	(void)system_call(SYS_PRCTL, PR_SET_NAME, "drawbridge-reap", 0, 0, 0); // a name for ps
	(void)system_call(SYS_SETPGID, 0, 0); // against the Ctrl-C of a terminal; cannot fail for a new child
	if (!tree->namespaces)
		error = system_call(SYS_PRCTL, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (error == 0)
		error = tree->signals = signal_descriptor(
			SIGNAL_BIT(SIGCHLD) | SIGNAL_BIT(SIGTERM) | SIGNAL_BIT(SIGINT) | SIGNAL_BIT(SIGHUP));
	return error < 0 ? error : 0;
}

// fork_program starts the process that becomes the program. It returns 0 or an error.
static i64 fork_program(struct tree *tree, const i32 *fds, const struct inherited *inherited) {
	i32 failures[2];
	i64 error = system_call(SYS_PIPE2, failures, O_CLOEXEC);
	if (error < 0)
		return error;
	i32 self = (i32)system_call(SYS_GETPID);
	i64 pid = fork_process(0);
	if (pid == 0)
		run_program(fds, tree->namespaces, self, failures[1], inherited);
	close_descriptor(failures[1]);
	tree->failures = failures[0];
	tree->leader = (i32)pid;
	return pid < 0 ? pid : 0;
}

// supervise_tree starts the program and returns never: it ends with status 0 when no process is left.
void supervise_tree(const struct order *order, const i32 *fds, int namespaces, const struct inherited *inherited) {
	struct tree tree = {.life = fds[LIFE], .status = fds[STATUS], .namespaces = namespaces, .grace = order->grace};
	u32 step = STEP_PREPARE;
	i64 error = prepare(&tree);
	if (error == 0) {
		step = STEP_FORK;
		error = fork_program(&tree, fds, inherited);
	}
	if (error < 0) {
		send_report(tree.status, REPORT_FAILED, step, (i32)-error);
		exit_process(0);
	}
	// Only the program may have its streams open, so that their end is noticed. And no supervisor keeps a description:
	// it contains the environment.
	close_descriptor(fds[SPEC]);
	close_descriptor(fds[STDIN]);
	close_descriptor(fds[STDOUT]);
	close_descriptor(fds[STDERR]);
	if (order->flags & ORDER_RULES)
		close_descriptor(fds[RULES]);
	wait_and_end(&tree);
	if (!tree.reported)
		report_start(&tree);
	send_report(tree.status, REPORT_ENDED, 0, tree.leader_status);
	exit_process(0);
}

// The top supervisor. It is the only child of Drawbridge, starts a supervisor for each server, and ends the processes of
// supervisors that were killed.
#include "supervisor.h"

u32 own_user, own_group;

enum { CONTROL = 0, MAX_SERVERS = 4096, LOST = -1, MIN_PAUSE = 2, MAX_PAUSE = 50 };

// A server is a running supervisor. Its status socket stays open here until all its processes have ended: when the
// socket ends, Drawbridge knows that nothing is left.
struct server {
	i32 pid; // 0 if the place is free, LOST if the supervisor was killed
	i32 status;
};

static struct server servers[MAX_SERVERS];
static int server_count;      // places from there on were never used
static int has_lost;          // supervisors were killed, and their processes may be left
static i32 highest;           // no descriptor is above it
static struct inherited inherited;

// take_order receives an order with its descriptors. It returns their number, 0 if the order is invalid, and -1 if
// Drawbridge has ended.
static int take_order(struct order *order, i32 *fds) {
	struct {
		struct control_header header;
		i32 fds[MAX_DESCRIPTORS + 1];
	} control = {{0, 0, 0}, {0}};
	struct iovec part = {order, sizeof *order};
	struct message_header message = {0, 0, &part, 1, &control, sizeof control, 0};
	i64 n = system_call(SYS_RECVMSG, CONTROL, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n == -EINTR || n == -EAGAIN)
		return 0;
	if (n <= 0)
		return -1;
	int count = 0;
	fds[RULES] = -1;
	if (message.control_length >= sizeof control.header && control.header.level == SOL_SOCKET &&
	    control.header.type == SCM_RIGHTS)
		count = (int)((control.header.length - sizeof control.header) / sizeof(i32));
	for (int i = 0; i < count; i++) {
		if (control.fds[i] > highest)
			highest = control.fds[i];
		if (i < MAX_DESCRIPTORS)
			fds[i] = control.fds[i];
	}
	int wanted = order->flags & ORDER_RULES ? MAX_DESCRIPTORS : MAX_DESCRIPTORS - 1;
	if (n == sizeof *order && order->version == PROTOCOL && count == wanted && !(message.flags & MSG_CTRUNC))
		return count;
	for (int i = 0; i < count; i++) // Drawbridge sees that the status socket ends
		close_descriptor(control.fds[i]);
	return 0;
}

// fork_in_namespaces starts a copy of this process in new namespaces, as fork_process does. *inside tells the copy what
// enter_namespaces returned. It returns an error if the system does not allow that.
static i64 fork_in_namespaces(int user_namespace, int *inside) {
	i32 ready[2];
	u8 answer = 0;
	i64 error = system_call(SYS_PIPE2, ready, O_CLOEXEC);
	if (error < 0)
		return error;
	if (ready[1] > highest)
		highest = ready[1];
	i64 pid = fork_process(CLONE_NEWPID | CLONE_NEWNS | (user_namespace ? CLONE_NEWUSER : 0));
	if (pid == 0) {
		answer = (u8)enter_namespaces(user_namespace);
		if (answer == 0 || system_call(SYS_WRITE, ready[1], &answer, 1) != 1)
			exit_process(1);
		*inside = answer;
		return 0;
	}
	close_descriptor(ready[1]);
	if (pid > 0) {
		i64 n;
		do
			n = system_call(SYS_READ, ready[0], &answer, 1);
		while (n == -EINTR);
		if (n != 1) {
			(void)wait_for_child((i32)pid, 0, 0); // it has ended, and is ours
			pid = -EPERM;
		}
	}
	close_descriptor(ready[0]);
	return pid;
}

// free_place returns a free place for a server, or null.
static struct server *free_place(void) {
	for (int i = 0; i < server_count; i++)
		if (servers[i].pid == 0)
			return &servers[i];
	return server_count < MAX_SERVERS ? &servers[server_count++] : 0;
}

// become_supervisor turns this copy of the top supervisor into the supervisor of a program.
static void become_supervisor(const struct order *order, const i32 *fds, int count, int inside) {
	i32 keep[3 + MAX_DESCRIPTORS] = {0, 1, 2};
	i64 error = system_call(SYS_DUP3, 1, CONTROL, O_CLOEXEC); // the null device
	if (error < 0) {
		send_report(fds[STATUS], REPORT_FAILED, STEP_PREPARE, (i32)-error);
		exit_process(1);
	}
	for (int i = 0; i < count; i++)
		keep[3 + i] = fds[i];
	close_all_except(keep, 3 + count, highest);
	supervise_tree(order, fds, inside, &inherited);
}

// start_server starts a supervisor for a program.
static void start_server(const struct order *order, const i32 *fds, int count) {
	struct server *place = free_place();
	int inside = 0;
	i64 pid = -EPERM;
	if (place && order->flags & ORDER_NAMESPACES)
		pid = fork_in_namespaces(order->flags & ORDER_USER_NAMESPACE, &inside);
	if (place && pid < 0)
		pid = fork_process(0);
	if (pid == 0)
		become_supervisor(order, fds, count, inside);
	if (pid < 0) {
		send_report(fds[STATUS], REPORT_FAILED, place ? STEP_FORK : STEP_SERVERS, place ? (i32)-pid : EMFILE);
		close_descriptor(fds[STATUS]);
	} else {
		place->pid = (i32)pid;
		place->status = fds[STATUS];
	}
	for (int i = 0; i < count; i++)
		if (i != STATUS)
			close_descriptor(fds[i]);
}

// server_with returns the server whose supervisor has that process ID, or null.
static struct server *server_with(i32 pid) {
	for (int i = 0; i < server_count; i++)
		if (servers[i].pid == pid)
			return &servers[i];
	return 0;
}

// reap_children reads the status of each child that has ended. It returns 0 if no child is left. A supervisor ends with
// status 0 when all its processes have ended.
static int reap_children(void) {
	for (;;) {
		i32 status = 0;
		i32 pid = wait_for_child(-1, &status, WNOHANG);
		if (pid <= 0)
			return pid == 0;
		struct server *ended = server_with(pid);
		if (!ended)
			continue;
		if (status == 0) {
			close_descriptor(ended->status);
			ended->pid = 0;
		} else {
			ended->pid = LOST;
			has_lost = 1;
		}
	}
}

// kill_orphan kills a child that is not a supervisor: the process of a supervisor that was killed. It is a child, so its
// ID cannot have been used again. An error means that it has ended.
static void kill_orphan(i32 pid, void *context) {
	if (server_with(pid))
		return;
	++*(int *)context;
	(void)system_call(SYS_KILL, pid, SIGKILL);
}

// kill_orphans kills the processes of supervisors that were killed. Their own children become ours when they end, and
// are killed in the next round.
static void kill_orphans(void) {
	int orphans = 0;
	(void)for_each_child(kill_orphan, &orphans); // without /proc, none is found
	if (orphans > 0)
		return;
	has_lost = 0;
	for (int i = 0; i < server_count; i++)
		if (servers[i].pid == LOST) {
			close_descriptor(servers[i].status);
			servers[i].pid = 0;
		}
}

// raise_file_limit permits a descriptor for each server. Without more than the usual, fewer servers can be started.
static void raise_file_limit(void) {
	if (system_call(SYS_PRLIMIT64, 0, RLIMIT_NOFILE, 0, &inherited.files) < 0)
		return;
	struct rlimit all = {inherited.files.maximum, inherited.files.maximum};
	(void)system_call(SYS_PRLIMIT64, 0, RLIMIT_NOFILE, &all, 0);
}

// prepare sets up the top supervisor. It returns the descriptor for signals, or an error.
static i32 prepare(void) {
	i32 keep[] = {0, 1, 2};
	u64 all = ~0UL;
	struct rlimit files = {1024, 1024};
	(void)system_call(SYS_PRCTL, PR_SET_NAME, "drawbridge-top", 0, 0, 0); // a name for ps
	// Only root can read the memory and the descriptors of a supervisor.
	i64 error = system_call(SYS_PRCTL, PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (error == 0)
		error = system_call(SYS_PRCTL, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (error == 0)
		error = system_call(SYS_RT_SIGPROCMASK, SIG_SETMASK, &all, &inherited.signal_mask, SIGNAL_SET_SIZE);
	if (error < 0)
		return (i32)error;
	(void)system_call(SYS_PRLIMIT64, 0, RLIMIT_NOFILE, 0, &files); // only for kernels without close_range
	close_all_except(keep, 3, (i32)files.current);
	raise_file_limit();
	own_user = (u32)system_call(SYS_GETEUID);
	own_group = (u32)system_call(SYS_GETEGID);
	highest = signal_descriptor(SIGNAL_BIT(SIGCHLD));
	return highest;
}

// supervise_servers is the main loop. It returns when Drawbridge and all supervisors have ended.
static void supervise_servers(i32 signals) {
	i64 pause = MIN_PAUSE;
	int connected = 1;
	for (;;) {
		int children = reap_children();
		if (!children && !connected)
			return;
		if (has_lost)
			kill_orphans();
		else
			pause = MIN_PAUSE;
		struct timespec wait = {0, pause * 1000000};
		struct pollfd polled[] = {{signals, POLLIN, 0}, {connected ? CONTROL : -1, POLLIN, 0}};
		(void)system_call(SYS_PPOLL, polled, 2, has_lost ? &wait : 0, 0, 0); // an error means another round
		if (has_lost && (pause *= 2) > MAX_PAUSE)
			pause = MAX_PAUSE;
		u64 received = 0;
		drain_signals(signals, &received);
		if (connected && polled[1].revents) {
			struct order order = {0, 0, 0};
			i32 fds[MAX_DESCRIPTORS];
			int count = take_order(&order, fds);
			if (count < 0)
				connected = 0;
			if (count > 0)
				start_server(&order, fds, count);
		}
	}
}

// top_supervisor is where this program begins. Drawbridge has connected standard input to the control socket, and
// standard output and standard error to the null device.
__attribute__((noreturn, used)) void top_supervisor(void) {
	i32 signals = prepare();
	if (signals < 0)
		exit_process(1);
	send_report(CONTROL, REPORT_HELLO, 0, PROTOCOL);
	supervise_servers(signals);
	exit_process(0);
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tand $-16, %rsp\n\tcall top_supervisor\n");
#else
__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tmov x30, #0\n\tb top_supervisor\n");
#endif

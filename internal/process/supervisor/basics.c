// What the parts of the supervisor share.
#include "supervisor.h"

// The compiler may call these two functions.
void *memcpy(void *to, const void *from, u64 length) {
	u8 *out = to;
	const u8 *in = from;
	while (length-- > 0)
		*out++ = *in++;
	return to;
}

void *memset(void *to, int value, u64 length) {
	u8 *out = to;
	while (length-- > 0)
		*out++ = (u8)value;
	return to;
}

// exit_process ends this process.
void exit_process(int status) {
	for (;;)
		system_call(SYS_EXIT_GROUP, status);
}

// send_report sends a report. An error means that Drawbridge has ended, which the life pipe shows too.
void send_report(i32 to, u32 kind, u32 step, i32 value) {
	struct report report = {kind, step, value, 0};
	while (system_call(SYS_SENDTO, to, &report, sizeof report, MSG_NOSIGNAL, 0, 0) == -EINTR)
		;
}

// close_descriptor closes fd. Linux releases the number in any case, so the result of close says nothing of use.
void close_descriptor(i32 fd) { (void)system_call(SYS_CLOSE, fd); }

// close_between closes the descriptors from first to last.
static void close_between(i32 first, i32 last, i32 highest) {
	if (first > last || system_call(SYS_CLOSE_RANGE, first, last, 0) == 0)
		return;
	for (i32 fd = first; fd <= last && fd <= highest; fd++) // before Linux 5.9
		close_descriptor(fd);
}

// close_all_except closes all descriptors except the given ones, which it sorts. No descriptor is above highest.
void close_all_except(i32 *keep, int count, i32 highest) {
	for (int i = 1; i < count; i++)
		for (int j = i; j > 0 && keep[j] < keep[j - 1]; j--) {
			i32 other = keep[j];
			keep[j] = keep[j - 1];
			keep[j - 1] = other;
		}
	i32 next = 0;
	for (int i = 0; i < count; i++) {
		close_between(next, keep[i] - 1, highest);
		next = keep[i] + 1;
	}
	close_between(next, 0x7fffffff, highest);
}

// signal_descriptor returns a descriptor from which the given signals can be read, or an error. They must be blocked.
i32 signal_descriptor(u64 signals) {
	return (i32)system_call(SYS_SIGNALFD4, -1, &signals, SIGNAL_SET_SIZE, O_NONBLOCK | O_CLOEXEC);
}

// drain_signals reads all waiting signals and adds their bits to *received.
void drain_signals(i32 fd, u64 *received) {
	u8 information[128]; // struct signalfd_siginfo, which begins with the number
	for (;;) {
		i64 n = system_call(SYS_READ, fd, information, sizeof information);
		if (n == -EINTR)
			continue;
		if (n != sizeof information)
			return;
		*received |= SIGNAL_BIT(*(u32 *)information);
	}
}

// milliseconds returns the time since an arbitrary moment. The clock cannot fail.
i64 milliseconds(void) {
	struct timespec now = {0, 0};
	(void)system_call(SYS_CLOCK_GETTIME, CLOCK_MONOTONIC, &now);
	return now.seconds * 1000 + now.nanoseconds / 1000000;
}

// fork_process starts a copy of this process. It returns 0 in the copy, and the process ID of the copy or an error in
// this process. flags are those of clone.
i64 fork_process(u64 flags) { return system_call(SYS_CLONE, flags | SIGCHLD, 0, 0, 0, 0); }

// wait_for_child is wait4, repeated if a signal interrupted it.
i32 wait_for_child(i32 pid, i32 *status, int options) {
	for (;;) {
		i64 result = system_call(SYS_WAIT4, pid, status, options, 0);
		if (result != -EINTR)
			return (i32)result;
	}
}

// read_file reads the beginning of a file, and returns its length or an error.
static i64 read_file(const char *path, char *into, u64 size) {
	i64 fd = system_call(SYS_OPENAT, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fd;
	i64 n = system_call(SYS_READ, fd, into, size);
	close_descriptor((i32)fd);
	return n;
}

// parse_number returns the number that begins at *text, and moves *text behind it. It returns -1 if there is none.
static i32 parse_number(const char **text, const char *end) {
	i32 number = -1;
	for (; *text < end && **text >= '0' && **text <= '9'; (*text)++)
		number = (number < 0 ? 0 : number) * 10 + (**text - '0');
	return number;
}

// parent_of returns the parent of the process with that ID, or -1. The file is "pid (name) state parent ...", and the
// name may contain any characters.
static i32 parent_of(const char *pid) {
	char path[32] = "/proc/", stat[512];
	int length = 6;
	while (*pid && length < 20)
		path[length++] = *pid++;
	memcpy(path + length, "/stat", 6);
	i64 n = read_file(path, stat, sizeof stat);
	i64 at = n - 1;
	while (at >= 0 && stat[at] != ')')
		at--;
	if (at < 0 || at + 4 >= n)
		return -1;
	const char *text = stat + at + 4;
	return parse_number(&text, stat + n);
}

// find_children looks for the children in all of /proc, for kernels that have no lists of children.
static int find_children(void (*visit)(i32 pid, void *context), void *context) {
	char entries[4096] __attribute__((aligned(8)));
	i32 self = (i32)system_call(SYS_GETPID);
	int count = 0;
	i64 proc = system_call(SYS_OPENAT, AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return -1;
	for (;;) {
		i64 n = system_call(SYS_GETDENTS64, proc, entries, sizeof entries);
		if (n <= 0)
			break;
		for (i64 at = 0; at < n;) {
			struct directory_entry *entry = (struct directory_entry *)(entries + at);
			at += entry->length;
			const char *text = entry->name;
			i32 pid = parse_number(&text, entries + n);
			if (pid > 0 && *text == 0 && parent_of(entry->name) == self) {
				visit(pid, context);
				count++;
			}
		}
	}
	close_descriptor((i32)proc);
	return count;
}

// for_each_child calls visit for each child of this process. It returns their number, or -1 if /proc is missing. A list
// may miss children that come and go meanwhile: the caller repeats the call until wait4 knows no child.
int for_each_child(void (*visit)(i32 pid, void *context), void *context) {
	char list[1024];
	i32 pid = -1;
	int count = 0;
	i64 fd = system_call(SYS_OPENAT, AT_FDCWD, "/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return find_children(visit, context);
	for (;;) {
		i64 n = system_call(SYS_READ, fd, list, sizeof list);
		if (n <= 0)
			break;
		for (i64 i = 0; i < n; i++) { // a number may be cut at the end of the buffer
			if (list[i] >= '0' && list[i] <= '9') {
				pid = (pid < 0 ? 0 : pid) * 10 + (list[i] - '0');
			} else if (pid > 0) {
				visit(pid, context);
				count++;
				pid = -1;
			}
		}
	}
	close_descriptor((i32)fd);
	return count;
}

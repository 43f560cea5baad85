// A PID namespace for the processes of a confined program. When its first process ends, the kernel kills all others.
#include "supervisor.h"

// write_file writes a text to a file. It returns 0 or an error.
static i64 write_file(const char *path, const char *text, u64 length) {
	i64 fd = system_call(SYS_OPENAT, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return fd;
	i64 n = system_call(SYS_WRITE, fd, text, length);
	close_descriptor((i32)fd);
	if (n < 0)
		return n;
	return (u64)n == length ? 0 : -EINVAL;
}

// append_number writes a number in decimal, and returns the end.
static char *append_number(char *to, u32 number) {
	char digits[10];
	int count = 0;
	do
		digits[count++] = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	while (count > 0)
		*to++ = digits[--count];
	return to;
}

// map_identity maps one ID of the new user namespace to the same ID outside.
static i64 map_identity(const char *path, u32 id) {
	char line[32], *end = append_number(line, id);
	*end++ = ' ';
	end = append_number(end, id);
	*end++ = ' ';
	*end++ = '1';
	return write_file(path, line, (u64)(end - line));
}

// set_dumpable sets if other processes of the user may read the memory of this process. The call cannot fail.
static void set_dumpable(int dumpable) { (void)system_call(SYS_PRCTL, PR_SET_DUMPABLE, dumpable, 0, 0, 0); }

// map_user gives this process its own user and group in a new user namespace. user and group are the IDs outside.
static i64 map_user(u32 user, u32 group) {
	i64 error = write_file("/proc/self/setgroups", "deny", 4);
	if (error == 0 || error == -ENOENT) // before Linux 3.19
		error = map_identity("/proc/self/uid_map", user);
	if (error == 0)
		error = map_identity("/proc/self/gid_map", group);
	return error;
}

// enter_namespaces completes the new namespaces of this process, which is the first process in them. It returns 0 if they
// cannot be used. Otherwise it returns 1, or 2 if /proc shows the new PID namespace. A container may forbid a new /proc;
// the old one still shows each process itself as /proc/self.
int enter_namespaces(int user_namespace) {
	if (user_namespace) {
		set_dumpable(1); // otherwise the files belong to root
		i64 error = map_user(own_user, own_group);
		set_dumpable(0);
		if (error < 0)
			return 0;
	}
	// Mounts of the system appear here, and none of ours appears there.
	if (system_call(SYS_MOUNT, 0, "/", 0, MS_REC | MS_SLAVE, 0) < 0)
		return 0;
	if (system_call(SYS_MOUNT, "proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, 0) < 0)
		return 1;
	return 2;
}

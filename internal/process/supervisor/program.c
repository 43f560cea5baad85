// The process that becomes the program: it takes the description, restricts itself, and executes the program.
#include "supervisor.h"

// A start is a program that is being started.
struct start {
	const struct spec *spec;
	u64 base; // where the file SPEC is in memory
	const i32 *fds;
	int namespaces;
	i32 failures;
};

// fail reports that a step failed, and ends this process.
static __attribute__((noreturn)) void fail(const struct start *start, u32 step, i64 error) {
	struct failure failure = {step, (i32)-error};
	while (system_call(SYS_WRITE, start->failures, &failure, sizeof failure) == -EINTR)
		;
	exit_process(127);
}

// need ends this process if a step failed.
static void need(const struct start *start, u32 step, i64 result) {
	if (result < 0)
		fail(start, step, result);
}

// map_spec maps the description into memory. The file is sealed, so it cannot shrink meanwhile. The mapping ends with
// execve.
static void map_spec(struct start *start) {
	i64 size = system_call(SYS_LSEEK, start->fds[SPEC], 0, SEEK_END);
	need(start, STEP_SPEC, size);
	if ((u64)size < sizeof *start->spec)
		fail(start, STEP_SPEC, -EINVAL);
	i64 base = system_call(SYS_MMAP, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, start->fds[SPEC], 0);
	if (base < 0 && base > -4096)
		fail(start, STEP_SPEC, base);
	start->base = (u64)base;
	start->spec = (const struct spec *)base;
}

// text_list turns the offsets of a list into pointers.
static char **text_list(const struct start *start, u64 offset) {
	u64 *list = (u64 *)(start->base + offset);
	for (u64 *entry = list; *entry != 0; entry++)
		*entry += start->base;
	return (char **)list;
}

// drop_capabilities drops the capabilities that a confined program may not keep: some of them circumvent Landlock.
static i64 drop_capabilities(u64 kept) {
	// An old kernel knows no ambient capabilities.
	(void)system_call(SYS_PRCTL, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (u64 capability = 0; capability < 64; capability++) {
		if (kept & 1UL << capability)
			continue;
		if (system_call(SYS_PRCTL, PR_CAPBSET_READ, capability, 0, 0, 0) != 1)
			continue; // the kernel does not know it, or it is already dropped
		i64 error = system_call(SYS_PRCTL, PR_CAPBSET_DROP, capability, 0, 0, 0);
		if (error < 0 && system_call(SYS_GETEUID) == 0) // other users have none
			return error;
	}
	return 0;
}

// permit_proc adds the /proc of the new PID namespace to the ruleset.
static i64 permit_proc(const struct start *start) {
	i64 proc = system_call(SYS_OPENAT, AT_FDCWD, "/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return proc;
	struct path_beneath rule = {start->spec->proc_access, (i32)proc};
	i64 error =
		system_call(SYS_LANDLOCK_ADD_RULE, start->fds[RULES], LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	close_descriptor((i32)proc);
	return error;
}

// confine restricts this process.
static void confine(const struct start *start, int has_rules) {
	const struct spec *spec = start->spec;
	need(start, STEP_PRIVILEGES, system_call(SYS_PRCTL, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	if (has_rules) {
		if (start->namespaces == 2)
			need(start, STEP_FILES, permit_proc(start));
		need(start, STEP_FILES, system_call(SYS_LANDLOCK_RESTRICT_SELF, start->fds[RULES], 0));
	}
	i64 error = drop_capabilities(spec->kept_capabilities);
	if (spec->flags & SPEC_CAPABILITIES_REQUIRED)
		need(start, STEP_CAPABILITIES, error);
	if (spec->filter) {
		struct filter_program filter = {(unsigned short)spec->filter_length, (void *)(start->base + spec->filter)};
		need(start, STEP_FILTER, system_call(SYS_SECCOMP, SECCOMP_SET_MODE_FILTER, 0, &filter));
	}
}

// run_program becomes the program. parent is the supervisor.
void run_program(const i32 *fds, int namespaces, i32 parent, i32 failures, const struct inherited *inherited) {
	struct start start = {0, 0, fds, namespaces, failures};
	need(&start, STEP_GROUP, system_call(SYS_SETPGID, 0, 0));
	need(&start, STEP_GROUP, system_call(SYS_PRCTL, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
	if (system_call(SYS_GETPPID) != parent) // it died before the signal was set
		exit_process(127);
	map_spec(&start);
	send_report(fds[STATUS], REPORT_PROGRAM, 0, 0);
	for (int stream = 0; stream < 3; stream++)
		need(&start, STEP_STREAMS, system_call(SYS_DUP3, fds[STDIN + stream], stream, 0));
	if (inherited->files.maximum > 0)
		need(&start, STEP_LIMITS, system_call(SYS_PRLIMIT64, 0, RLIMIT_NOFILE, &inherited->files, 0));
	need(&start, STEP_DIRECTORY, system_call(SYS_CHDIR, start.base + start.spec->directory));
	char **arguments = text_list(&start, start.spec->arguments);
	char **environment = text_list(&start, start.spec->environment);
	if (start.spec->flags & SPEC_CONFINED)
		confine(&start, start.fds[RULES] >= 0);
	need(&start, STEP_STREAMS,
	     system_call(SYS_RT_SIGPROCMASK, SIG_SETMASK, &inherited->signal_mask, 0, SIGNAL_SET_SIZE));
	fail(&start, STEP_EXECUTE,
	     system_call(SYS_EXECVE, start.base + start.spec->path, arguments, environment));
}

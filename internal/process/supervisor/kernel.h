// What the supervisor uses of the Linux kernel's interface: numbers of system calls, structures and constants of amd64
// and arm64. There is no C library, so a system call returns a negative error number on failure.
#ifndef KERNEL_H
#define KERNEL_H

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long u64;
typedef int i32;
typedef long i64;

#if defined(__x86_64__)
#define BY_ARCHITECTURE(amd64, arm64) amd64
#elif defined(__aarch64__)
#define BY_ARCHITECTURE(amd64, arm64) arm64
#else
#error "the supervisor is for amd64 and arm64"
#endif

enum {
	SYS_READ = BY_ARCHITECTURE(0, 63),
	SYS_WRITE = BY_ARCHITECTURE(1, 64),
	SYS_CLOSE = BY_ARCHITECTURE(3, 57),
	SYS_LSEEK = BY_ARCHITECTURE(8, 62),
	SYS_MMAP = BY_ARCHITECTURE(9, 222),
	SYS_RT_SIGPROCMASK = BY_ARCHITECTURE(14, 135),
	SYS_GETPID = BY_ARCHITECTURE(39, 172),
	SYS_SENDTO = BY_ARCHITECTURE(44, 206),
	SYS_RECVMSG = BY_ARCHITECTURE(47, 212),
	SYS_CLONE = BY_ARCHITECTURE(56, 220),
	SYS_EXECVE = BY_ARCHITECTURE(59, 221),
	SYS_WAIT4 = BY_ARCHITECTURE(61, 260),
	SYS_KILL = BY_ARCHITECTURE(62, 129),
	SYS_CHDIR = BY_ARCHITECTURE(80, 49),
	SYS_GETEUID = BY_ARCHITECTURE(107, 175),
	SYS_GETEGID = BY_ARCHITECTURE(108, 177),
	SYS_SETPGID = BY_ARCHITECTURE(109, 154),
	SYS_GETPPID = BY_ARCHITECTURE(110, 173),
	SYS_PRCTL = BY_ARCHITECTURE(157, 167),
	SYS_MOUNT = BY_ARCHITECTURE(165, 40),
	SYS_GETDENTS64 = BY_ARCHITECTURE(217, 61),
	SYS_CLOCK_GETTIME = BY_ARCHITECTURE(228, 113),
	SYS_EXIT_GROUP = BY_ARCHITECTURE(231, 94),
	SYS_OPENAT = BY_ARCHITECTURE(257, 56),
	SYS_PPOLL = BY_ARCHITECTURE(271, 73),
	SYS_SIGNALFD4 = BY_ARCHITECTURE(289, 74),
	SYS_DUP3 = BY_ARCHITECTURE(292, 24),
	SYS_PIPE2 = BY_ARCHITECTURE(293, 59),
	SYS_PRLIMIT64 = BY_ARCHITECTURE(302, 261),
	SYS_SECCOMP = BY_ARCHITECTURE(317, 277),
	SYS_CLOSE_RANGE = 436,
	SYS_LANDLOCK_ADD_RULE = 445,
	SYS_LANDLOCK_RESTRICT_SELF = 446,
};

// Error numbers.
enum { EPERM = 1, ENOENT = 2, EINTR = 4, EAGAIN = 11, EINVAL = 22, EMFILE = 24 };

// Signals.
enum { SIGHUP = 1, SIGINT = 2, SIGKILL = 9, SIGTERM = 15, SIGCHLD = 17 };
enum { SIG_BLOCK = 0, SIG_SETMASK = 2, SIGNAL_SET_SIZE = 8 };
#define SIGNAL_BIT(number) (1UL << ((number)-1))

// Flags of files, sockets and memory.
enum {
	AT_FDCWD = -100,
	O_RDONLY = 0,
	O_WRONLY = 1,
	O_NONBLOCK = 04000,
	O_CLOEXEC = 02000000,
	O_DIRECTORY = BY_ARCHITECTURE(0200000, 040000),
	O_PATH = 010000000,
	SEEK_END = 2,
	PROT_READ = 1,
	PROT_WRITE = 2,
	MAP_PRIVATE = 2,
	MSG_CTRUNC = 8,
	MSG_DONTWAIT = 0x40,
	MSG_NOSIGNAL = 0x4000,
	MSG_CMSG_CLOEXEC = 0x40000000,
	SOL_SOCKET = 1,
	SCM_RIGHTS = 1,
	POLLIN = 1,
	POLLHUP = 16,
	POLLERR = 8,
};

// Processes.
enum {
	WNOHANG = 1,
	CLONE_NEWNS = 0x00020000,
	CLONE_NEWUSER = 0x10000000,
	CLONE_NEWPID = 0x20000000,
	PR_SET_PDEATHSIG = 1,
	PR_SET_DUMPABLE = 4,
	PR_SET_NAME = 15,
	PR_CAPBSET_READ = 23,
	PR_CAPBSET_DROP = 24,
	PR_SET_CHILD_SUBREAPER = 36,
	PR_SET_NO_NEW_PRIVS = 38,
	PR_CAP_AMBIENT = 47,
	PR_CAP_AMBIENT_CLEAR_ALL = 4,
	RLIMIT_NOFILE = 7,
	CLOCK_MONOTONIC = 1,
	SECCOMP_SET_MODE_FILTER = 1,
	LANDLOCK_RULE_PATH_BENEATH = 1,
	MS_NOSUID = 2,
	MS_NODEV = 4,
	MS_NOEXEC = 8,
	MS_REC = 16384,
	MS_SLAVE = 1 << 19,
};

struct timespec {
	i64 seconds, nanoseconds;
};

struct pollfd {
	i32 fd;
	short events, revents;
};

struct rlimit {
	u64 current, maximum;
};

struct iovec {
	void *base;
	u64 length;
};

struct message_header {
	void *name;
	u32 name_length;
	struct iovec *parts;
	u64 part_count;
	void *control;
	u64 control_length;
	u32 flags;
};

struct control_header {
	u64 length;
	i32 level, type;
};

struct directory_entry {
	u64 inode, offset;
	unsigned short length;
	u8 type;
	char name[];
};

struct filter_program {
	unsigned short length;
	void *code;
};

struct path_beneath {
	u64 allowed_access;
	i32 parent;
} __attribute__((packed));

// system_call makes a system call with up to six arguments.
static inline i64 system_call6(i64 number, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f) {
#if defined(__x86_64__)
	i64 result;
	register u64 r10 __asm__("r10") = d;
	register u64 r8 __asm__("r8") = e;
	register u64 r9 __asm__("r9") = f;
	__asm__ volatile("syscall"
	                 : "=a"(result)
	                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
	                 : "rcx", "r11", "memory");
	return result;
#else
	register i64 x8 __asm__("x8") = number;
	register u64 x0 __asm__("x0") = a;
	register u64 x1 __asm__("x1") = b;
	register u64 x2 __asm__("x2") = c;
	register u64 x3 __asm__("x3") = d;
	register u64 x4 __asm__("x4") = e;
	register u64 x5 __asm__("x5") = f;
	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return (i64)x0;
#endif
}

#define PICK_CALL(a, b, c, d, e, f, g, name, ...) name
#define system_call(...) \
	PICK_CALL(__VA_ARGS__, CALL6, CALL5, CALL4, CALL3, CALL2, CALL1, CALL0)(__VA_ARGS__)
#define CALL0(n) system_call6(n, 0, 0, 0, 0, 0, 0)
#define CALL1(n, a) system_call6(n, (u64)(a), 0, 0, 0, 0, 0)
#define CALL2(n, a, b) system_call6(n, (u64)(a), (u64)(b), 0, 0, 0, 0)
#define CALL3(n, a, b, c) system_call6(n, (u64)(a), (u64)(b), (u64)(c), 0, 0, 0)
#define CALL4(n, a, b, c, d) system_call6(n, (u64)(a), (u64)(b), (u64)(c), (u64)(d), 0, 0)
#define CALL5(n, a, b, c, d, e) system_call6(n, (u64)(a), (u64)(b), (u64)(c), (u64)(d), (u64)(e), 0)
#define CALL6(n, a, b, c, d, e, f) system_call6(n, (u64)(a), (u64)(b), (u64)(c), (u64)(d), (u64)(e), (u64)(f))

#endif

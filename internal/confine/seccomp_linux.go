//go:build amd64 || arm64

package confine

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The offsets of fields in struct seccomp_data. The fields are the number of the system call, the architecture of its
// caller, and the low halves of the first three arguments. On these little-endian processors, the low half comes first.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArg1   = 16
	offsetArg2   = 24
	offsetArg3   = 32
)

// x32Bit is set in the numbers of x32 system calls, the second set of system calls on amd64.
const x32Bit = 0x40000000

// canFilterCalls reports whether system calls can be filtered.
func canFilterCalls() bool {
	const getActionAvail = 2 // SECCOMP_GET_ACTION_AVAIL
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, getActionAvail, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}

// refusedCalls returns the system calls that are refused. Servers do not need these calls. The calls circumvent the
// confinement or reach weakly protected parts of the kernel. io_uring executes other system calls without the filter.
// unshare and setns can enter a namespace, in which a process has all capabilities. clone3 could create a namespace
// too: its flags are in memory, which a filter cannot read.
func refusedCalls() []uint32 {
	return []uint32{
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN,
		unix.SYS_FSMOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS, unix.SYS_UNSHARE, unix.SYS_CLONE3,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_ADD_KEY,
		unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL,
	}
}

// namespaceFlags are the flags of clone that create a namespace.
const namespaceFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWCGROUP

// socketFamilies returns the socket families that may be created. Unix sockets are excluded if noUnix is set, since
// they lead to the session bus, container engines and key agents.
func socketFamilies(offline, noUnix bool) (all []uint32) {
	if !offline {
		all = append(all, unix.AF_INET, unix.AF_INET6)
	}
	if !noUnix {
		all = append(all, unix.AF_UNIX)
	}
	return all
}

// filterSocket returns the filter instructions for the system call socket. They permit the allowed families, and for
// netlink only the protocol that lists the machine's own addresses.
func filterSocket(allowed []uint32) []unix.SockFilter {
	p := []unix.SockFilter{loadInstruction(offsetArg1)}
	for _, family := range allowed {
		p = append(p, skipUnlessEqual(family, 1), returnVerdict(unix.SECCOMP_RET_ALLOW))
	}
	return append(p, skipUnlessEqual(unix.AF_NETLINK, 3), loadInstruction(offsetArg3),
		skipUnlessEqual(unix.NETLINK_ROUTE, 1), returnVerdict(unix.SECCOMP_RET_ALLOW), returnErrno(unix.EACCES))
}

// filterSocketpair returns the filter instructions for the system call socketpair. They permit only types of Unix
// sockets that cannot send to any other address.
func filterSocketpair() []unix.SockFilter {
	const kind = 0xf // the other bits are flags
	return []unix.SockFilter{
		loadInstruction(offsetArg1), skipUnlessEqual(unix.AF_UNIX, 6), loadInstruction(offsetArg2),
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: kind},
		skipUnlessEqual(unix.SOCK_STREAM, 1), returnVerdict(unix.SECCOMP_RET_ALLOW),
		skipUnlessEqual(unix.SOCK_SEQPACKET, 1), returnVerdict(unix.SECCOMP_RET_ALLOW), returnErrno(unix.EACCES),
	}
}

// filterClone returns the filter instructions for the system call clone, which starts a thread or a process. They
// refuse flags that create a namespace.
func filterClone() []unix.SockFilter {
	return []unix.SockFilter{
		loadInstruction(offsetArg1), {Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jf: 1, K: namespaceFlags},
		returnErrno(unix.EPERM), returnVerdict(unix.SECCOMP_RET_ALLOW),
	}
}

// seccompProgram returns the filter program, which reads the data of a system call and returns a verdict. offline
// denies access to the network, and noUnix denies Unix sockets. System calls for another processor architecture fail
// with ENOSYS.
func seccompProgram(offline, noUnix bool) []unix.SockFilter {
	arch := uint32(unix.AUDIT_ARCH_X86_64)
	if runtime.GOARCH == "arm64" {
		arch = unix.AUDIT_ARCH_AARCH64
	}
	p := []unix.SockFilter{
		loadInstruction(offsetArch), skipIfEqual(arch, 1), returnErrno(unix.ENOSYS),
		loadInstruction(offsetNumber), {Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jf: 1, K: x32Bit},
		returnErrno(unix.ENOSYS),
	}
	for _, number := range refusedCalls() {
		errno := unix.EPERM
		if number == unix.SYS_IO_URING_SETUP || number == unix.SYS_CLONE3 {
			errno = unix.ENOSYS // as on an older kernel, so that programs use an alternative
		}
		p = append(p, skipUnlessEqual(number, 1), returnErrno(errno))
	}
	judged := func(number uint32, by []unix.SockFilter) {
		p = append(append(p, skipUnlessEqual(number, uint8(len(by)))), by...)
	}
	judged(unix.SYS_CLONE, filterClone())
	judged(unix.SYS_SOCKET, filterSocket(socketFamilies(offline, noUnix)))
	if noUnix {
		judged(unix.SYS_SOCKETPAIR, filterSocketpair())
	}
	return append(p, returnVerdict(unix.SECCOMP_RET_ALLOW))
}

func loadInstruction(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

// skipUnlessEqual returns an instruction that skips the next skip instructions unless the loaded value equals value.
// skipIfEqual returns the reverse: it skips if the values are equal.
func skipUnlessEqual(value uint32, skip uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: skip, K: value}
}

func skipIfEqual(value uint32, skip uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: skip, K: value}
}

func returnVerdict(verdict uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
}

func returnErrno(errno syscall.Errno) unix.SockFilter {
	return returnVerdict(unix.SECCOMP_RET_ERRNO | uint32(errno))
}

// installFilter installs the filter permanently on this thread and on all processes that it starts.
func installFilter(offline, noUnix bool) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	code := seccompProgram(offline, noUnix)
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	const setModeFilter = 1 // SECCOMP_SET_MODE_FILTER
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, setModeFilter, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return errno
	}
	runtime.KeepAlive(code)
	return nil
}

//go:build amd64 || arm64

package confine

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Where the fields of struct seccomp_data stand: the call's number, the architecture it is made for, and the low half of its
// first argument, which on these little-endian processors comes first.
const (
	numberAt   = 0
	archAt     = 4
	argumentAt = 16
)

// foreign is set in the numbers of calls that are made by the rules of x32, of which amd64 has a second set.
const foreign = 0x40000000

// filters says whether system calls can be filtered.
func filters() bool {
	const getActionAvail = 2 // SECCOMP_GET_ACTION_AVAIL
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, getActionAvail, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}

// refused are calls that servers have no use for and that lead out of a cage, or into the kernel where it is weakest: those of
// io_uring do what other calls do and are seen by no filter.
func refused() []uint32 {
	return []uint32{
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL,
	}
}

// families are the kinds of sockets that may be made. Netlink tells a program of the machine's own addresses; sockets of Unix
// lead to the session's bus, to engines of containers and to agents of keys, and what is made in pairs needs no leave.
func families(offline, noUnix bool) []uint32 {
	all := []uint32{unix.AF_NETLINK}
	if !offline {
		all = append(all, unix.AF_INET, unix.AF_INET6)
	}
	if !noUnix {
		all = append(all, unix.AF_UNIX)
	}
	return all
}

// program is the filter: what it is told of a call, and what becomes of that. Calls that a program makes by the rules of
// another processor are not there, so that it makes none.
func program(offline, noUnix bool) []unix.SockFilter {
	arch := uint32(unix.AUDIT_ARCH_X86_64)
	if runtime.GOARCH == "arm64" {
		arch = unix.AUDIT_ARCH_AARCH64
	}
	p := []unix.SockFilter{
		load(archAt), unless(arch, 1), give(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)),
		load(numberAt), {Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jf: 1, K: foreign}, give(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)),
	}
	for _, number := range refused() {
		errno := unix.EPERM
		if number == unix.SYS_IO_URING_SETUP {
			errno = unix.ENOSYS // as on a kernel without it, so that programs go another way
		}
		p = append(p, when(number, 1), give(unix.SECCOMP_RET_ERRNO|uint32(errno)))
	}
	allowed := families(offline, noUnix)
	p = append(p, when(unix.SYS_SOCKET, uint8(2*len(allowed)+2)), load(argumentAt))
	for _, family := range allowed {
		p = append(p, when(family, 1), give(unix.SECCOMP_RET_ALLOW))
	}
	return append(p, give(unix.SECCOMP_RET_ERRNO|uint32(unix.EACCES)), give(unix.SECCOMP_RET_ALLOW))
}

func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

// when goes on with what follows for this value, and else skips so much of it; unless is the other way round.
func when(value uint32, skip uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: skip, K: value}
}

func unless(value uint32, skip uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: skip, K: value}
}

func give(verdict uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
}

// filter puts the filter on this thread, for good and for all that it starts.
func filter(offline, noUnix bool) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	code := program(offline, noUnix)
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	const setModeFilter = 1 // SECCOMP_SET_MODE_FILTER
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, setModeFilter, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return errno
	}
	runtime.KeepAlive(code)
	return nil
}

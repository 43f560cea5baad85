//go:build amd64 || arm64

package confine

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// workerAddressSpace is the maximum address space of a worker in bytes: the Go runtime reserves much more than it uses.
const workerAddressSpace = 8 << 30

// RestrictWorker gives up, for all threads of this process, whatever a worker does not need that only computes and reads
// and writes open descriptors: files, sockets, other processes, new executable code. It sets up the kinds of confinement
// that [WorkerConfinement] returns, and returns an error if one of them cannot be set up.
func RestrictWorker() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	support := DetectSupport()
	if support.Landlock > 0 {
		if err := landlock.V6.BestEffort().Restrict(); err != nil {
			return fmt.Errorf("landlock: %w", err)
		}
	}
	// After Landlock, whose rules are a descriptor.
	for resource, limit := range map[int]uint64{
		unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: 0, unix.RLIMIT_NOFILE: 0, unix.RLIMIT_AS: workerAddressSpace,
	} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("limit resources: %w", err)
		}
	}
	if support.Seccomp {
		if err := installWorkerFilter(); err != nil {
			return fmt.Errorf("filter system calls: %w", err)
		}
	}
	return nil
}

// WorkerConfinement returns the kinds of confinement that RestrictWorker sets up on this system: "landlock", "rlimit",
// "seccomp".
func WorkerConfinement() (kinds []string) {
	support := DetectSupport()
	if support.Landlock > 0 {
		kinds = append(kinds, "landlock")
	}
	kinds = append(kinds, "rlimit")
	if support.Seccomp {
		kinds = append(kinds, "seccomp")
	}
	return kinds
}

// workerCalls are the system calls of a worker: memory, its own threads, clocks, and its open descriptors. brk is among
// them because the C library takes its refusal for success and then writes to memory that it does not have.
func workerCalls() []uint32 {
	return []uint32{
		unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_WRITE, unix.SYS_PPOLL, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_CTL, unix.SYS_FUTEX,
		unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_MREMAP, unix.SYS_BRK, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP,
		unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN,
		unix.SYS_RT_SIGACTION, unix.SYS_SIGALTSTACK, unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_SCHED_YIELD,
		unix.SYS_SCHED_GETAFFINITY, unix.SYS_GETRANDOM, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_RESTART_SYSCALL,
		unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ,
	}
}

// workerProgram returns the filter of a worker: an allow list. Memory is never made executable, only threads are
// started, signals go only to the process itself.
func workerProgram() []unix.SockFilter {
	arch := uint32(unix.AUDIT_ARCH_X86_64)
	if runtime.GOARCH == "arm64" {
		arch = unix.AUDIT_ARCH_AARCH64
	}
	allow, refuse := returnVerdict(unix.SECCOMP_RET_ALLOW), returnErrno(unix.EPERM)
	bitSet := func(bit uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jf: 1, K: bit}
	}
	p := []unix.SockFilter{
		loadInstruction(offsetArch), skipIfEqual(arch, 1), refuse, loadInstruction(offsetNumber),
	}
	for _, number := range workerCalls() {
		p = append(p, skipUnlessEqual(number, 1), allow)
	}
	judged := func(number uint32, by ...unix.SockFilter) {
		p = append(append(p, skipUnlessEqual(number, uint8(len(by)))), by...)
	}
	for _, number := range []uint32{unix.SYS_MMAP, unix.SYS_MPROTECT} {
		judged(number, loadInstruction(offsetArg3), bitSet(unix.PROT_EXEC), refuse, allow)
	}
	judged(unix.SYS_CLONE, loadInstruction(offsetArg1), bitSet(unix.CLONE_THREAD), allow, refuse)
	judged(unix.SYS_TGKILL, loadInstruction(offsetArg1), skipUnlessEqual(uint32(os.Getpid()), 1), allow, refuse)
	judged(unix.SYS_PRCTL, loadInstruction(offsetArg1), skipUnlessEqual(unix.PR_SET_VMA, 1), allow, refuse)
	judged(unix.SYS_CLONE3, returnErrno(unix.ENOSYS)) // its arguments cannot be judged: the runtime then calls clone
	return append(p, refuse)
}

// installWorkerFilter installs the filter on all threads of this process.
func installWorkerFilter() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	code := workerProgram()
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	const setModeFilter, allThreads = 1, 1 // SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, setModeFilter, allThreads, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(code)
	switch {
	case errno != 0:
		return errno
	case thread != 0:
		return fmt.Errorf("thread %d cannot be filtered", thread)
	}
	return nil
}

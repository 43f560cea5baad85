//go:build amd64 || arm64

package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// supervisorVersion is the version of the messages that this file and the supervisor exchange.
	supervisorVersion = 1

	// helloTimeout is how long a top supervisor may take to start.
	helloTimeout = 10 * time.Second
	// partTimeout is how long a supervisor may take to end when none of its processes is left.
	partTimeout = time.Second
)

// A supervisor is a running top supervisor. users is the number of programs that it supervises.
type supervisor struct {
	control *messageSocket
	pid     int
	users   int
}

// supervisors holds the top supervisor of this process. It is global since it is a child of the process, as the process
// itself is global: a top supervisor runs while there are programs, whichever part of the process started them.
var supervisors struct {
	mu sync.Mutex
	// current is the top supervisor that starts programs; nil if none runs.
	current *supervisor
	// unusable is set if this system cannot run the supervisor. No other attempt is made then.
	unusable bool
	// ended are the process IDs of top supervisors that may not have ended yet.
	ended []int
}

// canSupervise reports whether this system can run the supervisor.
func canSupervise() bool {
	s, err := acquireSupervisor()
	if err != nil {
		return false
	}
	releaseSupervisor(s)
	return true
}

// acquireSupervisor returns the top supervisor, which it starts if none runs. The caller must release it. The error is
// errNoSupervisor.
func acquireSupervisor() (*supervisor, error) {
	supervisors.mu.Lock()
	defer supervisors.mu.Unlock()
	reapSupervisors()
	if supervisors.unusable {
		return nil, errNoSupervisor
	}
	if supervisors.current == nil {
		started, err := startSupervisor()
		if err != nil {
			supervisors.unusable = !isScarcity(err)
			return nil, errNoSupervisor
		}
		supervisors.current = started
	}
	supervisors.current.users++
	return supervisors.current, nil
}

// isScarcity reports whether an error may be gone at the next attempt.
func isScarcity(err error) bool {
	for _, scarcity := range []error{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EAGAIN, unix.ENOSPC} {
		if errors.Is(err, scarcity) {
			return true
		}
	}
	return false
}

// releaseSupervisor ends a top supervisor that has no programs any more, and waits until it has ended.
func releaseSupervisor(s *supervisor) {
	supervisors.mu.Lock()
	defer supervisors.mu.Unlock()
	if s.users--; s.users > 0 {
		return
	}
	if supervisors.current == s {
		supervisors.current = nil
	}
	s.end()
	reapSupervisors()
}

// replaceSupervisor has the next program started by another top supervisor than s, which was killed.
func replaceSupervisor(s *supervisor) {
	supervisors.mu.Lock()
	defer supervisors.mu.Unlock()
	if supervisors.current == s {
		supervisors.current = nil
	}
}

// end ends a top supervisor. Normally it ends at once, since none of its processes is left.
func (s *supervisor) end() {
	s.control.shutdown()
	_ = s.control.SetReadDeadline(time.Now().Add(partTimeout))
	_, _, err := s.control.receive()
	_ = s.control.Close()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		supervisors.ended = append(supervisors.ended, s.pid)
		return
	}
	_, _ = waitFor(s.pid, 0)
}

// reapSupervisors waits for those top supervisors that have ended meanwhile.
func reapSupervisors() {
	var left []int
	for _, pid := range supervisors.ended {
		if ended, err := waitFor(pid, unix.WNOHANG); err == nil && ended == 0 {
			left = append(left, pid)
		}
	}
	supervisors.ended = left
}

// waitFor waits for a child of this process.
func waitFor(pid, options int) (ended int, err error) {
	for {
		ended, err = unix.Wait4(pid, nil, options, nil)
		if err != unix.EINTR {
			return ended, err
		}
	}
}

// startSupervisor starts a top supervisor from memory, and waits until it can take orders.
func startSupervisor() (*supervisor, error) {
	program, err := sealedFile("drawbridge-supervisor", supervisorProgram, unix.MFD_EXEC)
	if err != nil {
		return nil, err
	}
	defer program.Close()
	near, far, err := messageSockets()
	if err != nil {
		return nil, err
	}
	defer far.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		_ = near.Close()
		return nil, err
	}
	defer null.Close()
	p, err := os.StartProcess(fmt.Sprintf("/proc/self/fd/%d", program.Fd()), []string{"drawbridge-supervisor"}, &os.ProcAttr{
		Dir: "/", Env: []string{}, Files: []*os.File{far, null, null},
		// Its own process group, so that it does not receive a Ctrl-C at the terminal.
		Sys: &unix.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		_ = near.Close()
		return nil, err
	}
	s := &supervisor{control: near, pid: p.Pid}
	_ = far.Close() // so that the socket ends with the supervisor
	_ = near.SetReadDeadline(time.Now().Add(helloTimeout))
	hello, _, err := near.receive()
	if err == nil && (hello.Kind != reportHello || hello.Value != supervisorVersion) {
		err = fmt.Errorf("the supervisor has version %d", hello.Value)
	}
	if err != nil {
		_ = p.Kill()
		_, _ = p.Wait()
		_ = near.Close()
		return nil, err
	}
	_ = p.Release() // it is waited for by its ID
	return s, nil
}

// sealedFile returns a file in memory that cannot be changed. kind is unix.MFD_EXEC for a program, and
// unix.MFD_NOEXEC_SEAL for data.
func sealedFile(name string, content []byte, kind int) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|kind)
	if err == unix.EINVAL { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(content)
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS,
			unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// The kinds of reports, and the flags of orders, as in supervisor.h.
const (
	reportHello = iota + 1
	reportProgram
	reportStarted
	reportFailed
	reportEnded

	orderNamespaces    = 1
	orderUserNamespace = 2
	orderRules         = 4
)

// A supervisorReport is struct report of supervisor.h, and a supervisorOrder is struct order.
type supervisorReport struct {
	Kind, Step uint32
	Value      int32
	_          uint32
}

type supervisorOrder struct {
	Version, Flags uint32
	Grace          uint64
}

// A messageSocket is one end of a pair of sockets that keep the bounds of messages.
type messageSocket struct{ *os.File }

// messageSockets returns a pair of sockets. near tells who sent a message, and can be used with the runtime's poller.
func messageSockets() (near *messageSocket, far *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	err = unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
	if err == nil {
		err = unix.SetNonblock(fds[0], true)
	}
	if err != nil {
		_, _ = unix.Close(fds[0]), unix.Close(fds[1])
		return nil, nil, err
	}
	return &messageSocket{os.NewFile(uintptr(fds[0]), "supervisor")}, os.NewFile(uintptr(fds[1]), "supervisor"), nil
}

// receive returns the next report, and the process ID of its sender. The error is io.EOF if there will be no other.
func (s *messageSocket) receive() (r supervisorReport, sender int, err error) {
	raw, err := s.SyscallConn()
	if err != nil {
		return r, 0, err
	}
	buffer := unsafe.Slice((*byte)(unsafe.Pointer(&r)), unsafe.Sizeof(r))
	control := make([]byte, unix.CmsgSpace(unix.SizeofUcred))
	var n, controlled int
	var failure error
	err = raw.Read(func(fd uintptr) bool {
		n, controlled, _, _, failure = unix.Recvmsg(int(fd), buffer, control, unix.MSG_CMSG_CLOEXEC)
		return failure != unix.EAGAIN && failure != unix.EINTR
	})
	switch {
	case err != nil:
		return r, 0, err
	case failure == unix.ECONNRESET, failure == nil && n == 0:
		return r, 0, io.EOF
	case failure != nil:
		return r, 0, failure
	case n != len(buffer):
		return r, 0, errors.New("the supervisor sent a message of another length")
	}
	messages, err := unix.ParseSocketControlMessage(control[:controlled])
	if err != nil || len(messages) == 0 {
		return r, 0, err
	}
	if from, err := unix.ParseUnixCredentials(&messages[0]); err == nil {
		sender = int(from.Pid)
	}
	return r, sender, nil
}

// send sends an order with descriptors.
func (s *messageSocket) send(order supervisorOrder, files []*os.File) error {
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	message := unsafe.Slice((*byte)(unsafe.Pointer(&order)), unsafe.Sizeof(order))
	rights := unix.UnixRights(fds...)
	var failure error
	err = raw.Write(func(fd uintptr) bool {
		failure = unix.Sendmsg(int(fd), message, rights, nil, unix.MSG_NOSIGNAL)
		return failure != unix.EAGAIN && failure != unix.EINTR
	})
	return errors.Join(err, failure)
}

// shutdown shows the other end that no other message comes.
func (s *messageSocket) shutdown() {
	if raw, err := s.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_WR) })
	}
}

// launchSupervised starts a program under the top supervisor. The error is errNoSupervisor if that is impossible and
// nothing was started.
func launchSupervised(ctx context.Context, l launch) (*processTree, int, error) {
	s, err := acquireSupervisor()
	if err != nil {
		return nil, 0, err
	}
	tree, pid, err := s.launch(ctx, l)
	if !errors.Is(err, errSupervisorKilled) {
		return tree, pid, err
	}
	// The top supervisor was killed before it started the program.
	if s, err = acquireSupervisor(); err != nil {
		return nil, 0, err
	}
	return s.launch(ctx, l)
}

// errSupervisorKilled is the error of supervisor.launch if the top supervisor ended before it started the program.
var errSupervisorKilled = errors.New("the supervisor ended before it started the program")

// launch starts a program, and releases s when the program has ended or was not started.
func (s *supervisor) launch(ctx context.Context, l launch) (tree *processTree, pid int, err error) {
	var life *os.File
	var status *messageSocket
	defer func() {
		if err != nil {
			closeAll([]*os.File{life})
			if status != nil {
				_ = status.Close()
			}
			releaseSupervisor(s)
		}
	}()
	lifeFar, life, err := os.Pipe()
	if err != nil {
		return nil, 0, err
	}
	defer lifeFar.Close()
	status, statusFar, err := messageSockets()
	if err != nil {
		return nil, 0, err
	}
	defer statusFar.Close()
	order, spec, rules, err := describeLaunch(l)
	if err != nil {
		return nil, 0, err
	}
	defer closeAll([]*os.File{spec, rules})
	files := []*os.File{spec}
	for _, stream := range []any{l.cmd.Stdin, l.cmd.Stdout, l.cmd.Stderr} {
		files = append(files, stream.(*os.File))
	}
	files = append(files, lifeFar, statusFar)
	for _, far := range files[1:] {
		if err := unix.SetNonblock(int(far.Fd()), false); err != nil {
			return nil, 0, err
		}
	}
	if rules != nil {
		files = append(files, rules)
	}
	switch err := s.control.send(order, files); {
	case errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET):
		replaceSupervisor(s)
		return nil, 0, errSupervisorKilled
	case err != nil:
		return nil, 0, fmt.Errorf("send the order to the supervisor: %w", err)
	}
	closeAll([]*os.File{lifeFar, statusFar})
	pid, err = s.awaitStart(ctx, status, l)
	if err != nil {
		_ = life.Close()
		_ = status.SetReadDeadline(time.Now().Add(2*l.grace + drainTimeout))
		_ = awaitEnd(status)
		return nil, 0, err
	}
	return &processTree{lifePipe: life, waitExit: func() error {
		err := awaitEnd(status)
		_ = status.Close()
		releaseSupervisor(s)
		return err
	}}, pid, nil
}

// awaitStart waits until the program was executed, and returns its process ID.
func (s *supervisor) awaitStart(ctx context.Context, status *messageSocket, l launch) (pid int, err error) {
	stop := context.AfterFunc(ctx, func() { _ = status.SetReadDeadline(time.Unix(1, 0)) })
	defer func() {
		if !stop() {
			_ = status.SetReadDeadline(time.Time{})
			if err != nil {
				err = context.Cause(ctx)
			}
		}
	}()
	for {
		r, sender, err := status.receive()
		switch {
		case errors.Is(err, io.EOF) && pid == 0:
			replaceSupervisor(s)
			return 0, errSupervisorKilled
		case err != nil:
			return 0, fmt.Errorf("the supervisor ended before it started the program: %w", err)
		case r.Kind == reportProgram:
			pid = sender
		case r.Kind == reportStarted:
			return pid, nil
		case r.Kind == reportFailed:
			return 0, l.describeFailure(r)
		}
	}
}

// supervisorSteps are the texts for the steps in supervisor.h that can fail.
var supervisorSteps = []string{
	"", "there are too many servers", "start a process", "prepare the supervisor", "read the description",
	"make a process group", "connect the standard streams", "enter its directory", "limit the open files",
	"give up rights", "restrict files", "drop the capabilities of root", "filter system calls", "",
}

// describeFailure returns the error for a report about a start that failed.
func (l launch) describeFailure(r supervisorReport) error {
	err := error(unix.Errno(r.Value))
	if int(r.Step) < len(supervisorSteps) && supervisorSteps[r.Step] != "" {
		err = fmt.Errorf("%s: %w", supervisorSteps[r.Step], err)
	}
	if l.profile != nil {
		err = fmt.Errorf("confine: %w", err)
	}
	return err
}

// awaitEnd waits until the program and all processes that it started have ended, and returns the program's status. A
// program whose supervisor was killed was killed too.
func awaitEnd(status *messageSocket) error {
	err := error(&programStatus{-1, "signal: killed"})
	for {
		r, _, ended := status.receive()
		if ended != nil {
			return err
		}
		if r.Kind == reportEnded {
			err = describeStatus(unix.WaitStatus(r.Value))
			// Only the supervisor itself is left.
			_ = status.SetReadDeadline(time.Now().Add(partTimeout))
		}
	}
}

// describeStatus returns an error for the status of a program, or nil if the program ended with code 0.
func describeStatus(status unix.WaitStatus) error {
	switch {
	case status.Signaled():
		return &programStatus{-1, "signal: " + status.Signal().String()}
	case status.ExitStatus() != 0:
		return &programStatus{status.ExitStatus(), fmt.Sprintf("exit status %d", status.ExitStatus())}
	}
	return nil
}

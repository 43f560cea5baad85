package process

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A processTree is a program and everything it started: a job that ends with our handle to it.
type processTree struct {
	cmd *exec.Cmd
	mu  sync.Mutex
	job windows.Handle // 0 where there is none, or when it is closed
}

// RunIfReaper does nothing on Windows, where the system ends a job with the process that holds it.
func RunIfReaper() {}

// canReap reports whether this package can run this program again; nothing here needs that.
func canReap() bool { return true }

func selfPath() (string, error) { return os.Executable() }

// launchTree starts cmd and puts it into a job. Processes that it starts in the instants before are not in the job.
func launchTree(_ context.Context, cmd *exec.Cmd, _ time.Duration) (*processTree, int, error) {
	if err := cmd.Start(); err != nil {
		return nil, 0, err
	}
	t := &processTree{cmd: cmd}
	job, err := newJob()
	if err == nil {
		t.job = job
		err = t.assignToJob()
	}
	if err != nil {
		t.kill()
		_ = t.wait()
		return nil, 0, err
	}
	return t, cmd.Process.Pid, nil
}

// newJob creates a job whose processes end when its last handle is closed: by us, or by our death.
func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		_ = windows.CloseHandle(job)
		return 0, err
	}
	return job, nil
}

func (t *processTree) assignToJob() error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false,
		uint32(t.cmd.Process.Pid))
	if err != nil {
		return err
	}
	defer windows.CloseHandle(process)
	return windows.AssignProcessToJobObject(t.job, process)
}

// wait waits for the program's end, then ends what it started.
func (t *processTree) wait() error {
	err := t.cmd.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.job != 0 {
		_ = windows.CloseHandle(t.job)
		t.job = 0
	}
	return err
}

// terminate kills too: Windows has no signal that asks a process to end.
func (t *processTree) terminate() { t.kill() }

// kill ends everything in the tree.
func (t *processTree) kill() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.job != 0 {
		_ = windows.TerminateJobObject(t.job, 1)
	}
	_ = t.cmd.Process.Kill()
}

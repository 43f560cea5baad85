package process

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A processTree is a program and all processes that it started, in a job object. The processes end when the handle of
// the job is closed.
type processTree struct {
	cmd *exec.Cmd
	mu  sync.Mutex
	job windows.Handle // 0 if there is no job or it is closed
}

// RunIfReaper does nothing on Windows, where the system ends the processes of a job when the process with the job's
// handle ends.
func RunIfReaper() {}

// canReap reports whether this package can run this executable again as a reaper. It returns true, since Windows needs
// no reaper.
func canReap() bool { return true }

func selfPath() (string, error) { return os.Executable() }

// canSupervise returns false: on Windows there is no supervisor.
func canSupervise() bool { return false }

// launchTree starts the program and adds it to a job. Processes that it starts before it was added are not in the job.
func launchTree(_ context.Context, l launch) (*processTree, int, error) {
	cmd := l.cmd
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

// newJob creates a job whose processes are ended when its last handle is closed, also if this process dies.
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

// wait waits until the program has ended, and then ends the other processes of the job.
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

// terminate is the same as kill: Windows has no signal that asks a process to end.
func (t *processTree) terminate() { t.kill() }

// kill kills all processes in the tree.
func (t *processTree) kill() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.job != 0 {
		_ = windows.TerminateJobObject(t.job, 1)
	}
	_ = t.cmd.Process.Kill()
}

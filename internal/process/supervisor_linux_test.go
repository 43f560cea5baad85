//go:build amd64 || arm64

package process_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/confine"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// needSupervisor skips a test if this system, or this run of the tests, has no supervisor.
func needSupervisor(t *testing.T) {
	t.Helper()
	if !process.CanSupervise() {
		t.Skip("it needs the supervisor")
	}
}

// TestWithoutTheSupervisor runs all tests of this package as on a system that cannot run the supervisor.
func TestWithoutTheSupervisor(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes as long as all other tests")
	}
	if os.Getenv(fallback) != "" {
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.run", "^Test")
	cmd.Env = append(os.Environ(), fallback+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestStopEndsTheWholeTree")) ||
		!bytes.Contains(out, []byte("--- SKIP: TestAServerThatKillsItsSupervisor")) {
		t.Errorf("%v:\n%s", err, out)
	}
}

// echo has a program that echoes answer once.
func echo(t *testing.T, p *process.Process, lines *bufio.Reader) {
	t.Helper()
	if _, err := io.WriteString(p.Stdin(), "there\n"); err != nil {
		t.Fatal(err)
	}
	_ = p.Stdout().SetReadDeadline(time.Now().Add(20 * time.Second))
	if line, err := lines.ReadString('\n'); line != "there\n" {
		t.Fatalf("it said %q, %v", line, err)
	}
}

// TestAServerThatKillsItsSupervisor leaves nothing: neither a child that left the session, nor one whose parent ended.
// The other server goes on.
func TestAServerThatKillsItsSupervisor(t *testing.T) {
	needSupervisor(t)
	other := start(t, spec("cat"))
	lines := bufio.NewReader(other.Stdout())
	echo(t, other, lines)
	lights := newLighthouse(t)
	p := start(t, spec("parricide"))
	awaitReady(t, p.Stdout())
	lights.await(4)
	_ = p.Stdin().Close()
	<-p.Done()
	for _, l := range lights.seen { // at once: the end of the program is the end of all
		if !l.ends(time.Second) {
			t.Errorf("%s is alive after the end", l.name)
		}
	}
	want := map[string]int{"parricide": 1, "leaver": 1, "stubborn": 2}
	if diff := cmp.Diff(want, lights.dark()); diff != "" {
		t.Error(diff)
	}
	if got := fmt.Sprint(p.Err()); got != "signal: killed" {
		t.Errorf("the program ended with %q", got)
	}
	echo(t, other, lines)
	if top, after := parentOf(t, parentOf(t, other.PID())), topOf(t, start(t, spec("cat"))); top != after {
		t.Errorf("the top supervisor was %d and is %d", top, after)
	}
}

// topOf returns the process ID of the top supervisor of a program.
func topOf(t *testing.T, p *process.Process) int {
	t.Helper()
	return parentOf(t, parentOf(t, p.PID()))
}

// TestATopSupervisorThatIsKilled costs no server a call, and what it leaves ends as any other.
func TestATopSupervisorThatIsKilled(t *testing.T) {
	needSupervisor(t)
	lights := newLighthouse(t)
	patient := func(name string) process.Spec {
		s := spec(name)
		s.Grace = 20 * time.Second
		return s
	}
	one, tree, last := start(t, patient("cat")), start(t, spec("tree")), start(t, patient("cat"))
	lines := bufio.NewReader(one.Stdout())
	echo(t, one, lines)
	awaitReady(t, tree.Stdout())
	lights.await(5)
	top := topOf(t, one)
	if err := syscall.Kill(top, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	echo(t, one, lines)
	two := start(t, patient("cat"))
	if again := topOf(t, two); again == top || parentOf(t, parentOf(t, two.PID())) != again {
		t.Errorf("the top supervisor was %d and is %d", top, again)
	}
	echo(t, two, bufio.NewReader(two.Stdout()))
	echo(t, one, lines)
	stop(t, tree)
	for _, p := range []*process.Process{last, one, two} {
		stop(t, p)
		if err := p.Err(); err != nil {
			t.Errorf("a program ended with %v", err)
		}
	}
	want := map[string]int{"cat": 3, "tree": 1, "stubborn": 1, "sleeper": 1}
	if diff := cmp.Diff(want, lights.dark()); diff != "" {
		t.Error(diff)
	}
}

// TestKillsInAnyOrder kills the host, the top supervisor and the supervisor of its server, in each order. Of a confined
// server nothing is left. Of another one nothing is left if one of the supervisors lives.
func TestKillsInAnyOrder(t *testing.T) {
	needSupervisor(t)
	orders := []string{"host top own", "host own top", "top host own", "top own host", "own host top", "own top host"}
	for _, order := range append(orders, "host top", "top host", "host own", "own host") {
		confined := strings.Count(order, " ") == 2
		t.Run(order, func(t *testing.T) {
			if confined && !isolates(t) {
				t.Skip("this system permits no PID namespace")
			}
			lights := newLighthouse(t)
			host := command("host")
			host.Env = append(host.Env, hostRole+"=tree")
			if confined {
				host.Env = append(host.Env, cage+"="+t.TempDir())
			}
			out, err := host.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := host.Start(); err != nil {
				t.Fatal(err)
			}
			line, _ := bufio.NewReader(out).ReadString('\n')
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				t.Fatalf("the host said %q", line)
			}
			lights.await(4)
			pids := map[string]int{"host": host.Process.Pid, "own": parentOf(t, pid), "top": parentOf(t, parentOf(t, pid))}
			for name := range strings.FieldsSeq(order) {
				if err := syscall.Kill(pids[name], syscall.SIGKILL); err != nil && err != syscall.ESRCH {
					t.Error(name, err)
				}
			}
			_ = host.Wait()
			want := map[string]int{"host": 1, "tree": 1, "stubborn": 1, "sleeper": 1}
			if diff := cmp.Diff(want, lights.dark()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// isolates reports whether confined programs get a PID namespace on this system.
func isolates(t *testing.T) bool {
	t.Helper()
	if !process.CanSupervise() {
		return false
	}
	s := spec("cat")
	dir := t.TempDir()
	s.Dir, s.Confinement = dir, &confine.Profile{Home: filepath.Join(dir, "home"), UserHome: "/nowhere", Dir: dir}
	p, err := process.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, p)
	ours, err := os.Readlink("/proc/self/ns/pid")
	theirs, err2 := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", p.PID()))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return ours != theirs
}

// TestSupervisorsKeepNoSecret looks for a variable of a program in all that the kernel shows of the supervisors.
func TestSupervisorsKeepNoSecret(t *testing.T) {
	needSupervisor(t)
	canary := "canary-" + strings.Repeat("7d1b", 8)
	p := start(t, spec("cat", "SECRET="+canary))
	other := start(t, spec("cat"))
	echo(t, p, bufio.NewReader(p.Stdout()))
	echo(t, other, bufio.NewReader(other.Stdout()))
	// The same program without a supervisor is the control: some systems do not permit to read the memory of a process.
	plain := command("cat")
	plain.Env = append(plain.Env, "SECRET="+canary)
	in, err := plain.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := plain.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := plain.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = plain.Wait() }()
	if _, err := io.WriteString(in, "up\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	found, want := strings.Count(shown(t, p.PID()), canary), strings.Count(shown(t, plain.Process.Pid), canary)
	if found < max(min(want, 2), 1) { // in the environment, and in memory where it can be read
		t.Fatalf("the variable is found %d times in the program itself, %d times in a child without a supervisor", found, want)
	}
	t.Logf("in the program itself, the variable is found %d times, in a child without a supervisor %d times", found, want)
	for name, pid := range map[string]int{"its supervisor": parentOf(t, p.PID()), "the top": topOf(t, p),
		"another supervisor": parentOf(t, other.PID())} {
		if strings.Contains(shown(t, pid), canary) {
			t.Errorf("%s shows the variable", name)
		}
		fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil && os.Geteuid() == 0 {
			t.Fatal(err)
		}
		for _, fd := range fds {
			target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name()))
			if err == nil && strings.Contains(target, "memfd") {
				t.Errorf("%s has %s open", name, target)
			}
		}
		var owner unix.Stat_t
		if err := unix.Stat(fmt.Sprintf("/proc/%d/environ", pid), &owner); err != nil || owner.Uid != 0 {
			t.Errorf("%s: other processes of the user may read it: user %d, %v", name, owner.Uid, err)
		}
	}
}

// shown returns the environment, the command line and the memory of a process, as far as they can be read. Of a large
// part of the memory it returns the end, where a stack begins.
func shown(t *testing.T, pid int) string {
	t.Helper()
	var all strings.Builder
	for _, name := range []string{"environ", "cmdline"} {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		all.Write(data)
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil && os.Geteuid() == 0 {
		t.Fatal(err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return all.String() // not for us either
	}
	defer memory.Close()
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err == nil {
			from = max(from, to-1<<20)
			for page := make([]byte, os.Getpagesize()); from < to; from += int64(len(page)) {
				n, _ := memory.ReadAt(page, from) // some pages cannot be read
				all.Write(page[:max(n, 0)])
			}
		}
	}
	return all.String()
}

// TestAProgramGetsWhatAnyChildGets: signals, limits and rights are those that a child of this process has without a
// supervisor.
func TestAProgramGetsWhatAnyChildGets(t *testing.T) {
	needSupervisor(t)
	const script = `ulimit -n; ulimit -Hn; umask; pwd; grep -E '^(Sig[BI]|Cap|NoNewPrivs|Seccomp:|Uid|Gid|Groups)' /proc/self/status`
	want, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", script).Output()
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, process.Spec{Command: "/bin/sh", Args: []string{"-c", script}, Env: os.Environ()})
	got, err := io.ReadAll(p.Stdout())
	if diff := cmp.Diff(string(want), string(got)); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// TestWhereProgramsInMemoryAreForbidden runs a host in a PID namespace in which the kernel executes nothing from memory.
func TestWhereProgramsInMemoryAreForbidden(t *testing.T) {
	needSupervisor(t)
	if os.Geteuid() != 0 {
		t.Skip("it needs root")
	}
	if _, err := os.Stat("/proc/sys/vm/memfd_noexec"); err != nil {
		t.Skip("this kernel cannot forbid it")
	}
	lights := newLighthouse(t)
	host := command("memfd-host")
	host.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	out, err := host.Output()
	if err != nil && !errors.Is(err, os.ErrPermission) {
		t.Fatal(err, string(out))
	}
	if err != nil {
		t.Skip("this system permits no PID namespace: ", err)
	}
	if got := string(out); got != "forbidden false\ntrue\n" {
		t.Errorf("the host said %q", got)
	}
	lights.dark()
}

// playMemfdHost forbids programs in memory, and says if that worked, if the supervisor can be used, and if a program
// runs under this executable.
func playMemfdHost() int {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		fmt.Println(err)
		return 1
	}
	if err := errors.Join(unix.Mount("proc", "/proc", "proc", 0, ""),
		os.WriteFile("/proc/sys/vm/memfd_noexec", []byte("2"), 0)); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("forbidden", process.CanSupervise())
	p, err := process.Start(context.Background(), spec("cat"))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	_, after, _ := strings.Cut(string(status), "PPid:")
	var parent int
	_, _ = fmt.Sscan(after, &parent)
	self, _ := os.Readlink("/proc/self/exe")
	theirs, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", parent))
	fmt.Println(self == theirs)
	if err := p.Stop(context.Background()); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// TestWeightOfSupervisors starts fifty programs and adds up what their supervisors weigh.
func TestWeightOfSupervisors(t *testing.T) {
	needSupervisor(t)
	var pids []int
	for range 50 {
		p := start(t, process.Spec{Command: "/bin/cat"})
		pids = append(pids, parentOf(t, p.PID()))
	}
	pids = append(pids, parentOf(t, pids[0]))
	slices.Sort(pids)
	if n := len(slices.Compact(slices.Clone(pids))); n != 51 {
		t.Errorf("%d supervisors, want 51", n)
	}
	sum := map[string]int{}
	for _, pid := range pids {
		for name, value := range memoryOf(t, pid) {
			sum[name] += value
		}
	}
	t.Logf("50 programs: %d supervisors, RSS %d KiB, private %d KiB, %d threads", len(pids), sum["Rss"], sum["Private"],
		sum["Threads"])
	if sum["Rss"] > 10<<10 || sum["Private"] > 5<<10 || sum["Threads"] != 51 {
		t.Error("the supervisors are heavier than 10 MiB, 5 MiB private and a thread each")
	}
}

// memoryOf returns the resident memory in KiB ("Rss"), the private part ("Private") and the number of threads
// ("Threads") of a process.
func memoryOf(t *testing.T, pid int) map[string]int {
	t.Helper()
	sum := map[string]int{}
	for _, file := range []string{"smaps_rollup", "status"} {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		if errors.Is(err, os.ErrPermission) {
			t.Skip("only root can see it")
		}
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			name, value, _ := strings.Cut(line, ":")
			number, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
			switch name {
			case "Rss", "Threads":
				sum[name] += number
			case "Private_Clean", "Private_Dirty":
				sum["Private"] += number
			}
		}
	}
	return sum
}

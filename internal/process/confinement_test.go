//go:build linux

package process_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/confine"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// probe is what a prober is to try: "read PATH" and so on, a line each. It answers each with a line: "ok", with what it
// found, or the error.
const probe = "PROCESS_TEST_PROBE"

// try is one thing that a prober tries.
func try(verb, what string) (string, error) {
	switch verb {
	case "read":
		data, err := os.ReadFile(what)
		return string(data), err
	case "list":
		_, err := os.ReadDir(what)
		return "", err
	case "write":
		return "", os.WriteFile(what, []byte("x"), 0o600)
	case "append":
		f, err := os.OpenFile(what, os.O_WRONLY, 0)
		if err == nil {
			err = f.Close()
		}
		return "", err
	case "truncate":
		return "", os.Truncate(what, 0)
	case "remove":
		return "", os.Remove(what)
	case "move":
		from, to, _ := strings.Cut(what, ",")
		return "", os.Rename(from, to)
	case "link":
		from, to, _ := strings.Cut(what, ",")
		return "", os.Link(from, to)
	case "through": // a symbolic link of its own making
		link := filepath.Join(os.Getenv("HOME"), "link")
		_ = os.Remove(link)
		if err := os.Symlink(what, link); err != nil {
			return "", err
		}
		data, err := os.ReadFile(link)
		return string(data), err
	}
	return tryOthers(verb, what)
}

// tryOthers is try for what is no file.
func tryOthers(verb, what string) (string, error) {
	switch verb {
	case "run":
		p, err := os.StartProcess(what, []string{what}, &os.ProcAttr{})
		if err == nil {
			_, err = p.Wait()
		}
		return "", err
	case "signal":
		pid, _ := strconv.Atoi(what)
		return "", syscall.Kill(pid, 0)
	case "dial":
		network, address, _ := strings.Cut(what, ",")
		conn, err := net.Dial(network, address)
		if err == nil {
			err = conn.Close()
		}
		return "", err
	case "listen":
		l, err := net.Listen("tcp4", what)
		if err == nil {
			err = l.Close()
		}
		return "", err
	case "pair":
		return "", tryPair(what)
	case "netlink":
		protocol, _ := strconv.Atoi(what)
		fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW, protocol)
		if err == nil {
			err = syscall.Close(fd)
		}
		return "", err
	case "interfaces":
		_, err := net.Interfaces()
		return "", err
	case "namespaces":
		return "", tryNamespaces(what)
	case "env":
		return os.Getenv(what), nil
	case "where":
		return os.Getwd()
	case "fds":
		entries, err := os.ReadDir("/proc/self/fd")
		var open []string
		for _, e := range entries {
			target, err := os.Readlink("/proc/self/fd/" + e.Name())
			own := []string{"anon_inode:", "/proc/", "/sys/fs/cgroup/"} // the runtime's, and the listing's
			if err == nil && !slices.ContainsFunc(own, func(p string) bool { return strings.HasPrefix(target, p) }) {
				open = append(open, e.Name())
			}
		}
		return strings.Join(open, " "), err
	case "umask":
		old := syscall.Umask(0)
		return fmt.Sprintf("%04o", old), nil
	}
	return "", errors.New("no such verb")
}

// tryPair makes a pair of sockets of a kind, and sends by one of them to a path.
func tryPair(what string) error {
	kind, path, _ := strings.Cut(what, ",")
	kinds := map[string]int{"stream": syscall.SOCK_STREAM | syscall.SOCK_CLOEXEC, "seqpacket": syscall.SOCK_SEQPACKET,
		"dgram": syscall.SOCK_DGRAM | syscall.SOCK_NONBLOCK, "raw": syscall.SOCK_RAW}
	fds, err := syscall.Socketpair(syscall.AF_UNIX, kinds[kind], 0)
	if err != nil {
		return err
	}
	defer func() { _, _ = syscall.Close(fds[0]), syscall.Close(fds[1]) }()
	if path != "" {
		return syscall.Sendto(fds[0], []byte("out"), 0, &syscall.SockaddrUnix{Name: path})
	}
	return nil
}

// tryNamespaces makes namespaces by one of the calls that do.
func tryNamespaces(how string) error {
	switch how {
	case "unshare": // none, which anybody may
		_, _, errno := syscall.RawSyscall(syscall.SYS_UNSHARE, 0, 0, 0)
		return result(errno)
	case "clone3":
		_, _, errno := syscall.RawSyscall(unix.SYS_CLONE3, 0, 0, 0)
		return result(errno)
	case "setns":
		return unix.Setns(0, 0)
	}
	flags, _ := strconv.ParseUint(how, 0, 32)
	p, err := os.StartProcess("/bin/true", []string{"true"},
		&os.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: uintptr(flags)}})
	if err == nil {
		_, err = p.Wait()
	}
	return err
}

func result(errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

// playProbe answers what the test wants to know.
func playProbe() {
	for line := range strings.SplitSeq(os.Getenv(probe), "\n") {
		verb, what, _ := strings.Cut(line, " ")
		found, err := try(verb, what)
		answer := "ok " + found
		if err != nil {
			answer = "no"
			if errno := syscall.Errno(0); errors.As(err, &errno) {
				answer += " " + errno.Error()
			}
		}
		said, _ := json.Marshal(answer)
		fmt.Println(string(said))
	}
}

// ask has a program of that spec try things, and gives its answers.
func ask(t *testing.T, s process.Spec, tries ...string) map[string]string {
	t.Helper()
	s.Env = append(s.Env, role+"=prober", probe+"="+strings.Join(tries, "\n"))
	p := start(t, s)
	answers := map[string]string{}
	lines := bufio.NewScanner(p.Stdout())
	for _, tried := range tries {
		var answer string
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &answer) != nil {
			t.Fatalf("no answer to %q: %v\n%s", tried, lines.Err(), strings.Join(p.Stderr(), "\n"))
		}
		answers[tried] = strings.TrimSpace(answer)
	}
	return answers
}

// caged gives a spec of a program with a cage, beside a home of a person with a secret in it.
func caged(t *testing.T) (s process.Spec, user string) {
	t.Helper()
	reach := confine.DetectSupport()
	if reach.Landlock < 3 || !reach.Seccomp {
		t.Skipf("this system cannot confine a program: %+v", reach)
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	user = filepath.Join(base, "me")
	for _, dir := range []string{"work", "given", "taken/deep", ".ssh"} {
		if err := os.MkdirAll(filepath.Join(user, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{".ssh/id", "given/data", "taken/data", "single", "sibling"} {
		if err := os.WriteFile(filepath.Join(user, file), []byte("of "+file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = spec("")
	s.Dir = filepath.Join(user, "work")
	s.Env = slices.DeleteFunc(s.Env, func(v string) bool { return strings.HasPrefix(v, role) })
	s.Env = append(s.Env, "HOME="+user, "XDG_CONFIG_HOME="+user+"/.config")
	s.Confinement = &confine.Profile{
		Required: true, Home: filepath.Join(base, "cache", "own"), UserHome: user, Dir: s.Dir,
		Read:  []string{filepath.Join(user, "given"), filepath.Join(user, "single")},
		Write: []string{filepath.Join(user, "taken")},
	}
	return s, user
}

// TestAConfinedProgramDoesItsWorkAndNoMore starts a real program in a cage and has it try everything.
func TestAConfinedProgramDoesItsWorkAndNoMore(t *testing.T) {
	s, user := caged(t)
	near, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	socket := filepath.Join(user, "taken", "s")
	bus, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	own := s.Confinement.Home
	want := map[string]string{
		// its work
		"read " + user + "/given/data":                      "ok of given/data",
		"read " + user + "/single":                          "ok of single",
		"read " + own + "/given/data":                       "ok of given/data", // the way to it from its own home
		"list " + user + "/given":                           "ok",
		"write " + user + "/work/new":                       "ok",
		"move " + user + "/work/new," + user + "/taken/new": "ok",
		"write " + user + "/taken/deep/new":                 "ok",
		"truncate " + user + "/taken/data":                  "ok",
		"remove " + user + "/taken/new":                     "ok",
		"write " + own + "/file":                            "ok",
		"env HOME":                                          "ok " + own,
		"env XDG_CONFIG_HOME":                               "ok",
		"where":                                             "ok " + user + "/work",
		"run /bin/true":                                     "ok",
		"write /dev/null":                                   "ok",
		"list /proc/self/fd":                                "ok",
		"pair stream":                                       "ok",
		"pair seqpacket":                                    "ok",
		"interfaces":                                        "ok",
		"dial tcp4," + near.Addr().String():                 "ok",
		"fds":                                               "ok 0 1 2",
		"signal 0":                                          "ok",
		// and no more
		"read " + user + "/.ssh/id":                               "no permission denied",
		"through " + user + "/.ssh/id":                            "no permission denied",
		"read /proc/self/root" + user + "/.ssh/id":                "no permission denied",
		"read " + user + "/sibling":                               "no permission denied",
		"list " + user:                                            "no permission denied",
		"list " + filepath.Dir(own):                               "no permission denied",
		"write " + user + "/new":                                  "no permission denied",
		"write " + user + "/given/new":                            "no permission denied",
		"append " + user + "/given/data":                          "no permission denied",
		"truncate " + user + "/given/data":                        "no permission denied",
		"truncate " + user + "/.ssh/id":                           "no permission denied",
		"remove " + user + "/given/data":                          "no permission denied",
		"move " + user + "/given/data," + user + "/taken/got":     "no permission denied",
		"link " + user + "/.ssh/id," + user + "/taken/got":        "no invalid cross-device link",
		"write /etc/drawbridge-test":                              "no permission denied",
		fmt.Sprintf("read /proc/%d/environ", os.Getpid()):         "no permission denied",
		fmt.Sprintf("read /proc/%d/root/etc/passwd", os.Getpid()): "no permission denied",
		"dial unix," + socket:                                     "no permission denied",
	}
	if confine.DetectSupport().Landlock >= 6 {
		want[fmt.Sprintf("signal %d", os.Getpid())] = "no operation not permitted"
	}
	var tries []string
	for tried := range want {
		tries = append(tries, tried)
	}
	slices.Sort(tries) // a file is written before it is moved, and that before it is removed
	slices.SortStableFunc(tries, func(a, b string) int { return rank(a) - rank(b) })
	got := ask(t, s, tries...)
	if isolates(t) {
		wantIsolated(want, got)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got):\n", diff)
	}
}

// wantIsolated changes want for a program that sees no process of others.
func wantIsolated(want, got map[string]string) {
	want[fmt.Sprintf("signal %d", os.Getpid())] = "no no such process"
	for _, name := range []string{"environ", "root/etc/passwd"} {
		tried := fmt.Sprintf("read /proc/%d/%s", os.Getpid(), name)
		if got[tried] == "no no such file or directory" { // a new /proc
			want[tried] = got[tried]
		}
	}
}

// rank orders what depends on what came before.
func rank(tried string) int {
	return slices.IndexFunc([]string{"write", "move", "remove", ""},
		func(verb string) bool { return strings.HasPrefix(tried, verb) })
}

func TestAConfinedProgramWithoutANetwork(t *testing.T) {
	s, _ := caged(t)
	s.Confinement.Offline = true
	near, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	at := near.Addr().String()
	want := map[string]string{
		"dial tcp4," + at: "no permission denied", "dial udp4," + at: "no permission denied",
		"listen 127.0.0.1:0": "no permission denied",
		"pair stream":        "ok", "interfaces": "ok", "read /etc/passwd": "ok",
	}
	got := ask(t, s, "dial tcp4,"+at, "dial udp4,"+at, "listen 127.0.0.1:0", "pair stream", "interfaces",
		"read /etc/passwd")
	got["read /etc/passwd"], _, _ = strings.Cut(got["read /etc/passwd"], " ")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got):\n", diff)
	}
}

// TestAConfinedProgramHasNoWayRound: nothing reaches a socket outside by a pair, gains rights in namespaces of its
// own, or hears the kernel's other netlinks.
func TestAConfinedProgramHasNoWayRound(t *testing.T) {
	s, user := caged(t)
	socket := filepath.Join(user, "taken", "d")
	bus, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	const denied, forbidden = "no permission denied", "no operation not permitted"
	want := map[string]string{
		"pair dgram," + socket: denied, "pair raw," + socket: denied, "pair stream," +
			socket: "no transport endpoint is already connected",
		"netlink 0": "ok", "netlink 4": denied, "netlink 9": denied, "netlink 15": denied,
		"namespaces unshare": forbidden, "namespaces setns": forbidden,
		"namespaces clone3": "no function not implemented",
	}
	for _, flag := range []int{unix.CLONE_NEWUSER, unix.CLONE_NEWNS, unix.CLONE_NEWNET, unix.CLONE_NEWPID,
		unix.CLONE_NEWUTS, unix.CLONE_NEWIPC, unix.CLONE_NEWCGROUP} {
		want[fmt.Sprintf("namespaces %#x", flag)] = forbidden
	}
	for _, s.Confinement.Offline = range []bool{false, true} {
		if confine.DetectSupport().Landlock >= 9 { // what sockets lead to is kept by it
			delete(want, "pair dgram,"+socket)
			delete(want, "pair raw,"+socket)
		}
		if diff := cmp.Diff(want, ask(t, s, slices.Sorted(maps.Keys(want))...)); diff != "" {
			t.Errorf("offline %v: (-want +got):\n%s", s.Confinement.Offline, diff)
		}
	}
}

// TestAConfinedProgramIsNotAtHome: one that would start in the person's home starts in its own.
func TestAConfinedProgramIsNotAtHome(t *testing.T) {
	s, user := caged(t)
	for _, dir := range []string{user, filepath.Dir(user), "/"} {
		s.Dir, s.Confinement.Dir = dir, dir
		want := map[string]string{"where": "ok " + s.Confinement.Home, "read " + user +
			"/.ssh/id": "no permission denied", "write " + user + "/x": "no permission denied"}
		if diff := cmp.Diff(want, ask(t, s, "where", "read "+user+"/.ssh/id", "write "+user+"/x")); diff != "" {
			t.Errorf("in %s: (-want +got):\n%s", dir, diff)
		}
	}
}

// TestAConfinedProgramEndsAsAnyOther, with what it started, and leaves no temporary files.
func TestAConfinedProgramEndsAsAnyOther(t *testing.T) {
	s, _ := caged(t)
	s.Env = append(s.Env, role+"=tree")
	p := start(t, s)
	awaitReady(t, p.Stdout())
	if got := p.Confinement(); !strings.HasPrefix(got, "files, sockets") {
		t.Errorf("confined from %q", got)
	}
	temp := filepath.Join(s.Confinement.Home, ".tmp")
	if left, err := os.ReadDir(temp); err != nil || len(left) != 1 {
		t.Errorf("%d temporary directories, %v", len(left), err)
	}
	parent := parentOf(t, p.PID())
	stop(t, p)
	for _, pid := range []int{p.PID(), parent} {
		if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
			t.Errorf("process %d: %v", pid, err)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
		t.Errorf("%d temporary directories are left, %v", len(left), err)
	}
}

// TestWhatCannotBeConfinedIsNotStarted, and says why.
func TestWhatCannotBeConfinedIsNotStarted(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*process.Spec)
		want   string
		code   drawbridge.FaultCode
	}{
		"what is not there": {func(s *process.Spec) { s.Confinement.Read = []string{"/none/of/this"} },
			"confine: /none/of/this does not exist", ""},
		"no home": {func(s *process.Spec) { s.Confinement.Home = "" }, "HOME is not set",
			drawbridge.PolicyBlocked},
		"a home that is a file": {func(s *process.Spec) {
			s.Confinement.Home = filepath.Join(s.Confinement.UserHome, "single")
		}, "confine: create the home: ", ""},
		"no program": {func(s *process.Spec) {
			s.Command = filepath.Join(s.Confinement.UserHome, "work", "garbage")
			if err := os.WriteFile(s.Command, []byte("\x00 no program"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, "confine: exec format error", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := caged(t)
			tt.change(&s)
			p, err := process.Start(t.Context(), s)
			if err == nil {
				stop(t, p)
				t.Fatal("it started")
			}
			if !strings.Contains(err.Error(), tt.want) || tt.code != codeOf(err) {
				t.Errorf("got %q", err)
			}
		})
	}
}

func codeOf(err error) drawbridge.FaultCode {
	if coded, ok := errors.AsType[*confine.UnsupportedError](err); ok {
		return coded.FaultCode()
	}
	return ""
}

// TestEX5Descriptors and TestEX6DirectoryAndUmask are rows EX-5 and EX-6, for a program that is not confined: a
// confined one tells of its descriptors above.
func TestEX5Descriptors(t *testing.T) {
	// as a client may leave one to us: open after an exec
	forgotten, err := syscall.Open(os.DevNull, syscall.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(forgotten)
	got := ask(t, process.Spec{Command: spec("").Command, Env: os.Environ(), Grace: 200 * time.Millisecond}, "fds")
	if diff := cmp.Diff(map[string]string{"fds": "ok 0 1 2"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestEX6DirectoryAndUmask(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ours := syscall.Umask(0)
	syscall.Umask(ours)
	got := ask(t, process.Spec{Command: spec("").Command, Dir: dir, Env: os.Environ(), Grace: 200 * time.Millisecond},
		"where", "umask")
	if diff := cmp.Diff(map[string]string{"where": "ok " + dir, "umask": fmt.Sprintf("ok %04o", ours)},
		got); diff != "" {
		t.Error(diff)
	}
}

// TestEX4TheProgramSeesNothingOfOurs is row EX-4: what a program finds in its environment, by its own word and the
// kernel's, is the base, what its row says, and no secret of ours.
func TestEX4TheProgramSeesNothingOfOurs(t *testing.T) {
	const canary = "canary-5f1c"
	parent := append(os.Environ(), "PATH=/usr/bin:/bin", "HOME=/home/me")
	for _, name := range []string{
		"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "OTHER", "LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS",
		"PYTHONPATH", "GIT_SSH_COMMAND", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "DRAWBRIDGE_TOKEN",
	} {
		parent = append(parent, name+"="+canary)
	}
	for inherit, allowed := range map[bool][]string{false: nil, true: {"OTHER"}} {
		var from []string
		for _, v := range parent {
			name, _, _ := strings.Cut(v, "=")
			if !inherit || !strings.HasPrefix(name, "LD_") { // the dynamic linker would complain in our own program
				from = append(from, v)
			}
		}
		env := process.Environ(from, []string{"API_KEY=mine"}, inherit)
		got := ask(t, process.Spec{Command: spec("").Command, Env: env, Grace: 200 * time.Millisecond},
			"read /proc/self/environ")
		text := got["read /proc/self/environ"]
		if !strings.Contains(text, "API_KEY=mine") || !strings.Contains(text, "HOME=/home/me") {
			t.Errorf("inherit %v: %q", inherit, text)
		}
		if inherit {
			for _, name := range []string{"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "DRAWBRIDGE_TOKEN"} {
				if strings.Contains(text, name+"=") {
					t.Errorf("%s was inherited", name)
				}
			}
			for _, name := range allowed {
				if !strings.Contains(text, name+"="+canary) {
					t.Errorf("%s was not inherited", name)
				}
			}
		} else if strings.Contains(text, canary) {
			t.Errorf("the canary is in %q", text)
		}
	}
}

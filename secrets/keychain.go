package secrets

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/zalando/go-keyring"
)

// A Keychain keeps short texts by name, for one user, out of the reach of who can read files. Get's error is ErrNone where
// it answers and has none of that name, and so is Delete's; any other means that it cannot be had.
type Keychain interface {
	Get(name string) (string, error)
	Set(name, value string) error
	Delete(name string) error
}

// service is under what the operating system's keychain has what is ours.
const service = "drawbridge"

// system is the keychain of the operating system: Keychain, Credential Manager, or what answers for the Secret Service.
type system struct {
	// reachable says why there is none to be asked, without asking.
	reachable func() error
}

var _ Keychain = system{}

func (s system) Get(name string) (string, error) {
	if err := s.reachable(); err != nil {
		return "", err
	}
	value, err := keyring.Get(service, name)
	return value, ours(err)
}

func (s system) Set(name, value string) error {
	if err := s.reachable(); err != nil {
		return err
	}
	return ours(keyring.Set(service, name, value))
}

func (s system) Delete(name string) error {
	if err := s.reachable(); err != nil {
		return err
	}
	return ours(keyring.Delete(service, name))
}

func ours(err error) error {
	if errors.Is(err, keyring.ErrNotFound) {
		return ErrNone
	}
	return err
}

// sessionBus says why there is no session bus to ask for the Secret Service. The library would start one, which nobody
// would ever end.
func sessionBus() error {
	switch runtime.GOOS {
	case "windows", "darwin":
		return nil
	}
	if at := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); at != "" && at != "autolaunch:" {
		return nil
	}
	if me, err := user.Current(); err == nil {
		for _, name := range []string{"bus", "dbus-session"} {
			if _, err := os.Stat(filepath.Join("/run/user", me.Uid, name)); err == nil {
				return nil
			}
		}
	}
	return errors.New("there is no session bus")
}

const (
	// keychainTime is how long a keychain may take: it may be asking the person for a password, or not be there at all.
	keychainTime = 10 * time.Second
	// awayTime is how long one that did not answer is not asked again.
	awayTime = time.Minute
)

// A guard asks a keychain, and nobody waits for it longer than keychainTime. One that does not answer is left alone: for
// awayTime, and for as long as a question is open. Its errors are ErrNone, or ErrAway with the reason.
type guard struct {
	keychain Keychain

	mu    sync.Mutex
	open  int // questions that nobody waits for any more
	until time.Time
	why   error
}

func (g *guard) get(name string) (string, error) {
	return g.ask(func() (string, error) { return g.keychain.Get(name) })
}

// set keeps a value. The reason in its error is ours: a keychain's could repeat the value.
func (g *guard) set(name, value string) error {
	_, err := g.ask(func() (string, error) {
		if g.keychain.Set(name, value) != nil {
			return "", errors.New("it does not take a value")
		}
		return "", nil
	})
	return err
}

// answers says why a keychain cannot be had.
func (g *guard) answers() error {
	if _, err := g.get("vault"); !errors.Is(err, ErrNone) {
		return err
	}
	return nil
}

// An answer of a keychain.
type answer struct {
	value string
	err   error
}

// ask puts a question.
func (g *guard) ask(question func() (string, error)) (string, error) {
	g.mu.Lock()
	open, until, why := g.open, g.until, g.why
	g.mu.Unlock()
	switch {
	case open > 0:
		return "", fmt.Errorf("%w: it has yet to answer an earlier question", ErrAway)
	case time.Now().Before(until):
		return "", fmt.Errorf("%w: %w", ErrAway, why)
	}
	answers := make(chan answer, 1)
	var asking sync.WaitGroup // what a bus does not answer cannot be interrupted: it ends with the process
	asking.Go(func() { answers <- asked(question) })
	timer := time.NewTimer(keychainTime)
	defer timer.Stop()
	select {
	case got := <-answers:
		return got.value, g.note(got.err)
	case <-timer.C:
	}
	g.mu.Lock()
	g.open++
	g.mu.Unlock()
	asking.Go(func() {
		late := <-answers
		g.mu.Lock()
		g.open--
		g.mu.Unlock()
		_ = g.note(late.err) // one that answers late does answer
	})
	return "", g.note(fmt.Errorf("it took longer than %v", keychainTime))
}

// asked puts a question to a library that takes what comes over the bus for what it should be.
func asked(question func() (string, error)) (a answer) {
	defer func() {
		if recover() != nil {
			a = answer{err: errors.New("it answers what it should not")}
		}
	}()
	value, err := question()
	return answer{value, err}
}

// note remembers whether the keychain answered, and gives the error as ours.
func (g *guard) note(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil || errors.Is(err, ErrNone) {
		g.until, g.why = time.Time{}, nil
		return err
	}
	g.until, g.why = time.Now().Add(awayTime), err
	return fmt.Errorf("%w: %w", ErrAway, err)
}

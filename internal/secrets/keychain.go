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

// A Keychain stores short texts by name for one user. Programs that can read the user's files cannot read these texts.
// Get and Delete return ErrNotFound if the keychain has no text of that name. Any other error means that the keychain
// is unavailable.
type Keychain interface {
	Get(name string) (string, error)
	Set(name, value string) error
	Delete(name string) error
}

// keychainService is the service name of Drawbridge's entries in the operating system's keychain.
const keychainService = "drawbridge"

// A systemKeychain is the keychain of the operating system: Keychain on macOS, Credential Manager on Windows, Secret
// Service on Linux.
type systemKeychain struct {
	// reachable returns the reason why the keychain cannot be used; nil if a request may succeed. It does not send a
	// request to the keychain.
	reachable func() error
}

var _ Keychain = systemKeychain{}

func (s systemKeychain) Get(name string) (string, error) {
	if err := s.reachable(); err != nil {
		return "", err
	}
	value, err := keyring.Get(keychainService, name)
	return value, asOurError(err)
}

func (s systemKeychain) Set(name, value string) error {
	if err := s.reachable(); err != nil {
		return err
	}
	return asOurError(keyring.Set(keychainService, name, value))
}

func (s systemKeychain) Delete(name string) error {
	if err := s.reachable(); err != nil {
		return err
	}
	return asOurError(keyring.Delete(keychainService, name))
}

func asOurError(err error) error {
	if errors.Is(err, keyring.ErrNotFound) {
		return ErrNotFound
	}
	return err
}

// checkSessionBus returns an error if there is no D-Bus session bus, which the Secret Service needs. Without this
// check, the library would start a bus that never stops.
func checkSessionBus() error {
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
	return errors.New("no session bus")
}

const (
	// keychainTimeout is the time limit of a request to a keychain. The keychain may ask a person for a password, or
	// may never respond.
	keychainTimeout = 10 * time.Second
	// unavailablePause is the time after a failed or timed-out request during which no request is sent to the keychain.
	unavailablePause = time.Minute
)

// A guardedKeychain limits each request to a keychain to keychainTimeout. For unavailablePause after a failed request,
// and while a timed-out request has no response, it sends no request and returns an error. Its errors are ErrNotFound,
// or ErrKeychainUnavailable with the reason.
type guardedKeychain struct {
	keychain Keychain

	mu          sync.Mutex
	unanswered  int // open requests that timed out
	pausedUntil time.Time
	lastError   error
}

func (g *guardedKeychain) get(name string) (string, error) {
	return g.askWithTimeout(func() (string, error) { return g.keychain.Get(name) })
}

// set stores a value. Its error does not contain the keychain's own error, which might contain the value.
func (g *guardedKeychain) set(name, value string) error {
	_, err := g.askWithTimeout(func() (string, error) {
		if g.keychain.Set(name, value) != nil {
			return "", errors.New("it does not take a value")
		}
		return "", nil
	})
	return err
}

// checkAvailable sends a request to the keychain, and returns the reason why the keychain is unavailable; nil if it is
// available.
func (g *guardedKeychain) checkAvailable() error {
	if _, err := g.get("vault"); !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

// A keychainAnswer is the result of a request to a keychain.
type keychainAnswer struct {
	value string
	err   error
}

// askWithTimeout sends a request to the keychain, and waits up to keychainTimeout for the result.
func (g *guardedKeychain) askWithTimeout(question func() (string, error)) (string, error) {
	g.mu.Lock()
	open, until, why := g.unanswered, g.pausedUntil, g.lastError
	g.mu.Unlock()
	switch {
	case open > 0:
		return "", fmt.Errorf("%w: it has yet to answer an earlier question", ErrKeychainUnavailable)
	case time.Now().Before(until):
		return "", fmt.Errorf("%w: %w", ErrKeychainUnavailable, why)
	}
	answers := make(chan keychainAnswer, 1)
	var asking sync.WaitGroup // a request on the bus cannot be interrupted; it ends with the process
	asking.Go(func() { answers <- askRecovering(question) })
	timer := time.NewTimer(keychainTimeout)
	defer timer.Stop()
	select {
	case got := <-answers:
		return got.value, g.noteAvailability(got.err)
	case <-timer.C:
	}
	g.mu.Lock()
	g.unanswered++
	g.mu.Unlock()
	asking.Go(func() {
		late := <-answers
		g.mu.Lock()
		g.unanswered--
		g.mu.Unlock()
		_ = g.noteAvailability(late.err) // a late response shows that the keychain works
	})
	return "", g.noteAvailability(fmt.Errorf("it took longer than %v", keychainTimeout))
}

// askRecovering sends a request and returns a panic as an error, because the library may panic on unexpected messages.
func askRecovering(question func() (string, error)) (a keychainAnswer) {
	defer func() {
		if recover() != nil {
			a = keychainAnswer{err: errors.New("it answers what it should not")}
		}
	}()
	value, err := question()
	return keychainAnswer{value, err}
}

// noteAvailability stores whether a request succeeded; err is the error of the request. The result is nil, ErrNotFound,
// or ErrKeychainUnavailable with err as the reason.
func (g *guardedKeychain) noteAvailability(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil || errors.Is(err, ErrNotFound) {
		g.pausedUntil, g.lastError = time.Time{}, nil
		return err
	}
	g.pausedUntil, g.lastError = time.Now().Add(unavailablePause), err
	return fmt.Errorf("%w: %w", ErrKeychainUnavailable, err)
}

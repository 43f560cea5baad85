package hub

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"time"
)

// wantProfile is the verb that returns a profile of the hub.
const wantProfile = "profile"

// A ProfileKind is a kind of profile of the hub. No profile contains data of calls, only names of functions, counts and
// addresses.
type ProfileKind string

// The kinds of profiles.
const (
	// GoroutineProfile is a text with the stack of every goroutine.
	GoroutineProfile ProfileKind = "goroutines"
	// HeapProfile and CPUProfile are in the format of pprof.
	HeapProfile ProfileKind = "heap"
	CPUProfile  ProfileKind = "cpu"
)

// maxProfileTime is the maximum duration of a CPU profile.
const maxProfileTime = time.Minute

// A profileAnswer is the hub's response to the verb profile: the data, or an error.
type profileAnswer struct {
	Data  []byte `json:"data,omitempty"`
	Error string `json:"error,omitempty"`
}

// ReadProfile returns a profile of the hub. takes is the duration of a CPU profile, at most one minute; it is ignored
// for other kinds. The error is ErrNoHub if no hub runs.
func ReadProfile(ctx context.Context, o Options, kind ProfileKind, takes time.Duration) ([]byte, error) {
	said := o.newHello(wantProfile)
	said.Profile, said.Millis = kind, takes.Milliseconds()
	var got profileAnswer
	answered := false
	ctx, cancel := context.WithTimeout(ctx, min(max(takes, 0), maxProfileTime)+connectTimeout)
	defer cancel()
	err := requestLines(ctx, o, said, func(text []byte) error {
		answered = true
		return cmp.Or(json.Unmarshal(text, &got), errAnswered)
	})
	switch {
	case errors.Is(err, errAnswered):
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case !answered:
		return nil, errNoHub // the hub ended meanwhile
	}
	if got.Error != "" {
		return nil, errors.New(got.Error)
	}
	return got.Data, nil
}

// sendProfile handles the verb profile.
func (h *hub) sendProfile(ctx context.Context, said hello, l *lineConn) error {
	if err := l.sendWelcome(os.Getpid(), nil); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h.serving.Go(func() {
		defer cancel()
		_, _ = l.in.Next() // returns when the peer closes the connection; it sends nothing more
	})
	var answer profileAnswer
	var err error
	if answer.Data, err = takeProfile(ctx, said); err != nil {
		answer.Error = err.Error()
	}
	err = l.writeJSON(answer)
	_ = l.conn.Close()
	return err
}

// takeProfile takes a profile of this process.
func takeProfile(ctx context.Context, said hello) ([]byte, error) {
	var b bytes.Buffer
	switch said.Profile {
	case GoroutineProfile:
		const allStacks = 2
		err := pprof.Lookup("goroutine").WriteTo(&b, allStacks)
		return b.Bytes(), err
	case HeapProfile:
		err := pprof.Lookup("heap").WriteTo(&b, 0)
		return b.Bytes(), err
	case CPUProfile:
		takes := time.Duration(said.Millis) * time.Millisecond
		if takes <= 0 || takes > maxProfileTime {
			return nil, fmt.Errorf("a CPU profile takes up to %s", maxProfileTime)
		}
		if err := pprof.StartCPUProfile(&b); err != nil {
			return nil, errors.New("another CPU profile is being taken")
		}
		timer := time.NewTimer(takes)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		pprof.StopCPUProfile()
		return b.Bytes(), ctx.Err()
	}
	return nil, fmt.Errorf("the hub has no profile %.40q", said.Profile)
}

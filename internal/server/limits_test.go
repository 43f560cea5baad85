package server

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
)

func TestAShutGateLetsNobodyIn(t *testing.T) {
	var g closeGate
	for range 2 {
		if !g.enter() {
			t.Fatal("an open gate lets nobody in")
		}
	}
	shut := make(chan struct{})
	go func() {
		g.shut()
		close(shut)
	}()
	g.leave()
	select {
	case <-shut:
		t.Error("it is shut while somebody is inside")
	default:
	}
	g.leave()
	<-shut
	if g.enter() {
		t.Error("a shut gate lets work in")
	}
}

// TestATurnstileCounts has many come and go: of each principal there are never more inside than there may be, and
// nobody is kept out for another one's sake, or for one that has left.
func TestATurnstileCounts(t *testing.T) {
	const most, each = 3, 1000
	turnstile := principalLimiter{max: most}
	inside := map[string]*atomic.Int64{"ann": {}, "bob": {}}
	var work sync.WaitGroup
	for _, name := range []string{"ann", "bob"} {
		for range most {
			work.Go(func() {
				for range each {
					leave, ok := turnstile.acquire(name)
					if !ok {
						t.Errorf("%s is kept out, of whom there are at most %d", name, most)
						return
					}
					if n := inside[name].Add(1); n > most {
						t.Errorf("%d of %s are inside", n, name)
					}
					inside[name].Add(-1)
					leave()
				}
			})
		}
	}
	work.Wait()
	var leaves []func()
	for range most {
		leave, _ := turnstile.acquire("ann")
		leaves = append(leaves, leave)
	}
	if _, ok := turnstile.acquire("ann"); ok {
		t.Error("there is one too many")
	}
	leave, ok := turnstile.acquire("bob")
	if !ok {
		t.Fatal("one principal keeps another out")
	}
	leaves = append(leaves, leave)
	rand.Shuffle(len(leaves), func(i, j int) { leaves[i], leaves[j] = leaves[j], leaves[i] })
	for _, leave := range leaves {
		leave()
	}
	if len(turnstile.inProgress) > 0 {
		t.Errorf("of those who have left it keeps %v", turnstile.inProgress)
	}
}

func TestABodyIsReadUpToItsBound(t *testing.T) {
	for _, tt := range []struct {
		name   string
		body   io.Reader
		length int64
		want   string
		status int
	}{
		{"as long as it says", strings.NewReader("12345678"), 8, "12345678", 200},
		{"of a length that nobody knows", strings.NewReader("12345678"), -1, "12345678", 200},
		{"none at all", strings.NewReader(""), 0, "", 200},
		{"too long, and says so", strings.NewReader("123456789"), 9, "", http.StatusRequestEntityTooLarge},
		{"too long, and does not say so", strings.NewReader("123456789"), -1, "", http.StatusRequestEntityTooLarge},
		{"cut off", strings.NewReader("1234"), 8, "", http.StatusBadRequest},
		{"broken", iotest.ErrReader(errors.New("gone")), -1, "", http.StatusBadRequest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodPost, "/", tt.body)
			r.ContentLength = tt.length
			body, ok := readBody(w, r, 8)
			if string(body) != tt.want || ok != (tt.status == 200) || w.Code != tt.status {
				t.Errorf("read %q, %v, status %d", body, ok, w.Code)
			}
		})
	}
}

package upstream

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// A speaker is a modern server that tells of changes. It refuses a request for what begins with "bad:" as a whole,
// with an error that may pass for "busy:", and says yes without what begins with "mute:".
type speaker struct {
	*fake
	// forgets has it forget all requests of a connection when one of them ends, as the Go SDK does.
	forgets bool

	mu   sync.Mutex
	open map[string][]string // what each request listens to, by its id
	gaps int                 // how often nobody listened
}

func newSpeaker(forgets bool) *speaker {
	s := &speaker{fake: newModernFake(onlyModern), forgets: forgets, open: map[string][]string{}}
	s.on(mcp.MethodListen, s.listen)
	s.on(mcp.NoteCancelled, func(_ *fakeConn, m mcp.Message) string {
		s.end(string(rawjson.Get(m.Params, "requestId")))
		return ""
	})
	return s
}

func (s *speaker) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.open, id); s.forgets {
		clear(s.open)
	}
	if len(s.open) == 0 {
		s.gaps++
	}
}

func (s *speaker) listen(c *fakeConn, m mcp.Message) string {
	var agreed []string
	for raw := range rawjson.Elements(rawjson.Get(m.Params, "notifications", "resourceSubscriptions")) {
		uri, _ := rawjson.DecodeString(raw)
		for prefix, code := range map[string]int{"bad:": -32602, "busy:": -32603} {
			if strings.HasPrefix(uri, prefix) {
				if s.forgets {
					s.end(string(m.ID))
				}
				c.say(mcp.Message{ID: m.ID, Error: mcp.NewErrorObject(code, "not "+uri, nil)})
				return ""
			}
		}
		if !strings.HasPrefix(uri, "mute:") {
			agreed = append(agreed, uri)
		}
	}
	s.mu.Lock()
	s.open[string(m.ID)] = agreed
	s.mu.Unlock()
	n := `{}`
	if len(agreed) > 0 {
		n = `{"resourceSubscriptions":["` + strings.Join(agreed, `","`) + `"]}`
	}
	c.note(mcp.NoteListenAck, `{"notifications":`+n+`,"_meta":{"io.modelcontextprotocol/subscriptionId":`+
		string(m.ID)+`}}`)
	return ""
}

// heardBy gives what is listened to, a request each.
func (s *speaker) heardBy() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, uris := range s.open {
		all = append(all, strings.Join(uris, " "))
	}
	return all
}

// TestWhatOneMayNotWatchCostsTheOthersNothing has a server refuse some of what is asked for, on a pipe, where it
// forgets the other requests too, and over HTTP.
func TestWhatOneMayNotWatchCostsTheOthersNothing(t *testing.T) {
	for name, change := range map[string]func(*config.Server){"on a pipe": func(*config.Server) {},
		"over HTTP": overHTTP} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSpeaker(name == "on a pipe")
				r := newRig(t, s.fake, Options{}, change)
				watch := func(uris ...string) (refused string) {
					t.Helper()
					began := time.Now()
					err := r.Watch(t.Context(), "fake", drawbridge.WatchSet{URIs: uris})
					if d := time.Since(began); d != 0 {
						t.Errorf("it took %v", d)
					}
					if some, ok := err.(*drawbridge.UnwatchedError); ok {
						refused = strings.Join(some.Unwatched.URIs, " ")
					} else if err != nil {
						t.Error(err)
					}
					return refused
				}
				for _, step := range []struct{ ask, refused, hears string }{
					{"a:1", "", "a:1"},
					{"a:1 bad:1", "bad:1", "a:1"},
					{"a:1 bad:1", "bad:1", "a:1"},
					{"a:1 busy:1", "busy:1", "a:1"},
					{"a:1", "", "a:1"},
					{"a:1 mute:1", "mute:1", "a:1"},
					{"a:1 a:2 bad:1 a:3 bad:2 mute:1", "bad:1 bad:2 mute:1", "a:1 a:2 a:3"},
					{"a:1 a:2 a:4 busy:1", "busy:1", "a:1 a:2 a:4"},
					{"a:2", "", "a:2"},
					{"", "", ""},
				} {
					refused := watch(strings.Fields(step.ask)...)
					synctest.Wait()
					if diff := cmp.Diff([]string{step.hears}, s.heardBy()); diff != "" || refused != step.refused {
						t.Errorf("asked for %q: refused %q, want %q; listened to (-want +got):\n%s", step.ask, refused,
							step.refused, diff)
					}
				}
				if name == "over HTTP" && s.gaps > 0 {
					t.Errorf("nobody listened %d times", s.gaps)
				}
			})
		})
	}
}

// TestChangesBetweenTwoListeningRequestsAreSeen: the lists change while nobody is there to be told.
func TestChangesBetweenTwoListeningRequestsAreSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpeaker(false)
		r := newRig(t, s.fake, Options{})
		s.on(mcp.MethodListen, func(c *fakeConn, m mcp.Message) string {
			s.on(mcp.MethodToolsList, always(`{"tools":[{"name":"new"}]}`))
			return s.listen(c, m)
		})
		if err := r.Watch(t.Context(), "fake", drawbridge.WatchSet{URIs: []string{"a:1"}}); err != nil {
			t.Fatal(err)
		}
		r.later(DefaultRefreshEvery)
		if l, err := r.Mount(t.Context(), "fake"); err != nil || names(l) != "new" {
			t.Errorf("the fleet knows %q, %v", names(l), err)
		}
	})
}

// TestAServerThatIsBusyWhenItReturns is asked again until it listens.
func TestAServerThatIsBusyWhenItReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpeaker(false)
		r := newRig(t, s.fake, Options{IdleStop: -1})
		if err := r.Watch(t.Context(), "fake", drawbridge.WatchSet{URIs: []string{"a:1"}}); err != nil {
			t.Fatal(err)
		}
		s.on(mcp.MethodListen, func(c *fakeConn, m mcp.Message) string {
			c.say(mcp.Message{ID: m.ID, Error: mcp.NewErrorObject(-32603, "busy", nil)})
			return ""
		})
		r.fake.last().die()
		clear(s.open)
		r.later(time.Minute)
		s.on(mcp.MethodListen, s.listen)
		r.later(2 * maxRemountPause)
		if diff := cmp.Diff([]string{"a:1"}, s.heardBy()); diff != "" {
			t.Errorf("listened to (-want +got):\n%s", diff)
		}
	})
}

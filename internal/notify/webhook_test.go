package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

var call = Approval{ID: "k3f9qzab", Tool: "fs__write_file", Server: "fs", Caller: "client:ci", Client: "bot",
	Expires: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}

// A receiver answers webhooks with one status after the other, and the last one from then on.
type receiver struct {
	mu       sync.Mutex
	statuses []int
	bodies   []string
	headers  []http.Header
	got      chan struct{}
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	text, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies, r.headers = append(r.bodies, string(text)), append(r.headers, req.Header)
	w.WriteHeader(r.statuses[min(len(r.bodies), len(r.statuses))-1])
	r.got <- struct{}{}
}

// run runs a notifier until the test ends, and returns what it logs.
func run(t *testing.T, o Options) (*Notifier, func() string) {
	t.Helper()
	var mu sync.Mutex
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(p)
	}), nil))
	o.pauses = []time.Duration{time.Millisecond, time.Millisecond}
	n := New(o)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return n, func() string {
		stop()
		<-done
		done <- nil
		mu.Lock()
		defer mu.Unlock()
		return log.String()
	}
}

// deliver delivers a message, and returns what is logged.
func deliver(t *testing.T, o Options) string {
	var log bytes.Buffer
	o.Logger, o.pauses = slog.New(slog.NewTextHandler(&log, nil)), []time.Duration{time.Millisecond}
	New(o).deliver(t.Context(), call)
	return log.String()
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestWebhook(t *testing.T) {
	for name, tt := range map[string]struct {
		secret string
		key    []byte
	}{
		"a plain secret":  {"a long secret", []byte("a long secret")},
		"a Base64 secret": {"whsec_" + base64.StdEncoding.EncodeToString([]byte{1, 2, 3, 250}), []byte{1, 2, 3, 250}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &receiver{statuses: []int{503, 429, 204}, got: make(chan struct{}, 9)}
			srv := httptest.NewServer(r)
			defer srv.Close()
			n, logged := run(t, Options{WebhookURL: srv.URL + "/hook?key=in-the-url", WebhookSecret: tt.secret})
			n.Announce(call)
			for range 3 {
				<-r.got
			}
			var body map[string]any
			if err := json.Unmarshal([]byte(r.bodies[2]), &body); err != nil || body["type"] != "approval.pending" {
				t.Fatalf("%v: %s", err, r.bodies[2])
			}
			data := body["data"].(map[string]any)
			for member, want := range map[string]string{"id": "k3f9qzab", "tool": "fs__write_file", "server": "fs",
				"caller": "client:ci", "client": "bot", "expires": "2026-01-02T03:04:05Z",
				"show": "drawbridge ask show k3f9qzab"} {
				if data[member] != want {
					t.Errorf("%s is %v, want %v", member, data[member], want)
				}
			}
			for i, h := range r.headers {
				mac := hmac.New(sha256.New, tt.key)
				mac.Write([]byte(h.Get("webhook-id") + "." + h.Get("webhook-timestamp") + "." + r.bodies[i]))
				want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
				if got := h.Get("webhook-signature"); got != want || h.Get("webhook-id") != "approval_k3f9qzab" {
					t.Errorf("attempt %d: %v", i, h)
				}
			}
			if text := logged(); text != "" {
				t.Errorf("logged: %s", text)
			}
		})
	}
}

// TestWebhookThatFails: a refusal is final, and neither the URL nor the secret is in the log.
func TestWebhookThatFails(t *testing.T) {
	r := &receiver{statuses: []int{404}, got: make(chan struct{}, 9)}
	srv := httptest.NewServer(r)
	text := deliver(t, Options{WebhookURL: srv.URL + "/hook?key=in-the-url", WebhookSecret: "the-secret"})
	if len(r.bodies) != 1 {
		t.Errorf("%d attempts", len(r.bodies))
	}
	srv.Close()
	text += deliver(t, Options{WebhookURL: srv.URL + "/hook?key=in-the-url", WebhookSecret: "the-secret"})
	if !strings.Contains(text, "the receiver answers 404") || !strings.Contains(text, "connection refused") {
		t.Errorf("logged: %s", text)
	}
	if strings.Contains(text, "in-the-url") || strings.Contains(text, "the-secret") {
		t.Errorf("a secret is in the log: %s", text)
	}
}

// TestAnnounceDoesNotWait: a receiver that hangs costs no caller anything.
func TestAnnounceDoesNotWait(t *testing.T) {
	var log bytes.Buffer
	n := New(Options{WebhookURL: "http://127.0.0.1:1", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range maxQueued + 1 {
		n.Announce(call)
	}
	if !strings.Contains(log.String(), "too many wait already") {
		t.Errorf("logged: %s", log.String())
	}
}

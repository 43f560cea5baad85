package storetest

import (
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func testClients(t *testing.T, p OpenStore) {
	s, other := p(), p()
	has := func(want bool) {
		t.Helper()
		got, err := other.HasClients(t.Context())
		if requireNoError(t, err); got != want {
			t.Errorf("there are clients: %v", got)
		}
	}
	has(false)
	token := func(text string) [sha256.Size]byte { return sha256.Sum256([]byte(text)) }
	end := time.Date(2027, 1, 2, 3, 4, 5, 6e6, time.UTC)
	ci := store.Client{Name: "ci", Scopes: []drawbridge.Scope{"mcp:github", "mcp:fs"}, Origin: workspace.Observed,
		Expires: end}
	bot := store.Client{Name: "a.bot_1-x", Scopes: []drawbridge.Scope{}, Origin: workspace.AgentProduced}
	plain := bot // without an origin, the default is stored
	plain.Origin = ""
	requireNoError(t, s.AddClient(t.Context(), ci, token("one")))
	requireNoError(t, s.AddClient(t.Context(), plain, token("two")))
	has(true)
	ignore := cmpopts.IgnoreFields(store.Client{}, "Created")
	all, err := other.Clients(t.Context())
	requireNoError(t, err)
	if diff := cmp.Diff([]store.Client{bot, ci}, all, ignore); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, c := range all {
		if c.Created.IsZero() {
			t.Errorf("%s was never made", c.Name)
		}
	}
	got, ok, err := other.ClientByToken(t.Context(), token("one"))
	if diff := cmp.Diff(ci, got, ignore); !ok || err != nil || diff != "" {
		t.Errorf("found %v, %v, -want +got:\n%s", ok, err, diff)
	}
	if _, ok, err := other.ClientByToken(t.Context(), token("three")); ok || err != nil {
		t.Errorf("a token of nobody's: %v, %v", ok, err)
	}
	testClientNames(t, s, token)
	noon := time.Date(2026, 11, 21, 12, 30, 0, 0, time.UTC)
	requireNoError(t, s.MarkClientUsed(t.Context(), "ci", noon))
	// a process whose clock is behind must not change the day
	requireNoError(t, s.MarkClientUsed(t.Context(), "ci", noon.Add(-48*time.Hour)))
	if got, _, _ := other.ClientByToken(t.Context(), token("one")); !got.Used.Equal(noon.Truncate(24 * time.Hour)) {
		t.Errorf("used on %v", got.Used)
	}
	for _, want := range []bool{true, false} {
		if removed, err := s.RemoveClient(t.Context(), "ci"); removed != want || err != nil {
			t.Errorf("removed %v, %v", removed, err)
		}
	}
	if _, ok, err := other.ClientByToken(t.Context(), token("one")); ok || err != nil {
		t.Errorf("a client that was removed: %v, %v", ok, err)
	}
}

// testClientNames tests that AddClient refuses a client with an invalid name or an unknown origin, and a client whose
// name or token is already in use.
func testClientNames(t *testing.T, s TestedStore, token func(string) [sha256.Size]byte) {
	t.Helper()
	for _, tt := range []struct {
		name, token string
		origin      workspace.Origin
	}{
		{"ci", "three", ""}, {"three", "one", ""}, {"", "three", ""}, {"a b", "three", ""}, {"a@b", "three", ""},
		{"../x", "three", ""}, {strings.Repeat("x", 65), "three", ""}, {"three", "three", "seen"},
	} {
		err := s.AddClient(t.Context(), store.Client{Name: tt.name, Origin: tt.origin}, token(tt.token))
		f, isFault := errors.AsType[*drawbridge.Fault](err)
		_, isName := errors.AsType[drawbridge.NameError](err)
		if !isName && (!isFault || f.Code != drawbridge.InvalidInput) {
			t.Errorf("client %q with the token %s: %v", tt.name, tt.token, err)
		}
	}
}

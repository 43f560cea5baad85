package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/oklog/ulid/v2"
)

// TestCallersAreToldApart has callers of whom one describes what another one does, in part: what is remembered of one
// is not another's.
func TestCallersAreToldApart(t *testing.T) {
	editor, longer := json.RawMessage(`{"name":"editor","version":"1.2"}`),
		json.RawMessage(`{"name":"editor","title":"`+strings.Repeat("x", maxCallerKeyLen)+`"}`)
	var k callerCache
	for range 2 {
		for _, tt := range []struct {
			session string
			client  json.RawMessage
			want    callerIdentity
		}{
			{"", nil, callerIdentity{}},
			{"s", nil, callerIdentity{session: "043a7187"}},
			{"s", editor, callerIdentity{"043a7187", "editor 1.2"}},
			{"t", editor, callerIdentity{"e3b98a4d", "editor 1.2"}},
			{"", editor, callerIdentity{client: "editor 1.2"}},
			{string(editor), nil, callerIdentity{session: "56df2d16"}},
			{"s", json.RawMessage(`{"name":"other"}`), callerIdentity{"043a7187", "other"}},
			{"s", longer, callerIdentity{"043a7187", "editor"}},
		} {
			if got := k.get(&drawbridge.Caller{Session: tt.session, Client: tt.client}); got != tt.want {
				t.Errorf("%q with %.40s is %+v, want %+v", tt.session, tt.client, got, tt.want)
			}
		}
	}
	if len(k.all) != 6 {
		t.Errorf("%d callers are remembered", len(k.all))
	}
	for n := range maxCallers + 10 {
		k.get(&drawbridge.Caller{Session: fmt.Sprint(n)})
	}
	if len(k.all) > maxCallers {
		t.Errorf("%d callers are remembered", len(k.all))
	}
}

// TestIDsAreInOrder has many of one millisecond, and of those after it.
func TestIDsAreInOrder(t *testing.T) {
	trail, at, last := NewCallLog(silent{}, nil), time.UnixMilli(1_700_000_000_123), ""
	for n := range 1000 {
		then := at.Add(time.Duration(n/100) * time.Millisecond)
		id := trail.newID(then)
		u, err := ulid.ParseStrict(id)
		if err != nil || id <= last || u.Time() != uint64(then.UnixMilli()) {
			t.Fatalf("%d: %s comes after %s: %v", n, id, last, err)
		}
		last = id
	}
}

// TestAContextIsAboutOneCall has a call in the course of another one, and a context that is made from its own.
func TestAContextIsAboutOneCall(t *testing.T) {
	type other struct{}
	outside, cancel := context.WithCancel(context.WithValue(t.Context(), other{}, "kept"))
	trail := NewCallLog(silent{}, nil)
	first, entry := trail.Begin(outside, drawbridge.Call{})
	second, inner := trail.Begin(context.WithoutCancel(first), drawbridge.Call{})
	if CallID(outside) != "" || CallID(first) != entry.id ||
		CallID(second) != inner.id ||
		inner.parent != entry.id || inner.id <= entry.id {
		t.Errorf("the contexts are about %v, %v and %v", CallID(outside), CallID(first),
			CallID(second))
	}
	derived, stop := context.WithCancel(first)
	defer stop()
	if cancel(); first.Err() == nil || derived.Err() == nil || second.Err() != nil || second.Value(other{}) != "kept" {
		t.Errorf("after the end: %v, %v, %v, %v", first.Err(), derived.Err(), second.Err(), second.Value(other{}))
	}
}

type silent struct{ Recorder }

// TestContentOfAWriteIsADigest: a record has the SHA-256 of the content that a call writes to the workspace, in every form
// of arguments.
func TestContentOfAWriteIsADigest(t *testing.T) {
	crossing := &drawbridge.Crossing{Content: "text"}
	for _, arguments := range []string{`{"page":"p","title":"the secret","text":"the secret"}`, `"{\"text\":\"the secret\"}"`} {
		got := string(withoutContent(json.RawMessage(arguments), crossing))
		if strings.Contains(got, "secret") || !strings.Contains(got, "sha256:") || strings.Contains(arguments, `"page"`) != strings.Contains(got, `"page":"p"`) {
			t.Errorf("%s is recorded as %s", arguments, got)
		}
	}
	for _, c := range []*drawbridge.Crossing{nil, {Write: "permission"}} {
		if got := string(withoutContent(json.RawMessage(`{"text":"x"}`), c)); got != `{"text":"x"}` {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

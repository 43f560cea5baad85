package trail

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/oklog/ulid/v2"
)

// TestCallersAreToldApart has callers of whom one says what another one does, in part: what is remembered of one is not another's.
func TestCallersAreToldApart(t *testing.T) {
	editor, longer := json.RawMessage(`{"name":"editor","version":"1.2"}`), json.RawMessage(`{"name":"editor","title":"`+strings.Repeat("x", longCaller)+`"}`)
	var k callers
	for range 2 {
		for _, tt := range []struct {
			session string
			client  json.RawMessage
			want    known
		}{
			{"", nil, known{}},
			{"s", nil, known{session: "043a7187"}},
			{"s", editor, known{"043a7187", "editor 1.2"}},
			{"t", editor, known{"e3b98a4d", "editor 1.2"}},
			{"", editor, known{client: "editor 1.2"}},
			{string(editor), nil, known{session: "56df2d16"}},
			{"s", json.RawMessage(`{"name":"other"}`), known{"043a7187", "other"}},
			{"s", longer, known{"043a7187", "editor"}},
		} {
			if got := k.of(&drawbridge.Caller{Session: tt.session, Client: tt.client}); got != tt.want {
				t.Errorf("%q with %.40s is %+v, want %+v", tt.session, tt.client, got, tt.want)
			}
		}
	}
	if len(k.all) != 6 {
		t.Errorf("%d callers are remembered", len(k.all))
	}
	for n := range maxCallers + 10 {
		k.of(&drawbridge.Caller{Session: fmt.Sprint(n)})
	}
	if len(k.all) > maxCallers {
		t.Errorf("%d callers are remembered", len(k.all))
	}
}

func TestIDsAreInOrder(t *testing.T) {
	trail := New(silent{}, nil)
	at := time.UnixMilli(1_700_000_000_123)
	last := ""
	for n := range 1000 {
		id := trail.id(at.Add(time.Duration(n/100) * time.Millisecond))
		if u, err := ulid.ParseStrict(id); err != nil || id <= last || u.Time() != uint64(at.UnixMilli())+uint64(n/100) {
			t.Fatalf("%s comes after %s: %v", id, last, err)
		}
		last = id
	}
}

type silent struct{ Audit }

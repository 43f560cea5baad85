package upstream

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/google/go-cmp/cmp"
)

func TestWhatAnAcknowledgementLeavesOut(t *testing.T) {
	asked := drawbridge.WatchSet{URIs: []string{"a:1", "a:2"}, Tasks: []string{"t"}}
	for agreed, want := range map[string][]string{
		``:   nil, // a server that does not say agrees to all
		`{}`: {"a:1", "a:2"},
		`{"resourceSubscriptions":["a:2",7,"b:1"]}`:                     {"a:1"},
		`{"resourceSubscriptions":["a:1","\u0061:2"]}`:                  nil,
		`{"toolsListChanged":true,"resourceSubscriptions":"a:1"}`:       {"a:1", "a:2"},
		`{"resourceSubscriptions":["a:2","a:1"],"toolsListChanged":[]}`: nil,
	} {
		if diff := cmp.Diff(drawbridge.WatchSet{URIs: want}, unacknowledgedResources(asked,
			json.RawMessage(agreed))); diff != "" {
			t.Errorf("%s leaves out (-want +got):\n%s", agreed, diff)
		}
	}
}

func TestRefusals(t *testing.T) {
	no := errors.New("no")
	r := watchRefusals{
		{drawbridge.UnwatchedError{Unwatched: drawbridge.WatchSet{URIs: []string{"a:1", "a:2"}}, Err: no}, true},
		{drawbridge.UnwatchedError{Unwatched: drawbridge.WatchSet{URIs: []string{"a:3"}, Tasks: []string{"t"}},
			Err: no}, false},
	}
	for name, got := range map[string]watchRefusals{
		"all":            r,
		"the final ones": r.finalOnes(),
		"of some":        r.within(drawbridge.WatchSet{URIs: []string{"a:2", "a:4"}, Tasks: []string{"t"}}),
	} {
		want := map[string]drawbridge.WatchSet{
			"all":            {URIs: []string{"a:1", "a:2", "a:3"}, Tasks: []string{"t"}},
			"the final ones": {URIs: []string{"a:1", "a:2"}},
			"of some":        {URIs: []string{"a:2"}, Tasks: []string{"t"}},
		}[name]
		if diff := cmp.Diff(want, got.watchSet()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

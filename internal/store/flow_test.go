package store_test

import (
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/flow"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/google/go-cmp/cmp"
)

// TestFlowLabelsOnlyFall stores labels of a run and of a file in several orders: what is stored is the join of all.
func TestFlowLabelsOnlyFall(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db := open(t, location)
		mail := flow.Source{Kind: "result", Name: "mail__message", Server: "mail", Label: flow.Label{Integrity: flow.Untrusted}}
		if _, ok, err := db.FlowRun(t.Context(), "r1"); ok || err != nil {
			t.Fatalf("an unknown run: %v, %v", ok, err)
		}
		for _, label := range []flow.Label{{Integrity: flow.Project, Confidentiality: flow.Internal}, {Integrity: flow.Trusted, Confidentiality: flow.Private},
			{Integrity: flow.Untrusted}, flow.Clean} {
			if err := db.JoinFlowRun(t.Context(), "r1", label, []flow.Source{mail}); err != nil {
				t.Fatal(err)
			}
			if err := db.JoinFlowFiles(t.Context(), store.FlowFile{Path: "/a", Label: label, Origin: mail}, store.FlowFile{Path: "/b", Label: flow.Clean}); err != nil {
				t.Fatal(err)
			}
		}
		lowest := flow.Label{Integrity: flow.Untrusted, Confidentiality: flow.Private}
		r, ok, err := open(t, location).FlowRun(t.Context(), "r1")
		if !ok || err != nil || r.Label != lowest || !cmp.Equal(r.Origins, []flow.Source{mail}) {
			t.Errorf("the run is %+v, %v, %v", r, ok, err)
		}
		files, err := db.FlowFiles(t.Context())
		if err != nil || len(files) != 2 {
			t.Fatalf("the files are %+v, %v", files, err)
		}
		for _, f := range files {
			if want := map[string]flow.Label{"/a": lowest, "/b": flow.Clean}[f.Path]; f.Label != want {
				t.Errorf("%s is %s, want %s", f.Path, f.Label, want)
			}
		}
	})
}

func TestEndorsements(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db := open(t, location)
		value := store.Endorsement{ID: "e1", Principal: "ada", Hash: "h1", Shown: "NL99", Origin: "result mail__message", Label: "untrusted", By: "ada, here"}
		once := store.Endorsement{ID: "e2", Principal: "ada", Server: "bank", Tool: "pay", Place: "note", Sends: true, Hash: "h1", Shown: "NL99", By: "ada, here"}
		if err := db.AddEndorsements(t.Context(), time.Hour, value, once); err != nil {
			t.Fatal(err)
		}
		if err := db.AddEndorsements(t.Context(), 0, store.Endorsement{ID: "e3", Principal: "ada", Hash: "gone"}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			of   store.Endorsement
			want bool
		}{
			{value, true}, {once, true},
			{store.Endorsement{Principal: "eve", Hash: "h1"}, false},
			{store.Endorsement{Principal: "ada", Hash: "h2"}, false},
			{store.Endorsement{Principal: "ada", Hash: "h1", Sends: true}, false},
			{store.Endorsement{Principal: "ada", Server: "bank", Tool: "pay", Place: "other", Sends: true, Hash: "h1"}, false},
			{store.Endorsement{Principal: "ada", Hash: "gone"}, false},
		} {
			if ok, err := db.Endorsed(t.Context(), c.of); ok != c.want || err != nil {
				t.Errorf("%+v: %v, %v", c.of, ok, err)
			}
		}
		again := value
		again.ID, again.By = "e4", "bob, there"
		if err := db.AddEndorsements(t.Context(), time.Hour, again); err != nil {
			t.Fatal(err)
		}
		all, err := db.Endorsements(t.Context())
		if err != nil || len(all) != 2 {
			t.Fatalf("the endorsements are %+v, %v", all, err)
		}
		for id, want := range map[string]bool{"e1": false, "e4": true, "e2": true} {
			if removed, err := db.RemoveEndorsement(t.Context(), id); removed != want || err != nil {
				t.Errorf("remove %s: %v, %v", id, removed, err)
			}
		}
		if all, err := db.Endorsements(t.Context()); len(all) != 0 || err != nil {
			t.Errorf("after the removal: %+v, %v", all, err)
		}
	})
}
